"""Schedules that follow the step alone: `FixedHorizon` and `StagedHorizon`."""

from __future__ import annotations

import bisect
import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.horizons.base import check_stages, check_step
from agentgym_envs.horizons.outcome import EpisodeOutcome

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FixedHorizon:
    """The same horizon at every step, whatever comes.

    Args:
        turns: the horizon.

    Raises:
        ValueError: it is no whole number or less than 1.
    """

    turns: int

    def __post_init__(self) -> None:
        arguments.turns(self.turns)

    def horizon(self, step: int) -> int:
        return self.turns

    def observe(self, step: int, outcomes: Iterable[EpisodeOutcome]) -> None:
        pass

    def lower(self, step: int, reason: str) -> bool:
        return False

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state:
            raise ValueError(f"a fixed horizon has no state, got {sorted(state)}")


class StagedHorizon:
    """ScalingInter-RL: short horizons first, a longer one after every so many steps.

    With ``stages=[10, 20, 30]`` and ``steps=100`` the steps 0..99 have horizon 10, 100..199
    horizon 20, and all later ones horizon 30 (arXiv 2509.08755).

    The horizon is a function of the step alone, until `lower` is called: that sends the schedule
    back to the beginning of the stage below, and everything after it comes so much later. This
    delay, in steps, is the whole state.

    Args:
        stages: the horizon of each stage, in turns; they grow.
        steps: how long a stage lasts, in training steps: one number for all, or one a stage (the
            last stage lasts for ever, so its number may be left out).

    Raises:
        ValueError: stages that do not grow, or lengths that do not fit them.
    """

    def __init__(self, stages: Sequence[int], steps: int | Sequence[int]) -> None:
        self.stages = check_stages(stages)
        lengths = list(steps) if isinstance(steps, Iterable) else [steps] * len(stages)
        if len(lengths) not in (len(stages) - 1, len(stages)):
            raise ValueError(
                f"{len(stages)} stages need {len(stages) - 1} or {len(stages)} lengths, "
                f"got {len(lengths)}: {lengths}"
            )
        for length in lengths:
            arguments.whole_number("the steps that a stage lasts", length, least=1)
        self.lengths = tuple(lengths[: len(stages) - 1])
        self._starts = (0, *itertools.accumulate(self.lengths))
        self._delay = 0

    def horizon(self, step: int) -> int:
        return self.stages[self._stage(step)]

    def observe(self, step: int, outcomes: Iterable[EpisodeOutcome]) -> None:
        pass

    def lower(self, step: int, reason: str) -> bool:
        stage = self._stage(step)
        self._delay = step + 1 - self._starts[max(stage - 1, 0)]
        _logger.info("from step %d on %d turns: %s", step + 1, self.horizon(step + 1), reason)
        return stage > 0

    def state_dict(self) -> dict[str, Any]:
        return {"delay": self._delay}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if list(state) != ["delay"] or not isinstance(state["delay"], int):
            raise ValueError(f"the state of a staged horizon is its delay, got {sorted(state)}")
        self._delay = state["delay"]

    def _stage(self, step: int) -> int:
        since = max(check_step(step) - self._delay, 0)
        return bisect.bisect_right(self._starts, since) - 1

    def __repr__(self) -> str:
        return f"StagedHorizon(stages={list(self.stages)}, steps={list(self.lengths)})"
