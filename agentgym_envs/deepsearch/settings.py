"""`Settings`: what a search shows, which answers count, and what they are paid."""

from __future__ import annotations

import dataclasses

from agentgym_envs import arguments
from agentgym_envs.deepsearch.matching import MATCHES
from agentgym_envs.deepsearch.retrievers.base import MAX_HITS


@dataclasses.dataclass(frozen=True)
class Settings:
    """Arguments of the environment, checked.

    Attributes:
        top_k: how many passages a search shows.
        max_words: most words of each.
        match: the rule of what is the same answer.
        max_answers: how many answers may be given.
        format_weight: see `reward`.
        retrieval_weight: see `reward`.

    Raises:
        UnknownName: there is no such rule.
        ValueError: a number is out of range.
    """

    top_k: int
    max_words: int
    match: str
    max_answers: int
    format_weight: float
    retrieval_weight: float

    def __post_init__(self) -> None:
        for name in ("top_k", "max_words", "max_answers"):
            arguments.whole_number(name, getattr(self, name), least=1)
        if self.top_k > MAX_HITS:
            raise ValueError(f"top_k must be at most {MAX_HITS}, got {self.top_k}")
        arguments.one_of("matching rule", self.match, MATCHES)
        for name in ("format_weight", "retrieval_weight"):
            arguments.finite(name, getattr(self, name), least=0.0)
        if self.format_weight + self.retrieval_weight > 1.0:
            raise ValueError(
                "format_weight and retrieval_weight may be 1 together, or a wrong answer would pay "
                f"more than a right one; got {self.format_weight} and {self.retrieval_weight}"
            )
