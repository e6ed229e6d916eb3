"""The tasks of one environment for training and for judging it: splits that share no task.

Training tasks and held-out ones all come from the environment itself, or from files of task ids
that stand for its splits. Success on tasks that were trained on says nothing, so a task in two of
them is refused, whoever trains.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import InvalidTask
from agentgym_envs.evaluation.plan import make_env, refuse_chosen
from agentgym_envs.policies import package_versions
from agentgym_envs.tasks import SPLITS, ListSource, Task, TaskSet

_BEGUN = 4
"""How many tasks of each split are begun for the fingerprint: what a task only names, as a level or
a book of recipes, shows in its first observation."""


@dataclasses.dataclass(frozen=True, eq=False)
class Splits:
    """Tasks of one environment.

    Attributes:
        env: the bare environment, with the training tasks; asked for tasks, instructions, oracles.
        dev: held-out tasks for choices and curves.
        test: held-out tasks for final figures.
    """

    env: TextEnv
    dev: list[Task]
    test: list[Task]

    @classmethod
    def of(
        cls,
        env_id: str,
        arguments: Mapping[str, Any],
        *,
        num_held_out: int,
        files: Mapping[str, str] | None = None,
    ) -> Splits:
        """The splits of an environment.

        Args:
            env_id: Gymnasium id, with the module that registers it in front if need be.
            arguments: of the environment, without those that are chosen here.
            num_held_out: how many tasks `dev` and `test` hold.
            files: paths of files of task ids by the split that they stand for; other splits are the
                environment's own.

        Raises:
            UnknownName: an id, argument or other name does not exist.
            InvalidEvaluation: the id is not of a text environment, or its arguments choose tasks.
            InvalidTask: a file cannot be used, splits share a task, or there are too few tasks.
        """
        files = files or {}
        refuse_chosen(arguments)
        for split, path in files.items():
            if split not in SPLITS or not isinstance(path, str):
                raise InvalidTask(
                    f"expected files of task ids by split, {', '.join(SPLITS)}; got {split!r}: "
                    f"{path!r}"
                )
        chosen = [{"split": split, "tasks": files.get(split)} for split in SPLITS]
        made = [make_env(env_id, {**arguments, **own}).unwrapped for own in chosen]
        train, *others = cast(list[TextEnv], made)
        held_out = {env.split: list(env.tasks.head(num_held_out)) for env in others}
        _require_apart({"train": train.tasks, **held_out})
        for split, tasks in held_out.items():
            if len(tasks) < num_held_out:
                raise InvalidTask(
                    f"{num_held_out} held-out tasks are asked for, but the {split} split holds "
                    f"{len(tasks)} tasks; ask for fewer or choose more tasks"
                )
        return cls(train, **held_out)

    @property
    def train(self) -> TaskSet:
        """Tasks to learn from."""
        return self.env.tasks

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for training to go on: tasks, rules and versions."""
        tasks = [*self.train.head(_BEGUN), *self.dev[:_BEGUN], *self.test[:_BEGUN]]
        first = [self.env.reset(seed=0, options={"task": task})[0] for task in tasks]
        return {
            "train": self.train.digest(),
            "dev": TaskSet(ListSource(self.dev)).digest(),
            "test": TaskSet(ListSource(self.test)).digest(),
            "beginnings": hashlib.sha256("\x1f".join(first).encode()).hexdigest(),
            "instructions": self.env.instructions,
            "versions": package_versions(),
        }


def _require_apart(splits: Mapping[str, Iterable[Task]]) -> None:
    split_of: dict[str, str] = {}
    for split, tasks in splits.items():
        for task in tasks:
            other = split_of.setdefault(task.id, split)
            if other != split:
                raise InvalidTask(
                    f"task {task.id!r} is in {other} and in {split}; splits, and files of tasks "
                    "that stand for them, must share no task"
                )
