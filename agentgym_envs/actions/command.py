"""The format `command`: the reply is the command and nothing else."""

from __future__ import annotations

from agentgym_envs.actions.base import Answer
from agentgym_envs.actions.fences import unfenced
from agentgym_envs.actions.grammar import Grammar, shorten
from agentgym_envs.actions.verbs import Command
from agentgym_envs.errors import FormatError


class CommandFormat:
    """The whole reply is one command. Lenient parsing also takes blank lines or a fence around."""

    name = "command"

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        text = reply if strict else unfenced(reply)
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            raise FormatError(f"The reply is empty. Reply with one command: {grammar.forms()}.")
        if len(lines) > 1:
            raise FormatError(
                f"Expected one command on one line, got {len(lines)} lines that begin with "
                f'"{shorten(lines[0])}".'
            )
        return grammar.parse(reply if strict else lines[0], strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        return command.text

    def describe(self, grammar: Grammar) -> str:
        return (
            f"Commands:\n{grammar.describe()}\n\n"
            f"Reply with exactly one command and nothing else, for example:\n{grammar.examples[0]}"
        )

    def answer_to(self, reply: str) -> Answer:
        return Answer()
