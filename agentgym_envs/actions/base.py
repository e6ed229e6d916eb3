"""`ActionFormat`: how a model's reply carries a command.

A format reads a reply into a `Command` of a `Grammar`, writes a command as the reply that a
perfect policy would give, and describes itself for the instructions. Replies are always `str`.
Lenient parsing forgives what cannot be mistaken (case, blanks, quotes); strict parsing forgives
nothing.
"""

from __future__ import annotations

from typing import Protocol

from agentgym_envs.actions.grammar import Command, Grammar


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
        """How to reply, with an example, as text for the instructions."""
        ...
