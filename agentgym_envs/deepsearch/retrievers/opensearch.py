"""OpenSearch, by its official client.

Tested against a server of our own that speaks the few routes that are used, not against OpenSearch.
The index must exist; its documents have ``title`` and ``text``, or ``contents``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.deepsearch.retrievers.base import UNKNOWN
from agentgym_envs.deepsearch.retrievers.full_text import FIELDS, FullTextRetriever
from agentgym_envs.deepsearch.retrievers.http import headers_with_token
from agentgym_envs.deepsearch.retrievers.optional import load

NAME = "opensearch"


class OpenSearchRetriever(FullTextRetriever):
    """Searches an index of OpenSearch.

    Args:
        url: of the service.
        index: its name.
        fields: that are searched, with weights.
        token_variable: the environment variable with the token that it asks for.
        digest: what to call the corpus; the service does not know.
        limits: how patient to be, see `RemoteLimits`.

    Raises:
        InvalidCorpus: there is no such index, or nothing in it.
        EnvFault: the service does not answer.
        Unsupported: the package opensearch-py is not installed.
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
        package = load("opensearchpy", engine=NAME, extra="opensearch")
        headers = headers_with_token(token_variable)
        self._client = package.OpenSearch(hosts=[url], headers=headers, max_retries=0)
        super().__init__(
            f"OpenSearch at {url}",
            index,
            fields=fields,
            digest=digest,
            limits=limits,
            broken=(package.exceptions.OpenSearchException,),
        )

    def close(self) -> None:
        """See `Retriever.close`."""
        super().close()
        self._client.close()

    def _count(self, timeout_s: float) -> Any:
        return self._client.count(index=self._index, params={"request_timeout": timeout_s})

    def _get(self, passage_id: str, timeout_s: float) -> Any:
        params = {"request_timeout": timeout_s}
        return self._client.get(index=self._index, id=passage_id, params=params)

    def _msearch(self, lines: list[dict[str, Any]], timeout_s: float) -> Any:
        return self._client.msearch(body=lines, params={"request_timeout": timeout_s})
