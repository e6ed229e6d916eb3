"""The engine protocol: token ids in, token ids and log-probabilities out.

An engine knows nothing of text, templates, environments or rewards. Requests may be submitted at
any time, also while others run; `poll` does a bounded piece of work and hands out what finished.
The prompt is always the whole prompt, so every engine can check it with `check_request`; an engine
that keeps a cache finds it by the request's `stream`.

Sampling randomness comes from the request's `seed` alone, whatever else is in the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from agentgym_train.errors import ContextError, TokenError

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

    def submit(self, request: Request) -> None:
        """Queue a request.

        Raises:
            ContextError: prompt and reply do not fit `max_context`.
            TokenError: the prompt does not extend what the stream holds.
        """

    def poll(self) -> list[Completion]:
        """Do a bounded piece of work and return what finished; [] if nothing is queued.

        Raises:
            NonFinite: the model gives NaN or infinity; release all streams before going on.
        """

    def release(self, stream: int) -> None:
        """Forget a stream: its episode ended. Unknown streams are ignored."""

    def load_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]] | None, version: int
    ) -> None:
        """Sample from new weights from now on and drop every cache.

        Args:
            weights: the learner's whole state dict, name by name, or None if the engine shares
                the learner's module, which has changed already.
            version: number that goes into completions.

        Raises:
            RuntimeError: requests are in flight, or the weights are another model's.
        """


def check_request(
    request: Request, held: Sequence[int], *, in_flight: bool, max_context: int
) -> list[int]:
    """Check that a request can be sampled and continues its stream.

    Args:
        request: the request.
        held: all tokens of its stream so far; empty for a new stream.
        in_flight: whether the stream's last request is still unanswered.
        max_context: most tokens of prompt and reply together.

    Returns:
        The prompt's tokens as a new list.

    Raises:
        ValueError: an empty prompt, no token to sample, or a temperature below 0.
        ContextError: prompt and reply do not fit.
        TokenError: the stream is busy, or the prompt does not begin with what it holds.
    """
    prompt = list(request.prompt_ids)
    if not prompt or request.max_tokens < 1 or not request.temperature >= 0:
        raise ValueError(
            "a request needs a prompt, max_tokens of at least 1 and a temperature of at least 0; "
            f"got {len(prompt)} prompt tokens, max_tokens {request.max_tokens}, "
            f"temperature {request.temperature}"
        )
    if len(prompt) + request.max_tokens > max_context:
        raise ContextError(
            f"a prompt of {len(prompt)} tokens and a reply of up to {request.max_tokens} do not "
            f"fit the context of {max_context}; shorten the episode or enlarge the context"
        )
    if in_flight:
        raise TokenError(
            f"stream {request.stream} is still sampling; its requests come one after another"
        )
    if prompt[: len(held)] != held:
        at = next((at for at, token in enumerate(prompt) if token != held[at]), len(prompt))
        raise TokenError(
            f"the prompt of stream {request.stream} does not extend what the stream holds: from "
            f"position {at} on expected tokens {held[at : at + 4]}, got {prompt[at : at + 4]}"
        )
    return prompt
