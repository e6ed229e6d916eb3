"""The terms of a policy loss, token by token: clipped surrogate, ratios, divergence estimates."""

from __future__ import annotations

from typing import TypeVar

import torch

from agentgym_train.algorithms.settings import Estimator, Level
from agentgym_train.batching import Batch

Array = TypeVar("Array")

_MAX_LOG_RATIO = 20.0
"""Log-ratios are clamped to plus or minus this before `exp`, so a ratio cannot overflow."""


def ratio_of(log_ratio: torch.Tensor) -> torch.Tensor:
    """The probability ratio, kept from overflowing: (N,)."""
    return log_ratio.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO).exp()


def clipped_surrogate(
    log_ratio: torch.Tensor,
    advantages: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``max(-ratio * A, -clip(ratio, 1 - clip_low, 1 + clip_high) * A)`` of each token.

    With `dual_clip` c it is at most ``-c * A`` where A is negative.

    Reference: equation 7 of arXiv 1707.06347; two clip ranges: arXiv 2503.14476 ("clip-higher");
    dual clip: equation 3 of arXiv 1912.09729.

    Args:
        log_ratio: new minus old log-probability: (N,).
        advantages: (N,).
        clip_low: lower clip range.
        clip_high: upper clip range.
        dual_clip: largest ratio of a negative advantage; 0 for no limit.

    Returns:
        The loss of each token (N,) and whether clipping took its gradient (N,).
    """
    ratio = ratio_of(log_ratio)
    plain = -ratio * advantages
    bounded = -ratio.clamp(1 - clip_low, 1 + clip_high) * advantages
    loss, clipped = torch.maximum(plain, bounded), bounded.detach() > plain.detach()
    if dual_clip:
        beyond = (advantages < 0) & (ratio.detach() > dual_clip)
        loss, clipped = torch.where(beyond, -dual_clip * advantages, loss), clipped | beyond
    return loss, clipped


def spread_log_ratio(log_ratio: torch.Tensor, batch: Batch, level: Level) -> torch.Tensor:
    """The log-ratio by which each token is clipped.

    Above the level of tokens it is the mean over the tokens of a turn or sequence, with the
    gradient of the token's own (GSPO-token, arXiv 2507.18071).

    Args:
        log_ratio: of each token, with gradient: (N,).
        batch: says which tokens belong together; no sequence is split over batches.
        level: over what the mean is.
    """
    if level == "token":
        return log_ratio
    segment = batch.sequence_index
    if level == "turn":
        segment = segment * (1 + batch.turn_index.max()) + batch.turn_index
    own = log_ratio.detach()
    zeros = own.new_zeros(1 + int(segment.max()))
    sums = zeros.index_add(0, segment, own)
    counts = zeros.index_add(0, segment, torch.ones_like(own))
    means: torch.Tensor = (sums / counts)[segment]
    return means + (log_ratio - own)


def kl_estimate(log_ratio: torch.Tensor, estimator: Estimator) -> torch.Tensor:
    """An estimate of the divergence KL(p, q) at each token, drawn from p.

    With d = log p - log q: ``k1 = d``, ``k2 = d^2 / 2``, ``k3 = exp(-d) - 1 + d``. k1 and k3 have
    mean KL; k3 has less variance and is, like k2, never negative.

    Args:
        log_ratio: log p - log q of each token: (N,).
        estimator: which one.
    """
    if estimator == "k1":
        return log_ratio
    if estimator == "k2":
        return log_ratio.square() / 2
    bounded = log_ratio.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return torch.expm1(-bounded) + bounded


def required(values: Array | None, name: str) -> Array:
    """Numbers a loss or an estimator cannot do without; what is not assigned is not zero.

    Raises:
        ValueError: they are not assigned.
    """
    if values is None:
        raise ValueError(f"this algorithm needs {name}, but they are not assigned")
    return values
