"""Several engines over one corpus, their orders merged by reciprocal rank.

A passage gets ``1 / (constant + rank)`` from each engine that finds it (Cormack, Clarke and
Büttcher, "Reciprocal rank fusion", SIGIR 2009): only orders count, so scores need not compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.base import MAX_HITS, UNKNOWN, Retriever, check_search
from agentgym_envs.errors import InvalidCorpus, Unsupported

NAME = "hybrid"


class HybridRetriever:
    """Searches with several engines.

    Args:
        engines: names or objects, as for `open_retriever`.
        constant: the larger, the less do the first ranks count more than later ones.
        depth: how many passages each engine gives; at least `k`.

    Raises:
        InvalidCorpus: the engines search different corpora.
        ValueError: there are less than two engines.
    """

    name = NAME

    def __init__(
        self,
        engines: Sequence[str | Mapping[str, Any]],
        *,
        constant: float = 60.0,
        depth: int = 30,
    ) -> None:
        from agentgym_envs.deepsearch.retrievers import open_retriever

        if isinstance(engines, str) or len(engines) < 2:
            raise ValueError(f"expected a list of at least two engines, got {engines!r:.80}")
        self._constant = arguments.finite("constant", constant, least=0.0)
        self._depth = arguments.whole_number("depth", depth, least=1)
        self._engines: list[Retriever] = [open_retriever(engine) for engine in engines]
        self.digest = _common_digest(self._engines)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_search(queries, k)
        depth = min(max(k, self._depth), MAX_HITS)
        answers = [engine.search(queries, depth) for engine in self._engines]
        return [fuse(found, self._constant)[:k] for found in zip(*answers, strict=True)]

    def passage(self, passage_id: str) -> Passage:
        """See `Retriever.passage`."""
        for engine in self._engines:
            with suppress(Unsupported):
                return engine.passage(passage_id)
        raise Unsupported("none of these engines gives passages by their id")

    def close(self) -> None:
        """Does nothing: the engines may be in use by others."""


def fuse(rankings: Iterable[Sequence[Hit]], constant: float) -> list[Hit]:
    """One order from several; where two passages have the same score, by their ids."""
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            passages.setdefault(hit.passage.id, hit.passage)
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + 1.0 / (constant + rank)
    best = sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))
    return [Hit(passages[passage_id], scores[passage_id]) for passage_id in best]


def _common_digest(engines: Sequence[Retriever]) -> str:
    digests = {engine.digest for engine in engines} - {UNKNOWN}
    if len(digests) > 1:
        told = ", ".join(f"{engine.name} {engine.digest}" for engine in engines)
        raise InvalidCorpus(f"the engines search different corpora: {told}")
    return digests.pop() if digests else UNKNOWN
