"""The seam between `TextVectorEnv` and whoever runs its environments.

A `WorkerPool` takes requests (call this method of environment i), runs each on its environment in
its own way, and hands back what came of them in the order in which they are ready. There is at
most one request a time for an environment, so order within an environment needs no care. Requests
and outcomes are plain data: a pool may send them to another thread, process or host.

What an exception means is decided here, once, wherever an environment runs (`Slot`): a step that
raises has broken its environment, whatever it raised; a reset may also raise because the caller
asked for a task that does not exist; any other call is the caller's own affair. A broken
environment is dropped, and built anew when it is next needed.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import math
import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

import gymnasium

from agentgym_envs.arguments import one_of
from agentgym_envs.errors import AgentGymError, EnvFault, Unsupported, WorkerFault
from agentgym_envs.vector.making import EnvFactory

_logger = logging.getLogger(__name__)

_POOLS = {
    "inline": "agentgym_envs.vector.inline:InlineWorkers",
    "threads": "agentgym_envs.vector.threads:ThreadWorkers",
    "forkserver": "agentgym_envs.vector.processes:ForkedWorkers",
    "spawn": "agentgym_envs.vector.processes:SpawnedWorkers",
}

WORKERS = tuple(_POOLS)
"""Names of the kinds of workers."""


@dataclasses.dataclass(slots=True)
class Request:
    """A call of one environment: its index, the name of a method or attribute, the arguments."""

    index: int
    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def begins_anew(self) -> bool:
        """Whether it drops what the environment has played before."""
        return self.method in ("reset", "load_state")


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """The outcome of a request that raised, in the place of what it would have returned.

    An `EnvFault` says that the environment is gone and that the next reset builds another; any
    other error is a mistake of the caller, and the environment is as it was.
    """

    error: Exception

    @property
    def is_fault(self) -> bool:
        """Whether the environment is gone."""
        return isinstance(self.error, EnvFault)


@dataclasses.dataclass(frozen=True)
class WorkerLimits:
    """Limits on workers; None for those that nobody has set.

    Attributes:
        step_timeout_s: seconds that a step may take, or any call that is none of the following.
        reset_timeout_s: seconds that a reset may take, loading a state, which may be a replay, and
            any call that has to build the environment first.
        max_threads: most requests that are worked on at a time; None lets the pool choose.
        max_memory_mb: most resident memory of a worker process, in MiB.
    """

    step_timeout_s: float | None = None
    reset_timeout_s: float | None = None
    max_threads: int | None = None
    max_memory_mb: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive or None, got {value!r}")

    def timeout_s(self, request: Request, *, builds_env: bool) -> float:
        """Seconds that `request` may take, infinite for no limit.

        Args:
            request: what is asked for.
            builds_env: whether the environment has to be built for it.
        """
        is_long = builds_env or request.begins_anew
        limit = self.reset_timeout_s if is_long else self.step_timeout_s
        return math.inf if limit is None else limit

    def with_timeouts(self, step_timeout_s: float | None, reset_timeout_s: float | None) -> Self:
        """These limits, with time limits where there are none."""
        return dataclasses.replace(
            self,
            step_timeout_s=self.step_timeout_s or step_timeout_s,
            reset_timeout_s=self.reset_timeout_s or reset_timeout_s,
        )

    def require_only(self, workers: str, *names: str) -> None:
        """Refuse limits that workers cannot keep.

        Args:
            workers: what they are called, and why they cannot.
            *names: those that they keep.

        Raises:
            ValueError: another one is given.
        """
        for name, value in vars(self).items():
            if value is not None and name not in names:
                raise ValueError(
                    f"{workers}: they cannot keep {name}={value!r}; leave it out or use others"
                )


class WorkerPool(Protocol):
    """Runs the environments of one vector environment; made by ``Pool(factory, n, limits)``.

    A pool that works in the caller's thread may offer two things more, see `InlineWorkers`:
    ``step_all(texts)`` and ``envs``.

    Attributes:
        limits: may be replaced; what is submitted from then on is held to them.
    """

    limits: WorkerLimits

    def submit(self, request: Request) -> None:
        """Take a request; its environment has no other pending. Returns at once."""
        ...

    def collect(self, timeout: float | None) -> list[tuple[Request, Any]]:
        """What is ready, after waiting until there is something.

        Args:
            timeout: longest time to wait in seconds; None for no limit.

        Returns:
            Requests with their outcomes: what the call returned, or a `Failure`. [] when the time
            is over or nothing is pending.

        Raises:
            KeyboardInterrupt: also if it was raised in a worker. No outcome is lost; that of the
                interrupted request is a `Failure`.
        """
        ...

    def pending(self) -> set[int]:
        """Environments with a request whose outcome has not been handed back."""
        ...

    def close(self) -> None:
        """Give up pending requests and close all environments; called once."""
        ...


def make_workers(name: str, factory: EnvFactory, num_envs: int, limits: WorkerLimits) -> WorkerPool:
    """The pool called `name`; only its module is imported.

    Raises:
        UnknownName: there is none.
        ValueError: it cannot keep `limits`.
    """
    module, _, attribute = _POOLS[one_of("kind of workers", name, _POOLS)].partition(":")
    pool: WorkerPool = getattr(importlib.import_module(module), attribute)(
        factory, num_envs, limits
    )
    return pool


class Slot:
    """The place of one environment; used by one thread at a time.

    Args:
        index: which environment it is, for the log.
        factory: builds the environment, when it is first needed and again after it broke.
    """

    def __init__(self, index: int, factory: Callable[[], gymnasium.Env[str, str]]) -> None:
        self._index = index
        self._factory = factory
        self._env: gymnasium.Env[str, str] | None = None

    @property
    def env(self) -> gymnasium.Env[str, str]:
        """The environment, built if there is none."""
        if self._env is None:
            self._env = self._factory()
        return self._env

    @property
    def is_empty(self) -> bool:
        """Whether the environment has to be built before it can do anything."""
        return self._env is None

    def begin_step(self, text: str) -> None:
        """Start what a step will wait for, if the environment knows how."""
        begin = getattr(self._env, "begin_step", None)
        if begin is not None:
            begin(text)

    def step(self, text: str) -> Any:
        """The outcome of a step."""
        try:
            answer = self.env.step(text)
            if len(answer) == 5 and isinstance(answer[0], str) and isinstance(answer[4], dict):
                observation, reward, terminated, truncated, info = answer
                return observation, float(reward), bool(terminated), bool(truncated), info
            raise WorkerFault(
                f"step() must return a text, three values and a dict, got {answer!r:.200}"
            )
        except BaseException as error:
            return self.discard(error)

    def run(self, request: Request) -> Any:
        """The outcome of any request."""
        if request.method == "step":
            return self.step(*request.args)
        try:
            if request.method == "reset":
                answer = self._env_for_reset().reset(**request.kwargs)
                if len(answer) == 2 and isinstance(answer[0], str) and isinstance(answer[1], dict):
                    return answer
                raise WorkerFault(f"reset() must return a text and a dict, got {answer!r:.200}")
            value = self._attribute(request.method)
            return value(*request.args, **request.kwargs) if callable(value) else value
        except Exception as error:
            if request.method == "reset" and not _is_callers_mistake(error):
                return self.discard(error)
            return Failure(error)
        except BaseException as error:
            return self.discard(error)

    def discard(self, error: BaseException) -> Failure:
        """The outcome of what broke the environment, which is dropped.

        Raises:
            BaseException: `error` itself if it is no `Exception`.
        """
        self.close()
        if not isinstance(error, Exception):
            raise error
        if isinstance(error, EnvFault):
            return Failure(error)
        fault = WorkerFault(describe(error))
        fault.__cause__ = error
        return Failure(fault)

    def close(self) -> None:
        """Close the environment if there is one; what goes wrong is logged."""
        env, self._env = self._env, None
        try:
            if env is not None:
                env.close()
        except Exception:
            _logger.warning("environment %d could not be closed", self._index, exc_info=True)

    def _attribute(self, name: str) -> Any:
        if name not in ("save_state", "load_state"):
            return self.env.get_wrapper_attr(name)
        if not hasattr(self.env, name):  # looking further in would pass over a wrapper's own state
            raise Unsupported(
                f"{type(self.env).__name__} has no {name}(); only a TextEnv, bare or in "
                "TextWrappers, can be copied"
            )
        return getattr(self.env, name)

    def _env_for_reset(self) -> gymnasium.Env[str, str]:
        try:
            return self.env
        except Exception as error:
            raise WorkerFault(f"the environment could not be built: {describe(error)}") from error


def interrupted(error: BaseException) -> Failure:
    """The outcome of a request that `KeyboardInterrupt` or its like has cut short."""
    return Failure(WorkerFault(f"interrupted by {type(error).__name__}"))


def _is_callers_mistake(error: Exception) -> bool:
    return isinstance(error, AgentGymError) and not isinstance(error, EnvFault)


def describe(error: BaseException) -> str:
    """Kind and message of an error."""
    return f"{type(error).__name__}: {message_of(error)}"


def message_of(error: BaseException) -> str:
    """The message of an error, "" if it cannot tell it."""
    try:
        return str(error)
    except Exception:
        return ""


def close_once(owner: object, close: Callable[..., None], *args: Any) -> Callable[[], Any]:
    """`close`, to be called once: by the caller, or when `owner` is forgotten, or Python ends.

    It does nothing in a fork of this process, which must not end what this one still needs.
    """
    process_id = os.getpid()

    def close_here() -> None:
        if os.getpid() == process_id:
            close(*args)

    return weakref.finalize(owner, close_here)


def require_process(process_id: int) -> None:
    """Refuse to go on in a fork of the process that started the workers.

    Raises:
        RuntimeError: this is another process.
    """
    if os.getpid() != process_id:
        raise RuntimeError(
            f"the workers of this vector environment belong to process {process_id}, of which this "
            f"one, {os.getpid()}, is a fork; make another vector environment here"
        )
