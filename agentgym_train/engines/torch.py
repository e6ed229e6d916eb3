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

The model samples in eval mode and, on a GPU, under bf16 autocast, as the learner computes.

Works with decoder-only transformers models with full attention; a self-test at the start compares
cached sampling with the model's plain forward pass and refuses the model if they differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np
import torch
from transformers import PreTrainedModel

from agentgym_train.engines.base import Completion, FinishReason, Request, check_request
from agentgym_train.engines.sampling import sample, uniforms_of
from agentgym_train.engines.self_test import check_parity, check_settings
from agentgym_train.engines.slot_cache import Ints, SlotCache
from agentgym_train.errors import TokenError
from agentgym_train.model import hidden_states, logits_of

_MIN_SHARED = 16
"""Fewest tokens worth copying from another slot."""
_SIMILAR = 16
"""Prompts of up to this many tokens always share a batch."""


class _Stream:
    """One episode's tokens, and its reply in the making or made last.

    Attributes:
        ids: prompt and everything sampled.
        slot: where its keys and values are, or None.
        in_flight: whether the request waits for its completion.
    """

    request: Request
    uniforms: np.random.Generator
    logprobs: list[float]

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.slot: int | None = None
        self.in_flight = False

    def begin(self, request: Request, prompt: list[int]) -> None:
        self.request = request
        self.uniforms = uniforms_of(request.seed)
        self.logprobs = []
        self.ids = prompt
        self.in_flight = True


class TorchEngine:
    """An `Engine` on a transformers model; see the module docstring.

    Args:
        model: a causal language model, put into eval mode. It is not copied: weights that the
            learner changes are the weights that sample, after `load_weights(None, version)`.
        stop_ids: tokens that end a reply.
        max_streams: most streams that are cached at once, and most replies that run at once.
        max_context: most tokens of prompt and reply together.
        prefill_tokens: most tokens of a forward pass over prompts, padding included.

    Attributes:
        max_context: as above.
        stats: counts since the engine was made: ``prefilled_tokens``, prompt tokens that were
            computed, padding not counted; ``shared_tokens``, those that another stream had
            computed; ``sampled_tokens``; ``forward_calls``, forward passes of the model.

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
        prefill_tokens: int = 4096,
    ) -> None:
        check_settings(model, max_context)
        self._model = model.eval()
        self._vocab_size: int = model.config.get_text_config().vocab_size
        self._stop_ids = frozenset(stop_ids)
        self._max_streams = max_streams
        self.max_context = max_context
        self._prefill_tokens = prefill_tokens
        self._version = 0
        self.stats: Counter[str] = Counter()
        self._streams: dict[int, _Stream] = {}
        self._waiting: list[_Stream] = []
        self._forget()
        with self._autocast():
            exact = model.dtype != torch.bfloat16 and model.device.type != "cuda"
            check_parity(self, model, tolerance=1e-3 if exact else 0.5)
        self.stats.clear()

    def submit(self, request: Request) -> None:
        stream = self._streams.get(request.stream) or _Stream()
        prompt = check_request(
            request, stream.ids, in_flight=stream.in_flight, max_context=self.max_context
        )
        for token in prompt[len(stream.ids) :]:
            if not 0 <= token < self._vocab_size:
                raise TokenError(
                    f"the prompt of stream {request.stream} has token {token}; the model knows "
                    f"0 to {self._vocab_size - 1}"
                )
        stream.begin(request, prompt)
        self._streams[request.stream] = stream
        self._waiting.append(stream)

    def poll(self) -> list[Completion]:
        if not self._num_in_flight():
            return []
        with self._autocast(), torch.inference_mode():
            return self._prefill(self._admit()) + self._decode()

    def release(self, stream: int) -> None:
        released = self._streams.pop(stream, None)
        if released is None:
            return
        if released in self._waiting:
            self._waiting.remove(released)
        if released.slot is not None:
            del self._owners[released.slot]
        if not self._streams:
            self._forget()

    def load_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]] | None, version: int
    ) -> None:
        if self._num_in_flight():
            raise RuntimeError(
                f"{self._num_in_flight()} requests are in flight; poll until they are done, or "
                "release their streams, before loading weights"
            )
        if weights is not None:
            self._model.load_state_dict(dict(weights))
        self._version = version
        self._forget()

    def _num_in_flight(self) -> int:
        return sum(stream.in_flight for stream in self._streams.values())

    # ---------------------------------------------------------------------------------- slots

    def _admit(self) -> list[int]:
        """Give slots to waiting streams, first come first served; the slots of those that have
        one now.
        """
        if not any(stream.in_flight for stream in self._owners.values()):
            missing = len(self._waiting) - (self._max_streams - len(self._owners))
            for slot in list(self._owners)[: max(0, missing)]:
                self._owners.pop(slot).slot = None
        planned = self._cache.lengths.copy()  # when all admitted prompts are computed
        admitted = []
        for stream in self._waiting:
            if stream.slot is None and len(self._owners) < self._max_streams:
                stream.slot = self._take_slot(stream, planned)
            if stream.slot is not None:
                self._cache.tokens[stream.slot, : len(stream.ids)] = stream.ids
                planned[stream.slot] = len(stream.ids)
                admitted.append(stream.slot)
        self._waiting = [stream for stream in self._waiting if stream.slot is None]
        return admitted

    def _take_slot(self, stream: _Stream, planned: Ints) -> int:
        """The lowest free slot, or a free one that holds how the stream begins."""
        # Never all of the prompt: the last token has to be computed for its logits.
        best, shared = self._cache.longest_prefix(stream.ids[:-1], planned)
        if shared < _MIN_SHARED:
            shared = 0
        in_place = shared and best not in self._owners
        free = (slot for slot in range(self._max_streams) if slot not in self._owners)
        slot = best if in_place else next(free)
        self._cache.lengths[slot] = shared if in_place else 0
        if shared and not in_place:
            self._copies[slot] = best, shared
        self._owners[slot] = stream
        self.stats["shared_tokens"] += shared
        return slot

    def _forget(self) -> None:
        """Forget all keys and values; streams keep their tokens."""
        for stream in self._streams.values():
            stream.slot = None
        self._cache = SlotCache(self._max_streams, self.max_context)
        self._owners: dict[int, _Stream] = {}  # by slot; of idle ones the longest idle first
        self._copies: dict[int, tuple[int, int]] = {}  # by slot: how many tokens of which other

    # -------------------------------------------------------------------------------- forward

    def _prefill(self, pending: list[int]) -> list[Completion]:
        """Compute prompts; who copies from another slot waits until that one is computed."""
        finished: list[Completion] = []
        while pending:
            ready = [slot for slot in pending if self._can_start(slot)]
            for slot in ready:
                if slot in self._copies:
                    self._cache.copy(slot, *self._copies.pop(slot))
            finished += self._prefill_batch(sorted(self._similar(ready)))
            pending = [slot for slot in pending if not self._owners[slot].logprobs]
        return finished

    def _prefill_batch(self, slots: list[int]) -> list[Completion]:
        missing = np.array([self._missing(slot) for slot in slots])
        counts = np.minimum(missing, self._prefill_tokens)
        hidden = self._forward(slots, counts)
        self.stats["prefilled_tokens"] += int(counts.sum())
        done = np.flatnonzero(counts == missing)
        return self._draw([slots[row] for row in done], hidden[done])

    def _decode(self) -> list[Completion]:
        """One more token for every running reply."""
        slots = sorted(slot for slot, stream in self._owners.items() if stream.in_flight)
        return self._draw(slots, self._forward(slots, np.ones_like(slots))) if slots else []

    def _forward(self, slots: list[int], counts: Ints) -> torch.Tensor:
        """Compute the next tokens of `slots` (N,), rising, `counts` (N,) of each.

        Returns:
            (N, H), the hidden state of the last of them.
        """
        cache = self._cache
        rows = cache.aim(slots, int(counts.max()), self._model.device)
        hidden = hidden_states(
            self._model,
            cache.token_ids,
            cache.position_ids,
            cache=cache,
            attention_mask=cache.mask(self._model.dtype),
        )
        cache.lengths[slots] += counts
        self.stats["forward_calls"] += 1
        return hidden[rows, counts - 1]

    def _can_start(self, slot: int) -> bool:
        source, shared = self._copies.get(slot, (slot, 0))
        return bool(self._cache.lengths[source] >= shared)

    def _missing(self, slot: int) -> int:
        """How many tokens of a slot's stream have no keys and values yet."""
        return len(self._owners[slot].ids) - int(self._cache.lengths[slot])

    def _similar(self, slots: list[int]) -> list[int]:
        """The longest prompt, and those that may share its batch without much padding."""
        order = sorted(slots, key=self._missing, reverse=True)
        width = min(self._missing(order[0]), self._prefill_tokens)
        most = max(1, self._prefill_tokens // width)
        return [
            slot for slot in order[:most] if width <= _SIMILAR or 2 * self._missing(slot) >= width
        ]

    # ----------------------------------------------------------------------------------- draw

    def _draw(self, slots: list[int], hidden: torch.Tensor) -> list[Completion]:
        """The next token of each slot from its hidden state, (N, H); what is finished."""
        if not slots:
            return []
        logits = logits_of(self._model, hidden)
        streams = [self._owners[slot] for slot in slots]
        draws = [(stream.uniforms.random(), stream.request.temperature) for stream in streams]
        uniforms, temperatures = torch.tensor(draws, dtype=torch.float64, device=logits.device).T
        tokens, logprobs = sample(logits, uniforms, temperatures)
        self.stats["sampled_tokens"] += len(slots)
        taken = map(self._take, slots, tokens.tolist(), logprobs.tolist())
        return [completion for completion in taken if completion is not None]

    def _take(self, slot: int, token: int, logprob: float) -> Completion | None:
        """Add a token to a reply; the completion if it was the last."""
        stream = self._owners[slot]
        self._cache.tokens[slot, len(stream.ids)] = token
        stream.ids.append(token)
        stream.logprobs.append(logprob)
        stopped = token in self._stop_ids
        if not stopped and len(stream.logprobs) < stream.request.max_tokens:
            return None
        stream.in_flight = False
        self._owners[slot] = self._owners.pop(slot)  # now the one that idles shortest
        reason: FinishReason = "stop" if stopped else "length"
        sampled = stream.ids[-len(stream.logprobs) :]
        return Completion(stream.request.stream, sampled, stream.logprobs, reason, self._version)

    def _autocast(self) -> torch.autocast:
        kind = self._model.device.type
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")
