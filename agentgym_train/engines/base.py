"""The engine protocol: token ids in, token ids and log-probabilities out.

An engine knows nothing of text, templates, environments or rewards. Requests may be submitted at
any time, also while others run; `poll` does a bounded piece of work and hands out what finished.
The prompt is always the whole prompt, so every engine can check it; an engine that keeps a cache
finds it by the request's `stream`.

Sampling randomness comes from the request's `seed` alone, whatever else is in the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import torch

FinishReason = Literal["stop", "length"]


@dataclasses.dataclass(frozen=True)
class Request:
    """One reply to sample.

    Attributes:
        stream: identifies the episode. Requests of one stream come one after another, and each
            prompt begins with the whole previous prompt and everything sampled after it.
        prompt_ids: all tokens before the reply.
        seed: 64-bit seed of this reply's random numbers.
        max_tokens: most tokens to sample, at least 1.
        temperature: 1 samples from the model's distribution; 0 takes the likeliest token.
    """

    stream: int
    prompt_ids: Sequence[int]
    seed: int
    max_tokens: int
    temperature: float = 1.0


@dataclasses.dataclass(frozen=True)
class Completion:
    """A sampled reply.

    Attributes:
        stream: the request's stream.
        token_ids: what was sampled, including the stop token if there was one.
        logprobs: log-probability of each token under the distribution it was drawn from (for
            temperature 0: under the model's distribution at temperature 1).
        finish_reason: ``"stop"`` after a stop token, ``"length"`` after `max_tokens`.
        weights_version: version of the weights that sampled it.
    """

    stream: int
    token_ids: list[int]
    logprobs: list[float]
    finish_reason: FinishReason
    weights_version: int


class Engine(Protocol):
    """Samples replies; see the module docstring."""

    @property
    def max_context(self) -> int:
        """Most tokens of prompt and reply together."""
        ...

    def submit(self, request: Request) -> None:
        """Queue a request.

        Raises:
            ContextError: prompt and reply do not fit `max_context`.
            TokenError: the prompt does not extend what the stream holds.
        """
        ...

    def poll(self) -> list[Completion]:
        """Do a bounded piece of work and return what finished; [] if nothing is queued."""
        ...

    def release(self, stream: int) -> None:
        """Forget a stream: its episode ended. Unknown streams are ignored."""
        ...

    def load_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]] | None, version: int
    ) -> None:
        """Sample from new weights from now on and drop every cache.

        Args:
            weights: name and tensor of each parameter, or None if the engine shares the
                learner's module, which has changed already.
            version: number that goes into completions.
        """
        ...
