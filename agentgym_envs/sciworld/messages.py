"""Messages between a process and its server of simulators: numbers and texts, lengths in front.

A message holds any number of requests and is answered as a whole. All numbers have 32 bits,
big-endian. The other end is ``java/agentgym/sciworld/Server.java``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

_NUMBER = struct.Struct(">i")
_TWO_NUMBERS = struct.Struct(">ii")
_HEAD = struct.Struct(">iii")


class Request(NamedTuple):
    """What a simulator is asked.

    Attributes:
        simulator: its number.
        texts: what to do, and its arguments.
    """

    simulator: int
    texts: Sequence[str]


class Answer(NamedTuple):
    """What came of a request.

    Attributes:
        ok: whether it was done.
        texts: what there is to tell; the error where it was not done.
    """

    ok: bool
    texts: list[str]


class Reply(NamedTuple):
    """The answers to the requests of a message, in their order."""

    message: int
    answers: list[Answer]


def encode_message(message: int, requests: Sequence[Request]) -> bytes:
    """A message: its number, and its requests."""
    parts = []
    for simulator, texts in requests:
        parts.append(_TWO_NUMBERS.pack(simulator, len(texts)))
        for text in texts:
            part = text.encode()
            parts += [_NUMBER.pack(len(part)), part]
    body = b"".join(parts)
    return _HEAD.pack(2 * _NUMBER.size + len(body), message, len(requests)) + body


class ReplyBuffer:
    """Takes the bytes of replies as they come, and gives the replies that are whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> list[Reply]:
        """The replies that end in `chunk`."""
        self._bytes += chunk
        replies = []
        at = 0
        while at + _NUMBER.size <= len(self._bytes):
            (length,) = _NUMBER.unpack_from(self._bytes, at)
            end = at + _NUMBER.size + length
            if end > len(self._bytes):
                break
            replies.append(_decode(bytes(self._bytes[at + _NUMBER.size : end])))
            at = end
        del self._bytes[:at]
        return replies


def _decode(body: bytes) -> Reply:
    message, num_answers = _TWO_NUMBERS.unpack_from(body)
    at = _TWO_NUMBERS.size
    answers = []
    for _ in range(num_answers):
        is_error, num_texts = _TWO_NUMBERS.unpack_from(body, at)
        at += _TWO_NUMBERS.size
        texts = []
        for _ in range(num_texts):
            (size,) = _NUMBER.unpack_from(body, at)
            at += _NUMBER.size
            texts.append(body[at : at + size].decode())
            at += size
        answers.append(Answer(not is_error, texts))
    return Reply(message, answers)
