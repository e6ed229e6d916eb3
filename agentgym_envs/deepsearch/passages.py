"""A passage of a corpus, and one found by a search."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


@dataclasses.dataclass(frozen=True, slots=True)
class Passage:
    """A short piece of text.

    Attributes:
        id: unique in its corpus.
        title: what it is about; may be empty.
        text: what it says, without the title.
    """

    id: str
    title: str
    text: str


class Hit(NamedTuple):
    """A passage that was found, and how well it fits: more is better, by the engine's own scale."""

    passage: Passage
    score: float
