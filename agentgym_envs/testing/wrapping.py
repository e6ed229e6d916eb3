"""Every shipped wrapper, with arguments under which all promises of the kit hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium

from agentgym_envs import wrappers
from agentgym_envs.testing.base import MakeEnv

WrapEnv = Callable[[Any], gymnasium.Env[str, str]]

_FAR = 10**9
"""A limit that no check reaches."""


def shipped_wrappers(folder: str) -> dict[str, WrapEnv]:
    """Functions that wrap an environment, by the name of the wrapper; and ``"stack"``, all at once.

    Limits are far and what is shown of a long reply is short, so that the checks of horizons and
    hostile replies mean the same inside. Rewards are changed: the checks look at ``env_reward``. No
    horizon is: the curriculum is the one that a spec can make, which has no schedule.

    Args:
        folder: where `RecordEpisodes` writes.
    """
    score_gain = "agentgym_envs.outcomes:score_gain"
    wraps: dict[str, WrapEnv] = {
        "TextWrapper": wrappers.TextWrapper,
        "InvalidActions": partial(wrappers.InvalidActions, cost=0.5, limit=_FAR),
        "RewardShaping": partial(wrappers.RewardShaping, function=score_gain, potential="score"),
        "TurnBudget": partial(wrappers.TurnBudget, max_turns=_FAR),
        "TokenBudget": partial(wrappers.TokenBudget, max_tokens=_FAR, observations=True),
        "WallClockBudget": partial(wrappers.WallClockBudget, seconds=_FAR),
        "History": partial(wrappers.History, turns=2, max_characters=4_000),
        "RenderText": partial(wrappers.RenderText, columns=40, rows=12, scale=1),
        "RecordEpisodes": partial(wrappers.RecordEpisodes, folder=folder),
        "HorizonCurriculum": wrappers.HorizonCurriculum,
    }
    return wraps | {"stack": partial(_wrap_in_all, tuple(wraps.values()))}


def _wrap_in_all(wraps: Sequence[WrapEnv], env: gymnasium.Env[str, str]) -> gymnasium.Env[str, str]:
    for wrap in wraps:
        env = wrap(env)
    return env


def wrapped(env_id: str, wrap: WrapEnv = wrappers.TextWrapper, /, **kwargs: Any) -> MakeEnv:
    """A function that makes environments of an id inside a wrapper.

    Args:
        env_id: a registered id.
        wrap: puts the wrapper around an environment.
        **kwargs: arguments of the family.
    """
    return partial(_make_wrapped, env_id, wrap, **kwargs)


def _make_wrapped(env_id: str, wrap: WrapEnv, /, **kwargs: Any) -> gymnasium.Env[str, str]:
    return wrap(gymnasium.make(env_id, **kwargs))
