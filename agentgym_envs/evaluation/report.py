"""An evaluation for people, as Markdown. The numbers are those of the JSON, rounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentgym_envs.evaluation.statistics import Estimate
from agentgym_envs.evaluation.summary import Summary


def markdown(summary: Summary, plan: Mapping[str, Any]) -> str:
    """The report.

    Args:
        summary: the figures.
        plan: the fingerprint of the evaluation.
    """
    k, horizon = plan["k"], plan["horizon"]
    sections = [
        f"# {plan['policy'].get('name', 'policy')} on {plan['env_id']}",
        f"{plan['tasks']['number']} tasks, {k} episodes each, at most {horizon} turns. "
        f"{summary.faults} episodes broke and are left out. Intervals are 95 %, over tasks.",
        _table(
            ("", "value", "95 % interval"),
            [
                (f"success (avg@{k})", *_cells(summary.success)),
                ("score", *_cells(summary.score)),
                *(
                    (f"pass@{k}", *_cells(cell))
                    for k, cell in zip(summary.grid.ks, summary.grid.cells[-1], strict=True)
                    if k > 1
                ),
            ],
        ),
        "## By category",
        _table(
            ("category", "tasks", "success", "95 % interval", "score", "95 % interval"),
            [
                (
                    name,
                    str(figures["success"].tasks),
                    *_cells(figures["success"]),
                    *_cells(figures["score"]),
                )
                for name, figures in summary.categories.items()
            ],
        ),
        "## pass@k by horizon",
        "Solved within so many turns and k tries, from one set of episodes; k = 1 is avg@k.",
        _table(
            ("turns", *(f"k = {k}" for k in summary.grid.ks)),
            [
                (str(turns), *(" ".join(_cells(cell)) for cell in row))
                for turns, row in zip(summary.grid.horizons, summary.grid.cells, strict=True)
            ],
        ),
        "## How episodes went",
        _table(("", ""), list(_course(summary))),
        "## What was played",
        _table(("", ""), list(_leaves(plan))),
    ]
    return "\n\n".join(sections) + "\n"


def _course(summary: Summary) -> Iterable[tuple[str, str]]:
    for name, value in summary.turns.items():
        yield f"turns, {name}", _number(value)
    for name, value in summary.tokens.items():
        yield f"tokens, {name.replace('_', ' ')}", _number(value)
    yield "invalid share of turns", "" if summary.invalid is None else f"{summary.invalid:.3f}"
    for reason, count in summary.end_reasons.items():
        yield f"ended by {reason}", str(count)


def _cells(estimate: Estimate) -> tuple[str, str]:
    if not estimate.tasks:
        return "", ""
    return f"{estimate.value:.3f}", f"[{estimate.low:.3f}, {estimate.high:.3f}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())
