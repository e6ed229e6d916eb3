"""`HorizonCurriculum`: episodes as long as a schedule says, and a schedule told how they end.

The schedule belongs to the training loop, like an optimizer, and serves all its environments. So a
saved state of the environment holds what belongs to the episode alone: going back to an earlier
turn does not take back what was learned since. The loop saves `HorizonTracker.state_dict`.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from agentgym_envs import arguments
from agentgym_envs.horizons import EpisodeOutcome, HorizonTracker
from agentgym_envs.wrappers.base import TextWrapper


class HorizonCurriculum(TextWrapper):
    """Sets the horizon of every episode from a tracker and reports to it how the episode ended.

    The schedule's horizon stands above the task's hint and the constructor's argument. A reset with
    a horizon of its own, as for evaluation, gets that one, and its episode is not reported; nor is
    one that was cut short by a reset or by a fault. Put it outside of whatever ends episodes.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        tracker: who knows the horizon; all environments of a process may share it. None changes
            nothing: specs hold values, so what a spec makes has none.

    Raises:
        TypeError: no tracker.
    """

    def __init__(self, env: gymnasium.Env[str, str], tracker: HorizonTracker | None = None) -> None:
        super().__init__(env)
        if not isinstance(tracker, (HorizonTracker, type(None))):
            raise TypeError(
                f"HorizonCurriculum needs a HorizonTracker, got {tracker!r}; make one by "
                "HorizonTracker(schedule, episodes_per_step=...)"
            )
        self._tracker = tracker
        self._given: int | None = None
        self._num_invalid = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode of as many turns as the schedule says, see `TextEnv.reset`."""
        options = dict(options or {})
        self._given, self._num_invalid = None, 0
        if self._tracker is not None and options.get("horizon") is None:
            options["horizon"] = self._given = self._tracker.horizon
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn; the last one is reported."""
        observation, reward, terminated, truncated, info = super().step(action)
        self._num_invalid += not info["action_valid"]
        if (terminated or truncated) and self._tracker is not None and self._given is not None:
            outcome = EpisodeOutcome.from_info(
                info, horizon=self._given, num_invalid=self._num_invalid
            )
            self._tracker.ended([outcome])
        return observation, reward, terminated, truncated, info

    def clone(self) -> HorizonCurriculum:
        """A second environment in the same state, with the same tracker."""
        twin = super().clone()
        twin._tracker = self._tracker
        return twin

    def _save_own(self) -> Any:
        return {"given": self._given, "invalid": self._num_invalid}

    def _load_own(self, own: Any) -> None:
        given = own["given"]
        self._given = None if given is None else arguments.turns(given)
        self._num_invalid = arguments.whole_number("invalid", own["invalid"], least=0)
