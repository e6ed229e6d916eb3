"""Vector environments over text, see `TextVectorEnv`, and pools of single ones, see `EnvPool`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from agentgym_envs.vector.base import WORKERS
from agentgym_envs.vector.env import TextVectorEnv
from agentgym_envs.vector.pool import EnvPool
from agentgym_envs.vector.results import FAULT_OBSERVATION, StepResult


def vector_factory(env_id: str) -> Callable[..., TextVectorEnv]:
    """What a family registers as its vector entry point.

    Args:
        env_id: the id whose environments it vectorizes.

    Returns:
        A function of ``num_envs`` and the other arguments of `TextVectorEnv` and of the family.
    """
    return functools.partial(TextVectorEnv, env_id)


__all__ = [
    "FAULT_OBSERVATION",
    "WORKERS",
    "EnvPool",
    "StepResult",
    "TextVectorEnv",
    "vector_factory",
]
