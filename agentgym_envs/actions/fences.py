"""Fenced blocks as in Markdown: the lines between two that begin with three backticks."""

from __future__ import annotations

import re

FENCE = "```"

# Not `str.splitlines`: it breaks lines, and so quoted texts, at more than Markdown does.
_LINE_END = re.compile(r"\r\n?|\n")


def fenced_blocks(text: str) -> list[str]:
    """What is in the blocks of `text`, without the fences; a block that is not closed is none."""
    blocks: list[str] = []
    block: list[str] | None = None
    for line in _LINE_END.split(text):
        if not _is_fence(line):
            if block is not None:
                block.append(line)
        elif block is None:
            block = []
        else:
            blocks.append("\n".join(block))
            block = None
    return blocks


def unfenced(text: str) -> str:
    """What is in the block that makes up all of `text`, or `text` if it is something else."""
    lines = _LINE_END.split(text.strip())
    fences = [number for number, line in enumerate(lines) if _is_fence(line)]
    is_one_block = fences == [0, len(lines) - 1] and not lines[-1].strip(" \t`")
    return "\n".join(lines[1:-1]) if is_one_block else text


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith(FENCE)
