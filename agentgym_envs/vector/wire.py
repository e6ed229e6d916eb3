"""Messages between the caller's process and a worker process, over a stream socket.

A message is a number, a length and a pickle. The number is that of the request, and the answer
repeats it, so an answer that nobody waits for any more is never taken for another. Pickles are safe
here: both ends of the socket belong to us, and no third process holds one.
"""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

MAX_MESSAGE = 1 << 28
"""Most bytes of a message. More would eat the memory of whoever receives it."""

_HEADER = struct.Struct("<II")
_CHUNK = 1 << 16
_STDERR = 2


def connection() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets, neither in the place of a standard stream that is closed."""
    passed_over: list[socket.socket] = []
    pair = socket.socketpair()
    while min(end.fileno() for end in pair) <= _STDERR:
        passed_over.extend(pair)  # kept open for as long as we look
        pair = socket.socketpair()
    for end in passed_over:
        end.close()
    return pair


def encode(number: int, value: Any, *, by_value: bool = False) -> bytes:
    """The message that carries `value`.

    Args:
        number: that of the request.
        value: what is sent.
        by_value: as for `pickled`.

    Raises:
        ValueError: it is too large.
        Exception: it cannot be pickled; pickle raises all kinds.
    """
    body = pickled(value, by_value=by_value)
    if len(body) > MAX_MESSAGE:
        raise ValueError(f"a message of {len(body)} bytes is too large; the most is {MAX_MESSAGE}")
    return _HEADER.pack(number, len(body)) + body


def pickled(value: Any, *, by_value: bool) -> bytes:
    """The pickle of `value`.

    Args:
        value: what to pickle.
        by_value: whether classes of a script or notebook, which a worker cannot import, go along.
            Functions do too, and with them a copy of what they refer to.
    """
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # pickle raises all kinds
        if not by_value:
            raise
        return bytes(cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL))


class Receiver:
    """Reads messages from a socket.

    Args:
        sock: the socket. If it does not block, `receive` does not either.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._received = bytearray()

    def receive(self) -> tuple[int, memoryview] | None:
        """Number and pickle of the next message, or None if it is not all there yet.

        Raises:
            EOFError: the other end is closed.
            ValueError: what came is no message.
            OSError: the connection broke.
        """
        while True:
            received = self._received
            if len(received) >= _HEADER.size:
                number, length = _HEADER.unpack_from(received)
                if length > MAX_MESSAGE:
                    raise ValueError("what came is no message")
                end = _HEADER.size + length
                if len(received) >= end:
                    self._received = received[end:]
                    return number, memoryview(received)[_HEADER.size : end]
            try:
                chunk = self._sock.recv(_CHUNK)
            except BlockingIOError:
                return None
            if not chunk:
                raise EOFError("the other end was closed")
            received += chunk
