"""What all policy gradients share: what is rewarded, and the clipped loss.

An algorithm adds how rewards become advantages: one method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from agentgym_train.algorithms.advantages import Total, alone
from agentgym_train.algorithms.base import BaseAlgorithm, Config
from agentgym_train.algorithms.losses import LossInputs, LossOutput, policy_loss
from agentgym_train.algorithms.settings import LossConfig
from agentgym_train.algorithms.terms import kl_estimate
from agentgym_train.algorithms.weights import weigh
from agentgym_train.batching import Sample


class PolicyGradient(BaseAlgorithm[Config]):
    """An algorithm but for `credit`. Arguments as for `BaseAlgorithm`."""

    def credit(self, samples: Sequence[Sample], total: Total) -> list[Sample]:
        """The samples with advantages; their rewards are assigned."""
        raise NotImplementedError

    @property
    def compares_groups(self) -> bool:
        return True

    @property
    def refillable(self) -> bool:
        """Whether a group has a gradient or not whatever the others are, and is left out if not:
        what `agentgym_train.algorithms.refill` needs.
        """
        return self.credit_config.drop_zero_variance and not self.loss_config.charges_rewards

    @property
    def needs_reference(self) -> bool:
        return self.loss_config.kl_coefficient > 0

    @property
    def needs_proximal(self) -> bool:
        return self.loss_config.importance_cap > 0

    def assign(self, samples: Sequence[Sample], total: Total = alone) -> list[Sample]:
        if self.loss_config.charges_rewards:
            samples = [_charge_divergence(sample, self.loss_config) for sample in samples]
        credited = self.credit(samples, total)
        if not self.credit_config.drop_zero_variance:
            return credited
        useful = {s.group for s in credited if s.advantages is not None and s.advantages.any()}
        return [sample for sample in credited if sample.group in useful]

    def weigh(self, samples: Sequence[Sample]) -> tuple[list[Sample], int]:
        return weigh(samples, self.loss_config.aggregation, self.loss_config.aggregation_constant)

    def loss(self, inputs: LossInputs) -> LossOutput:
        return policy_loss(inputs, self.loss_config)


def _charge_divergence(sample: Sample, config: LossConfig) -> Sample:
    """The sample with the divergence of its tokens from the reference taken off their rewards."""
    if sample.old_logprobs is None or sample.ref_logprobs is None:
        raise ValueError("a divergence in the reward needs old_logprobs and ref_logprobs")
    log_ratio = torch.from_numpy(sample.old_logprobs - sample.ref_logprobs)
    divergence = kl_estimate(log_ratio, config.kl_estimator).numpy()
    rewards = sample.rewards - config.kl_coefficient * divergence
    return dataclasses.replace(sample, rewards=rewards)
