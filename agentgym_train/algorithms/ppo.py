"""PPO: advantages from a critic, token by token, across turns.

Advantages run over the sampled tokens alone. The last token of a turn looks to the value before the
first token of the next turn, which the value loss trains; what the critic says on observations is
never read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from agentgym_train.algorithms.advantages import Total, gae, whiten
from agentgym_train.algorithms.policy_gradient import PolicyGradient
from agentgym_train.batching import Sample
from agentgym_train.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimization."""

    discount: float = 1.0
    """What a value loses from a sampled token to the next one of the same turn."""
    turn_discount: float = 1.0
    """What it loses from a turn to the next."""
    trace: float = 0.95
    """Lambda: 0 trusts the critic, 1 the returns."""
    whiten: bool = True
    """Give advantages mean 0 and standard deviation 1 over the tokens of a step. The critic's
    targets are made of those before."""

    def __post_init__(self) -> None:
        for name in ("discount", "turn_discount", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"ppo.{name} must be in [0, 1], got {getattr(self, name)}")


class PPO(PolicyGradient[PPOConfig]):
    """Proximal policy optimization with a critic.

    Reference: arXiv 1707.06347; advantages arXiv 1506.02438.
    """

    name = "ppo"
    settings = PPOConfig
    compares_groups = False
    refillable = False

    def credit(self, samples: Sequence[Sample], total: Total) -> list[Sample]:
        advantages, targets = [], []
        for sample in samples:
            if sample.old_values is None:
                raise ValueError("ppo needs old_values, but they are not assigned; add a critic")
            advantages.append(
                gae(
                    sample.rewards,
                    sample.old_values,
                    sample.turn_index,
                    final_value=sample.final_value,
                    discount=self.config.discount,
                    turn_discount=self.config.turn_discount,
                    trace=self.config.trace,
                )
            )
            targets.append(advantages[-1] + sample.old_values)
        if self.config.whiten:
            advantages = whiten(advantages, total)
        return [
            dataclasses.replace(sample, advantages=a, value_targets=target)
            for sample, a, target in zip(samples, advantages, targets, strict=True)
        ]
