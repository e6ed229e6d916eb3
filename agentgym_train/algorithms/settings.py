"""The settings that all policy-gradient algorithms share: who takes part, and the loss.

They are apart from the algorithms' own, so that two algorithms can be compared with nothing else
changed.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from agentgym_envs.episodes import EndReason
from agentgym_train.errors import ConfigError, at_least

Level = Literal["token", "turn", "sequence"]
Estimator = Literal["k1", "k2", "k3"]
Aggregation = Literal["token", "sequence", "group", "constant"]
Treatment = Literal["keep", "mask", "drop", "bootstrap"]


@dataclasses.dataclass(frozen=True)
class CreditConfig:
    """Which episodes are learned from, by how they ended.

    ``keep``: like any other. ``mask``: neither trained on nor compared with, as if it had never
    been played. ``drop``: neither is its whole group. ``bootstrap`` (needs a critic): kept, and its
    return goes on with the value of the final observation; not to reach the goal then costs only
    what discounts take. Episodes that ended in the world, with success or failure, are always kept.
    """

    on_horizon: Treatment = "keep"
    """The horizon was reached. Masked, most failures of an early curriculum stage would be gone."""
    on_context: Treatment = "mask"
    """The model's context was full."""
    on_budget: Treatment = "mask"
    """A budget of tokens or time was used up."""
    on_stopped: Literal["keep", "mask", "drop"] = "mask"
    """The driver stopped the episode."""
    on_fault: Literal["mask", "drop"] = "drop"
    """Infrastructure broke, twice."""
    drop_zero_variance: bool = True
    """Leave out groups in which no token has an advantage: for algorithms that compare within a
    group, those whose returns are all equal. Kept, they count in what the loss is a mean over."""
    permute_rewards: bool = False
    """Control: returns (for `evolve`, which episodes are kept) are shuffled within each group, so
    they say nothing about the episode."""

    def treatment(self, reason: EndReason) -> Treatment:
        """What is done with an episode that ended for `reason`."""
        treatment: Treatment = getattr(self, f"on_{reason}", "keep")
        return treatment

    @property
    def bootstraps(self) -> bool:
        """Whether some episodes need the value of their final observation."""
        return "bootstrap" in (self.on_horizon, self.on_context, self.on_budget)


@dataclasses.dataclass(frozen=True)
class LossConfig:
    """The policy loss, the same for every policy-gradient algorithm."""

    clip_low: float = 0.2
    """The probability ratio counts down to 1 minus this."""
    clip_high: float = 0.28
    """The probability ratio counts up to 1 plus this."""
    dual_clip: float = 0.0
    """Where the advantage is negative, the ratio counts up to this as well; 0 for no limit, 3 is
    usual."""
    ratio: Level = "token"
    """Which ratio a token is clipped by: its own, or the geometric mean over its turn or over its
    sequence (GSPO)."""
    aggregation: Aggregation = "token"
    """What the loss is a mean over: all tokens; sequences, each the mean over its tokens; groups,
    each the mean over its tokens; or sequences, each a sum over tokens divided by a constant (Dr.
    GRPO)."""
    aggregation_constant: int = 0
    """That constant, in tokens: the most an episode may sample, for example."""
    kl_coefficient: float = 0.0
    """Weight of the divergence from the reference, the policy at the start; 0 needs none."""
    kl_estimator: Estimator = "k3"
    """Estimate of the divergence at a token. In the loss k2 has the gradient of the divergence of
    the policy from the reference, k3 that of the reference from the policy."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Where the divergence is subtracted. In the reward (k1 is usual) it gets credit as rewards
    do."""
    kl_ratio: bool = False
    """Multiply the divergence in the loss by the probability ratio, which corrects for samples of
    an older policy; k1 and k3 then have the gradient of the divergence from the reference."""
    entropy_coefficient: float = 0.01
    """Weight of the entropy bonus."""
    importance_cap: float = 0.0
    """Largest weight by which a token's loss is corrected for the difference between sampler and
    learner, whose ratio is then clipped against the learner's own log-probabilities. 0 for no
    correction: the sampler's stand for them."""

    @property
    def charges_rewards(self) -> bool:
        """Whether a divergence is taken off the rewards."""
        return self.kl_in == "reward" and self.kl_coefficient > 0

    def __post_init__(self) -> None:
        if not 0 < self.clip_low < 1 or self.clip_high <= 0:
            raise ConfigError(
                "loss.clip_low must be between 0 and 1 and loss.clip_high above 0, got "
                f"{self.clip_low} and {self.clip_high}"
            )
        if self.dual_clip and self.dual_clip <= 1:
            raise ConfigError(
                f"loss.dual_clip must be 0 or above 1 (3 is usual), got {self.dual_clip}"
            )
        at_least(self, "loss", 0, "kl_coefficient", "entropy_coefficient")
        if self.kl_in == "loss" and self.kl_estimator == "k1" and not self.kl_ratio:
            raise ConfigError(
                "the gradient of k1 in the loss is 0 on average; choose loss.kl_estimator 'k2' or "
                "'k3', loss.kl_in 'reward', or set loss.kl_ratio"
            )
        if self.importance_cap and self.importance_cap < 1:
            raise ConfigError(
                f"loss.importance_cap must be 0 or at least 1, got {self.importance_cap}"
            )
        if (self.aggregation == "constant") != (self.aggregation_constant > 0):
            raise ConfigError(
                "loss.aggregation 'constant', and no other, takes a loss.aggregation_constant "
                f"above 0; got {self.aggregation!r} and {self.aggregation_constant}"
            )
