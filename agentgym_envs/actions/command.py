"""The format `command`: the reply is the command and nothing else."""

from __future__ import annotations

from agentgym_envs.actions.grammar import Command, Grammar, shorten
from agentgym_envs.errors import FormatError


class CommandFormat:
    """The whole reply is one command. Lenient parsing also takes blank lines around it."""

    name = "command"

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        lines = [reply] if strict else [line for line in reply.splitlines() if line.strip()]
        if not any(line.strip() for line in lines):
            raise FormatError(f"The reply is empty. Reply with one command: {grammar.forms()}.")
        if len(lines) > 1:
            raise FormatError(
                f"Expected one command on one line, got {len(lines)} lines that begin with "
                f'"{shorten(lines[0])}".'
            )
        return grammar.parse(lines[0], strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        return command.text

    def describe(self, grammar: Grammar) -> str:
        return (
            f"Reply with exactly one command and nothing else, for example:\n{grammar.examples[0]}"
        )
