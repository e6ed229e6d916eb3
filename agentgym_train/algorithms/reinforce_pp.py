"""REINFORCE++: the return from each token on, whitened over the whole batch.

No critic, and no baseline but the mean of the batch; with `baseline` the mean of the group goes
first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from agentgym_train.algorithms.advantages import Total, gae, group_advantages, whiten
from agentgym_train.algorithms.groups import compare
from agentgym_train.algorithms.policy_gradient import PolicyGradient
from agentgym_train.batching import Sample
from agentgym_train.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class ReinforcePPConfig:
    """REINFORCE++."""

    baseline: Literal["none", "group"] = "none"
    """`group`: the episode's return minus the mean of its group stands for the return from each
    token on."""
    whiten_over: Literal["tokens", "episodes"] = "tokens"
    """What the mean and standard deviation count: every token the same, so that long episodes weigh
    more, or every episode."""
    discount: float = 1.0
    """What a reward loses from one sampled token to the one before."""

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise ConfigError(f"reinforce_pp.discount must be in (0, 1], got {self.discount}")
        if self.baseline == "group" and self.discount < 1:
            raise ConfigError(
                "reinforce_pp.baseline 'group' compares whole returns; set reinforce_pp.discount "
                f"to 1, got {self.discount}"
            )


class ReinforcePP(PolicyGradient[ReinforcePPConfig]):
    """REINFORCE++ and its variant with a group baseline.

    Reference: arXiv 2501.03262.
    """

    name = "reinforce_pp"
    settings = ReinforcePPConfig
    refillable = False

    @property
    def compares_groups(self) -> bool:
        return self.config.baseline == "group"

    def credit(self, samples: Sequence[Sample], total: Total) -> list[Sample]:
        if self.config.baseline == "group":
            centered = compare(samples, lambda r: group_advantages(r, normalize_std=False))
            returns = [np.full(s.num_sampled, c) for s, c in zip(samples, centered, strict=True)]
        else:
            rate = self.config.discount
            rates = {"discount": rate, "turn_discount": rate}
            returns = [
                gae(s.rewards, np.zeros(s.num_sampled), s.turn_index, **rates) for s in samples
            ]
        white = whiten(returns, total, per_array=self.config.whiten_over == "episodes")
        return [sample.with_advantages(a) for sample, a in zip(samples, white, strict=True)]
