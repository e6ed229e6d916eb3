"""What every horizon schedule can do, and the check that they share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from agentgym_envs import arguments
from agentgym_envs.horizons.outcome import EpisodeOutcome


class HorizonSchedule(Protocol):
    """How many turns an episode of training step `step`, counted from 0, may take."""

    def horizon(self, step: int) -> int:
        """The horizon in turns at `step`. Asking changes nothing."""
        ...

    def observe(self, step: int, outcomes: Iterable[EpisodeOutcome]) -> None:
        """Take note of how the episodes of `step` ended; called once a step, in order."""
        ...

    def lower(self, step: int, reason: str) -> bool:
        """Go back by one stage, from the step after `step`, and give it its full time again.

        Called from outside, at signs of collapse that the schedule cannot see. At the lowest stage
        that one begins anew.

        Args:
            step: the last step that was played.
            reason: why, in words; for the log.

        Returns:
            Whether there was a lower stage.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that is not a constructor argument, as JSON values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave.

        Raises:
            ValueError: another schedule gave it.
        """
        ...


def check_stages(stages: Sequence[int]) -> tuple[int, ...]:
    """The horizons of the stages, if they are numbers of turns that grow.

    Raises:
        ValueError: they are not; says what to change.
    """
    horizons = [arguments.turns(turns) for turns in stages]
    if not horizons:
        raise ValueError("a schedule needs at least one stage, a horizon in turns")
    for shorter, longer in itertools.pairwise(horizons):
        if longer <= shorter:
            raise ValueError(
                f"stages must grow, but {longer} comes after {shorter} in {horizons}; "
                f"did you mean {sorted(set(horizons))}?"
            )
    return tuple(horizons)


def check_step(step: int) -> int:
    """Return `step` if it can be one.

    Raises:
        ValueError: it is before the first.
    """
    if step < 0:
        raise ValueError(f"steps are counted from 0, got {step}")
    return step
