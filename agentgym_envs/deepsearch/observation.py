"""How Deep Search looks in our own words: the question, the passages, the verdict.

Passages stand in ``<information>`` as in Search-R1, a line each. Long ones are cut by words, so
the tag is always closed; what looks like the tag in a passage is taken out of it. No score of the
search engine is shown: it may differ in the last digit between machines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.world import DeepSearchWorld

_TAG = re.compile(r"</?information>", re.IGNORECASE)


def first_observation(question: str) -> str:
    """The question."""
    return f"Question: {question}"


def passages_text(found: Sequence[Passage], max_words: int) -> str:
    """What a search found, best first.

    Args:
        found: the passages.
        max_words: of the text of each; what is longer ends in "…".
    """
    lines = [
        f"Doc {number} (Title: {plain(passage.title, max_words)}) {plain(passage.text, max_words)}"
        for number, passage in enumerate(found, start=1)
    ]
    return "\n".join(["<information>", *(lines or ["Nothing was found."]), "</information>"])


def verdict(world: DeepSearchWorld) -> str:
    """What is said to an answer; never which one is right."""
    if world.is_right:
        return "Your answer is right."
    left = world.max_answers - len(world.answers)
    if not left:
        return "Your answer is wrong."
    return f"Your answer is wrong. You may answer {left} more time{'s' if left > 1 else ''}."


def plain(text: str, max_words: int) -> str:
    """`text` on one line, cut to so many words, without tags that would end the information."""
    words = _TAG.sub(" ", text).split()
    return " ".join(words[:max_words]) + (" …" if len(words) > max_words else "")


def picture(world: DeepSearchWorld) -> str:
    """The whole world as text, for people."""
    lines = [f"Question: {world.question.text}", "Searches:"]
    lines += [f"  {query}" for query in world.queries] or ["  none"]
    lines += ["Passages seen:", *([f"  {title}" for title in world.seen.values()] or ["  none"])]
    lines += [f"Answer: {text}" for text in world.answers]
    return "\n".join(lines)
