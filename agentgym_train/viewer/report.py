"""``report.html``: one self-contained page about a run, and about others beside it.

The evidence of a run is held-out success at one fixed horizon, with intervals, beside controls
of equal compute; so that is the first picture. Success during training stands apart and says at
which horizon it was measured: under a growing horizon it rises by itself.

Here the numbers are put together; the page in ``report.html`` beside this file draws them. It loads
nothing, so it can be kept and sent. Left out: a server.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from agentgym_envs.episodes import Episode, read_episodes
from agentgym_envs.monitoring import replay
from agentgym_train.config import read_config
from agentgym_train.loggers import read_metrics
from agentgym_train.metrics import METRICS
from agentgym_train.runs import RunFolder

_NUM_EPISODES = 3
"""How many episodes of a file are shown."""


def write_report(folder: RunFolder, beside: Sequence[RunFolder] = ()) -> Path:
    """Write ``report.html`` of a run.

    Args:
        folder: the run.
        beside: other runs whose curves are drawn in the same pictures: controls.

    Returns:
        The file.
    """
    alarms = replay(read_config(folder.config).monitor.build(), read_metrics(folder.metrics))
    data = {
        "runs": [_curves(run) for run in (folder, *beside)],
        "metrics": {name: dataclasses.asdict(metric) for name, metric in METRICS.items()},
        "alarms": [[step, alarm.reason] for step, alarm in alarms],
        "result": folder.read_result(),
        "episodes": {
            path.stem: [*map(_transcript, itertools.islice(read_episodes(path), _NUM_EPISODES))]
            for path in sorted(folder.episodes(0).parent.glob("*.jsonl"))
        },
        "settings": folder.config.read_text(encoding="utf-8"),
    }
    page = (resources.files("agentgym_train.viewer") / "report.html").read_text("utf-8")
    # Only "<" could end the script that holds the data, and it stands in strings alone.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    folder.report.write_text(page.replace("{{data}}", text), encoding="utf-8")
    return folder.report


def _curves(folder: RunFolder) -> dict[str, Any]:
    config = read_config(folder.config)
    warmup, horizon = config.warmup.steps, config.horizon
    return {
        "name": folder.path.name,
        "description": f"{config.run.algorithm}, {config.run.steps} steps, warm-up of {warmup}",
        "warmup_steps": warmup,
        "eval_horizon": config.eval.horizon,
        "horizons": f"{horizon.schedule}, {', '.join(map(str, horizon.stages))} turns",
        "lines": list(read_metrics(folder.metrics)),
    }


def _transcript(episode: Episode) -> dict[str, Any]:
    """A headline, and texts with their kinds."""
    texts = [["observation", episode.first_observation]]
    for turn in episode.turns:
        texts.append(["reply" if turn.action_valid else "invalid", turn.reply])
        texts.append(["observation", turn.observation])
    outcome = f"{episode.end_reason}, return {episode.return_:g}, horizon {episode.horizon}"
    return {"headline": f"{episode.task.id}: {outcome}", "texts": texts}
