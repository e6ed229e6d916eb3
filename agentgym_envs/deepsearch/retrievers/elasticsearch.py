"""Elasticsearch, by its official client.

Tested against a server of our own that speaks the few routes that are used, not against
Elasticsearch. The index must exist; its documents have ``title`` and ``text``, or ``contents``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.deepsearch.retrievers.base import UNKNOWN
from agentgym_envs.deepsearch.retrievers.full_text import FIELDS, FullTextRetriever
from agentgym_envs.deepsearch.retrievers.http import token_of
from agentgym_envs.deepsearch.retrievers.optional import load

NAME = "elasticsearch"


class ElasticsearchRetriever(FullTextRetriever):
    """Searches an index of Elasticsearch.

    Args:
        url: of the service, with its port.
        index: its name.
        fields: that are searched, with weights.
        token_variable: the environment variable with the API key that it asks for.
        digest: what to call the corpus; the service does not know.
        limits: how patient to be, see `RemoteLimits`.

    Raises:
        InvalidCorpus: there is no such index, or nothing in it.
        EnvFault: the service does not answer.
        Unsupported: the package elasticsearch is not installed.
    """

    name = NAME

    def __init__(
        self,
        url: str,
        index: str,
        *,
        fields: Sequence[str] = FIELDS,
        token_variable: str | None = None,
        digest: str = UNKNOWN,
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        package = load("elasticsearch", engine=NAME, extra="elasticsearch")
        key = token_of(token_variable)
        self._client = package.Elasticsearch(url, api_key=key, max_retries=0)
        super().__init__(
            f"Elasticsearch at {url}",
            index,
            fields=fields,
            digest=digest,
            limits=limits,
            broken=(package.ApiError, package.TransportError),
        )

    def close(self) -> None:
        """See `Retriever.close`."""
        super().close()
        self._client.close()

    def _count(self, timeout_s: float) -> Any:
        return self._within(timeout_s).count(index=self._index)

    def _get(self, passage_id: str, timeout_s: float) -> Any:
        return self._within(timeout_s).get(index=self._index, id=passage_id)

    def _msearch(self, lines: list[dict[str, Any]], timeout_s: float) -> Any:
        return self._within(timeout_s).msearch(searches=lines)

    def _within(self, timeout_s: float) -> Any:
        return self._client.options(request_timeout=timeout_s)
