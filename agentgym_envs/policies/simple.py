"""`Policy`, what answers observations with replies, and the simplest of them.

A policy is told the task's instructions and first observation once, then asked for replies. It
sees text and `info`, never the environment, unless it is an oracle. Token-level policies live in
the trainer; what they record is the same `Episode`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from agentgym_envs.errors import Unsupported


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
