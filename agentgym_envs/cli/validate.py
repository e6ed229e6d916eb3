"""``validate``: are the tasks those of the manifest, and does the oracle still solve them?

The content of every task is compared with the digest of its manifest. Then the oracle plays tasks
of each split, spread evenly: it must succeed within the task's horizon, in as many turns as the
task's certificate says. With arguments of one's own only success is asked for, since another way
of acting takes other numbers of turns. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from agentgym_envs.cli.environments import Figures, bare, counted, made
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import InvalidTask, NoPlan, Unsupported
from agentgym_envs.manifests import Manifest, find_manifest, verify
from agentgym_envs.policies import run_episode
from agentgym_envs.registration import registered_ids
from agentgym_envs.tasks import SPLITS, ListSource, Task, TaskSet

_MOST_SHOWN = 20


def validate(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    arguments = dict(options.arg)
    if options.id:
        found = [_validate(options.id, arguments, options.play)]
    elif arguments:
        raise ValueError("--arg needs an id: arguments mean something for one environment")
    else:
        found = [_validate_if_installed(env_id, options.play) for env_id in registered_ids()]
    return int(any(one["problems"] for one in found)), {"families": found}


def _validate_if_installed(env_id: str, most: int | None) -> Figures:
    try:
        return _validate(env_id, {}, most)
    except (ImportError, Unsupported) as error:
        print(f"{env_id}: not installed: {error}")
        return {"id": env_id, "error": str(error), "problems": []}


def _validate(env_id: str, arguments: Mapping[str, Any], most: int | None) -> Figures:
    with made(env_id, **arguments) as env:
        manifest = find_manifest(type(bare(env)))
        has_oracle = "oracle" in env.capabilities
    problems = _compare(env_id, manifest) if manifest else []
    if manifest is None:
        print(f"{env_id}: there is no manifest")
    played = 0
    for split in SPLITS if has_oracle else ():
        whole = manifest.arguments if manifest else {}
        with made(env_id, **{**whole, **arguments, "split": split}) as env:
            tasks = spread(env.tasks, most)
            answers = [
                _replay(env, task, check_length=not arguments)
                for task in _shown(tasks, f"{env_id}: {split}")
            ]
        wrong = [answer for answer in answers if answer]
        if tasks:
            print(f"{env_id}: {split}: the oracle plays {len(tasks):,}, {len(wrong)} wrong")
        problems += wrong
        played += len(tasks)
    for problem in problems[:_MOST_SHOWN]:
        print(f"  {problem}")
    return {
        "id": env_id,
        "tasks": manifest and sum(split.count for split in manifest.splits.values()),
        "played": played,
        "problems": problems,
    }


def spread(tasks: TaskSet, most: int | None) -> TaskSet:
    """At most `most` tasks, evenly over the set; all of them if None."""
    if most is None or most >= len(tasks):
        return tasks
    step = len(tasks) / max(1, most)
    return TaskSet(ListSource([tasks[int(number * step)] for number in range(most)]))


def _shown(tasks: TaskSet, what: str) -> Iterator[Task]:
    """The tasks, while a line in the terminal says how far they are."""
    shows = sys.stderr.isatty()
    for number, task in enumerate(tasks, start=1):
        yield task
        if shows and number % 100 == 0:
            print(f"\r{what}: {number:,} of {len(tasks):,}", end="\r", file=sys.stderr, flush=True)


def _compare(env_id: str, manifest: Manifest) -> list[str]:
    task_sets = {}
    for split in SPLITS:
        with made(env_id, **manifest.arguments, split=split) as env:
            task_sets[split] = env.tasks
    try:
        verify(manifest, task_sets)
    except InvalidTask as error:
        return [str(error)]
    sizes = counted({split: len(tasks) for split, tasks in task_sets.items()})
    print(f"{env_id}: {sizes} tasks as in the manifest, version {manifest.version}", flush=True)
    return []


def _replay(env: TextEnv, task: Task, *, check_length: bool) -> str:
    """What is wrong with the certificate of a task, or ""."""
    try:
        episode = run_episode(env, task=task)
    except NoPlan as error:
        return f"{task.id}: the oracle finds no way: {error}"
    turns = len(episode.turns)
    if not episode.success:
        return f"{task.id}: the oracle ends with {episode.end_reason} after {turns} turns"
    if check_length and task.difficulty not in (None, turns):
        return f"{task.id}: certified with {task.difficulty} turns, the oracle takes {turns}"
    return ""
