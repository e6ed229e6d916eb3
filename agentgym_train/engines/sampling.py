"""Drawing tokens from logits with random numbers that belong to the reply.

One uniform number a token, turned into a token by the inverse of the cumulative distribution in
float64. A reply's numbers come from a counter-based generator with the request's seed as its key,
so they do not depend on what else is sampled, in which order, or on the device.
"""

from __future__ import annotations

import numpy as np
import torch

from agentgym_train.errors import NonFinite


def uniforms_of(seed: int) -> np.random.Generator:
    """The random numbers of one reply; `seed` counts modulo 2**64."""
    return np.random.Generator(np.random.Philox(key=seed % 2**64))


def sample(
    logits: torch.Tensor, uniforms: torch.Tensor, temperatures: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one token a row.

    Args:
        logits: (N, V).
        uniforms: float64 (N,), in [0, 1).
        temperatures: float64 (N,); a row with 0 takes the likeliest token.

    Returns:
        int64 (N,): the tokens; (N,) in the type of `logits`: their log-probabilities under the
        distribution they were drawn from, and at temperature 0 under that of temperature 1.

    Raises:
        NonFinite: a row has NaN or infinity among its logits.
    """
    greedy = temperatures == 0
    scale = torch.where(greedy, 1.0, temperatures)
    logprobs = torch.log_softmax(logits.double() / scale[:, None], dim=-1)
    cumulative = logprobs.exp().cumsum(-1)
    if not bool(cumulative[:, -1].isfinite().all()):
        raise NonFinite(
            "the policy's logits are not finite: its weights have diverged; start a run with a "
            "lower learner.learning_rate, from an earlier checkpoint's weights by --model.path",
            [],
        )
    target = uniforms[:, None] * cumulative[:, -1:]  # below the total, also when rounded
    tokens = torch.searchsorted(cumulative, target, right=True)
    tokens = torch.where(greedy[:, None], logits.argmax(-1, keepdim=True), tokens)
    return tokens[:, 0], logprobs.gather(-1, tokens)[:, 0].to(logits.dtype)
