"""GiGPO: the return of an episode against its group's, and each turn against others in its state.

Turns of a group that were taken in the same state (equal `state_key`s, in whatever episode and at
whatever turn) are compared by their discounted returns from there on: credit for single turns
without a critic. A state nobody else saw adds nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from agentgym_train.algorithms.advantages import Total, gae, group_advantages, step_advantages
from agentgym_train.algorithms.groups import compare
from agentgym_train.algorithms.policy_gradient import PolicyGradient
from agentgym_train.batching import Sample
from agentgym_train.errors import ConfigError, TokenError


@dataclasses.dataclass(frozen=True)
class GiGPOConfig:
    """Group-in-group policy optimization."""

    normalize_std: bool = True
    """Divide both parts by the standard deviations of their groups."""
    step_weight: float = 1.0
    """Weight of the comparison of turns."""
    turn_discount: float = 0.95
    """What a reward loses from one turn to the one before, in the comparison of turns."""

    def __post_init__(self) -> None:
        if self.step_weight < 0 or not 0 <= self.turn_discount <= 1:
            raise ConfigError(
                "gigpo.step_weight must not be negative and gigpo.turn_discount in [0, 1], got "
                f"{self.step_weight} and {self.turn_discount}"
            )


class GiGPO(PolicyGradient[GiGPOConfig]):
    """Group-in-group policy optimization.

    Reference: arXiv 2505.10978.
    """

    name = "gigpo"
    settings = GiGPOConfig

    def credit(self, samples: Sequence[Sample], total: Total) -> list[Sample]:
        normalize = self.config.normalize_std
        episodes = compare(samples, lambda r: group_advantages(r, normalize_std=normalize))
        keys: list[tuple[int, str]] = []
        returns: list[float] = []
        steps = []
        for sample in samples:
            turns, starts, step = np.unique(
                sample.turn_index, return_index=True, return_inverse=True
            )
            if not sample.state_keys:
                raise TokenError("gigpo compares turns by state, but no state keys were recorded")
            onward = gae(
                sample.rewards,
                np.zeros(sample.num_sampled),
                sample.turn_index,
                turn_discount=self.config.turn_discount,
            )
            steps.append(len(keys) + step)  # of each token
            keys += [(sample.group, sample.state_keys[turn]) for turn in turns]
            returns += onward[starts].tolist()
        by_step = step_advantages(keys, np.array(returns), normalize_std=normalize)
        return [
            sample.with_advantages(whole + self.config.step_weight * by_step[step])
            for sample, whole, step in zip(samples, episodes, steps, strict=True)
        ]
