"""The client of a search service that speaks Search-R1's ``/retrieve``.

Such services answer in four shapes, and all of them are read: documents with a score, documents
alone, documents that are only a text, and more of them than were asked for (web searches do that),
with or without an id. Whatever else an answer is, it is a fault. Our own server says which corpus
it searches, at ``/version`` and in every answer; of others that is unknown.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.base import UNKNOWN
from agentgym_envs.deepsearch.retrievers.corpus_files import passage_of
from agentgym_envs.deepsearch.retrievers.json_http import HttpStatus, JsonHttp
from agentgym_envs.deepsearch.retrievers.remote import Remote, RemoteLimits
from agentgym_envs.errors import EnvFault, InvalidCorpus, Unsupported

NAME = "http"


class HttpRetriever:
    """Searches by asking a service.

    Args:
        url: of the service, with or without ``/retrieve``.
        digest: of the corpus that it must search; None takes any, and none that it does not tell.
        rerank_from: for a service that ranks again: of how many passages it takes the best.
        token_variable: the environment variable with the token that it asks for.
        limits: how patient to be, see `RemoteLimits`.

    Raises:
        InvalidCorpus: it searches another corpus, or does not say which.
        EnvFault: it does not answer.
        ValueError: a setting is none.
    """

    name = NAME

    def __init__(
        self,
        url: str,
        *,
        digest: str | None = None,
        rerank_from: int | None = None,
        token_variable: str | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        base = url.rstrip("/").removesuffix("/retrieve") if isinstance(url, str) else url
        self._service = f"the search service {base}"
        self._http = JsonHttp(base, headers_with_token(token_variable))
        if rerank_from is not None:
            arguments.whole_number("rerank_from", rerank_from, least=1)
        self._rerank_from = rerank_from
        self._remote = Remote(self._service, self._ask, RemoteLimits.of(limits))
        try:
            self.digest = self._told_digest()
        except EnvFault:
            self.close()
            raise
        if digest is not None and digest != self.digest:
            self.close()
            raise InvalidCorpus(
                f"{self._service} was expected to search the corpus {digest}; "
                f"what it searches is {self.digest}"
            )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        return self._remote.search(queries, k)

    def passage(self, passage_id: str) -> Passage:
        """Not possible: the protocol has no such request.

        Raises:
            Unsupported: always.
        """
        raise Unsupported("a search service gives no passages by their id")

    def close(self) -> None:
        """See `Retriever.close`."""
        self._remote.close()
        self._http.close()

    def _told_digest(self) -> str:
        def ask(timeout_s: float) -> Any:
            try:
                return self._http.get("/version", timeout_s)
            except HttpStatus as error:
                if error.retryable:
                    raise
                return {}  # a service of another kind

        version = self._remote.call(ask)
        told = version.get("digest") if isinstance(version, dict) else None
        return told if isinstance(told, str) else UNKNOWN

    def _ask(self, queries: Sequence[str], k: int, timeout_s: float) -> list[list[Hit]]:
        body: dict[str, Any] = {"queries": list(queries), "topk": k, "return_scores": True}
        if self._rerank_from is not None:
            body |= {"topk_retrieval": max(k, self._rerank_from), "topk_rerank": k}
        answer = self._http.post("/retrieve", body, timeout_s)
        try:
            told = answer.get("digest", self.digest)
            found = [_hits_of(documents) for documents in answer["result"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise EnvFault(
                f"{self._service} answers in no known shape: {error!r:.200}; {answer!r:.200}"
            ) from error
        if told != self.digest:
            raise EnvFault(
                f"{self._service} now searches the corpus {told}, not {self.digest} any more",
                retryable=False,
            )
        return found


def headers_with_token(variable: str | None) -> dict[str, str]:
    """The headers that carry the token of `token_of`."""
    token = token_of(variable)
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def token_of(variable: str | None) -> str | None:
    """The token in an environment variable; it is no setting, since settings are recorded.

    Raises:
        ValueError: there is no such variable.
    """
    if variable is None:
        return None
    token = os.environ.get(variable)
    if not token:
        raise ValueError(f"the environment variable {variable!r} holds no token")
    return token


def _hits_of(documents: Any) -> list[Hit]:
    """What was found for one query.

    Raises:
        TypeError, ValueError: `documents` has none of the known shapes.
    """
    if not isinstance(documents, list):
        raise TypeError(f"expected a list of documents, got {documents!r:.80}")
    return [_hit_of(document, place) for place, document in enumerate(documents)]


def _hit_of(item: Any, place: int) -> Hit:
    document, score = item, None
    if isinstance(item, dict) and "document" in item:
        document, score = item["document"], item.get("score")
    if isinstance(document, str):
        document = {"contents": document}
    if not isinstance(document, dict):
        raise TypeError(f"expected a document, got {document!r:.80}")
    if score is None:
        score = -float(place)  # the order is all that is known
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise ValueError(f"expected a score, got {score!r:.80}")
    if document.get("id") in (None, ""):
        document = {**document, "id": _id_of(document)}
    return Hit(passage_of(document), float(score))


def _id_of(document: Mapping[str, Any]) -> str:
    """An id for a passage that has none: the same for the same words."""
    words = document.get("contents", [document.get("title"), document.get("text")])
    return "sha256:" + hashlib.sha256(repr(words).encode("utf-8", "replace")).hexdigest()[:16]
