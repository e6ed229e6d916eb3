"""Qdrant, by its official client: vectors in a service, or in a folder for a single process.

Tested with the client's own local mode, not against a server. The collection must exist; its points
carry ``id`` (else the point's own is taken) and ``title`` and ``text``, or ``contents``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.base import UNKNOWN
from agentgym_envs.deepsearch.retrievers.corpus_files import passage_of
from agentgym_envs.deepsearch.retrievers.encoders import Encoder
from agentgym_envs.deepsearch.retrievers.http import token_of
from agentgym_envs.deepsearch.retrievers.optional import load
from agentgym_envs.deepsearch.retrievers.remote import Remote, RemoteLimits, fault
from agentgym_envs.errors import EnvFault, InvalidCorpus, Unsupported

NAME = "qdrant"


class QdrantRetriever:
    """Searches a collection of Qdrant.

    Args:
        collection: its name.
        encoder: of queries, see `encoders`.
        url: of the service; or
        path: a folder of the client's local mode, which one process at a time can open.
        query_prefix: what the encoder wants in front of a query.
        vector: the name of the vector, if the points have several.
        token_variable: the environment variable with the API key that the service asks for.
        digest: what to call the corpus; the service does not know.
        limits: how patient to be, see `RemoteLimits`.

    Raises:
        InvalidCorpus: there is no such collection, or nothing in it.
        EnvFault: the service does not answer.
        Unsupported: the package qdrant-client or the encoder is not installed.
    """

    name = NAME

    def __init__(
        self,
        collection: str,
        *,
        encoder: str | Mapping[str, Any],
        url: str | None = None,
        path: str | None = None,
        query_prefix: str = "",
        vector: str | None = None,
        token_variable: str | None = None,
        digest: str = UNKNOWN,
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        if (url is None) == (path is None):
            raise ValueError(f"expected a url or a path, got {url!r} and {path!r}")
        package = load("qdrant_client", engine=NAME, extra="qdrant")
        self._models = package.models
        self._broken = (
            load("qdrant_client.http.exceptions", engine=NAME, extra="qdrant").ApiException,
            OSError,
            RuntimeError,  # the folder is in use
            ValueError,  # what local mode raises
        )
        self.digest = digest
        self._collection = collection
        self._vector = vector
        self._encoder = Encoder(encoder, query_prefix)
        self._service = f"Qdrant at {url or path}"
        try:
            self._client = package.QdrantClient(
                url=url,
                path=path,
                api_key=token_of(token_variable),
                check_compatibility=False,
                force_disable_check_same_thread=path is not None,
            )
        except self._broken as error:
            raise InvalidCorpus(f"{self._service} cannot be opened: {error}") from error
        local = {"connections": 1} if path is not None else {}
        self._remote = Remote(
            self._service, self._ask, RemoteLimits.of({**(limits or {}), **local})
        )
        try:
            count = self._remote.call(self._count)
        except EnvFault:
            self.close()
            raise
        if not count:
            self.close()
            raise InvalidCorpus(
                f"{self._service} has no collection {collection!r}, or nothing in it"
            )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        return self._remote.search(queries, k)

    def passage(self, passage_id: str) -> Passage:
        """Not possible: points are not found by the ids of passages.

        Raises:
            Unsupported: always.
        """
        raise Unsupported("Qdrant gives no passages by their id")

    def close(self) -> None:
        """See `Retriever.close`."""
        self._remote.close()
        self._client.close()
        self._encoder.close()

    def _count(self, timeout_s: float) -> int:
        def ask() -> int:
            if not self._client.collection_exists(self._collection):
                return 0
            return int(self._client.count(self._collection, exact=False).count)

        count: int = self._guard(ask)
        return count

    def _ask(self, queries: Sequence[str], k: int, timeout_s: float) -> list[list[Hit]]:
        requests = [
            self._models.QueryRequest(
                query=vector.tolist(), using=self._vector, limit=k, with_payload=True
            )
            for vector in self._encoder.encode(queries)
        ]
        answers = self._guard(
            lambda: self._client.query_batch_points(
                self._collection, requests, timeout=max(1, math.ceil(timeout_s))
            )
        )
        try:
            return [[_hit_of(point) for point in answer.points] for answer in answers]
        except (TypeError, ValueError) as error:
            raise EnvFault(f"the points are no passages: {error}", retryable=False) from error

    def _guard(self, ask: Any) -> Any:
        try:
            return ask()
        except self._broken as error:
            raise fault(error, getattr(error, "status_code", None)) from error


def _hit_of(point: Any) -> Hit:
    return Hit(passage_of({"id": str(point.id), **(point.payload or {})}), float(point.score))
