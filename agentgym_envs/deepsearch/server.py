"""A search service that Search-R1 and whoever speaks its protocol can ask: ``serve-search``.

``POST /retrieve`` with ``{"queries": [...], "topk": 3, "return_scores": true}`` answers
``{"result": [[{"document": {"id", "title", "text", "contents"}, "score"}, ...], ...], "digest"}``.
``GET /health`` is 200 once the engine is open and 503 until then; ``GET /version`` names the engine
and the digest of its corpus. Whatever is wrong is answered with a status and ``{"error": ...}``.
Searches that come at about the same time are made together. More of them than may wait are turned
away with 503, which clients try again.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agentgym_envs import __version__, arguments
from agentgym_envs.deepsearch.passages import Hit
from agentgym_envs.deepsearch.retrievers.base import MAX_HITS, Retriever
from agentgym_envs.deepsearch.retrievers.batcher import Batcher
from agentgym_envs.errors import EnvFault

_log = logging.getLogger(__name__)

_MOST_PASSED_OVER = 64 << 20


@dataclasses.dataclass(frozen=True)
class ServerLimits:
    """How much is taken on.

    Attributes:
        threads: searches made at once.
        window_s: how long a search waits for others to be made together with it.
        max_queries: in one request.
        max_batch: queries that are searched together.
        max_hits: passages a query.
        max_bytes: of a request.
        max_waiting: requests that wait or are under way; more are turned away.
        timeout_s: for a search with its wait.
        idle_s: after which a connection on which nothing comes is closed.
    """

    threads: int = 2
    window_s: float = 0.0
    max_queries: int = 512
    max_batch: int = 64
    max_hits: int = 100
    max_bytes: int = 1 << 20
    max_waiting: int = 1024
    timeout_s: float = 30.0
    idle_s: float = 60.0

    def __post_init__(self) -> None:
        """Check all of them."""
        for name in ("threads", "max_queries", "max_batch", "max_hits", "max_bytes", "max_waiting"):
            arguments.whole_number(name, getattr(self, name), least=1)
        for name in ("window_s", "timeout_s", "idle_s"):
            arguments.finite(name, getattr(self, name), least=0.0)


class Refused(Exception):
    """A request that is not done.

    Args:
        status: the HTTP status.
        message: why.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class SearchService:
    """Answers requests, whoever carries them.

    Args:
        open_engine: gives the engine; called by `load`.
        limits: how much to take on.
    """

    def __init__(self, open_engine: Callable[[], Retriever], limits: ServerLimits) -> None:
        self._open_engine = open_engine
        self._limits = limits
        self._engine: Retriever | None = None
        self._problem = "the engine is being opened"
        self._free = threading.BoundedSemaphore(limits.max_waiting)
        self._batcher = Batcher(
            self._search,
            window_s=limits.window_s,
            max_queries=limits.max_batch,
            num_threads=limits.threads,
        )

    def load(self) -> None:
        """Open the engine.

        Raises:
            Exception: what opening it raises; `health` tells of it, too.
        """
        try:
            self._engine = self._open_engine()
        except Exception as error:
            self._problem = f"the engine cannot be opened: {error}"
            raise

    def health(self) -> dict[str, Any]:
        """That the service is ready.

        Raises:
            Refused: it is not.
        """
        self._ready()
        return {"status": "ready"}

    def version(self) -> dict[str, Any]:
        """What answers here, and over which corpus.

        Raises:
            Refused: the engine is not open yet.
        """
        engine = self._ready()
        return {
            "service": "agentgym-search",
            "version": __version__,
            "engine": engine.name,
            "digest": engine.digest,
        }

    def retrieve(self, body: bytes) -> dict[str, Any]:
        """Search.

        Raises:
            Refused: it cannot be done.
        """
        engine = self._ready()
        queries, k, with_scores = self._read(body)
        if not self._free.acquire(blocking=False):
            raise Refused(503, f"{self._limits.max_waiting} requests are under way; try again")
        try:
            deadline = time.monotonic() + self._limits.timeout_s
            answer = self._batcher.submit(queries, k, deadline)
            found = answer.result(self._limits.timeout_s)
        except (TimeoutError, CancelledError) as error:
            raise Refused(503, f"no answer within {self._limits.timeout_s:g} s") from error
        except EnvFault as error:
            raise Refused(503, f"the engine {engine.name} is broken: {error}") from error
        finally:
            self._free.release()
        result = [[_as_json(hit, with_scores) for hit in hits] for hits in found]
        return {"result": result, "digest": engine.digest}

    def close(self) -> None:
        """Give up what waits."""
        self._batcher.close()

    def _ready(self) -> Retriever:
        if self._engine is None:
            raise Refused(503, self._problem)
        return self._engine

    def _search(self, queries: Any, k: int, deadline: float) -> list[list[Hit]]:
        return self._ready().search(queries, k)

    def _read(self, body: bytes) -> tuple[list[str], int, bool]:
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refused(400, "expected a JSON object") from error
        if not isinstance(request, dict):
            raise Refused(400, f"expected a JSON object, got {request!r:.80}")
        queries = request.get("queries")
        if not isinstance(queries, list) or not all(isinstance(one, str) for one in queries):
            raise Refused(400, f"'queries' must be a list of texts, got {queries!r:.80}")
        if len(queries) > self._limits.max_queries:
            raise Refused(
                413, f"at most {self._limits.max_queries} queries at once, got {len(queries)}"
            )
        k = request.get("topk")
        k = 3 if k is None else k
        most = min(self._limits.max_hits, MAX_HITS)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= most:
            raise Refused(400, f"'topk' must be a whole number from 1 to {most}, got {k!r:.80}")
        with_scores = request.get("return_scores", False)
        if not isinstance(with_scores, bool):
            raise Refused(400, f"'return_scores' must be true or false, got {with_scores!r:.80}")
        return queries, k, with_scores


def _as_json(hit: Hit, with_score: bool) -> dict[str, Any]:
    passage = hit.passage
    document = {
        "id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "contents": f'"{passage.title}"\n{passage.text}',
    }
    return {"document": document, "score": hit.score} if with_score else document


class SearchServer(ThreadingHTTPServer):
    """Carries a `SearchService` over HTTP, a thread a connection.

    Args:
        service: what answers.
        host: the address to listen on.
        port: 0 takes a free one.
        limits: those of the service.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, service: SearchService, host: str, port: int, limits: ServerLimits) -> None:
        self.service = service
        self.limits = limits
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        name = host.decode() if isinstance(host, bytes) else str(host)
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection broke: nobody is there to be told."""
        _log.debug("connection of %s broke", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "agentgym-search"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet an answer
    server: SearchServer

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.limits.idle_s)

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)

    def _serve(self, method: str) -> None:
        try:
            status, answer = 200, self._answer(method, self.path.partition("?")[0])
        except Refused as error:
            status, answer = error.status, {"error": str(error)}
        except Exception as error:  # the edge: whatever it is, the client is told
            _log.exception("%s %s", method, self.path)
            status, answer = 500, {"error": f"{type(error).__name__}: {error}"}
        data = json.dumps(answer).encode("ascii")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, method: str, path: str) -> dict[str, Any]:
        service = self.server.service
        body = self._body() if method == "POST" else b""
        routes: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
            "/retrieve": ("POST", lambda: service.retrieve(body)),
            "/health": ("GET", service.health),
            "/version": ("GET", service.version),
        }
        if path not in routes:
            raise Refused(404, f"there is no {path[:80]!r}; there are {', '.join(routes)}")
        wanted, run = routes[path]
        if method != wanted:
            raise Refused(405, f"{path} wants {wanted}, got {method}")
        return run()

    def _body(self) -> bytes:
        most = self.server.limits.max_bytes
        self.close_connection = True  # unless all of the body is read
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            raise Refused(411, "expected a Content-Length")
        if int(length) > most:
            self._pass_over(min(int(length), _MOST_PASSED_OVER))
            raise Refused(413, f"at most {most:,} bytes at once, got {int(length):,}")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, f"expected {int(length):,} bytes, got {len(body):,}")
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        return body

    def _pass_over(self, num_bytes: int) -> None:
        """Read and forget: a client that is still sending would not see the answer."""
        while num_bytes > 0 and (data := self.rfile.read(min(num_bytes, 1 << 16))):
            num_bytes -= len(data)
