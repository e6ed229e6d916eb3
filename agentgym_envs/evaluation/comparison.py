"""Two evaluations of the same tasks, compared task by task.

Pairing takes the difficulty of tasks out of the difference, so its interval is narrower than those
of the two rates suggest: two intervals that overlap say little about the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_envs.errors import InvalidEvaluation
from agentgym_envs.evaluation.plan import differences
from agentgym_envs.evaluation.statistics import Estimate, paired_interval
from agentgym_envs.evaluation.summary import TaskResult

_MUST_AGREE = ("tasks", "horizon", "k")


def compare(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    *,
    names: tuple[str, str] = ("A", "B"),
    only_common: bool = False,
) -> dict[str, Any]:
    """The paired differences of two evaluations, first minus second.

    Args:
        first: a result, as ``result.json`` holds it.
        second: another.
        names: what to call them.
        only_common: compare the tasks that both have, instead of refusing other tasks.

    Returns:
        ``success`` and ``score``, each with value, interval and number of tasks; ``verdict``, each
        in words; how many tasks were solved more often by whom; and ``differs``, all else in which
        the evaluations are not alike.

    Raises:
        InvalidEvaluation: they differ in tasks, horizon or k; the text says where.
    """
    differing = differences(first["plan"], second["plan"])
    required = [name for name in _MUST_AGREE if not (only_common and name == "tasks")]
    if fatal := {
        key: values for key, values in differing.items() if key.partition(".")[0] in required
    }:
        told = [
            f"{key} is {one} in {names[0]} and {other} in {names[1]}"
            for key, (one, other) in fatal.items()
            if key != "tasks.sha256"
        ]
        if "tasks.sha256" in fatal:
            told.append("their tasks are not the same")
        only_tasks = all(key.startswith("tasks.") for key in fatal)
        hint = "; tasks that both have can be compared with --common" if only_tasks else ""
        raise InvalidEvaluation(f"these evaluations cannot be compared: {'; '.join(told)}{hint}")
    pairs = _pairs(first, second)
    success = paired_interval([a.success for a, _ in pairs], [b.success for _, b in pairs])
    score = paired_interval([a.score for a, _ in pairs], [b.score for _, b in pairs])
    both = [
        (a.success, b.success) for a, b in pairs if a.success is not None and b.success is not None
    ]
    return {
        "verdict": {
            "success": verdict(success, names, "success"),
            "score": verdict(score, names, "score"),
        },
        "success": success.to_json(),
        "score": score.to_json(),
        "tasks": {
            names[0]: sum(a > b for a, b in both),
            names[1]: sum(a < b for a, b in both),
            "equal": sum(a == b for a, b in both),
        },
        "differs": {key: list(values) for key, values in differing.items()},
    }


def verdict(difference: Estimate, names: tuple[str, str], figure: str) -> str:
    """A difference in words."""
    shown = (
        f"{difference.value:+.3f}, 95 % interval {difference.low:+.3f} to {difference.high:+.3f}, "
        f"{difference.tasks} tasks"
    )
    if not difference.low > 0 and not difference.high < 0:
        return f"no difference in {figure} shown ({shown})"
    higher, lower = names if difference.low > 0 else names[::-1]
    return f"{higher} has higher {figure} than {lower} ({shown})"


def _pairs(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> list[tuple[TaskResult, TaskResult]]:
    try:
        of_second = {entry["id"]: TaskResult(**entry) for entry in second["tasks"]}
        pairs = [
            (TaskResult(**entry), of_second[entry["id"]])
            for entry in first["tasks"]
            if entry["id"] in of_second
        ]
    except (KeyError, TypeError) as error:
        raise InvalidEvaluation(
            f"not the result of an evaluation: {error!r} in its tasks"
        ) from None
    if not pairs:
        raise InvalidEvaluation("these evaluations have no task in common")
    return pairs
