"""The settings of horizon and task curricula, which `agentgym_envs` provides to any trainer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from agentgym_envs.curricula import TaskCurriculum, task_curriculum
from agentgym_envs.horizons import AdaptiveRules, HorizonSchedule, horizon_schedule
from agentgym_envs.tasks import TaskSet
from agentgym_train.errors import ConfigError, at_least


@dataclasses.dataclass(frozen=True)
class HorizonConfig:
    """How many turns a training episode may take."""

    schedule: Literal["fixed", "staged", "adaptive"] = "staged"
    """`fixed`: one horizon for ever; `staged`: the next stage after every so many steps;
    `adaptive`: the next one when learning has stopped, the last one at signs of collapse."""
    stages: tuple[int, ...] = (4, 6, 8)
    """Horizon of each stage, in turns; they grow."""
    steps: tuple[int, ...] = (36, 36)
    """Staged: how many training steps each stage lasts; the last stage lasts to the end. One
    number stands for all stages."""
    adaptive: AdaptiveRules = AdaptiveRules()
    """When an adaptive horizon moves."""

    def __post_init__(self) -> None:
        try:
            self.adaptive.check()  # also where the schedule has no use for it
            self.build()
        except ValueError as error:
            raise ConfigError(f"horizon: {error}") from None

    def build(self) -> HorizonSchedule:
        """The schedule."""
        return horizon_schedule(self.schedule, self.stages, steps=self.steps, rules=self.adaptive)


@dataclasses.dataclass(frozen=True)
class CurriculumConfig:
    """Which tasks a training step plays."""

    order: Literal["uniform", "difficulty", "success_rate"] = "uniform"
    """`uniform`: shuffled epochs; `difficulty`: easy tasks first; `success_rate`: rather those
    that are solved sometimes."""
    start_share: float = 0.25
    """Difficulty: share of the tasks, the easiest, with which the first step begins."""
    grow_steps: int = 50
    """Difficulty: steps until all tasks are in."""
    by: Literal["category", "task"] = "category"
    """Success rate: whose; `task` where every task comes often."""
    floor: float = 0.1
    """Success rate: least weight of a task, where 1 is the largest."""
    mix: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Weight of each family of tasks in every step; empty: by their numbers of tasks."""

    def __post_init__(self) -> None:
        at_least(self, "curriculum", 1, "grow_steps")
        for name in ("start_share", "floor"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(
                    f"curriculum.{name} is a share above 0, up to 1; got {getattr(self, name)}"
                )

    def build(self, tasks: TaskSet, *, per_step: int, seed: int) -> TaskCurriculum:
        """The curriculum over `tasks`, with `per_step` tasks a round.

        Raises:
            ConfigError: the tasks are too few, lack what it needs, or cannot be mixed like this.
        """
        try:
            return task_curriculum(tasks=tasks, per_step=per_step, seed=seed, **vars(self))
        except ValueError as error:
            raise ConfigError(f"curriculum: {error}") from None
