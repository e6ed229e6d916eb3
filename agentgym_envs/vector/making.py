"""How one environment of a vector environment is made, and how the whole is made again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.vector.base import EnvFactory

MakeEnv = Callable[..., gymnasium.Env[str, str]]
WrapEnv = Callable[[Any], gymnasium.Env[str, str]]


def env_factory(
    env: str | EnvSpec | MakeEnv, env_kwargs: Mapping[str, Any], wrappers: Sequence[WrapEnv]
) -> EnvFactory:
    """A function that makes one environment from an id, a spec or a function, and wraps it."""

    def make_env() -> gymnasium.Env[str, str]:
        made: gymnasium.Env[str, str] = (
            env(**env_kwargs) if callable(env) else gymnasium.make(env, **env_kwargs)
        )
        for wrap in wrappers:
            made = wrap(made)
        return made

    return make_env


def vector_spec(env: str | EnvSpec, **arguments: Any) -> EnvSpec:
    """The spec from which `gymnasium.make_vec` makes the same vector environment.

    Args:
        env: id or spec of one environment.
        **arguments: those of `TextVectorEnv` and of the environments; None means not given.
    """
    spec = gymnasium.spec(env.rpartition(":")[2]) if isinstance(env, str) else env
    spec = copy.deepcopy(spec)
    given = {name: value for name, value in arguments.items() if value is not None}
    spec.kwargs = spec.kwargs | given | {"vectorization_mode": "vector_entry_point"}
    return spec
