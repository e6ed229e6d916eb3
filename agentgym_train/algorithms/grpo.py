"""GRPO: the return of an episode against the other episodes of its task.

Every sampled token of an episode gets the episode's advantage. `scale` covers the original
(``group``), Dr. GRPO's change to it (``none``), and one standard deviation for the whole batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from agentgym_train.algorithms.advantages import Total, group_advantages, moments
from agentgym_train.algorithms.groups import compare
from agentgym_train.algorithms.policy_gradient import PolicyGradient
from agentgym_train.batching import Sample


@dataclasses.dataclass(frozen=True)
class GRPOConfig:
    """Group relative policy optimization."""

    scale: Literal["group", "batch", "none"] = "group"
    """What advantages are divided by: the standard deviation of the group's returns, that of all
    returns of the step, or nothing."""


class GRPO(PolicyGradient[GRPOConfig]):
    """Group relative policy optimization.

    Reference: arXiv 2402.03300; without standard deviation arXiv 2503.20783.
    """

    name = "grpo"
    settings = GRPOConfig

    @property
    def refillable(self) -> bool:
        return super().refillable and self.config.scale != "batch"

    def credit(self, samples: Sequence[Sample], total: Total) -> list[Sample]:
        scale = self.config.scale
        advantages = compare(
            samples, lambda returns: group_advantages(returns, normalize_std=scale == "group")
        )
        if scale == "batch":
            returns = np.array([sample.rewards.sum() for sample in samples])
            _, std = moments([returns], total)
            advantages = advantages / (std + 1e-6)
        return [sample.with_advantages(a) for sample, a in zip(samples, advantages, strict=True)]
