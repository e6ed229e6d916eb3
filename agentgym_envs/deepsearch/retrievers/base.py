"""What every search engine of Deep Search offers: `Retriever`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

from agentgym_envs.deepsearch.passages import Hit, Passage

MAX_HITS = 1000
UNKNOWN = "unknown"


class Retriever(Protocol):
    """Finds passages of one corpus. May be used by many threads at once.

    Attributes:
        name: of the engine, such as ``"fts5"``.
        digest: of the corpus, see `CorpusDigest`; two engines over one corpus have the same.
            `UNKNOWN` where a service does not tell.
    """

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best passages for each query, best first, at most `k` of them.

        A query in which nothing can be searched for finds nothing.

        Raises:
            EnvFault: the engine broke; nothing is known about any of the queries.
        """
        ...

    def passage(self, passage_id: str) -> Passage:
        """The passage with this id.

        Raises:
            KeyError: there is none.
            Unsupported: the engine cannot look passages up.
        """
        ...

    def close(self) -> None:
        """Give back files and connections; searching again is not possible."""
        ...


class CorpusDigest:
    """The digest of a sequence of passages: of their ids, titles and texts, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, passage: Passage) -> None:
        """Take the next passage in."""
        line = json.dumps([passage.id, passage.title, passage.text], ensure_ascii=False)
        self._hash.update(line.encode("utf-8"))

    def hexdigest(self) -> str:
        """The digest of what was taken in so far, 32 hex digits."""
        return self._hash.hexdigest()[:32]


def check_search(queries: Sequence[str], k: int) -> None:
    """Refuse what no caller may ask for.

    Raises:
        TypeError, ValueError: `queries` is no list of texts, or `k` no number from 1 to 1,000.
    """
    if isinstance(queries, str) or not all(isinstance(query, str) for query in queries):
        raise TypeError(f"queries must be a list of texts, got {queries!r:.80}")
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"k must be a whole number, got {k!r:.80}")
    if not 1 <= k <= MAX_HITS:
        raise ValueError(f"k must be from 1 to {MAX_HITS}, got {k}")
