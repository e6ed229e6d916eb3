"""What the default retriever makes of candidates: which are kept, and why others are not.

A question is kept if each search of its chain has the passage it is for among the first three
results. Questions of two steps and more are dropped if one search with the question itself would
do: if it brings the answer, or all the passages. Comparisons are not: their answer is written
nowhere, and one may well find both things at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from agentgym_envs.deepsearch.generator.makers import Candidate
from agentgym_envs.deepsearch.matching import sub_em
from agentgym_envs.deepsearch.passages import Hit, Passage

TOP = 3
BATCH = 24

LOST = "not found by its chain"
SHORTCUT = "answered by one search with the question"


class Searcher(Protocol):
    """What is needed of a retriever."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best `k` passages of each query."""
        ...


class Checker:
    """Sorts candidates.

    Args:
        retriever: answers the searches.

    Attributes:
        reasons: how many candidates were looked at and kept, or dropped why, by set.
    """

    def __init__(self, retriever: Searcher) -> None:
        self._retriever = retriever
        self.reasons: dict[str, Counter[str]] = {}

    def kept(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Those of the candidates that are kept, in their order."""
        for batch in _batches(candidates):
            found = self._search(step.query for item in batch for step in item.steps)
            reasons = {item: LOST for item in batch if not _leads_there(item, found)}
            longer = [item for item in batch if item.led and item not in reasons]
            found = self._search(item.question for item in longer)
            reasons |= {item: SHORTCUT for item in longer if _is_shortcut(item, found)}
            for item in batch:
                self.reasons.setdefault(item.set, Counter())[reasons.get(item, "kept")] += 1
                if item not in reasons:
                    yield item

    def _search(self, queries: Iterable[str]) -> dict[str, list[Passage]]:
        """The first passages that each query finds."""
        distinct = list(dict.fromkeys(queries))
        found = self._retriever.search(distinct, TOP)
        return {
            query: [hit.passage for hit in hits]
            for query, hits in zip(distinct, found, strict=True)
        }


def _leads_there(item: Candidate, found: Mapping[str, Sequence[Passage]]) -> bool:
    """Whether each search of the chain finds the passage that it is for."""
    return all(
        step.passage_id in [passage.id for passage in found[step.query]] for step in item.steps
    )


def _is_shortcut(item: Candidate, found: Mapping[str, Sequence[Passage]]) -> bool:
    """Whether one search with the question itself brings the answer, or all the passages."""
    passages = found[item.question]
    if set(item.gold_passages) <= {passage.id for passage in passages}:
        return True
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    return any(sub_em(text, item.answers) for text in texts)


def _batches(candidates: Iterable[Candidate]) -> Iterator[Sequence[Candidate]]:
    batch: list[Candidate] = []
    for candidate in candidates:
        batch.append(candidate)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
