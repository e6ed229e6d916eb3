"""The order of tasks: a pure function of (seed, step), so a resumed run sees the same tasks.

Tasks come in shuffled epochs: every task once before any comes again. Left out: sampling by
difficulty or by success rate.
"""

from __future__ import annotations

import numpy as np

from agentgym_envs.tasks import Task, TaskSet
from agentgym_train.errors import ConfigError


class TaskOrder:
    """Shuffled epochs over a task set.

    Args:
        tasks: what to draw from.
        per_step: tasks of one step.
        seed: of the shuffles.
    """

    def __init__(self, tasks: TaskSet, *, per_step: int, seed: int) -> None:
        if per_step > len(tasks):
            raise ConfigError(
                f"a step wants {per_step} different tasks, but the task set holds {len(tasks)}; "
                "lower batch.tasks_per_step or choose more tasks"
            )
        self._tasks = tasks
        self._per_step = per_step
        self._seed = seed
        self._epoch = -1

    def step(self, step: int) -> list[Task]:
        """The tasks of training step `step`, counted from 0; all different within an epoch."""
        start = step * self._per_step
        return [self._at(position) for position in range(start, start + self._per_step)]

    def _at(self, position: int) -> Task:
        epoch, index = divmod(position, len(self._tasks))
        if epoch != self._epoch:
            rng = np.random.default_rng((self._seed, epoch))
            self._epoch, self._permutation = epoch, rng.permutation(len(self._tasks))
        return self._tasks[int(self._permutation[index])]
