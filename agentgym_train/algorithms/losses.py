"""Losses, as pure functions: `LossInputs` in, `LossOutput` out.

Inputs are compressed: one number for each sampled token of a micro-batch. A loss is the sum over
these tokens, each times its weight, divided by `normalizer` (`agentgym_train.algorithms.weights`).

Metrics are sums over tokens and maxima, for the same reason; the learner divides at the end.
"""

from __future__ import annotations

import dataclasses

import torch

from agentgym_train.algorithms.settings import LossConfig
from agentgym_train.algorithms.terms import (
    clipped_surrogate,
    kl_estimate,
    ratio_of,
    required,
    spread_log_ratio,
)
from agentgym_train.batching import Batch


@dataclasses.dataclass(frozen=True, eq=False)
class LossInputs:
    """What a loss may read. N sampled tokens.

    Attributes:
        batch: the samples, and what is assigned to their tokens.
        logprobs: log-probabilities under the policy being trained: (N,), with gradient.
        entropy: entropy of that policy at each token, in nats: (N,), with gradient.
        normalizer: what the sum is divided by.
    """

    batch: Batch
    logprobs: torch.Tensor
    entropy: torch.Tensor
    normalizer: int

    def mean(self, per_token: torch.Tensor) -> torch.Tensor:
        """The share of this micro-batch in the mean over the optimizer batch."""
        return (per_token * self.batch.weights).sum() / self.normalizer


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


def policy_loss(inputs: LossInputs, config: LossConfig) -> LossOutput:
    """Clipped policy gradient, with a divergence to a reference and an entropy bonus as options.

    Per token: ``importance * surrogate + kl_coefficient * kl - entropy_coefficient * entropy``.

    Args:
        inputs: needs `old_logprobs` and `advantages`, and `ref_logprobs` for a divergence in the
            loss, and `proximal_logprobs` for a correction of the sampler.
        config: the settings.

    Returns:
        The loss, and what `agentgym_train.metrics` defines under these names.

    Raises:
        ValueError: something it needs is None.
    """
    batch = inputs.batch
    old_logprobs = required(batch.old_logprobs, "old_logprobs")
    proximal = old_logprobs
    if config.importance_cap:
        proximal = required(batch.proximal_logprobs, "proximal_logprobs")
    log_ratio = inputs.logprobs - proximal
    surrogate, clipped = clipped_surrogate(
        spread_log_ratio(log_ratio, batch, config.ratio),
        required(batch.advantages, "advantages"),
        clip_low=config.clip_low,
        clip_high=config.clip_high,
        dual_clip=config.dual_clip,
    )
    sums, maxima = {"clip_share": clipped}, {"ratio_max": ratio_of(log_ratio.detach()).max()}
    if config.importance_cap:
        weights = ratio_of(proximal - old_logprobs)
        surrogate = surrogate * weights.clamp(max=config.importance_cap)
        sums |= {"importance_mean": weights, "importance_square": weights.square()}
        sums |= {"importance_cut": weights > config.importance_cap}
        sums |= {"mismatch_k3": kl_estimate(old_logprobs - proximal, "k3")}
        maxima["importance_max"] = weights.max()
    per_token = surrogate - config.entropy_coefficient * inputs.entropy
    if config.kl_coefficient and config.kl_in == "loss":
        from_reference = inputs.logprobs - required(batch.ref_logprobs, "ref_logprobs")
        divergence = kl_estimate(from_reference, config.kl_estimator)
        if config.kl_ratio:
            divergence = ratio_of(log_ratio) * divergence
        per_token = per_token + config.kl_coefficient * divergence
    if batch.ref_logprobs is not None:
        sums["kl_ref"] = kl_estimate(inputs.logprobs.detach() - batch.ref_logprobs, "k3")
    sums |= {"policy_loss": surrogate.detach(), "entropy": inputs.entropy.detach()}
    moved = -log_ratio.detach()
    sums |= {"kl_k1": kl_estimate(moved, "k1"), "kl_k3": kl_estimate(moved, "k3")}
    return LossOutput(
        loss=inputs.mean(per_token),
        token_sums={name: values.sum() for name, values in sums.items()},
        maxima=maxima,
    )


def value_loss(inputs: LossInputs, values: torch.Tensor, clip: float) -> LossOutput:
    """Half the squared error of a critic.

    Where `clip` is above 0, a value counts as moved from its old one by no more than that, if this
    makes the error larger (as in PPO's reference code).

    Args:
        inputs: needs `value_targets` and `old_values`.
        values: the critic's value before each token: (N,), with gradient.
        clip: largest move; 0 for no limit.

    Returns:
        The loss; sum ``value_loss``.
    """
    targets = required(inputs.batch.value_targets, "value_targets")
    old = required(inputs.batch.old_values, "old_values")
    errors = (values - targets).square()
    if clip:
        near = old + (values - old).clamp(-clip, clip)
        errors = torch.maximum(errors, (near - targets).square())
    return LossOutput(
        loss=inputs.mean(errors / 2),
        token_sums={"value_loss": errors.detach().sum() / 2},
    )


def supervised_loss(inputs: LossInputs) -> LossOutput:
    """Negative log-probability of the tokens.

    Returns:
        The loss; sum ``entropy``.
    """
    return LossOutput(
        loss=inputs.mean(-inputs.logprobs),
        token_sums={"entropy": inputs.entropy.detach().sum()},
    )
