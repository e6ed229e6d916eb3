"""`JsonHttp`: JSON over HTTP with a deadline that holds whatever the other side does.

A socket's own time-out begins anew with each byte, so a server that sends one now and then holds a
client forever. Here a timer cuts the connection at the deadline.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from agentgym_envs.errors import EnvFault

MAX_BYTES = 64 << 20
_BROKEN = (OSError, http.client.HTTPException, ValueError)


class HttpStatus(EnvFault):
    """The other side answered with an error.

    Args:
        message: what was asked and answered.
        status: the HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, retryable=status in (408, 425, 429) or status >= 500)
        self.status = status


class JsonHttp:
    """Asks one server, over connections that are kept.

    Args:
        url: where paths begin, such as ``"http://127.0.0.1:8000"``.
        headers: to send with every request.

    Raises:
        ValueError: `url` is none of HTTP.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urllib.parse.urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"expected a URL such as 'http://127.0.0.1:8000', got {url!r:.80}")
        self._host, self._port, self._base = parts.hostname, parts.port, parts.path.rstrip("/")
        self._is_secure = parts.scheme == "https"
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._idle: SimpleQueue[http.client.HTTPConnection] = SimpleQueue()
        self._is_closed = False

    def get(self, path: str, timeout_s: float) -> Any:
        """The JSON at a path; see `post`."""
        return self._request("GET", path, None, timeout_s)

    def post(self, path: str, body: Any, timeout_s: float) -> Any:
        """Send JSON and return the JSON of the answer, within so many seconds.

        Raises:
            HttpStatus: the answer is an error.
            EnvFault: there is no answer, or it is no JSON.
        """
        return self._request("POST", path, json.dumps(body).encode("ascii"), timeout_s)

    def close(self) -> None:
        """Close the connections that are kept; those in use are closed after their answer."""
        self._is_closed = True
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()

    def _request(self, method: str, path: str, body: bytes | None, timeout_s: float) -> Any:
        what = f"{method} {self._base}{path}"
        kept = self._kept()
        try:
            connection = kept or self._connect(timeout_s)
            try:
                status, data = self._exchange(connection, method, path, body, timeout_s)
            except ConnectionError:
                connection.close()
                if not kept:
                    raise
                connection = self._connect(timeout_s)  # the old one had been idle for too long
                status, data = self._exchange(connection, method, path, body, timeout_s)
        except _BROKEN as error:
            raise EnvFault(f"{what}: {type(error).__name__}: {error}") from error
        self._idle.put(connection)
        if self._is_closed:
            self.close()
        if status != 200:
            raise HttpStatus(f"{what}: status {status}: {data[:200]!r}", status)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise EnvFault(f"{what}: the answer is no JSON: {data[:80]!r}") from error

    def _kept(self) -> http.client.HTTPConnection | None:
        try:
            return self._idle.get_nowait()
        except Empty:
            return None

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=timeout_s)
        connection.connect()
        return connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        timeout_s: float,
    ) -> tuple[int, bytes]:
        """Status and body of the answer; a connection that may not be used again is closed."""
        connection.timeout = timeout_s
        is_late = threading.Event()
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout_s)
            with _cut_at(connection.sock, timeout_s, is_late):
                connection.request(method, self._base + path, body, self._headers)
                with connection.getresponse() as response:
                    data = response.read(MAX_BYTES + 1)
                    if response.length:
                        raise http.client.IncompleteRead(data, response.length)
            if len(data) > MAX_BYTES:
                raise ValueError(f"the answer has more than {MAX_BYTES:,} bytes")
        except _BROKEN as error:
            connection.close()
            if is_late.is_set():
                raise TimeoutError(f"no whole answer within {timeout_s:g} s") from error
            raise
        if is_late.is_set():
            connection.close()
            raise TimeoutError(f"no whole answer within {timeout_s:g} s")
        return response.status, data


@contextmanager
def _cut_at(sock: socket.socket, timeout_s: float, is_late: threading.Event) -> Iterator[None]:
    """Cut a connection, and say so, if what is done with it takes longer."""

    def cut() -> None:
        is_late.set()
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(timeout_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
