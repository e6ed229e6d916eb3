"""How far do guesses go in Deep Search, and does the oracle find everything?

Plays the tasks of one split: the oracle; players that guess, from `agentgym_envs.deepsearch.
baselines`; and random admissible commands. Prints one line a player and set: the share of right
answers with its 95 % interval over tasks, mean F1, and searches an episode.

    python benchmarks/deepsearch_baselines.py --split test
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from common import emit

from agentgym_envs.deepsearch.baselines import MajorityGuess, OneSearchGuess, QuestionGuess
from agentgym_envs.deepsearch.env import DeepSearchEnv
from agentgym_envs.deepsearch.matching import Grades
from agentgym_envs.deepsearch.oracle import DeepSearchOracle
from agentgym_envs.deepsearch.world import DeepSearchWorld
from agentgym_envs.errors import NoPlan
from agentgym_envs.evaluation.statistics import estimate
from agentgym_envs.policies import PlannedPolicy, Policy, RandomPolicy, run_episode
from agentgym_envs.seeds import stable_seed
from agentgym_envs.tasks import Task, TaskSet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", default="test")
    parser.add_argument("--questions", help="a file of questions; by default the package's")
    parser.add_argument("--retriever", default="fts5", type=spec, help="a name, or JSON")
    parser.add_argument("--most", type=int, help="most tasks of a set")
    options = parser.parse_args()
    given = {"retriever": options.retriever, "questions": options.questions}
    training = DeepSearchEnv(split="train", **given).tasks
    env = DeepSearchEnv(split=options.split, info_keys=["admissible"], **given)
    tasks = by_set(env.tasks, options.most)
    for player, policy_of in players(env, training).items():
        for name, chosen in tasks.items():
            report(env, options.split, player, name, chosen, policy_of)


def spec(text: str) -> Any:
    """A search engine's name, or its settings as JSON."""
    return json.loads(text) if text.startswith("{") else text


def by_set(tasks: TaskSet, most: int | None) -> dict[str, list[Task]]:
    """The tasks by set, at most so many of each, evenly over it."""
    found: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        found[task.category].append(task)
    for name, every in found.items():
        step = max(1.0, len(every) / (most or len(every)))
        found[name] = [every[int(row * step)] for row in range(int(len(every) / step))]
    return dict(sorted(found.items()))


def players(env: DeepSearchEnv, training: TaskSet) -> dict[str, Callable[[Task], Policy]]:
    """Who plays, by name: each gives the policy for a task."""
    render = env.render_command
    majority = MajorityGuess(training, render)
    question_only = QuestionGuess(training, render)
    return {
        "oracle": lambda task: PlannedPolicy(DeepSearchOracle(env).next_command, render),
        "majority": lambda task: majority,
        "question_only": lambda task: question_only,
        "one_search": lambda task: OneSearchGuess(render),
        "random": lambda task: RandomPolicy(stable_seed(0, "random", task.id), render),
    }


def report(
    env: DeepSearchEnv,
    split: str,
    player: str,
    name: str,
    tasks: list[Task],
    policy_of: Callable[[Task], Policy],
) -> None:
    """Play the tasks and print what came of it."""
    worlds = [played(env, task, policy_of(task)) for task in tasks]
    right = estimate([float(world.is_right) for world in worlds])
    grades = [world.grades[-1] if world.grades else Grades() for world in worlds]
    emit(
        f"deepsearch/{player}/{name}",
        round(right.value, 4),
        "share of right answers",
        interval_95=[round(right.low, 4), round(right.high, 4)],
        tasks=len(tasks),
        split=split,
        f1=round(statistics.mean(grade.f1 for grade in grades), 4),
        searches=round(statistics.mean(len(world.queries) for world in worlds), 2),
    )


def played(env: DeepSearchEnv, task: Task, policy: Policy) -> DeepSearchWorld:
    """The world at the end of an episode; without an answer where the oracle finds no way."""
    with contextlib.suppress(NoPlan):
        run_episode(env, policy, task=task)
    return env.world


if __name__ == "__main__":
    main()
