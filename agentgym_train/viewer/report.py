"""``report.html``: one self-contained page about a run, and about others beside it.

The evidence of a run is held-out success at one fixed horizon, with intervals, beside controls
of equal compute; so that is the first picture. Success during training stands apart and says at
which horizon it was measured: under a growing horizon it rises by itself.
"""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.episodes import Episode, read_episodes
from agentgym_train.config import TrainConfig, read_config
from agentgym_train.loggers.jsonl import read_metrics
from agentgym_train.metrics import METRICS
from agentgym_train.runs import RunFolder

_CURVES = (
    "rollout/success",
    "rollout/return",
    "rollout/turns",
    "rollout/invalid",
    "rollout/useful",
    "train/loss",
    "train/entropy",
    "train/kl_k3",
    "train/grad_norm",
    "train/logprob_gap_max",
    "speed/sampled_tokens",
    "speed/train_tokens",
)
_NUM_EPISODES = 3
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
h1, h2 { line-height: 1.2; } img { max-width: 100%; }
table { border-collapse: collapse; }
td, th { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #ddd; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f6f6f4; padding: .8rem; overflow-x: auto; white-space: pre-wrap; }
.obs { color: #555; } .reply { color: #0a5; font-weight: 600; } .bad { color: #b30; }
"""


def write_report(folder: RunFolder, beside: Sequence[RunFolder] = ()) -> Path:
    """Write ``report.html`` of a run.

    Args:
        folder: the run.
        beside: other runs whose held-out success is drawn in the same picture: controls.

    Returns:
        The file.
    """
    config = read_config(folder.config)
    metrics = list(read_metrics(folder.metrics))
    parts = [
        f"<h1>{html.escape(folder.path.name)}</h1>",
        _summary(folder, config),
        "<h2>Held-out success at a fixed horizon</h2>",
        _held_out([folder, *beside], config),
        "<h2>Training</h2>",
        f"<p>Measured on training episodes, with the horizon of each step: {_stages(config)}. "
        "Success under a growing horizon rises by itself; it is no evidence.</p>",
        _training_curves(metrics),
        _time_table(metrics),
        "<h2>Episodes</h2>",
        *_episodes(folder),
        "<h2>Settings</h2>",
        f"<pre>{html.escape(folder.config.read_text(encoding='utf-8'))}</pre>",
    ]
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>'
        f"{html.escape(folder.path.name)}</title><style>{_STYLE}</style>{''.join(parts)}</html>"
    )
    folder.report.write_text(page, encoding="utf-8")
    return folder.report


def read_result(folder: RunFolder) -> dict[str, Any]:
    """The figures of a finished run, or {} while it has none."""
    if not folder.result.is_file():
        return {}
    result: dict[str, Any] = json.loads(folder.result.read_text(encoding="utf-8"))
    return result


def _summary(folder: RunFolder, config: TrainConfig) -> str:
    result = read_result(folder)
    rows = []
    for name in ("before", "after"):
        report = result.get("reports", {}).get(name)
        if report:
            low, high = report["interval_95"]
            rows.append(
                f"<tr><td>{name} training<td class=n>{report['success']:.3f}"
                f"<td>[{low:.3f}, {high:.3f}]<td class=n>{report['success_greedy']:.3f}"
                f"<td class=n>{report['n']}<td>{report['split']}<td class=n>{report['horizon']}"
            )
    if not rows:
        return "<p>The run is not finished.</p>"
    return (
        "<table><tr><th><th>success, sampled<th>95 % interval<th>greedy<th>tasks<th>split"
        f"<th>horizon{''.join(rows)}</table>"
        f"<p>{config.run.algorithm}, {config.run.steps} steps after a warm-up of "
        f"{config.warmup.steps}; {result['seconds']:.0f} s on {html.escape(result['device'])}.</p>"
    )


def _stages(config: TrainConfig) -> str:
    stages = ", ".join(str(turns) for turns in config.horizon.stages)
    return f"{config.horizon.schedule}, {stages} turns"


def _figure(width: float, height: float, rows: int, columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _image(figure: Any, alternative: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(alternative)}" src="data:image/png;base64,{data}">'


def _held_out(folders: Sequence[RunFolder], config: TrainConfig) -> str:
    figure, ((axes,),) = _figure(8, 4, 1, 1)
    for folder in folders:
        points = [line for line in read_metrics(folder.metrics) if "eval/success" in line]
        steps = [line["step"] for line in points]
        success = [line["eval/success"] for line in points]
        low = [line["eval/success"] - line["eval/success_low"] for line in points]
        high = [line["eval/success_high"] - line["eval/success"] for line in points]
        horizon = read_config(folder.config).eval.horizon
        same = horizon == config.eval.horizon  # success at another one is no control
        label = folder.path.name if same else f"{folder.path.name} (at horizon {horizon})"
        axes.errorbar(steps, success, [low, high], marker="o", capsize=3, label=label)
    axes.axvline(config.warmup.steps, color="0.8", zorder=0)
    axes.set(
        xlabel="steps done (the line marks the end of the warm-up)",
        ylabel=f"held-out success at horizon {config.eval.horizon}",
        ylim=(0, 1),
    )
    axes.legend()
    return _image(figure, "held-out success by step, with 95 % intervals")


def _training_curves(metrics: Sequence[Mapping[str, Any]]) -> str:
    figure, grid = _figure(11, 9, 4, 3)
    for axes, name in zip(grid.flat, _CURVES, strict=True):
        points = [(line["step"] + 1, line[name]) for line in metrics if name in line]
        axes.plot(*zip(*points, strict=True) if points else ([], []), linewidth=1)
        axes.set_title(name, fontsize=9)
        axes.set_ylabel(METRICS[name].unit, fontsize=8)
        axes.tick_params(labelsize=8)
    return _image(figure, "training metrics by step")


def _time_table(metrics: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in METRICS if name.startswith("time/") and name != "time/step"]
    rows = "".join(
        f"<tr><td>{METRICS[name].meaning}<td class=n>"
        f"{sum(line.get(name, 0.0) for line in metrics):.1f} s"
        for name in names
    )
    return f"<table><tr><th>Where the time went<th>{rows}</table>"


def _episodes(folder: RunFolder) -> list[str]:
    parts = []
    for path in sorted(folder.episodes(0).parent.glob("*.jsonl")):
        episodes = [episode for _, episode in zip(range(_NUM_EPISODES), read_episodes(path))]  # noqa: B905
        body = "\n\n".join(_transcript(episode) for episode in episodes)
        parts.append(f"<details><summary>{path.stem}</summary><pre>{body}</pre></details>")
    return parts


def _transcript(episode: Episode) -> str:
    lines = [
        f"<b>{html.escape(episode.task.id)}</b>: {episode.end_reason}, "
        f"return {episode.return_:g}, horizon {episode.horizon}",
        f'<span class="obs">{html.escape(episode.first_observation)}</span>',
    ]
    for turn in episode.turns:
        kind = "reply" if turn.action_valid else "bad"
        lines.append(f'<span class="{kind}">&gt; {html.escape(turn.reply)}</span>')
        lines.append(f'<span class="obs">{html.escape(turn.observation)}</span>')
    return "\n".join(lines)
