"""How one environment of a vector environment is made, and how the whole is made again."""

from __future__ import annotations

import copy
import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

MakeEnv = Callable[..., gymnasium.Env[str, str]]
WrapEnv = Callable[[Any], gymnasium.Env[str, str]]


@dataclasses.dataclass(frozen=True)
class EnvFactory:
    """Makes one environment, and wraps it.

    Attributes:
        env: an id, a spec, or a function.
        kwargs: its arguments.
        wrappers: functions that each wrap what the one before gave.
    """

    env: str | EnvSpec | MakeEnv
    kwargs: Mapping[str, Any]
    wrappers: tuple[WrapEnv, ...] = ()

    def __call__(self) -> gymnasium.Env[str, str]:
        """A fresh environment."""
        made: gymnasium.Env[str, str] = (
            self.env(**self.kwargs)
            if callable(self.env)
            else gymnasium.make(self.env, **self.kwargs)
        )
        for wrap in self.wrappers:
            made = wrap(made)
        return made

    def with_kwargs(self, kwargs: Mapping[str, Any]) -> EnvFactory:
        """The same with further arguments."""
        return dataclasses.replace(self, kwargs={**self.kwargs, **kwargs})

    def portable(self) -> EnvFactory:
        """The same with a spec in the place of an id, which another process may not know."""
        spec = gymnasium.registry.get(self.env) if isinstance(self.env, str) else None
        return self if spec is None else dataclasses.replace(self, env=spec)

    def preload(self) -> None:
        """Import the modules that making an environment needs, without making one."""
        env = self.env
        if isinstance(env, str):
            module, _, env_id = env.rpartition(":")
            if module:
                importlib.import_module(module)
            env = gymnasium.spec(env_id)
        if isinstance(env, EnvSpec) and isinstance(env.entry_point, str):
            load_env_creator(env.entry_point)


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
