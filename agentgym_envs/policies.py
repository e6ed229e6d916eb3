"""Policies over text, and `run_episode`, which plays one policy in one environment.

A policy is told the task's instructions and first observation once, then asked for replies. It
sees text and `info`, never the environment, unless it is an oracle. Token-level policies live in
the trainer; what they record is the same `Episode`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, SupportsFloat

import gymnasium
import numpy as np

from agentgym_envs.actions import action_format
from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason, Episode, Turn
from agentgym_envs.errors import Unsupported
from agentgym_envs.spaces import to_utf8
from agentgym_envs.tasks import Task


class Policy(Protocol):
    """Something that answers observations with replies."""

    def start(self, instructions: str) -> None:
        """A new episode begins; `instructions` are the rules of world and action format."""
        ...

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        """The reply to `observation`, in the action format of the environment."""
        ...


class RandomPolicy:
    """Replies with a random admissible command; needs ``info_keys=("admissible",)``.

    Args:
        seed: seed of the choices, or a generator.
        render: turns a command into a reply of the action format, such as `render_command` of
            the environment; not needed for the format `command`.
    """

    def __init__(
        self, seed: int | np.random.Generator = 0, render: Callable[[str], str] = str
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._render = render

    def start(self, instructions: str) -> None:
        pass

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        if "admissible" not in info:
            raise Unsupported(
                'RandomPolicy needs info["admissible"]; '
                'make the environment with info_keys=("admissible",)'
            )
        commands = info["admissible"]
        if not commands:
            return ""
        return self._render(commands[int(self._rng.integers(len(commands)))])


class ScriptedPolicy:
    """Replies with the given texts, in order; then with the last one again.

    Args:
        replies: at least one text.
    """

    def __init__(self, replies: Sequence[str]) -> None:
        if not replies:
            raise ValueError("a script needs at least one reply")
        self._replies = list(replies)
        self._next = 0

    def start(self, instructions: str) -> None:
        self._next = 0

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        text = self._replies[min(self._next, len(self._replies) - 1)]
        self._next += 1
        return text


class HumanPolicy:
    """Shows observations to a person and asks for replies.

    Args:
        read: gives the next line, such as `input`.
        write: shows a text.
    """

    def __init__(self, read: Callable[[str], str], write: Callable[[str], Any]) -> None:
        self._read = read
        self._write = write

    def start(self, instructions: str) -> None:
        self._write(instructions)

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        self._write(f"\n{observation}")
        return self._read("> ")


class PlannedPolicy:
    """An oracle that asks a function for the next command; families build their oracles on it.

    Args:
        next_command: the next bare command, from the world as it is now.
        render: turns a command into a reply of the action format.
    """

    def __init__(self, next_command: Callable[[], str], render: Callable[[str], str]) -> None:
        self._next_command = next_command
        self._render = render

    def start(self, instructions: str) -> None:
        pass

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        return self._render(self._next_command())


def run_episode(
    env: gymnasium.Env[str, str],
    policy: Policy | None = None,
    *,
    task: Task | str | int | None = None,
    seed: int | None = None,
    horizon: int | None = None,
) -> Episode:
    """Play one episode in a `TextEnv` or a wrapper around one.

    Args:
        env: the environment.
        policy: who plays; None for the environment's own oracle.
        task: which task; None lets the environment draw one.
        seed: seed of the reset.
        horizon: most turns; None takes the environment's choice.

    Returns:
        The record, with an end reason of the environment, or `HORIZON` where an outer wrapper
        truncated.

    Raises:
        TypeError: `env` is not built on a `TextEnv`.
        NoPlan: the oracle plays and finds no way.
        EnvFault: the world broke.
    """
    if not isinstance(env.unwrapped, TextEnv):
        raise TypeError(f"run_episode plays a TextEnv or a wrapper around one, got {env}")
    options = {"task": task, "horizon": horizon}
    observation, info = env.reset(
        seed=seed, options={key: value for key, value in options.items() if value is not None}
    )
    episode = begin_record(env, observation, seed)
    player: Policy = env.get_wrapper_attr("oracle")() if policy is None else policy
    player.start(episode.instructions)
    while not episode.end_reason:
        reply = player.reply(observation, info)
        outcome = env.step(reply)
        record_turn(episode, reply, outcome)
        observation, *_, info = outcome
    return episode


def begin_record(env: gymnasium.Env[str, str], observation: str, seed: int | None) -> Episode:
    """The record of an episode of `env`, a `TextEnv` or a wrapper, that has just been reset."""
    told = env.get_wrapper_attr  # what the outermost wrapper says that has something to say
    return Episode(
        task=told("task"),
        seed=seed,
        horizon=told("horizon"),
        instructions=told("instructions"),
        first_observation=observation,
        env_id=env.spec.id if env.spec else "",
        action_format=told("action_format"),
        versions=package_versions(),
    )


def record_turn(
    episode: Episode,
    reply: str,
    outcome: tuple[str, SupportsFloat, bool, bool, Mapping[str, Any]],
) -> None:
    """Add to the record what `step` returned for `reply`; an end without a reason is `HORIZON`."""
    observation, reward, terminated, truncated, info = outcome
    reply = to_utf8(reply)
    answer = action_format(episode.action_format).answer_to(reply)
    episode.turns.append(
        Turn(
            reply=reply,
            observation=observation,
            reward=float(reward),
            score=info["score"],
            action_valid=info["action_valid"],
            role=answer.role,
            call_id=answer.call_id,
        )
    )
    if terminated or truncated:
        episode.end_reason = EndReason(info["end_reason"] or EndReason.HORIZON)
        episode.success = info["success"]


def package_versions() -> dict[str, str]:
    """Versions of the installed packages that shape a transcript."""
    names = ("agentgym-suite", "gymnasium", "minigrid", "numpy")
    return {name: found for name in names if (found := _version(name))}


@functools.cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
