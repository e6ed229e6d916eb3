"""Supervised fine-tuning: make the tokens of given episodes likelier.

The tokens come from a teacher (an oracle, a person, another model) or from the policy's own
successes (rejection sampling); in neither case does the loss read who wrote them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.advantages import Total, alone
from agentgym_train.algorithms.groups import participants
from agentgym_train.algorithms.losses import LossInputs, LossOutput, supervised_loss
from agentgym_train.algorithms.settings import CreditConfig
from agentgym_train.algorithms.weights import weigh
from agentgym_train.batching import Sample, sample_from_episode


@dataclasses.dataclass(frozen=True)
class SFTConfig:
    """Supervised fine-tuning."""

    successes_only: bool = True
    """Leave out episodes that did not reach the goal."""


class SFT:
    """Supervised fine-tuning on the sampled tokens of episodes.

    Args:
        config: the settings.
        seed: not used; nothing here is random.
    """

    name = "sft"
    needs_reference = False
    needs_proximal = False

    def __init__(self, config: SFTConfig | None = None, *, seed: int = 0) -> None:
        self.config = config or SFTConfig()

    def select(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        # A teacher's record may hold placeholders for log-probabilities: they are not the policy's.
        return [
            dataclasses.replace(sample_from_episode(episode), old_logprobs=None)
            for group in groups
            for episode in participants(group, CreditConfig())
            if episode.success or not self.config.successes_only
        ]

    def assign(self, samples: Sequence[Sample], total: Total = alone) -> list[Sample]:
        return list(samples)

    def weigh(self, samples: Sequence[Sample]) -> tuple[list[Sample], int]:
        return weigh(samples)

    def loss(self, inputs: LossInputs) -> LossOutput:
        return supervised_loss(inputs)
