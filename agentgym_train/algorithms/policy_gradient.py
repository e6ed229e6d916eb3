"""What all policy gradients share: who takes part, what is rewarded, and the loss.

An episode that broke tells nothing about the policy, so it is neither trained on nor part of a
baseline; neither is one that is masked for how it ended, since a sibling's advantage must not
depend on an episode that was cut off. An algorithm adds how rewards become advantages: one method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
import torch

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.advantages import Total, alone
from agentgym_train.algorithms.groups import check_group, participants, permute_returns
from agentgym_train.algorithms.losses import LossInputs, LossOutput, policy_loss
from agentgym_train.algorithms.settings import CreditConfig, LossConfig
from agentgym_train.algorithms.terms import kl_estimate
from agentgym_train.algorithms.weights import weigh
from agentgym_train.batching import Sample, sample_from_episode

Config = TypeVar("Config")


class PolicyGradient(Generic[Config]):
    """An algorithm but for `credit`.

    Args:
        config: the algorithm's own settings; None for the defaults.
        loss: the settings of the loss.
        credit: which episodes take part.
        seed: of the permutation of rewards.
    """

    name: str
    settings: type[Config]
    """Class of the algorithm's own settings."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        loss: LossConfig | None = None,
        credit: CreditConfig | None = None,
        seed: int = 0,
    ) -> None:
        self.config = self.settings() if config is None else config
        self.loss_config = loss or LossConfig()
        self.credit_config = credit or CreditConfig()
        self._seed = seed

    def credit(self, samples: Sequence[Sample], total: Total) -> list[Sample]:
        """The samples with advantages; their rewards are assigned."""
        raise NotImplementedError

    @property
    def compares_groups(self) -> bool:
        """Whether the credit of an episode depends on the others of its group."""
        return True

    @property
    def needs_reference(self) -> bool:
        return self.loss_config.kl_coefficient > 0

    @property
    def needs_proximal(self) -> bool:
        return self.loss_config.importance_cap > 0

    def select(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        rng = np.random.default_rng((self._seed, step))
        selected = []
        for number, group in enumerate(groups):
            check_group(group, at_least=2 if self.compares_groups else 1)
            members = participants(group, self.credit_config)
            if len(members) < 2 and self.compares_groups:
                continue
            samples = [
                sample_from_episode(
                    episode,
                    group=number,
                    bootstraps=self.credit_config.treatment(episode.end_reason) == "bootstrap",
                )
                for episode in members
            ]
            if self.credit_config.permute_rewards:
                samples = permute_returns(samples, rng)
            selected += samples
        return selected

    def assign(self, samples: Sequence[Sample], total: Total = alone) -> list[Sample]:
        if self.loss_config.kl_coefficient and self.loss_config.kl_in == "reward":
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
