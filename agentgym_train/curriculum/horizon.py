"""The configured horizon schedule, made from `agentgym_envs.horizons`."""

from __future__ import annotations

import dataclasses
from typing import Literal

from agentgym_envs.horizons import FixedHorizon, HorizonSchedule, StagedHorizon
from agentgym_train.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class HorizonConfig:
    """How many turns a training episode may take."""

    schedule: Literal["fixed", "staged"] = "staged"
    """`fixed`: the first stage for ever; `staged`: the next stage after every so many steps."""
    stages: tuple[int, ...] = (4, 6, 8)
    """Horizon of each stage, in turns."""
    steps: tuple[int, ...] = (36, 36)
    """How many training steps each stage lasts; the last stage lasts to the end. One number
    stands for all stages."""

    def __post_init__(self) -> None:
        if self.schedule == "fixed" and len(self.stages) != 1:
            raise ConfigError(
                f"horizon.schedule 'fixed' takes one number of turns, got stages "
                f"{list(self.stages)}; give horizon.stages one number or choose 'staged'"
            )
        try:
            self.build()
        except ValueError as error:
            raise ConfigError(f"horizon: {error}") from None

    def build(self) -> HorizonSchedule:
        """The schedule."""
        if self.schedule == "fixed":
            return FixedHorizon(self.stages[0])
        steps = self.steps[0] if len(self.steps) == 1 else self.steps
        return StagedHorizon(self.stages, steps)
