"""GRPO, RLOO, REINFORCE++ and PPO from the same warm start, on BabyAI and TextCraft.

Within a world nothing differs but the algorithm and what belongs to it: PPO's critic, and the
learning rate, which was chosen for each from the same three values by success on dev tasks with a
seed that is used for nothing else (``--tune`` tries them again). All play the same number of tasks
a step and of episodes a task, although only GRPO and RLOO need groups; everything else is as the
preset and the algorithm have it by default, and the horizon is fixed.

    python benchmarks/algorithms.py --out runs/algorithms
    python benchmarks/algorithms.py --out runs/tuning --tune

Prints JSON lines {figure, value, unit, …, versions}: shares of test episodes solved at one horizon,
and differences to GRPO, over seeds and tasks; writes them as tables to ``OUT/table.md``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from arms import World, metrics, play, read_arms, report, train_arms
from common import emit

WORLDS = {
    "babyai": World(
        "babyai",
        "--preset first-run --run.steps 40 --run.threads 1 --eval.every 20"
        " --horizon.schedule fixed --horizon.stages 8",
        tasks=200,
        episodes=2,
    ),
    "textcraft": World(
        "textcraft",
        "--preset textcraft --run.steps 40 --run.threads 1 --eval.every 20",
        tasks=34,
        episodes=8,
    ),
}
DEV_TASKS = {"babyai": 200, "textcraft": 34}
ALGORITHMS = {
    "grpo": "--run.algorithm grpo",
    "rloo": "--run.algorithm rloo",
    "reinforce_pp": "--run.algorithm reinforce_pp",
    "ppo": "--run.algorithm ppo --critic.learning-rate 1e-3",
}
LEARNING_RATES = ("2e-4", "5e-4", "1e-3")
TUNING_SEED = 21
CHOSEN = {
    "babyai": {"grpo": "5e-4", "rloo": "5e-4", "reinforce_pp": "5e-4", "ppo": "1e-3"},
    "textcraft": {"grpo": "2e-4", "rloo": "2e-4", "reinforce_pp": "2e-4", "ppo": "2e-4"},
}
"""What ``--tune`` found."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--out", type=Path, default=Path("runs/algorithms"))
    parser.add_argument("--tune", action="store_true", help="try the learning rates on dev tasks")
    options = parser.parse_args()
    tables = []
    for name in options.worlds:
        if options.tune:
            tune(WORLDS[name], options.out)
        else:
            tables += [*compare(WORLDS[name], options.seeds, options.out), ""]
    if tables:
        (options.out / "table.md").write_text("\n".join(tables), encoding="utf-8")


def compare(world: World, seeds: list[int], out: Path) -> list[str]:
    """Train and evaluate the algorithms with each seed; gives the lines of the table."""
    arms = {
        name: f"{settings} --learner.learning-rate {CHOSEN[world.name][name]}"
        for name, settings in ALGORITHMS.items()
    }
    readings = [read_arms(world, train_arms(world, arms, seed, out)) for seed in seeds]
    return report(f"algorithms/{world.name}", readings, "grpo")


def tune(world: World, out: Path) -> None:
    """Train each algorithm with each learning rate, and emit its success on dev tasks."""
    for name, settings in ALGORITHMS.items():
        arms = {
            f"{name}-{rate}": f"{settings} --learner.learning-rate {rate}"
            for rate in LEARNING_RATES
        }
        for arm, folder in train_arms(world, arms, TUNING_SEED, out).items():
            step = metrics(folder)[-1]["step"]
            solved = play(world, folder, step, split="dev", tasks=DEV_TASKS[world.name])
            emit(f"tuning/{world.name}/{arm}", float(solved.mean()), "share", seed=TUNING_SEED)


if __name__ == "__main__":
    main()
