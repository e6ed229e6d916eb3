"""`RewardShaping`: other rewards than the family's, by the user's functions.

Functions are named by import path, so that a spec with the wrapper stays JSON and other processes
can make it. A family's own rewards are chosen by its argument `reward`; this is for the rest.

Left out: a potential from the oracle's distance. It would play the oracle to the end in every turn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import gymnasium

from agentgym_envs import arguments
from agentgym_envs.episodes import EndReason
from agentgym_envs.outcomes import RewardInput
from agentgym_envs.wrappers.base import TextWrapper
from agentgym_envs.wrappers.hooks import load_hook

Potential = Callable[[Mapping[str, Any]], float]

POTENTIALS: Mapping[str, Potential] = {"score": lambda info: float(info["score"])}
"""Potentials by name."""


@dataclasses.dataclass(slots=True)
class PlayedTurn(RewardInput):
    """All that a reward function may look at; what families' own may, and what was said.

    Attributes:
        reward: what the wrapped environment gave.
        reply: what the policy wrote.
        observation: the text that answered it.
        info: of this turn, read-only.
    """

    reward: float
    reply: str
    observation: str
    info: Mapping[str, Any]


class RewardShaping(TextWrapper):
    """Replaces the reward of every turn, or adds a potential's difference to it, or both.

    With a potential P, every turn gets ``discount * P(after) - P(before)`` on top, where P is 0
    after the end. An episode's discounted return then changes by ``-P(start)``, whatever is
    played, so the best policy stays the best (Ng, Harada and Russell, ICML 1999). That needs every
    wrapper that ends episodes inside of this one: of an end outside it knows nothing.
    ``info["env_reward"]`` holds the environment's own reward.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        function: import path ``"package.module:function"`` of a function from a `PlayedTurn` to the
            new reward; None keeps the reward. Functions of a `RewardInput` will do.
        potential: ``"score"``, or the import path of a function from `info` to a number; None for
            none.
        discount: the learner's discount, 0..1, for the potential.

    Raises:
        ValueError, TypeError: neither function nor potential, an import path without a function,
            a discount outside 0..1.
        UnknownName: no such potential.
    """

    added_info_keys: ClassVar[Mapping[str, type]] = {"env_reward": float}

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        function: str | None = None,
        potential: str | None = None,
        discount: float = 1.0,
    ) -> None:
        super().__init__(env, function=function, potential=potential, discount=discount)
        if function is None and potential is None:
            raise ValueError("RewardShaping needs a function, a potential, or both; got neither")
        self._function = None if function is None else load_hook(function)
        self._potential = None if potential is None else _find_potential(potential)
        self._discount = arguments.finite("discount", discount, least=0.0)
        if self._discount > 1.0:
            raise ValueError(f"discount must be in 0..1, got {discount!r}")
        self._score_before = 0.0
        self._potential_before = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode, see `TextEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        info.setdefault("env_reward", 0.0)
        self._score_before = info["score"]
        self._potential_before = self._potential_of(info)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn; the reward is the shaped one."""
        observation, reward, terminated, truncated, info = super().step(action)
        info.setdefault("env_reward", reward)
        shaped = reward
        if self._function is not None:
            turn = self._turn(action, observation, reward, info)
            shaped = arguments.finite("what the reward function returns", self._function(turn))
        after = 0.0 if terminated or truncated else self._potential_of(info)
        shaped += self._discount * after - self._potential_before
        self._score_before, self._potential_before = info["score"], after
        return observation, shaped, terminated, truncated, info

    def _turn(
        self, reply: str, observation: str, reward: float, info: Mapping[str, Any]
    ) -> PlayedTurn:
        return PlayedTurn(
            score_before=self._score_before,
            score=info["score"],
            end_reason=EndReason(info["end_reason"]),
            turn=info["turn"],
            horizon=self.horizon,
            action_valid=info["action_valid"],
            reward=reward,
            reply=reply,
            observation=observation,
            info=MappingProxyType(info),
        )

    def _potential_of(self, info: dict[str, Any]) -> float:
        if self._potential is None:
            return 0.0
        value = self._potential(MappingProxyType(info))
        return arguments.finite("what the potential returns", value)

    def _save_own(self) -> Any:
        return {"score": self._score_before, "potential": self._potential_before}

    def _load_own(self, own: Any) -> None:
        self._score_before = arguments.finite("score", own["score"])
        self._potential_before = arguments.finite("potential", own["potential"])


def _find_potential(name: str) -> Potential:
    if isinstance(name, str) and ":" in name:
        return load_hook(name)
    return POTENTIALS[arguments.one_of("potential", name, POTENTIALS)]
