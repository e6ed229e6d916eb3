"""The format `react`: a thought, then an action (ReAct, arXiv 2210.03629).

The command stands behind ``Action:`` or on the line after it. A model that goes on and invents an
observation and further actions has still chosen its first one: lenient parsing takes it; strict
parsing refuses a reply with more than one.
"""

from __future__ import annotations

import re

from agentgym_envs.actions.grammar import Command, Grammar, shorten
from agentgym_envs.errors import FormatError

_ACTION = re.compile(r"^[ \t]*action[ \t]*:", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(r"\s*thought[ \t]*:", re.IGNORECASE)


class ReactFormat:
    """``Thought:`` and ``Action:``, each followed by its text."""

    name = "react"

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        actions = list(_ACTION.finditer(reply))
        if not actions:
            raise FormatError(
                'There is no "Action:" in the reply. Reply with "Thought:" and what you think, '
                'then "Action:" and one command.'
            )
        if strict and (len(actions) > 1 or not _THOUGHT.match(reply)):
            raise FormatError(
                'Expected one "Thought:" and then one "Action:", '
                f'got {len(actions)} actions in a reply that begins with "{shorten(reply)}".'
            )
        end = actions[1].start() if len(actions) > 1 else len(reply)
        lines = reply[actions[0].end() : end].strip().splitlines()
        if not lines:
            raise FormatError(f'There is no command after "Action:". Commands: {grammar.forms()}.')
        if strict and len(lines) > 1:
            raise FormatError(f'Expected one line after "Action:", got {len(lines)}.')
        return grammar.parse(lines[0], strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        return f"Thought:\n{thought or 'I know what to do next.'}\n\nAction:\n{command.text}"

    def describe(self, grammar: Grammar) -> str:
        return (
            "Reply with a thought and one command, in exactly this form:\n"
            f"Thought:\nwhat you think\n\nAction:\n{grammar.examples[0]}"
        )
