"""Which slot of the cache holds which tokens, and what a new stream can copy from there.

A slot keeps what it holds after its stream has gone, until another stream takes it. So a new
stream finds its longest known beginning among all slots: its group's first prompt, the
instructions of another episode, or nothing.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MIN_SHARED = 16
"""Fewest tokens worth copying from another slot."""


@dataclasses.dataclass
class Place:
    """A slot for a new stream.

    Attributes:
        slot: its number.
        source: the slot that the stream's first tokens are to be copied from, once they are
            there; `slot` itself if it holds them already.
        shared: how many tokens those are.
    """

    slot: int
    source: int
    shared: int


class SlotTable:
    """Token ids, lengths and free slots of a cache.

    Args:
        num_slots: S, number of slots.
        max_context: most tokens of a slot.

    Attributes:
        lengths: int64 (S,), how many tokens have their keys and values in the cache.
    """

    def __init__(self, num_slots: int, max_context: int) -> None:
        self.lengths: Ints = np.zeros(num_slots, np.int64)
        self._planned: Ints = np.zeros(num_slots, np.int64)  # lengths after pending prompts
        self._tokens = np.zeros((num_slots, max_context), np.int32)
        self._free = list(range(num_slots))

    @property
    def num_free(self) -> int:
        return len(self._free)

    def take(self, ids: Sequence[int]) -> Place:
        """Take a free slot for a stream that begins with `ids`; the lowest, or one that fits."""
        best, shared = self._longest_prefix(ids)
        if shared < MIN_SHARED:
            shared = 0
        slot = best if shared and best in self._free else self._free[0]
        self._free.remove(slot)
        self.lengths[slot] = shared if slot == best else 0
        self._planned[slot] = self.lengths[slot]
        return Place(slot, best if shared else slot, shared)

    def give_back(self, slot: int) -> None:
        """Let others take a slot."""
        bisect.insort(self._free, slot)

    def plan(self, slot: int, ids: Sequence[int]) -> None:
        """Note the tokens that a slot will hold when its prompt is computed."""
        self._tokens[slot, : len(ids)] = ids
        self._planned[slot] = len(ids)

    def push(self, slots: Ints, tokens: Sequence[int]) -> None:
        """Note one more token in each of `slots`."""
        self._tokens[slots, self.lengths[slots]] = tokens
        self.lengths[slots] += 1
        self._planned[slots] = self.lengths[slots]

    def _longest_prefix(self, ids: Sequence[int]) -> tuple[int, int]:
        """The slot that shares most tokens from the start, and how many.

        Never all of `ids`: the last token has to be computed for its logits.
        """
        known = np.asarray(ids[:-1], np.int32)
        differs = self._tokens[:, : len(known)] != known
        end = np.ones((len(differs), 1), bool)
        shared = np.minimum(np.hstack((differs, end)).argmax(1), self._planned)
        best = int(shared.argmax())
        return best, int(shared[best])
