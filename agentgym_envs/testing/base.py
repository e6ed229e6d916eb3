"""What all checks need: the error, scripts of replies, and playing them.

A check takes a function `make` that makes an environment from the family's keyword arguments, such
as ``functools.partial(gymnasium.make, "AgentGym/BabyAI-v0")``. It is called often, also with
arguments of its own (`action_format`, `info_keys`, `render_mode`, `split`).
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import gymnasium
import numpy as np

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import Unsupported
from agentgym_envs.wrappers import TextWrapper

MakeEnv = Callable[..., gymnasium.Env[str, str]]
Check = Callable[[MakeEnv], None]
Transcript = list[list[Any]]
"""What `reset` returned, then what each `step` returned; equal to its own JSON round trip."""

JUNK = "this is no command \u2603\nand is so in no action format"


class ConformanceError(AssertionError):
    """A promise of the contract is broken; the text says which and how."""


def conformance_check(function: Check) -> Check:
    """Turn whatever a check raises into a `ConformanceError` that begins with its promise.

    The promise is the first line of the docstring.
    """
    promise = (function.__doc__ or "").splitlines()[0]

    @functools.wraps(function)
    def check(make: MakeEnv) -> None:
        try:
            function(make)
        except ConformanceError as error:
            raise ConformanceError(f"{promise} {error}") from error.__cause__
        except Exception as error:  # the environment under test may raise anything
            raise ConformanceError(f"{promise} {type(error).__name__}: {error}") from error

    return check


def require(condition: object, message: str) -> None:
    """Raise `ConformanceError` with `message` unless `condition` holds."""
    if not condition:
        raise ConformanceError(message)


def require_equal(found: Any, expected: Any, what: str) -> None:
    """Raise `ConformanceError` naming the first difference unless the two are equal."""
    if found == expected:
        return
    if isinstance(found, list) and isinstance(expected, list):
        for number, (one, other) in enumerate(zip(found, expected, strict=False)):
            if one != other:
                raise ConformanceError(f"{what}: entry {number} is {one!r}, not {other!r}.")
        raise ConformanceError(f"{what}: {len(found)} entries, not {len(expected)}.")
    raise ConformanceError(f"{what}: {found!r}, not {expected!r}.")


@contextlib.contextmanager
def must_raise(kind: type[Exception], what: str) -> Iterator[None]:
    """Raise `ConformanceError` unless the block raises `kind`."""
    try:
        yield
    except kind:
        return
    except Exception as error:
        raise ConformanceError(
            f"{what} must raise {kind.__name__}; it raised {type(error).__name__}: {error}"
        ) from error
    raise ConformanceError(f"{what} must raise {kind.__name__}; it raised nothing.")


@contextlib.contextmanager
def made(make: MakeEnv, **arguments: Any) -> Iterator[TextEnv]:
    """An environment, typed as what it behaves like, closed at the end."""
    env = make(**arguments)
    try:
        require(isinstance(env.unwrapped, TextEnv), f"{env} is not built on a TextEnv.")
        yield cast(TextEnv, env)
    finally:
        env.close()


def bare(env: TextEnv) -> TextEnv:
    """The environment inside all wrappers."""
    return cast(TextEnv, env.unwrapped)


def has(env: TextEnv, capability: str) -> bool:
    """Whether the family declares `capability`."""
    return capability in bare(env).capabilities


def added_info_keys(env: gymnasium.Env[str, str]) -> dict[str, type]:
    """Keys that the wrappers around the environment add to every `info`, with their types."""
    keys: dict[str, type] = {}
    while isinstance(env, TextWrapper):
        keys |= env.added_info_keys
        env = env.env
    return keys


@dataclasses.dataclass(frozen=True)
class Script:
    """Replies to play in one episode.

    Attributes:
        task_id: the task.
        seed: of the reset.
        replies: in order; playing stops when the episode ends.
        horizon: most turns, or None.
        state: where to continue instead of a reset, as `encode_state` gives it.
    """

    task_id: str
    seed: int
    replies: tuple[str, ...]
    horizon: int | None = None
    state: str | None = None


def encode_state(state: bytes) -> str:
    """A saved state as text."""
    return base64.b64encode(state).decode()


def begin(env: TextEnv, script: Script) -> Transcript:
    """Reset for the script, or load its state; the transcript so far."""
    if script.state is not None:
        env.load_state(base64.b64decode(script.state))
        return []
    options = {"task": script.task_id, "horizon": script.horizon}
    return [list(env.reset(seed=script.seed, options=options))]


def turns(env: TextEnv, replies: Sequence[str]) -> Iterator[list[Any]]:
    """What `step` returns for each reply, until the episode ends."""
    for reply in replies:
        entry = list(env.step(reply))
        yield entry
        if entry[2] or entry[3]:
            return


def play(env: TextEnv, script: Script) -> Transcript:
    """The transcript of a script."""
    return begin(env, script) + list(turns(env, script.replies))


def play_all(make: MakeEnv, scripts: Sequence[Script]) -> list[Transcript]:
    """The transcripts of scripts, one after the other in one environment."""
    with made(make) as env:
        return [play(env, script) for script in scripts]


def some_task_ids(env: TextEnv, count: int) -> list[str]:
    """Ids of `count` tasks, spread evenly over the task set."""
    rows = np.linspace(0, len(env.tasks) - 1, min(count, len(env.tasks)))
    return [env.tasks[int(row)].id for row in rows]


def write_scripts(make: MakeEnv, *, num_tasks: int = 2, max_turns: int = 8) -> list[Script]:
    """Scripts to compare transcripts on: for each task one that solves and one that wanders.

    Both hold a reply now and then that is no command. Without an oracle nothing is solved; without
    admissible commands the examples of the grammar are played.
    """
    scripts = []
    with made(make) as env:
        for seed, task_id in enumerate(some_task_ids(env, num_tasks)):
            writers = [_wander] + [_solve] * has(env, "oracle")
            for write in writers:
                env.reset(seed=seed, options={"task": task_id})
                replies = tuple(write(env, max_turns))
                scripts.append(Script(task_id, seed, replies, horizon=max_turns + 1))
    return scripts


def _wander(env: TextEnv, max_turns: int) -> Iterator[str]:
    rng = np.random.default_rng(0)
    commands: Sequence[str] = env.grammar.examples
    for turn in range(max_turns):
        with contextlib.suppress(Unsupported):
            commands = env.admissible()
        junk = turn % 4 == 2 or not commands
        reply = JUNK if junk else env.render_command(commands[int(rng.integers(len(commands)))])
        yield reply
        *_, terminated, truncated, _ = env.step(reply)
        if terminated or truncated:
            return


def _solve(env: TextEnv, max_turns: int) -> Iterator[str]:
    oracle = env.oracle()
    oracle.start(env.instructions)
    observation, info = "", dict[str, Any]()
    for turn in range(max_turns):
        reply = JUNK if turn == 1 else oracle.reply(observation, info)
        yield reply
        observation, _, terminated, truncated, info = env.step(reply)
        if terminated or truncated:
            return
