"""Does the oracle of TextCraft solve every goal, and in how many turns?

Plays every certified task in the environment, with the task's own horizon, and prints by depth how
many are solved, in how many turns, and how long an episode takes (CPU time of reset, planning and
steps). ``--compat agentgym`` plays AgentGym's rules, where a command is one craft;
``--recipes-dir`` and ``--minecraft-version`` play other recipes.

    python benchmarks/textcraft_oracle.py
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from typing import Any

from common import emit

from agentgym_envs.errors import InvalidTask, NoPlan
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS, Task
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.families import CATEGORIES, family_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compat", choices=["agentgym"])
    parser.add_argument("--recipes-dir")
    parser.add_argument("--minecraft-version")
    options = parser.parse_args()
    env = TextCraftEnv(**vars(options))
    splits = {split: tasks_of(options, split) for split in SPLITS}
    everything = [task for tasks in splits.values() for task in tasks]
    given = {name: value for name, value in vars(options).items() if value}
    num_solved = 0
    for category in CATEGORIES:
        tasks = [task for task in everything if task.category == category]
        num_solved += play(env, category, tasks, given)
    emit(
        "oracle/solved",
        num_solved / len(everything),
        "share",
        solved=num_solved,
        tasks=len(everything),
        **given,
    )
    for split, tasks in splits.items():
        families = {family_of(task.payload["item"]) for task in tasks}
        emit(f"oracle/goals_{split}", len(tasks), "goals", families=len(families), **given)


def tasks_of(options: argparse.Namespace, split: str) -> list[Task]:
    """The tasks of a split; none if the recipes are too few for it."""
    try:
        return list(TextCraftEnv(split=split, **vars(options)).tasks)
    except InvalidTask:
        return []


def play(env: TextCraftEnv, category: str, tasks: list[Task], given: dict[str, Any]) -> int:
    """Play tasks of one category, print the figures and return how many were solved."""
    turns: dict[str, int] = {}
    started = time.process_time()
    for task in tasks:
        with contextlib.suppress(NoPlan):
            episode = run_episode(env, task=task)
            if episode.success:
                turns[task.payload["item"]] = len(episode.turns)
    cpu_s = time.process_time() - started
    emit(
        f"oracle/{category}",
        len(turns) / max(len(tasks), 1),
        "share",
        solved=len(turns),
        tasks=len(tasks),
        turns_mean=round(statistics.mean(turns.values()), 2) if turns else None,
        turns_max=max(turns.values(), default=None),
        longest=max(turns, key=turns.__getitem__, default=None),
        cpu_ms_per_episode=round(1000 * cpu_s / max(len(tasks), 1), 2),
        **given,
    )
    return len(turns)


if __name__ == "__main__":
    main()
