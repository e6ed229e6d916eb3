"""Horizon schedules: how many turns an episode may take at a given training step.

A schedule is a pure function of the step, so resuming at step n gives the horizon of step n with
nothing to restore. Schedules that learn from results will need state and get it through
`state_dict`; the two here return an empty one. They know nothing of any trainer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class HorizonSchedule(Protocol):
    """How many turns an episode of training step `step` (counted from 0) may take."""

    def horizon(self, step: int) -> int:
        """The horizon in turns at `step`, counted from 0."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that is not a constructor argument, as JSON values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave."""
        ...


def _check_turns(turns: int) -> None:
    if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:
        raise ValueError(f"a horizon must be a whole number, at least 1 turn, got {turns!r}")


class _Stateless:
    """Schedules that are functions of the step alone."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state:
            raise ValueError(f"a stateless horizon schedule got state {sorted(state)}")


@dataclass(frozen=True)
class FixedHorizon(_Stateless):
    """The same horizon at every step.

    Args:
        turns: the horizon.
    """

    turns: int

    def __post_init__(self) -> None:
        _check_turns(self.turns)

    def horizon(self, step: int) -> int:
        return self.turns


class StagedHorizon(_Stateless):
    """ScalingInter-RL: short horizons first, a longer one after every so many steps.

    With ``stages=[10, 20, 30]`` and ``steps=100`` the steps 0..99 have horizon 10, 100..199
    horizon 20, and all later ones horizon 30 (arXiv 2509.08755).

    Args:
        stages: the horizon of each stage, in turns.
        steps: how long a stage lasts, in training steps: one number for all, or one a stage (the
            last stage lasts for ever, so its number may be left out).
    """

    def __init__(self, stages: Sequence[int], steps: int | Sequence[int]) -> None:
        if not stages:
            raise ValueError("a staged horizon needs at least one stage")
        for turns in stages:
            _check_turns(turns)
        lengths = [steps] * len(stages) if isinstance(steps, int) else list(steps)
        if len(lengths) not in (len(stages) - 1, len(stages)):
            raise ValueError(
                f"{len(stages)} stages need {len(stages) - 1} or {len(stages)} lengths, "
                f"got {len(lengths)}: {lengths}"
            )
        if any(length < 1 for length in lengths):
            raise ValueError(f"every stage must last at least 1 step, got {lengths}")
        self.stages = tuple(stages)
        self.lengths = tuple(lengths[: len(stages) - 1])

    def horizon(self, step: int) -> int:
        if step < 0:
            raise ValueError(f"steps are counted from 0, got {step}")
        end = 0
        for turns, length in zip(self.stages, self.lengths, strict=False):
            end += length
            if step < end:
                return turns
        return self.stages[-1]

    def __repr__(self) -> str:
        return f"StagedHorizon(stages={list(self.stages)}, steps={list(self.lengths)})"
