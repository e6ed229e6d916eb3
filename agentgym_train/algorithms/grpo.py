"""GRPO: the return of an episode against the other episodes of its task.

Every sampled token of an episode gets the episode's advantage. Settings cover the original (with
standard deviation), Dr. GRPO's and DAPO's changes to it; the loss is the token mean.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.advantages import group_advantages, has_spread
from agentgym_train.algorithms.base import (
    MASKED_END_REASONS,
    check_end_reasons,
    check_group,
    has_fault,
    participants,
)
from agentgym_train.algorithms.losses import LossInputs, LossOutput, policy_loss
from agentgym_train.batching import Sample, sample_from_episode
from agentgym_train.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class GRPOConfig:
    """Group relative policy optimization."""

    normalize_std: bool = True
    """Divide advantages by the group's standard deviation."""
    clip_low: float = 0.2
    """The probability ratio counts down to 1 minus this."""
    clip_high: float = 0.28
    """The probability ratio counts up to 1 plus this."""
    kl_coefficient: float = 0.0
    """Weight of the divergence from the reference, the policy at the start; 0 needs none."""
    entropy_coefficient: float = 0.01
    """Weight of the entropy bonus."""
    drop_zero_variance: bool = True
    """Leave out groups whose returns are all equal. Kept, they have advantage 0 but count in the
    mean over tokens."""
    masked_end_reasons: tuple[str, ...] = MASKED_END_REASONS
    """Episodes that ended so are not trained on and not compared with."""
    drop_group_on_fault: bool = True
    """Leave out the whole group of an episode that broke; otherwise only the episode, and the
    others are compared with one another."""
    permute_rewards: bool = False
    """Control: returns are shuffled within each group, so they say nothing about the episode."""

    def __post_init__(self) -> None:
        if not 0 < self.clip_low < 1 or self.clip_high <= 0:
            raise ConfigError(
                "grpo.clip_low must be between 0 and 1 and grpo.clip_high above 0, got "
                f"{self.clip_low} and {self.clip_high}"
            )
        if self.kl_coefficient < 0 or self.entropy_coefficient < 0:
            raise ConfigError(
                "grpo.kl_coefficient and grpo.entropy_coefficient must not be negative, got "
                f"{self.kl_coefficient} and {self.entropy_coefficient}"
            )
        check_end_reasons(self.masked_end_reasons)


class GRPO:
    """Group relative policy optimization.

    Reference: arXiv 2402.03300; the asymmetric clip and dropped groups arXiv 2503.14476.

    Args:
        config: the settings.
        seed: of the permutation of rewards.
    """

    name = "grpo"

    def __init__(self, config: GRPOConfig | None = None, *, seed: int = 0) -> None:
        self.config = config or GRPOConfig()
        self._seed = seed

    @property
    def needs_reference(self) -> bool:
        return self.config.kl_coefficient > 0

    def assign(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        rng = np.random.default_rng((self._seed, step))
        samples = []
        for group in groups:
            check_group(group)
            if self.config.drop_group_on_fault and has_fault(group):
                continue
            members = participants(group, self.config.masked_end_reasons)
            returns = np.array([episode.return_ for episode in members])
            if len(members) < 2 or (self.config.drop_zero_variance and not has_spread(returns)):
                continue
            if self.config.permute_rewards:
                returns = rng.permutation(returns)
            advantages = group_advantages(returns, normalize_std=self.config.normalize_std)
            samples += [
                sample_from_episode(episode).with_advantages(advantage)
                for episode, advantage in zip(members, advantages, strict=True)
            ]
        return samples

    def loss(self, inputs: LossInputs) -> LossOutput:
        return policy_loss(
            inputs,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
            kl_coefficient=self.config.kl_coefficient,
            entropy_coefficient=self.config.entropy_coefficient,
        )
