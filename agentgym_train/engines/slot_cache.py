"""Keys and values of many streams at once: one slot a stream, each filled to its own length.

Transformers' own caches hold one length for all rows. Here slots are rows of one tensor a layer,
written in place, so a stream's cache stays where it is while others come, go and wait. When most
of the low slots run, attention reads them as a view, without a copy: idle slots in between are
computed along, with a token behind their last one that is never counted and overwritten later.

A slot keeps what it holds after its stream has gone, until another stream takes it. So a new
stream finds its longest known beginning among all slots: its group's first prompt, the
instructions of another episode, or nothing.

Not a paged cache: all rows are as long as the longest, which wastes memory when lengths differ
much. Within one batch of episodes they do not; for the rest there is vLLM.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import Cache

Ints = npt.NDArray[np.int64]

_MIN_LENGTH = 64


class SlotCache(Cache):
    """A cache for transformers models; `aim` it before each forward pass.

    Args:
        num_slots: S, number of slots.
        max_context: most tokens of a slot.

    Attributes:
        tokens: int32 (S, max_context), the token ids of each slot.
        lengths: int64 (S,), how many of them have their keys and values here.
        token_ids: int64 (R, T), the tokens of the forward pass.
        position_ids: int64 (R, T), their positions.
    """

    def __init__(self, num_slots: int, max_context: int) -> None:
        super().__init__(layers=[])
        self.tokens = np.zeros((num_slots, max_context), np.int32)
        self.lengths: Ints = np.zeros(num_slots, np.int64)
        self.token_ids = self.position_ids = torch.zeros(0, 0, dtype=torch.int64)
        self._length = 0
        self._buffers: list[list[Tensor]] = []  # keys, values: (S, heads, length, head_dim)

    def longest_prefix(self, ids: Sequence[int], lengths: Ints) -> tuple[int, int]:
        """The slot that shares most tokens from the start with `ids`, and how many.

        Args:
            ids: token ids.
            lengths: (S,), how many tokens of each slot count.
        """
        differs = self.tokens[:, : len(ids)] != np.asarray(ids, np.int32)
        end = np.ones((len(differs), 1), bool)
        shared = np.minimum(np.hstack((differs, end)).argmax(1), lengths)
        best = int(shared.argmax())
        return best, int(shared[best])

    def copy(self, target: int, source: int, length: int) -> None:
        """Copy the first `length` tokens of slot `source` to slot `target`."""
        for buffer in itertools.chain(*self._buffers):
            buffer[target, :, :length] = buffer[source, :, :length]
        self.lengths[target] = length

    def aim(self, slots: Sequence[int], width: int, device: torch.device) -> Ints:
        """Choose the slots of the next forward pass, over the tokens behind their lengths.

        Args:
            slots: (N,), rising.
            width: T, how many tokens each gets; where it has fewer, the rest is padding.
            device: where the model is.

        Returns:
            (N,), the row of each slot in the batch. The batch has R rows: N of them, or more where
            low slots are computed along.
        """
        low = slots[-1] + 1
        self._as_view = 2 * len(slots) >= low and width == 1
        rows = np.arange(low) if self._as_view else np.array(slots)
        starts = self.lengths[rows]
        self._all_new = not starts.any()
        self._end = int(self.lengths[slots].max()) + width
        self._reserve(int(starts.max()) + width)
        positions = starts[:, None] + np.arange(width)
        positions = np.minimum(positions, self.tokens.shape[1] - 1)  # padding stays in the context
        token_ids = self.tokens[rows[:, None], positions].astype(np.int64)
        self._rows = torch.from_numpy(rows).to(device)
        self.position_ids = torch.from_numpy(positions).to(device)
        self.token_ids = torch.from_numpy(token_ids).to(device)
        return np.searchsorted(rows, slots)

    def mask(self, dtype: torch.dtype) -> Tensor:
        """Additive causal mask (R, 1, T, K) over the keys that `update` answers with."""
        keys = torch.arange(self._end, device=self.position_ids.device)
        hidden = keys > self.position_ids[:, None, :, None]
        mask = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
        return mask.masked_fill_(hidden, torch.finfo(dtype).min)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Write a layer's new keys and values, (R, heads, T, head_dim); all up to now."""
        key_states = key_states.to(value_states.dtype)  # autocast leaves rotated keys in fp32
        if layer_idx == len(self._buffers):
            self._buffers.append([self._buffer(key_states), self._buffer(value_states)])
        keys, values = self._buffers[layer_idx]
        return self._write_and_read(keys, key_states), self._write_and_read(values, value_states)

    def _buffer(self, like: Tensor) -> Tensor:
        return like.new_zeros(len(self.lengths), like.shape[1], self._length, like.shape[3])

    def _write_and_read(self, buffer: Tensor, new: Tensor) -> Tensor:
        buffer[self._rows[:, None], :, self.position_ids] = new.transpose(1, 2)
        if self._all_new:
            return new
        if self._as_view:
            return buffer[: len(new), :, : self._end]
        return buffer[self._rows, :, : self._end]

    def _reserve(self, length: int) -> None:
        """Grow to hold that many tokens a slot, at least doubling, with zeros in what is new."""
        if length <= self._length:
            return
        self._length = max(length, 2 * self._length, _MIN_LENGTH)
        for layer in self._buffers:
            layer[:] = [
                torch.nn.functional.pad(buffer, (0, 0, 0, self._length - buffer.shape[2]))
                for buffer in layer
            ]
