"""What every engine checks of a request before it takes it."""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_train.engines.base import Request
from agentgym_train.errors import ContextError, TokenError


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
        raise TokenError(
            f"the prompt of stream {request.stream} does not extend what the stream holds: "
            f"{_first_difference(prompt, held)}"
        )
    return prompt


def _first_difference(prompt: Sequence[int], held: Sequence[int]) -> str:
    for position, (found, expected) in enumerate(zip(prompt, held, strict=False)):
        if found != expected:
            return f"expected token {expected} at position {position}, got {found}"
    return f"expected at least {len(held)} tokens, got {len(prompt)}"
