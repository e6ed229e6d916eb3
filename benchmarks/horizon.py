"""How long may training episodes be? One short horizon, one long one, staged, and adaptive.

Nothing but the schedule differs. Success is held-out, at the long horizon for all: on test tasks at
the end, at equal steps and at equal sampled tokens, with differences to the long fixed horizon; and
on dev tasks along the way, by the turns that were sampled up to then, which is the figure.

    python benchmarks/horizon.py --out runs/horizon --draw docs/horizon.png

Prints JSON lines {figure, value, unit, …, versions}, over seeds and tasks; writes them as a table
to ``OUT/table.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from arms import World, metrics, read_arms, report, sampled, train_arms
from common import emit
from numpy.typing import NDArray

WORLD = World(
    "babyai",
    "--preset first-run --run.steps 80 --run.threads 1 --eval.every 8",
    tasks=200,
    episodes=2,
)
SCHEDULES = {
    "fixed-short": "--horizon.schedule fixed --horizon.stages 4",
    "fixed-long": "--horizon.schedule fixed --horizon.stages 8",
    "staged": "--horizon.schedule staged --horizon.stages 4 6 8 --horizon.steps 24 24",
    "adaptive": "--horizon.schedule adaptive --horizon.stages 4 6 8",
}
BASELINE = "fixed-long"
COLORS = {
    "fixed-short": "tab:red",
    "fixed-long": "tab:blue",
    "staged": "tab:orange",
    "adaptive": "tab:green",
}

Curve = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Turns sampled before each evaluation, and held-out success there: (E,) each."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--out", type=Path, default=Path("runs/horizon"))
    parser.add_argument("--draw", type=Path, help="draw the figure into this PNG file")
    options = parser.parse_args()
    readings, curves = [], []
    for seed in options.seeds:
        folders = train_arms(WORLD, SCHEDULES, seed, options.out)
        curves.append({name: curve(folder) for name, folder in folders.items()})
        readings.append(read_arms(WORLD, folders))
        for name, folder in folders.items():
            emit(f"horizon/{name}/stages", stages(folder), "[step, turns]", seed=seed)
    lines = report("horizon/babyai", readings, BASELINE)
    (options.out / "table.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    if options.draw:
        draw(curves, options.draw)


def stages(folder: Path) -> list[tuple[int, int]]:
    """From which training step on episodes of a run might take how many turns."""
    turns = [int(line["rollout/horizon"]) for line in metrics(folder) if "rollout/horizon" in line]
    return [(step, now) for step, now in enumerate(turns) if turns[step - 1 : step] != [now]]


def curve(folder: Path) -> Curve:
    """Held-out success of a run by the turns sampled before."""
    found = [
        (index, line["eval/success"])
        for index, line in enumerate(metrics(folder))
        if "eval/success" in line
    ]
    steps, success = zip(*found, strict=True)
    return sampled(folder)["turns"][list(steps)], np.array(success)


def draw(curves: Sequence[dict[str, Curve]], path: Path) -> None:
    """Held-out success by sampled turns: the mean of the seeds, and each seed as a thin line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(6.5, 3.8))
    for name, color in COLORS.items():
        of_seeds = [seed[name] for seed in curves]
        for turns, success in of_seeds:
            panel.plot(turns, success, color=color, linewidth=0.5, alpha=0.7)
        # Seeds are evaluated after other numbers of turns: the mean is between their points.
        grid = np.linspace(0, min(turns[-1] for turns, _ in of_seeds), 100)
        mean = np.mean([np.interp(grid, *seed) for seed in of_seeds], axis=0)
        panel.plot(grid, mean, color=color, label=name)
    panel.set(xlabel="sampled turns", ylabel="held-out episodes solved", ylim=(0, 1))
    panel.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
