"""`Cached`: an engine that remembers what was searched for lately."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.base import Retriever, check_search

_LONGEST = 2_000  # what is longer is no question, and would fill the memory


class Cached:
    """Answers from memory what was asked lately; of faults nothing is remembered.

    Args:
        inner: the engine.
        size: how many queries are remembered, the least recently asked goes first.

    Attributes:
        inner: the engine.
        is_closed: whether it has been closed.
    """

    def __init__(self, inner: Retriever, size: int) -> None:
        self.inner = inner
        self.name = inner.name
        self.digest = inner.digest
        self.is_closed = False
        self._size = size
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int], tuple[Hit, ...]] = OrderedDict()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_search(queries, k)
        found = {query: self._recall(query, k) for query in queries}
        missing = [query for query, hits in found.items() if hits is None]
        if missing:
            answers = self.inner.search(missing, k)
            for query, hits in zip(missing, answers, strict=True):
                found[query] = tuple(hits)
                self._remember(query, k, tuple(hits))
        return [list(found[query] or ()) for query in queries]

    def passage(self, passage_id: str) -> Passage:
        """See `Retriever.passage`."""
        return self.inner.passage(passage_id)

    def close(self) -> None:
        """See `Retriever.close`."""
        self.is_closed = True
        self.inner.close()

    def _recall(self, query: str, k: int) -> tuple[Hit, ...] | None:
        with self._lock:
            hits = self._known.get((query, k))
            if hits is not None:
                self._known.move_to_end((query, k))
            return hits

    def _remember(self, query: str, k: int, hits: tuple[Hit, ...]) -> None:
        if len(query) > _LONGEST:
            return
        with self._lock:
            self._known[query, k] = hits
            self._known.move_to_end((query, k))
            if len(self._known) > self._size:
                self._known.popitem(last=False)
