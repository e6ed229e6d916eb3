"""The torch engine: batched sampling with kept keys and values, on the learner's own module.

A stream keeps its slot in the cache for as long as its episode lives, so a turn costs the tokens
that are new in it. One `poll` admits what waits, computes all pending prompts in batches of
similar length, and takes one decoding step with every running reply; new requests join at the
next `poll`. What happens depends on the order of calls alone, never on a clock, and an engine
without streams is like a new one: a run that resumes between two batches of episodes samples
exactly what it would have sampled without the break.

A new stream that begins like another (the members of a group, or the same instructions) copies
what the two share instead of computing it. Slots are a cache, not a limit: when all are taken and
nothing runs, the stream that has idled longest loses its slot and is computed again later.

A float32 model on a GPU is sampled from under bf16 autocast, as the learner trains it.

Works with decoder-only transformers models with full attention; a self-test at the start compares
cached sampling with a plain forward pass and refuses the model if they differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Collection, Iterable

import numpy as np
import torch
from transformers import PreTrainedModel

from agentgym_train.engines.base import Completion, FinishReason, Request
from agentgym_train.engines.checks import check_request
from agentgym_train.engines.sampling import sample, uniforms_of
from agentgym_train.engines.self_test import check_architecture, check_parity
from agentgym_train.engines.slot_cache import SlotCache
from agentgym_train.engines.slot_table import Ints, Place, SlotTable
from agentgym_train.errors import TokenError
from agentgym_train.model import copy_weights, evaluating, hidden_states, logits_of

_SIMILAR = 16
"""Prompts of up to this many tokens always share a batch."""


@dataclasses.dataclass
class EngineStats:
    """Counters since the engine was made.

    Attributes:
        prefilled_tokens: prompt tokens that were computed, padding not counted.
        shared_tokens: prompt tokens that another stream had computed.
        sampled_tokens: tokens that were drawn.
        forward_calls: forward passes of the model.
    """

    prefilled_tokens: int = 0
    shared_tokens: int = 0
    sampled_tokens: int = 0
    forward_calls: int = 0


class _Reply:
    """A reply in the making."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.uniforms = uniforms_of(request.seed)
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []


@dataclasses.dataclass(eq=False)
class _Stream:
    """One episode's tokens.

    Attributes:
        ids: prompt and everything sampled.
        place: its slot in the cache, or None.
        reply: the request in flight, or None.
    """

    ids: list[int]
    place: Place | None = None
    reply: _Reply | None = None

    @property
    def slot(self) -> int:
        assert self.place is not None
        return self.place.slot


class TorchEngine:
    """An `Engine` on a transformers model; see the module docstring.

    Args:
        model: a causal language model. It is not copied: weights that the learner changes are the
            weights that sample, after `load_weights(None, version)`.
        stop_ids: tokens that end a reply.
        max_streams: most streams that are cached at once, and most replies that run at once.
        max_context: most tokens of prompt and reply together.
        device: where to sample, which moves the model; None for where it is.
        prefill_tokens: most tokens of a forward pass over prompts, padding included.

    Attributes:
        stats: counters.

    Raises:
        ConfigError: `max_context` exceeds the model's positions.
        ModelError: a model that this engine cannot sample from.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        stop_ids: Collection[int],
        max_streams: int,
        max_context: int,
        device: str | torch.device | None = None,
        prefill_tokens: int = 4096,
    ) -> None:
        check_architecture(model, max_context)
        if device is not None:
            torch.nn.Module.to(model, device)
        self._model = model
        self._casts = model.device.type == "cuda" and model.dtype == torch.float32
        self._vocab_size: int = model.config.get_text_config().vocab_size
        self._stop_ids = frozenset(stop_ids)
        self._max_streams = max_streams
        self._max_context = max_context
        self._prefill_tokens = prefill_tokens
        self._version = 0
        self.stats = EngineStats()
        self._streams: dict[int, _Stream] = {}
        self._waiting: deque[_Stream] = deque()
        self._running: dict[int, _Stream] = {}  # by slot
        self._idle: dict[int, _Stream] = {}  # by slot, the longest idle first
        self._table = SlotTable(max_streams, max_context)
        self._cache = SlotCache(max_streams)
        with evaluating(model), self._precision():
            check_parity(self, model, exact=not self._casts)
        self.stats = EngineStats()
        self._forget()

    @property
    def max_context(self) -> int:
        return self._max_context

    def submit(self, request: Request) -> None:
        stream = self._streams.get(request.stream) or _Stream([])
        prompt = check_request(
            request,
            stream.ids,
            in_flight=stream.reply is not None,
            max_context=self._max_context,
        )
        for token in prompt[len(stream.ids) :]:
            if not 0 <= token < self._vocab_size:
                raise TokenError(
                    f"the prompt of stream {request.stream} has token {token}; the model knows "
                    f"0 to {self._vocab_size - 1}"
                )
        stream.ids = prompt
        stream.reply = _Reply(request)
        self._streams[request.stream] = stream
        self._waiting.append(stream)

    def poll(self) -> list[Completion]:
        if not self._waiting and not self._running:
            return []
        with evaluating(self._model), self._precision(), torch.inference_mode():
            return self._prefill(self._admit()) + self._decode()

    def release(self, stream: int) -> None:
        released = self._streams.pop(stream, None)
        if released is None:
            return
        with contextlib.suppress(ValueError):
            self._waiting.remove(released)
        self._vacate(released)
        if not self._streams:
            self._forget()

    def load_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]] | None, version: int
    ) -> None:
        if self._waiting or self._running:
            raise RuntimeError(
                f"{len(self._waiting) + len(self._running)} requests are in flight; poll until "
                "they are done, or release their streams, before loading weights"
            )
        if weights is not None:
            copy_weights(self._model, weights)
        self._version = version
        self._forget()

    # ---------------------------------------------------------------------------------- slots

    def _admit(self) -> list[_Stream]:
        """Give slots to waiting streams, first come first served; those that have one now."""
        admitted, unlucky = [], []
        if not self._running and all(stream.place is None for stream in self._waiting):
            excess = max(0, len(self._waiting) - self._table.num_free)
            for stream in list(self._idle.values())[:excess]:
                self._vacate(stream)
        for stream in self._waiting:
            if stream.place is None and self._table.num_free:
                stream.place = self._table.take(stream.ids)
                self.stats.shared_tokens += stream.place.shared
            if stream.place is None:
                unlucky.append(stream)
                continue
            self._idle.pop(stream.place.slot, None)
            self._table.plan(stream.place.slot, stream.ids)
            admitted.append(stream)
        self._waiting = deque(unlucky)
        return admitted

    def _vacate(self, stream: _Stream) -> None:
        """Take a stream's slot away, and what it was sampling."""
        if stream.place is not None:
            self._running.pop(stream.place.slot, None)
            self._idle.pop(stream.place.slot, None)
            self._table.give_back(stream.place.slot)
        stream.place = stream.reply = None

    def _forget(self) -> None:
        """Forget all keys and values; streams keep their tokens."""
        for stream in self._streams.values():
            self._vacate(stream)
        self._table = SlotTable(self._max_streams, self._max_context)

    # -------------------------------------------------------------------------------- forward

    def _prefill(self, pending: list[_Stream]) -> list[Completion]:
        """Compute prompts; who copies from another stream waits until that one is computed."""
        finished: list[Completion] = []
        while pending:
            ready = [stream for stream in pending if self._can_start(stream)]
            self._copy_shared(ready)
            finished += self._prefill_batch(self._similar(ready))
            pending = [stream for stream in pending if stream.reply and not stream.reply.token_ids]
        return finished

    def _prefill_batch(self, streams: list[_Stream]) -> list[Completion]:
        streams = sorted(streams, key=lambda stream: stream.slot)
        slots = np.array([stream.slot for stream in streams], np.int64)
        starts = self._table.lengths[slots]
        counts = np.minimum([self._missing(stream) for stream in streams], self._prefill_tokens)
        ids = np.zeros((len(streams), int(counts.max())), np.int64)
        for row, (stream, start, count) in enumerate(zip(streams, starts, counts, strict=True)):
            ids[row, :count] = stream.ids[start : start + count]
        hidden = self._forward(slots, ids)
        self._table.lengths[slots] += counts
        self.stats.prefilled_tokens += int(counts.sum())
        done = [row for row, stream in enumerate(streams) if not self._missing(stream)]
        return self._draw([streams[row] for row in done], hidden[done, counts[done] - 1])

    def _decode(self) -> list[Completion]:
        """One more token for every running reply."""
        if not self._running:
            return []
        slots = np.array(sorted(self._running), np.int64)
        streams = [self._running[slot] for slot in slots.tolist()]
        last = [stream.ids[-1] for stream in streams]
        hidden = self._forward(slots, np.array(last, np.int64)[:, None])
        self._table.push(slots, last)
        return self._draw(streams, hidden[:, 0])

    def _forward(self, slots: Ints, ids: Ints) -> torch.Tensor:
        """Hidden states (N, T, H) of the next tokens `ids` (N, T) of `slots` (N,), rising."""
        device = self._model.device
        rows = self._cache.aim(slots, self._table.lengths[slots], ids.shape[1], device)
        batch = np.zeros((self._cache.num_rows, ids.shape[1]), np.int64)
        batch[rows] = ids
        self.stats.forward_calls += 1
        hidden = hidden_states(
            self._model,
            torch.from_numpy(batch).to(device),
            self._cache.position_ids,
            cache=self._cache,
            attention_mask=self._cache.mask(self._model.dtype),
        )
        return hidden if len(rows) == len(batch) else hidden[torch.from_numpy(rows).to(device)]

    def _can_start(self, stream: _Stream) -> bool:
        place = stream.place
        assert place is not None
        return bool(self._table.lengths[place.source] >= place.shared)

    def _missing(self, stream: _Stream) -> int:
        """How many tokens of a stream have no keys and values yet."""
        return len(stream.ids) - int(self._table.lengths[stream.slot])

    def _copy_shared(self, streams: list[_Stream]) -> None:
        places = [stream.place for stream in streams if stream.place is not None]
        copied = [place for place in places if place.source != place.slot]
        if not copied:
            return
        sources = np.array([place.source for place in copied], np.int64)
        targets = np.array([place.slot for place in copied], np.int64)
        lengths = np.array([place.shared for place in copied], np.int64)
        self._cache.copy(sources, targets, int(lengths.max()))
        self._table.lengths[targets] = lengths
        for place in copied:
            place.source = place.slot

    def _similar(self, streams: list[_Stream]) -> list[_Stream]:
        """The longest prompt, and those that may share its batch without much padding."""
        order = sorted(streams, key=self._missing, reverse=True)
        width = min(self._missing(order[0]), self._prefill_tokens)
        most = max(1, self._prefill_tokens // width)
        return [
            stream
            for stream in order[:most]
            if width <= _SIMILAR or 2 * self._missing(stream) >= width
        ]

    # ----------------------------------------------------------------------------------- draw

    def _draw(self, streams: list[_Stream], hidden: torch.Tensor) -> list[Completion]:
        """The next token of each stream from its hidden state, (N, H); what is finished."""
        replies = [stream.reply for stream in streams if stream.reply is not None]
        if not replies:
            return []
        logits = logits_of(self._model, hidden)
        if not bool(torch.isfinite(logits).all()):
            self._break_down()
        uniforms = [reply.uniforms.random() for reply in replies]
        temperatures = [reply.request.temperature for reply in replies]
        tokens, logprobs = sample(
            logits,
            torch.tensor(uniforms, dtype=torch.float64, device=logits.device),
            torch.tensor(temperatures, dtype=torch.float64, device=logits.device),
        )
        self.stats.sampled_tokens += len(replies)
        drawn = zip(streams, replies, tokens.tolist(), logprobs.tolist(), strict=True)
        completions = [self._take(*one) for one in drawn]
        return [completion for completion in completions if completion is not None]

    def _take(
        self, stream: _Stream, reply: _Reply, token: int, logprob: float
    ) -> Completion | None:
        """Add a token to a reply; the completion if it was the last."""
        stream.ids.append(token)
        reply.token_ids.append(token)
        reply.logprobs.append(logprob)
        stopped = token in self._stop_ids
        if not stopped and len(reply.token_ids) < reply.request.max_tokens:
            self._running[stream.slot] = stream
            return None
        self._running.pop(stream.slot, None)
        self._idle[stream.slot] = stream
        stream.reply = None
        reason: FinishReason = "stop" if stopped else "length"
        return Completion(
            reply.request.stream, reply.token_ids, reply.logprobs, reason, self._version
        )

    # --------------------------------------------------------------------------------- checks

    def _precision(self) -> contextlib.AbstractContextManager[object]:
        """On a GPU the learner casts fp32 weights to bf16 for its forward pass; so does this."""
        if self._casts:
            return torch.autocast(self._model.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def _break_down(self) -> None:
        """Drop all streams and everything cached, which may hold the same numbers, and raise."""
        self._waiting.clear()
        self._forget()
        self._streams.clear()
        self._cache = SlotCache(self._max_streams)
        raise TokenError(
            "the model gives logits that are not finite; its weights have diverged: lower the "
            "learning rate, or go back to an earlier checkpoint"
        )
