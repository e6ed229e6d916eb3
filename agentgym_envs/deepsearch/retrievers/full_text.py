"""What OpenSearch and Elasticsearch have in common, which is all but their clients.

A query is given as a text to match, never in a query language. An answer in which a search failed,
took too long or reached only some of the shards is a fault: it would be a worse answer, and nobody
would see it. The clients' own repeats are off, since `Remote` has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.corpus_files import passage_of
from agentgym_envs.deepsearch.retrievers.remote import Remote, RemoteLimits, fault
from agentgym_envs.errors import EnvFault, InvalidCorpus

FIELDS = ("title^3", "text", "contents")


class FullTextRetriever:
    """Searches an index; a subclass knows the client.

    Args:
        service: name and address, for messages.
        index: its name.
        fields: that are searched, with weights.
        digest: what to call the corpus; the service does not know.
        limits: how patient to be, see `RemoteLimits`.
        broken: what the client raises.

    Raises:
        InvalidCorpus: there is no such index, or nothing in it.
        EnvFault: the service does not answer.
    """

    def __init__(
        self,
        service: str,
        index: str,
        *,
        fields: Sequence[str],
        digest: str,
        limits: Mapping[str, Any] | None,
        broken: tuple[type[Exception], ...],
    ) -> None:
        self.digest = digest
        self._index = index
        self._fields = arguments.text_list("fields", fields)
        self._broken = broken
        self._remote = Remote(service, self._ask, RemoteLimits.of(limits))
        try:
            count = self._remote.call(lambda timeout_s: self._guard(self._count, timeout_s))
        except EnvFault:
            self.close()
            raise
        if not count or not count["count"]:
            self.close()
            raise InvalidCorpus(f"{service} has no index {index!r}, or nothing in it")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        return self._remote.search(queries, k)

    def passage(self, passage_id: str) -> Passage:
        """See `Retriever.passage`."""
        answer = self._remote.call(
            lambda timeout_s: self._guard(lambda left: self._get(passage_id, left), timeout_s)
        )
        if answer is None:
            raise KeyError(f"the index {self._index} has no passage {passage_id!r}")
        return passage_of({"id": answer["_id"], **answer["_source"]})

    def close(self) -> None:
        """See `Retriever.close`."""
        self._remote.close()

    def _count(self, timeout_s: float) -> Any:
        """The answer of ``_count``."""
        raise NotImplementedError

    def _get(self, passage_id: str, timeout_s: float) -> Any:
        """The document with this id."""
        raise NotImplementedError

    def _msearch(self, lines: list[dict[str, Any]], timeout_s: float) -> Any:
        """The answer of ``_msearch``."""
        raise NotImplementedError

    def _ask(self, queries: Sequence[str], k: int, timeout_s: float) -> list[list[Hit]]:
        lines: list[dict[str, Any]] = []
        for query in queries:
            match = {"query": query, "fields": self._fields, "type": "most_fields"}
            lines += [{"index": self._index}, {"query": {"multi_match": match}, "size": k}]
        answer = self._guard(lambda left: self._msearch(lines, left), timeout_s)
        try:
            return [_hits(response) for response in answer["responses"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise EnvFault(f"the answer has no known shape: {error!r:.200}") from error

    def _guard(self, ask: Callable[[float], Any], timeout_s: float) -> Any:
        """What the client gives, None where nothing is there.

        Raises:
            EnvFault: it raises.
        """
        try:
            return ask(timeout_s)
        except self._broken as error:
            status = getattr(error, "status_code", None)
            if status == 404:
                return None
            raise fault(error, status) from error


def _hits(response: Mapping[str, Any]) -> list[Hit]:
    if "error" in response:
        raise EnvFault(f"a search failed: {response['error']!r:.300}")
    shards = response.get("_shards", {})
    if response.get("timed_out") or shards.get("failed"):
        raise EnvFault(f"a search was not made everywhere: {shards}")
    return [
        Hit(passage_of({"id": hit["_id"], **hit["_source"]}), float(hit["_score"]))
        for hit in response["hits"]["hits"]
    ]
