"""`ActionFormat`: how a model's reply carries a command.

A format reads a reply into a `Command` of a `Grammar`, writes a command as the reply that a
perfect policy would give, and describes the commands and itself for the instructions; so a
family's own rules name no command. Replies are always `str`.

Lenient parsing forgives what cannot be mistaken; strict parsing forgives nothing. What that
means in each format is listed in ``docs/action-formats.md``. A call of a function may hold
arguments that the bare form of its command cannot: there ``go to room 3`` may be another verb than
``go_to(target="room 3")``. It does what it says.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

from agentgym_envs.actions.grammar import Grammar
from agentgym_envs.actions.verbs import Command


@dataclasses.dataclass(frozen=True)
class Answer:
    """How the observation that answers a reply goes into a chat.

    Attributes:
        role: ``"tool"`` if it answers a tool call, None if it is a message of the user.
        call_id: the id of the tool call, or None.
    """

    role: str | None = None
    call_id: str | None = None


class ActionFormat(Protocol):
    """One way of writing a command into a reply."""

    name: str
    """The name under which the format is chosen."""

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        """The command in `reply`.

        Raises:
            FormatError: there is no command, or more than one; the text says what was expected.
            CommandError: there is one, but it is not in the grammar.
        """
        ...

    def render(self, command: Command, thought: str = "") -> str:
        """A reply that `parse` reads back as `command`; formats without thoughts drop them."""
        ...

    def describe(self, grammar: Grammar) -> str:
        """All commands and how to reply with one, with an example, for the instructions."""
        ...

    def answer_to(self, reply: str) -> Answer:
        """Under which role, and to which tool call, an observation answers `reply`."""
        ...
