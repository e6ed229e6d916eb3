"""Keys and values of many streams at once: one slot a stream, each filled to its own length.

Slots are rows of one preallocated tensor a layer, written in place, so a stream's cache stays
where it is while others come, go and wait. When most of the low slots run, attention reads them
as a view, without a copy; idle slots in between are computed along and ignored.

Not a paged cache: all rows are as long as the longest, which wastes memory when lengths differ
much. Within one batch of episodes they do not; for the rest there is vLLM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import Cache

Ints = npt.NDArray[np.int64]

_MIN_LENGTH = 64


class SlotCache(Cache):
    """A cache for transformers models; `aim` it before each forward pass.

    Args:
        max_slots: number of slots.

    Attributes:
        position_ids: int64 (R, T), positions of the tokens of the forward pass.
    """

    def __init__(self, max_slots: int) -> None:
        super().__init__(layers=[])
        self._max_slots = max_slots
        self._slots = 0
        self._length = 0
        self._keys: list[torch.Tensor] = []  # a layer: (slots, kv_heads, length, head_dim)
        self._values: list[torch.Tensor] = []
        self.position_ids = torch.zeros(0, 0, dtype=torch.int64)

    def aim(self, slots: Ints, starts: Ints, width: int, device: torch.device) -> Ints:
        """Choose the slots of the next forward pass.

        Args:
            slots: (N,), rising.
            starts: (N,), how many tokens each holds.
            width: T, how many it gets now.
            device: where the model is.

        Returns:
            (N,), the row of each slot in the batch. The batch has `num_rows` rows: N of them, or
            more where low slots are computed along.
        """
        low = int(slots[-1]) + 1
        self._as_view = 2 * len(slots) >= low and width == 1
        rows = slots if self._as_view else np.arange(len(slots))
        self.num_rows = low if self._as_view else len(slots)
        positions = np.zeros((self.num_rows, width), np.int64)
        positions[rows] = starts[:, None] + np.arange(width)
        self.position_ids = torch.from_numpy(positions).to(device)
        self._rows = torch.from_numpy(rows).to(device)
        self._targets = torch.from_numpy(slots).to(device)
        self._all_new = not starts.any()
        self._end = int(positions.max()) + 1
        self._reserve(low, self._end)
        return rows

    def mask(self, dtype: torch.dtype) -> torch.Tensor:
        """Additive causal mask (R, 1, T, K) over the keys that `update` answers with."""
        keys = torch.arange(self._end, device=self.position_ids.device)
        hidden = keys > self.position_ids[:, None, :, None]
        mask = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
        return mask.masked_fill_(hidden, torch.finfo(dtype).min)

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write a layer's new keys and values, (R, heads, T, head_dim); all up to now."""
        key_states = key_states.to(value_states.dtype)  # autocast leaves rotated keys in fp32
        if layer_idx == len(self._keys):
            self._keys.append(self._buffer(key_states))
            self._values.append(self._buffer(value_states))
        return (
            self._write_and_read(self._keys[layer_idx], key_states),
            self._write_and_read(self._values[layer_idx], value_states),
        )

    def copy(self, sources: Ints, targets: Ints, length: int) -> None:
        """Copy the first `length` tokens of slots (N,) to others."""
        self._reserve(int(targets.max()) + 1, length)
        for buffer in (*self._keys, *self._values):
            rows = torch.from_numpy(sources).to(buffer.device)
            buffer[torch.from_numpy(targets).to(buffer.device), :, :length] = buffer[
                rows, :, :length
            ]

    def _write_and_read(self, buffer: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        written = new[self._rows] if self._as_view else new
        positions = self.position_ids[self._rows]
        buffer[self._targets[:, None], :, positions] = written.transpose(1, 2)
        if self._all_new:
            return new
        if self._as_view:
            return buffer[: self.num_rows, :, : self._end]
        return buffer[self._targets, :, : self._end]

    def _reserve(self, slots: int, length: int) -> None:
        """Grow to hold that much, at least doubling, with zeros in what is new."""
        if slots <= self._slots and length <= self._length:
            return
        if slots > self._slots:
            self._slots = min(max(slots, 2 * self._slots), self._max_slots)
        if length > self._length:
            self._length = max(length, 2 * self._length, _MIN_LENGTH)
        for buffers in (self._keys, self._values):
            for layer, old in enumerate(buffers):
                buffers[layer] = new = self._buffer(old)
                new[: old.shape[0], :, : old.shape[2]] = old

    def _buffer(self, like: torch.Tensor) -> torch.Tensor:
        return like.new_zeros(self._slots, like.shape[1], self._length, like.shape[3])
