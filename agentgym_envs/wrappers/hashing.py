"""Texts as numbers without a vocabulary: feature hashing (arXiv 0902.2206).

Every word and n-gram has a fixed 64-bit hash, the same in every process, on every machine and
under every `PYTHONHASHSEED`. So nothing is fitted, stored or downloaded, and texts never seen
before have features too. The price: two words may share a place, seldom if there are many places.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter

import numpy as np

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words and numbers of `text`, case-folded, in order; punctuation is left out."""
    return _WORD.findall(text.casefold())


def ngram_counts(text: str, longest: int) -> Counter[str]:
    """How often each word and each n-gram of up to `longest` words occurs in `text`."""
    tokens = words(text)
    return Counter(
        " ".join(tokens[start : start + length])
        for length in range(1, longest + 1)
        for start in range(len(tokens) - length + 1)
    )


def hashed_ngrams(text: str, dimension: int, longest: int, *, normalize: bool) -> np.ndarray:
    """The counts of words and n-grams, summed into `dimension` places, each with a sign.

    Args:
        text: any text.
        dimension: number of places, D.
        longest: longest n-grams to count, in words.
        normalize: divide by the Euclidean norm, unless it is 0.

    Returns:
        float32 (D,).
    """
    vector = np.zeros(dimension, dtype=np.float32)
    for ngram, count in ngram_counts(text, longest).items():
        number = stable_hash(ngram)
        vector[(number >> 1) % dimension] += count if number & 1 else -count
    norm = np.linalg.norm(vector)
    return vector / norm if normalize and norm else vector


@functools.lru_cache(maxsize=1 << 16)
def stable_hash(text: str) -> int:
    """A number below 2**64 that depends on `text` alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
