"""`UnicodeText`: the space of actions and observations, any Unicode text up to a length.

`gymnasium.spaces.Text` needs a finite character set: its default one has no blank, and one that
covers Unicode takes seconds to build and tens of megabytes to pickle. Text of a language model is
any string, so membership here is a type check and a length check and costs nothing.

A custom space makes `gymnasium.vector.AsyncVectorEnv` refuse shared memory, which is what one
wants: shared memory hands out stale text (use ``shared_memory=False`` or `TextVectorEnv`).
"""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np

_PRINTABLE = np.array([chr(code) for code in range(32, 127)])
_SAMPLE_LENGTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


class UnicodeText(gymnasium.Space[str]):
    """Any `str` of at most `max_length` code points that can be encoded as UTF-8.

    Args:
        max_length: greatest length in code points.
        seed: seed of `sample`.
    """

    def __init__(
        self, max_length: int = 1_000_000, *, seed: int | np.random.Generator | None = None
    ) -> None:
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        self.max_length = int(max_length)
        super().__init__(shape=None, dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: text has no array of fixed size."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random line of printable ASCII. Masks and probabilities are not supported."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText.sample takes neither mask nor probability")
        length = int(self.np_random.integers(0, min(_SAMPLE_LENGTH, self.max_length) + 1))
        return "".join(self.np_random.choice(_PRINTABLE, size=length).tolist())

    def contains(self, x: Any) -> bool:
        """True for a `str` of allowed length without lone surrogates."""
        return isinstance(x, str) and len(x) <= self.max_length and is_utf8(x)

    def to_jsonable(self, sample_n: Any) -> list[str]:
        """Texts are JSON already."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """Texts are JSON already."""
        return list(sample_n)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"


def is_utf8(text: str) -> bool:
    """Whether `text` can be encoded as UTF-8, that is, holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def to_utf8(text: str) -> str:
    """`text` with every surrogate replaced by U+FFFD, one by one, so that the length stays."""
    if is_utf8(text):
        return text
    return _SURROGATE.sub("\ufffd", text)
