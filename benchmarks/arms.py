"""Training runs that differ in one thing, compared at equal steps and at equal sampled tokens.

An arm is a name and the settings that make it what it is. All arms of a seed begin with the same
warm-up, weight for weight: it is trained once and saved, and each arm loads it. A step of one arm
samples more tokens than a step of another, so each arm is read twice on the test tasks: after the
same number of steps, and after the same number of sampled tokens. That number is the smallest that
any arm of the seed comes to, so all have been there; an arm is read at its last checkpoint that
has sampled no more, less than `CHECKPOINT_EVERY` steps below it.

Rules of the monitor only warn here: an arm that collapses is a result. Runs and evaluations that
are finished are kept, those that were interrupted go on.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import emit, run_trainer
from numpy.typing import NDArray

from agentgym_train.monitor import MonitorConfig

CHECKPOINT_EVERY = 2
"""Training steps."""

WHERE = ("steps", "tokens")
"""What is equal where arms are compared."""

_RESAMPLES = 10_000


@dataclasses.dataclass(frozen=True)
class World:
    """What all arms have in common.

    Attributes:
        name: of the figures and folders.
        settings: words for the trainer; the preset comes first.
        tasks: how many test tasks are played; the same tasks at every reading.
        episodes: of each task.
    """

    name: str
    settings: str
    tasks: int
    episodes: int


@dataclasses.dataclass(frozen=True)
class Reading:
    """An arm of one seed at one moment.

    Attributes:
        step: after how many steps.
        tokens: sampled by then.
        turns: played by then.
        solved: share of the episodes of each test task that were solved: (T,).
    """

    step: int
    tokens: int
    turns: int
    solved: NDArray[np.float64]


Readings = dict[str, dict[str, Reading]]
"""By arm, then by where: ``start``, and those in `WHERE`."""


def train_arms(world: World, arms: Mapping[str, str], seed: int, out: Path) -> dict[str, Path]:
    """The run folders of all arms with one seed, trained where they are not yet.

    Args:
        world: what they share.
        arms: further words by name of the arm.
        seed: of warm-up and runs.
        out: folder of the run folders.
    """
    warm_up = _train(world, out / f"{world.name}-{seed}-warm-up", seed, "--run.steps", "0")
    begun = ("--model.path", str(_checkpoints(warm_up)[-1] / "model"), "--warmup.steps", "0")
    folders = {
        name: _train(world, out / f"{world.name}-{seed}-{name}", seed, *begun, *settings.split())
        for name, settings in arms.items()
    }
    starts = [result(folder)["reports"]["before"]["sampled"] for folder in folders.values()]
    assert all(start == starts[0] for start in starts), "the arms begin differently"
    return folders


def _train(world: World, folder: Path, seed: int, *settings: str) -> Path:
    """Train into `folder`, go on with the run that is there, or leave it if it is finished."""
    if (folder / "result.json").exists():
        return folder
    if (folder / "config.toml").exists():
        run_trainer("resume", str(folder))
        return folder
    rules = [field.name.replace("_", "-") for field in dataclasses.fields(MonitorConfig)]
    run_trainer(
        *world.settings.split(),
        *("--run.seed", str(seed), "--run.dir", str(folder), "--run.save-episodes-every", "0"),
        *("--run.checkpoint-every", str(CHECKPOINT_EVERY), "--run.keep-checkpoints", "1000"),
        *(word for rule in rules for word in (f"--monitor.{rule}.action", "warn")),
        *settings,
    )
    return folder


def read_arms(world: World, folders: Mapping[str, Path]) -> Readings:
    """Evaluate the arms of a seed at the start, at equal steps and at equal sampled tokens.

    Checkpoints that are not read are deleted.
    """
    tokens = {name: sampled(folder)["tokens"] for name, folder in folders.items()}
    budget = min(spent[-1] for spent in tokens.values())
    readings: Readings = {}
    for name, folder in folders.items():
        steps = [_step(path) for path in _checkpoints(folder)]
        affordable = [step for step in steps if tokens[name][step] <= budget]
        at = {"start": 0, "steps": steps[-1], "tokens": affordable[-1]}
        readings[name] = {where: _read(world, folder, step) for where, step in at.items()}
        for path in _checkpoints(folder):
            if _step(path) not in at.values():
                shutil.rmtree(path)
    return readings


def _read(world: World, folder: Path, step: int) -> Reading:
    spent = sampled(folder)
    solved = play(world, folder, step, split="test", tasks=world.tasks)
    return Reading(step, int(spent["tokens"][step]), int(spent["turns"][step]), solved)


def play(world: World, folder: Path, step: int, *, split: str, tasks: int) -> NDArray[np.float64]:
    """Play held-out tasks with the weights after `step` steps: share solved by task, (T,)."""
    out = folder / f"{split}-{step:06d}"
    if not (out / "result.json").exists():
        run_trainer(
            *("eval", str(folder), "--checkpoint", str(step), "--split", split),
            *("--tasks", str(tasks), "--k", str(world.episodes), "--seed", "0"),
            *("--out", str(out), "--resume"),
        )
    played = result(out)["tasks"]
    assert all(task["episodes"] == world.episodes for task in played), f"{out}: episodes broke"
    return np.array([task["solved"] / world.episodes for task in played])


def sampled(folder: Path) -> dict[str, NDArray[np.int64]]:
    """``turns`` and ``tokens`` that a run had sampled after 0, 1, 2, … steps."""
    played = [line for line in metrics(folder) if "rollout/episodes" in line]
    turns = np.array([line["rollout/episodes"] * line["rollout/turns"] for line in played])
    tokens = turns * np.array([line["rollout/reply_tokens"] for line in played])
    return {
        name: np.concatenate([[0], np.cumsum(np.rint(counts).astype(np.int64))])
        for name, counts in (("turns", turns), ("tokens", tokens))
    }


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The records of a run, one a step."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def result(folder: Path) -> dict[str, Any]:
    """What a run or an evaluation wrote at its end."""
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def _checkpoints(folder: Path) -> list[Path]:
    return sorted((folder / "checkpoints").glob("step-*"))


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def report(figure: str, readings: Sequence[Readings], baseline: str) -> list[str]:
    """Emit the figures of all seeds; gives them as the lines of a Markdown table.

    Args:
        figure: begins the name of each figure.
        readings: a seed each.
        baseline: the arm that the others are compared with, paired by seed and task.
    """
    lines = [
        f"| {figure} | after as many steps | minus {baseline} | after as many tokens | minus "
        f"{baseline} | tokens of a run |",
        "|---|---|---|---|---|---|",
    ]
    start = _figure(f"{figure}/start", readings, baseline, "start")
    lines.append(f"| start | {start} | | {start} | | 0 |")
    for arm in readings[0]:
        cells = [arm]
        for where in WHERE:
            cells.append(_figure(f"{figure}/{arm}/equal-{where}", readings, arm, where))
            cells.append(
                _figure(f"{figure}/{arm}-minus-{baseline}/{where}", readings, arm, where, baseline)
                if arm != baseline
                else ""
            )
        tokens = np.mean([seed[arm]["steps"].tokens for seed in readings])
        lines.append(f"| {' | '.join(cells)} | {tokens / 1000:,.0f} k |")
    return lines


def _figure(
    figure: str, readings: Sequence[Readings], arm: str, where: str, baseline: str | None = None
) -> str:
    found = [seed[arm][where] for seed in readings]
    solved = np.array([reading.solved for reading in found])
    if baseline:
        solved = solved - np.array([seed[baseline][where].solved for seed in readings])
    estimate = over_seeds_and_tasks(solved)
    spent = {name: [getattr(one, name) for one in found] for name in ("step", "tokens", "turns")}
    emit(figure, estimate.pop("value"), "share", **estimate, **spent)
    low, high = estimate["interval_95"]
    sign = "+" if baseline else ""
    return f"{solved.mean():{sign}.3f} [{low:{sign}.2f}, {high:{sign}.2f}]"


def over_seeds_and_tasks(values: NDArray[np.float64]) -> dict[str, Any]:
    """The mean of (S, T) numbers with a 95 % interval from resampling seeds and tasks.

    Both are drawn with replacement, independently of one another: the interval is for other seeds
    and other tasks like these. Of three seeds the spread is known badly, and this way of drawing
    makes it too small by about sqrt(2/3); the means of the seeds stand beside it.
    """
    rng = np.random.default_rng(0)
    seeds, tasks = values.shape
    of_seeds = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=_RESAMPLES) / seeds
    of_tasks = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=_RESAMPLES) / tasks
    low, high = np.quantile(np.einsum("rs,st,rt->r", of_seeds, values, of_tasks), [0.025, 0.975])
    return {
        "value": float(values.mean()),
        "interval_95": [float(low), float(high)],
        "by_seed": [float(mean) for mean in values.mean(axis=1)],
        "tasks": tasks,
    }
