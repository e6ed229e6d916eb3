"""The format `react`: a thought, then an action (ReAct, arXiv 2210.03629).

The command stands behind ``Action:`` or on the line after it. A model that goes on and invents an
observation and further actions has still chosen its first one: lenient parsing takes it; strict
parsing refuses a reply with more than one.
"""

from __future__ import annotations

import re

from agentgym_envs.actions.base import Answer
from agentgym_envs.actions.fences import FENCE, fenced_blocks
from agentgym_envs.actions.grammar import Grammar, shorten
from agentgym_envs.actions.verbs import Command
from agentgym_envs.errors import FormatError

_ACTION = re.compile(r"^[ \t]*action[ \t]*:", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*(?:thought|action)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_LABELS = ["Thought:", "Action:"]


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
        if strict and (_LABEL.findall(reply) != _LABELS or not reply.startswith(_LABELS[0])):
            raise FormatError(
                'Expected one "Thought:" and then one "Action:", each at the beginning of a line, '
                f'got "{shorten(reply)}".'
            )
        end = actions[1].start() if len(actions) > 1 else len(reply)
        lines = reply[actions[0].end() : end].strip().splitlines()
        if not strict and lines and lines[0].startswith(FENCE):
            lines = _in_fence(lines)
        if not lines:
            raise FormatError(f'There is no command after "Action:". Commands: {grammar.forms()}.')
        if strict and len(lines) > 1:
            raise FormatError(f'Expected one line after "Action:", got {len(lines)}.')
        return grammar.parse(lines[0], strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        said = _LABEL.sub(r"> \g<0>", thought) or "I know what to do next."  # quoted, so no action
        return f"Thought:\n{said}\n\nAction:\n{command.text}"

    def describe(self, grammar: Grammar) -> str:
        return (
            f"Commands:\n{grammar.describe()}\n\n"
            "Reply with a thought and one command, in exactly this form:\n"
            f"Thought:\nwhat you think\n\nAction:\n{grammar.examples[0]}"
        )

    def answer_to(self, reply: str) -> Answer:
        return Answer()


def _in_fence(lines: list[str]) -> list[str]:
    """The command in the block that `lines` begin with; `lines` if it is not closed."""
    blocks = fenced_blocks("\n".join(lines))
    if not blocks:
        return lines
    inside = [line for line in blocks[0].splitlines() if line.strip()]
    if len(inside) > 1:
        raise FormatError(f'Expected one command after "Action:", got {len(inside)} lines.')
    return inside
