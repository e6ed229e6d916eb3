"""Making environments for the commands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

import gymnasium

from agentgym_envs.core import TextEnv
from agentgym_envs.registration import require_id
from agentgym_envs.wrappers import TextWrapper

Figures = dict[str, Any]


@contextlib.contextmanager
def made(env_id: str, **arguments: Any) -> Iterator[TextEnv]:
    """An environment, closed at the end.

    Raises:
        UnknownName: there is no such id or argument.
        ImportError: there is no such module.
        TypeError: it is no text environment.
    """
    require_id(env_id)
    env = gymnasium.make(env_id, **arguments)
    try:
        if not isinstance(env, (TextEnv, TextWrapper)):
            raise TypeError(f"{env_id} makes {env}; expected a TextEnv or a TextWrapper")
        yield cast(TextEnv, env)
    finally:
        env.close()


def bare(env: TextEnv) -> TextEnv:
    """The environment inside all wrappers."""
    return cast(TextEnv, env.unwrapped)


def reset_options(task: str | int | None, horizon: int | None) -> dict[str, Any]:
    """Options of a reset; None is no choice."""
    options = {"task": task, "horizon": horizon}
    return {name: value for name, value in options.items() if value is not None}


def counted(counts: dict[str, int]) -> str:
    """``"train 45,721, dev 5,371"``."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
