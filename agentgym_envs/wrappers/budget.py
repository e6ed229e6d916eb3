"""Budgets: an episode is truncated when its turns, its tokens or its time are used up.

The turn that uses up a budget counts like any other, and its `info` tells the end reason:
``"horizon"`` for turns, which the environment itself counts, and ``"budget"`` for tokens and time,
which are no part of the world. Trainers may leave out episodes that ended so.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np

from agentgym_envs import arguments
from agentgym_envs.episodes import EndReason
from agentgym_envs.spaces import to_utf8
from agentgym_envs.wrappers.base import TextWrapper
from agentgym_envs.wrappers.tokens import token_counter


class TurnBudget(TextWrapper):
    """No episode is longer than `max_turns`, whatever task, constructor and `reset` say.

    It lowers the horizon itself, so ``env.horizon``, the end reason ``"horizon"`` and rewards that
    look at the horizon agree with it; Gymnasium's `TimeLimit` does none of that.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        max_turns: most turns of an episode, at least 1.

    Raises:
        ValueError: a number less than 1.
    """

    def __init__(self, env: gymnasium.Env[str, str], max_turns: int) -> None:
        super().__init__(env, max_turns=max_turns)
        self._max_turns = arguments.whole_number("max_turns", max_turns, least=1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode of at most `max_turns` turns, see `TextEnv.reset`."""
        given = dict(options or {})
        limit = given.get("max_horizon")
        if limit is None or (isinstance(limit, (int, np.integer)) and limit > self._max_turns):
            given["max_horizon"] = self._max_turns  # what is no number of turns is refused inside
        return super().reset(seed=seed, options=given)


class TokenBudget(TextWrapper):
    """Ends an episode when its replies together have `max_tokens` tokens or more.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        max_tokens: the budget of an episode, at least 1.
        count: what a token is: ``"words"``, ``"characters"``, ``"bytes"``, or the import path
            ``"package.module:function"`` of a function from a text to a number.
        tokenizer: path of a ``tokenizer.json``, or of a folder with one, whose ids are counted
            instead; needs the library `tokenizers`, downloads nothing.
        observations: count observations too, the first one included. No episode ends at its
            reset, so there is always one turn.

    Raises:
        UnknownName: no such way of counting.
        ValueError, TypeError: a number less than 1, an import path without a function, no
            tokenizer there.
        Unsupported: a tokenizer without the library.
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        max_tokens: int,
        count: str = "words",
        tokenizer: str | None = None,
        observations: bool = False,
    ) -> None:
        super().__init__(
            env,
            max_tokens=max_tokens,
            count=count,
            tokenizer=tokenizer,
            observations=observations,
        )
        self._max_tokens = arguments.whole_number("max_tokens", max_tokens, least=1)
        self._count = token_counter(count, tokenizer)
        self._observations = arguments.flag("observations", observations)
        self._spent = 0

    @property
    def spent(self) -> int:
        """Tokens of this episode so far."""
        return self._spent

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode with a full budget, see `TextEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        self._spent = self._count(observation) if self._observations else 0
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn; truncated if the budget is used up after it."""
        observation, reward, terminated, truncated, info = super().step(action)
        self._spent += self._count(to_utf8(action))
        if self._observations:
            self._spent += self._count(observation)
        if not (terminated or truncated) and self._spent >= self._max_tokens:
            self._end(info, EndReason.BUDGET)
            truncated = True
        return observation, reward, terminated, truncated, info

    def _save_own(self) -> Any:
        return {"spent": self._spent}

    def _load_own(self, own: Any) -> None:
        self._spent = arguments.whole_number("spent", own["spent"], least=0)


class WallClockBudget(TextWrapper):
    """Ends an episode at the first turn that is over `seconds` after the reset or later.

    Time runs from the end of `reset`, and the policy's thinking counts. No text and no `info` tells
    it, but when the episode ends depends on the machine. A step that hangs is not interrupted:
    that is what `step_timeout_s` of `TextVectorEnv` is for. Saved states hold the time up to the
    last turn; it runs on when they are loaded.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        seconds: the budget of an episode, more than 0.

    Raises:
        ValueError: no finite number of more than 0.
    """

    def __init__(self, env: gymnasium.Env[str, str], seconds: float) -> None:
        super().__init__(env, seconds=seconds)
        self._seconds = arguments.finite("seconds", seconds, least=0.0)
        if not self._seconds:
            raise ValueError(f"seconds must be more than 0, got {seconds!r}")
        self._spent = 0.0
        self._since = time.monotonic()

    @property
    def spent_s(self) -> float:
        """Seconds of this episode up to the last turn."""
        return self._spent

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode, and the clock after it, see `TextEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        self._spent = 0.0
        self._since = time.monotonic()
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn; truncated if the time is up after it."""
        observation, reward, terminated, truncated, info = super().step(action)
        now = time.monotonic()
        self._spent += now - self._since
        self._since = now
        if not (terminated or truncated) and self._spent >= self._seconds:
            self._end(info, EndReason.BUDGET)
            truncated = True
        return observation, reward, terminated, truncated, info

    def _save_own(self) -> Any:
        return {"spent": self._spent}

    def _load_own(self, own: Any) -> None:
        self._spent = arguments.finite("spent", own["spent"], least=0.0)
        self._since = time.monotonic()
