"""`HorizonTracker`: counts training steps for loops that have no schedule of their own.

One tracker serves all environments of a trainer, as one optimizer serves all layers. Environments
in the trainer's own process report to it through the wrapper `HorizonCurriculum`, those in other
processes through `VectorHorizons`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.episodes import EndReason
from agentgym_envs.horizons.base import HorizonSchedule
from agentgym_envs.horizons.outcome import EpisodeOutcome

_ELSEWHERE = (
    "a HorizonTracker cannot be sent to another process, where it would see only its own episodes; "
    "keep it in the training loop and use VectorHorizons"
)


class HorizonTracker:
    """A schedule, the training step it is at, and how the step's episodes ended so far.

    A step ends when the loop calls `advance`, once an update of the policy; or, for loops that
    cannot be changed, after `episodes_per_step` episodes. Threads may share a tracker; with
    `advance` it does not matter in which order their episodes end.

    Args:
        schedule: says the horizon of a step.
        episodes_per_step: so many episodes are a step; None leaves that to `advance`.

    Raises:
        ValueError: a number less than 1.
    """

    def __init__(self, schedule: HorizonSchedule, *, episodes_per_step: int | None = None) -> None:
        if episodes_per_step is not None:
            arguments.whole_number("episodes_per_step", episodes_per_step, least=1)
        self.schedule = schedule
        self._episodes_per_step = episodes_per_step
        self._step = 0
        self._outcomes: list[EpisodeOutcome] = []
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def step(self) -> int:
        """The present training step, counted from 0."""
        return self._step

    @property
    def horizon(self) -> int:
        """The horizon of episodes that begin now, in turns.

        Raises:
            TypeError: this is a copy that a forked process got.
        """
        if os.getpid() != self._process:
            raise TypeError(_ELSEWHERE)
        with self._lock:
            return self.schedule.horizon(self._step)

    def ended(self, outcomes: Iterable[EpisodeOutcome]) -> None:
        """Take note of episodes that have ended."""
        with self._lock:
            for outcome in outcomes:
                self._outcomes.append(outcome)
                if len(self._outcomes) == self._episodes_per_step:
                    self._close_step()

    def advance(self) -> None:
        """The present step is over; call it after every update of the policy.

        Raises:
            RuntimeError: steps are counted in episodes.
        """
        if self._episodes_per_step is not None:
            raise RuntimeError(
                f"a step is {self._episodes_per_step} episodes; leave out episodes_per_step to "
                "count steps with advance()"
            )
        with self._lock:
            self._close_step()

    def lower(self, reason: str) -> bool:
        """Go back by one stage, from the next step on, see `HorizonSchedule.lower`."""
        with self._lock:
            return self.schedule.lower(self._step, reason)

    def state_dict(self) -> dict[str, Any]:
        """Everything that is not a constructor argument, as JSON values."""
        with self._lock:
            return {
                "step": self._step,
                "outcomes": [[str(each.end_reason), *each[1:]] for each in self._outcomes],
                "schedule": self.schedule.state_dict(),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave.

        Raises:
            ValueError: the tracker of another schedule gave it.
        """
        try:
            step = arguments.whole_number("step", state["step"], least=0)
            outcomes = [
                EpisodeOutcome(EndReason(reason), *rest) for reason, *rest in state["outcomes"]
            ]
            schedule = state["schedule"]
        except (LookupError, TypeError) as error:
            raise ValueError(f"not the state of a horizon tracker: {error!r}") from error
        with self._lock:
            self.schedule.load_state_dict(schedule)
            self._step, self._outcomes = step, outcomes

    def _close_step(self) -> None:
        outcomes, self._outcomes = self._outcomes, []
        self.schedule.observe(self._step, outcomes)
        self._step += 1

    def __reduce__(self) -> Any:
        raise TypeError(_ELSEWHERE)
