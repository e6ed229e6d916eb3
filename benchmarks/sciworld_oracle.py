"""Do the gold actions solve SciWorld's tasks in the environment, within their horizons?

Plays tasks of every experiment and split, some of each or, with ``--each 0``, all certified ones,
and prints by experiment how many are solved and in how many turns; also under simplifications, for
which nothing is certified, or by AgentGym's rules.

    python benchmarks/sciworld_oracle.py --each 5
    python benchmarks/sciworld_oracle.py --each 2 --simplifications easy
    python benchmarks/sciworld_oracle.py --each 2 --compat agentgym
"""

from __future__ import annotations

import argparse
import contextlib
import statistics

import gymnasium
from common import emit

import agentgym_envs  # noqa: F401
from agentgym_envs.errors import InvalidTask, NoPlan
from agentgym_envs.policies import run_episode
from agentgym_envs.sciworld.experiments import NAMES
from agentgym_envs.tasks import SPLITS

ID = "AgentGym/SciWorld-v0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=5, help="tasks of a split; 0 for all")
    parser.add_argument("--experiments", nargs="*", default=list(NAMES))
    parser.add_argument("--simplifications", nargs="*", default=[])
    parser.add_argument("--compat")
    options = parser.parse_args()
    arguments = {"simplifications": options.simplifications, "compat": options.compat}
    num_solved = num_tasks = 0
    for name in options.experiments:
        turns: list[int] = []
        unsolved: list[str] = []
        for split in SPLITS:
            env = gymnasium.make(ID, split=split, experiments=[name], **arguments)
            try:
                tasks = env.unwrapped.tasks
            except InvalidTask:  # of these rules there is none
                continue
            for task in tasks.head(options.each or len(tasks)):
                episode = None
                with contextlib.suppress(NoPlan):
                    episode = run_episode(env, task=task)
                if episode is not None and episode.success:
                    turns.append(len(episode.turns))
                else:
                    unsolved.append(task.id)
            env.close()
        num_solved += len(turns)
        num_tasks += len(turns) + len(unsolved)
        emit(
            f"oracle/{name}",
            len(turns),
            "solved",
            unsolved=unsolved,
            turns_mean=round(statistics.mean(turns), 1) if turns else None,
            turns_max=max(turns, default=None),
            **arguments,
        )
    emit(
        "oracle/solved",
        num_solved / num_tasks,
        "share",
        solved=num_solved,
        tasks=num_tasks,
        **arguments,
    )


if __name__ == "__main__":
    main()
