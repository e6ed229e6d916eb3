"""`InvalidActions`: what replies that cannot be done cost, and how many of them end the episode.

The limit is a rule of the game, not a limit of its computer: a policy that keeps to the commands
never meets it. So the episode ends as a failure, `terminated`, and learners take it as they take
any lost game; one that ended as truncated would be left out by them, or valued as if it went on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium

from agentgym_envs import arguments
from agentgym_envs.episodes import EndReason
from agentgym_envs.wrappers.base import TextWrapper


class InvalidActions(TextWrapper):
    """Takes `cost` off the reward of every invalid reply; too many of them fail the episode.

    A reply is invalid if ``info["action_valid"]`` is False: it holds no command, or one that could
    not be done. ``info["env_reward"]`` holds the reward without the cost.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        cost: taken off the reward, at least 0.
        limit: so many invalid replies end the episode with ``"failure"``; None for no limit.
        in_a_row: only invalid replies with no valid one between them count towards the limit.

    Raises:
        ValueError, TypeError: an argument of another kind.
    """

    added_info_keys: ClassVar[Mapping[str, type]] = {"env_reward": float}

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        cost: float = 0.0,
        limit: int | None = None,
        in_a_row: bool = False,
    ) -> None:
        super().__init__(env, cost=cost, limit=limit, in_a_row=in_a_row)
        self._cost = arguments.finite("cost", cost, least=0.0)
        self._limit = None if limit is None else arguments.whole_number("limit", limit, least=1)
        self._in_a_row = arguments.flag("in_a_row", in_a_row)
        self._count = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode, see `TextEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        self._count = 0
        info.setdefault("env_reward", 0.0)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn; terminated if there were too many invalid replies."""
        observation, reward, terminated, truncated, info = super().step(action)
        info.setdefault("env_reward", reward)
        if info["action_valid"]:
            self._count = 0 if self._in_a_row else self._count
            return observation, reward, terminated, truncated, info
        self._count += 1
        if self._limit is not None and self._count >= self._limit and not terminated:
            self._end(info, EndReason.FAILURE)
            terminated, truncated = True, False
        return observation, reward - self._cost, terminated, truncated, info

    def _save_own(self) -> Any:
        return {"count": self._count}

    def _load_own(self, own: Any) -> None:
        self._count = arguments.whole_number("count", own["count"], least=0)
