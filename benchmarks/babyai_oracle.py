"""Does the oracle of BabyAI solve what is certified, and how much is certified?

Plays every task of the manifests in the environment, with the task's own horizon, and prints per
level how many are solved, in how many turns, and how long an episode takes (CPU time of reset,
planning and steps). Then the share of AgentGym's 40 levels that have a manifest. All tasks take
minutes; ``--per-split 5`` takes the first five of each level and split.

    python benchmarks/babyai_oracle.py
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Sequence

from common import emit

from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import AGENTGYM, resolve_levels
from agentgym_envs.babyai.tasks import certified_tasks, manifest
from agentgym_envs.errors import NoPlan
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS, Task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--levels", nargs="+", default=["all"], help="levels and suites")
    parser.add_argument("--per-split", type=int, help="most tasks of each level and split")
    parser.add_argument("--action-mode", default="high", choices=["high", "low"])
    options = parser.parse_args()
    levels = resolve_levels(options.levels)
    env = BabyAIEnv(levels=levels, action_mode=options.action_mode)
    num_solved = num_tasks = 0
    for level in levels:
        tasks = [
            task
            for split in SPLITS
            if level in manifest().splits[split].categories
            for task in certified_tasks(split, [level])[: options.per_split]
        ]
        if tasks:
            num_tasks += len(tasks)
            num_solved += play(env, level, tasks, options.action_mode)
    emit("oracle/solved", num_solved / num_tasks, "share", solved=num_solved, tasks=num_tasks)
    certified = [level for level in AGENTGYM if level in manifest().splits["test"].categories]
    emit(
        "oracle/agentgym_levels_with_manifest",
        len(certified) / len(AGENTGYM),
        "share",
        levels=len(certified),
        of=len(AGENTGYM),
        without=sorted(set(AGENTGYM).difference(certified)),
    )


def play(env: BabyAIEnv, level: str, tasks: Sequence[Task], action_mode: str) -> int:
    """Play tasks of one level, print the figures and return how many were solved."""
    turns = []
    started = time.process_time()
    for task in tasks:
        with contextlib.suppress(NoPlan):
            episode = run_episode(env, task=task.id)
            if episode.success:
                turns.append(len(episode.turns))
    cpu_s = time.process_time() - started
    emit(
        f"oracle/{level}",
        len(turns) / len(tasks),
        "share",
        solved=len(turns),
        tasks=len(tasks),
        action_mode=action_mode,
        turns_mean=round(statistics.mean(turns), 2) if turns else None,
        turns_max=max(turns, default=None),
        cpu_ms_per_episode=round(1000 * cpu_s / len(tasks), 2),
    )
    return len(turns)


if __name__ == "__main__":
    main()
