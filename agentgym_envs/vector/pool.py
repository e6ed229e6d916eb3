"""`EnvPool`: a few expensive worlds, lent to one user at a time.

For worlds that take seconds to start, such as a browser or a Java program, and users who come and
go: evaluation in threads, the sessions of a server. A vector environment keeps its own.

Which world a user needs is said by arguments, and an idle one that was made with the same arguments
is lent again. One that is given back after an exception is closed: nobody knows in which state it
is. Left out: closing what has been idle for long, which would need a thread of its own; an idle
world makes room as soon as another kind is wanted.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ClosedEnvironmentError

from agentgym_envs.vector.arguments import positive_int
from agentgym_envs.vector.base import close_once
from agentgym_envs.vector.making import EnvFactory, MakeEnv, WrapEnv

_logger = logging.getLogger(__name__)

Env = gymnasium.Env[str, str]


class _Member(NamedTuple):
    key: str  # the arguments it was made with
    env: Env


class EnvPool:
    """Lends at most `size` environments; may be used from many threads.

    >>> pool = EnvPool("AgentGym/BabyAI-v0", size=2)
    >>> with pool.lease(timeout_s=30, split="test") as env:
    ...     observation, info = env.reset(seed=0)

    An environment is made when it is first needed. A borrower begins with `reset`. All environments
    live as long as the pool: they are closed with it, or when Python ends.

    Args:
        env: an id, a spec, or a function that makes one environment.
        size: most environments that exist at a time.
        env_wrappers: functions that wrap one environment, applied in order.
        **env_kwargs: arguments of all environments.
    """

    def __init__(
        self,
        env: str | EnvSpec | MakeEnv,
        size: int,
        *,
        env_wrappers: Iterable[WrapEnv] = (),
        **env_kwargs: Any,
    ) -> None:
        self.size = positive_int("size", size)
        self._factory = EnvFactory(env, env_kwargs, tuple(env_wrappers))
        self._idle: list[_Member] = []  # the one that was lent last comes last
        self._lent: dict[int, _Member] = {}  # by id of the environment
        self._num_taken = 0  # lent, being made or being closed
        self._is_closed = False
        self._changed = threading.Condition()
        self._close_all = close_once(self, _close_all, self._idle, self._lent)

    @contextlib.contextmanager
    def lease(self, *, timeout_s: float | None = None, **env_kwargs: Any) -> Iterator[Env]:
        """Borrow an environment for a ``with`` block; what raises in it closes the environment.

        Args:
            timeout_s: as for `acquire`.
            **env_kwargs: as for `acquire`.
        """
        env = self.acquire(timeout_s=timeout_s, **env_kwargs)
        try:
            yield env
        except BaseException:
            self.release(env, broken=True)
            raise
        self.release(env)

    def acquire(self, *, timeout_s: float | None = None, **env_kwargs: Any) -> Env:
        """Borrow an environment; `release` gives it back.

        Args:
            timeout_s: longest time to wait until one is free, without the time to make it; None
                for no limit.
            **env_kwargs: further arguments of the environment, JSON values.

        Raises:
            TimeoutError: none became free in time.
            TypeError: arguments that are no JSON values.
            ClosedEnvironmentError: the pool is closed.
            Exception: what making the environment raised.
        """
        key = _key(env_kwargs)
        with self._changed:
            self._wait_for_room(timeout_s)
            member = self._pop_idle(key)
            superfluous = None
            if member is None and self._num_taken + len(self._idle) == self.size:
                superfluous = self._idle.pop(0)
            self._num_taken += 1
        try:
            if superfluous is not None:
                _close(superfluous.env)
            if member is None:
                member = _Member(key, self._factory.with_kwargs(env_kwargs)())
        except BaseException:
            self._give_up_place()
            raise
        self._lent[id(member.env)] = member
        return member.env

    def release(self, env: Env, *, broken: bool = False) -> None:
        """Give back an environment.

        Args:
            env: what `acquire` returned.
            broken: whether to close it, because it may not work any more.

        Raises:
            ValueError: it is not on loan from this pool.
        """
        with self._changed:
            member = self._lent.pop(id(env), None)
            if member is None:
                raise ValueError(
                    f"{env} is not on loan from this pool: it was given back before, or comes from "
                    "elsewhere"
                )
            if not broken and not self._is_closed:
                self._idle.append(member)
                self._num_taken -= 1
                self._changed.notify()
                return
        try:
            _close(env)
        finally:
            self._give_up_place()

    def close(self) -> None:
        """Close the environments; those on loan when they are given back. Waiting ones give up."""
        with self._changed:
            self._is_closed = True
            idle = self._idle[:]
            self._idle.clear()
            self._changed.notify_all()
        for member in idle:
            _close(member.env)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _wait_for_room(self, timeout_s: float | None) -> None:
        longest_s = None if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX)
        is_free = self._changed.wait_for(
            lambda: self._is_closed or self._num_taken < self.size, longest_s
        )
        if self._is_closed:
            raise ClosedEnvironmentError("the pool is closed")
        if not is_free:
            raise TimeoutError(
                f"no environment became free within {timeout_s} s: all {self.size} of the pool are "
                "on loan; give them back sooner, wait longer or make the pool larger"
            )

    def _pop_idle(self, key: str) -> _Member | None:
        for position in reversed(range(len(self._idle))):
            if self._idle[position].key == key:
                return self._idle.pop(position)
        return None

    def _give_up_place(self) -> None:
        with self._changed:
            self._num_taken -= 1
            self._changed.notify()


def _key(env_kwargs: dict[str, Any]) -> str:
    try:
        return json.dumps(env_kwargs, sort_keys=True)
    except TypeError as error:
        raise TypeError(
            f"the arguments of a lease are JSON values, which can be compared: {error}"
        ) from error


def _close(env: Env) -> None:
    try:
        env.close()
    except Exception:
        _logger.warning("an environment of a pool could not be closed", exc_info=True)


def _close_all(idle: list[_Member], lent: dict[int, _Member]) -> None:
    for member in [*idle, *lent.values()]:
        _close(member.env)
    idle.clear()
    lent.clear()
