"""Losses, as pure functions: `LossInputs` in, `LossOutput` out.

Inputs are compressed: one number for each sampled token of a micro-batch. A loss is a sum over
these tokens divided by `normalizer`, the number of sampled tokens of the whole optimizer batch
(all micro-batches, all ranks), so gradients add up to the same whatever the split. A mean of
micro-batch means would not: 10 tokens of loss 1 and 1,000 of loss 0 give 0.5 instead of 0.0099.

Metrics are sums over tokens and maxima, for the same reason; the learner divides at the end.
"""

from __future__ import annotations

import dataclasses

import torch

_MAX_LOG_RATIO = 20.0
"""Log-ratios are clamped to plus or minus this before `exp`, so a ratio cannot overflow."""


@dataclasses.dataclass(frozen=True, eq=False)
class LossInputs:
    """What a loss may read. N sampled tokens.

    Attributes:
        logprobs: log-probabilities under the policy being trained: (N,), with gradient.
        entropy: entropy of that policy at each token, in nats: (N,), with gradient.
        normalizer: number of sampled tokens of the optimizer batch.
        old_logprobs: log-probabilities under the policy that sampled: (N,), or None.
        advantages: (N,), or None if not assigned.
        ref_logprobs: log-probabilities under the reference: (N,), or None.
    """

    logprobs: torch.Tensor
    entropy: torch.Tensor
    normalizer: int
    old_logprobs: torch.Tensor | None = None
    advantages: torch.Tensor | None = None
    ref_logprobs: torch.Tensor | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class LossOutput:
    """A loss and what to log about it.

    Attributes:
        loss: scalar, with gradient.
        token_sums: by metric, its sum over the N tokens; a mean after division by all tokens.
        maxima: by metric, its largest value.
    """

    loss: torch.Tensor
    token_sums: dict[str, torch.Tensor]
    maxima: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)


def policy_loss(
    inputs: LossInputs,
    *,
    clip_low: float,
    clip_high: float,
    kl_coefficient: float = 0.0,
    entropy_coefficient: float = 0.0,
) -> LossOutput:
    """Clipped policy gradient, with a divergence to a reference and an entropy bonus as options.

    Per token: ``surrogate + kl_coefficient * k3(reference) - entropy_coefficient * entropy``.

    Args:
        inputs: needs `old_logprobs` and `advantages`, and `ref_logprobs` if `kl_coefficient` > 0.
        clip_low: the ratio counts down to 1 - clip_low.
        clip_high: the ratio counts up to 1 + clip_high.
        kl_coefficient: weight of the divergence.
        entropy_coefficient: weight of the entropy bonus.

    Returns:
        The loss; sums ``policy_loss``, ``clip_share``, ``kl_k1``, ``kl_k3``, ``entropy`` and, with
        a reference, ``kl_ref``; maximum ``ratio_max``.

    Raises:
        ValueError: something it needs is None.
    """
    old_logprobs = _required(inputs.old_logprobs, "old_logprobs")
    advantages = _required(inputs.advantages, "advantages")
    log_ratio = inputs.logprobs - old_logprobs
    surrogate, clipped = clipped_surrogate(
        log_ratio, advantages, clip_low=clip_low, clip_high=clip_high
    )
    per_token = surrogate - entropy_coefficient * inputs.entropy
    k1, k3 = kl_estimates(-log_ratio.detach())
    sums = {
        "policy_loss": surrogate.detach(),
        "clip_share": clipped,
        "kl_k1": k1,
        "kl_k3": k3,
        "entropy": inputs.entropy.detach(),
    }
    if kl_coefficient:
        ref_logprobs = _required(inputs.ref_logprobs, "ref_logprobs")
        _, kl_ref = kl_estimates(inputs.logprobs - ref_logprobs)
        per_token = per_token + kl_coefficient * kl_ref
        sums["kl_ref"] = kl_ref.detach()
    return LossOutput(
        loss=per_token.sum() / inputs.normalizer,
        token_sums={name: values.sum() for name, values in sums.items()},
        maxima={"ratio_max": _ratio(log_ratio.detach()).max()},
    )


def clipped_surrogate(
    log_ratio: torch.Tensor, advantages: torch.Tensor, *, clip_low: float, clip_high: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """``max(-ratio * A, -clip(ratio, 1 - clip_low, 1 + clip_high) * A)`` of each token.

    Reference: equation 7 of arXiv 1707.06347; two clip ranges: arXiv 2503.14476 ("clip-higher").

    Args:
        log_ratio: new minus old log-probability: (N,).
        advantages: (N,).
        clip_low: lower clip range.
        clip_high: upper clip range.

    Returns:
        The loss of each token (N,) and whether clipping took its gradient (N,).
    """
    ratio = _ratio(log_ratio)
    plain = -ratio * advantages
    bounded = -ratio.clamp(1 - clip_low, 1 + clip_high) * advantages
    return torch.maximum(plain, bounded), bounded.detach() > plain.detach()


def kl_estimates(log_ratio: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """k1 and k3 estimates of the divergence KL(p, q) at tokens drawn from p.

    ``k1 = d`` and ``k3 = exp(-d) - 1 + d`` with d = log p - log q. k1 has mean KL and may be
    negative; k3 has the same mean, less variance, and is never negative.

    Args:
        log_ratio: log p - log q of each token: (N,).

    Returns:
        k1 (N,) and k3 (N,).
    """
    bounded = log_ratio.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return log_ratio, torch.expm1(-bounded) + bounded


def supervised_loss(inputs: LossInputs) -> LossOutput:
    """Negative log-probability of the tokens, summed over `normalizer`.

    Returns:
        The loss; sum ``entropy``.
    """
    return LossOutput(
        loss=-inputs.logprobs.sum() / inputs.normalizer,
        token_sums={"entropy": inputs.entropy.detach().sum()},
    )


def _ratio(log_ratio: torch.Tensor) -> torch.Tensor:
    return log_ratio.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO).exp()


def _required(values: torch.Tensor | None, name: str) -> torch.Tensor:
    if values is None:
        raise ValueError(f"this loss needs {name}, but they are not assigned")
    return values
