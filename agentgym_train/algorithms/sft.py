"""Supervised fine-tuning: make the tokens of given episodes likelier.

The tokens come from a teacher (an oracle, a person, another model) or from the policy's own
successes (rejection sampling); in neither case does the loss read who wrote them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.base import MASKED_END_REASONS, participants
from agentgym_train.algorithms.losses import LossInputs, LossOutput, supervised_loss
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

    def __init__(self, config: SFTConfig | None = None, *, seed: int = 0) -> None:
        self.config = config or SFTConfig()

    def assign(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        # A teacher's record may hold placeholders for log-probabilities: they are not the policy's.
        return [
            dataclasses.replace(sample_from_episode(episode), old_logprobs=None)
            for group in groups
            for episode in participants(group, MASKED_END_REASONS)
            if episode.success or not self.config.successes_only
        ]

    def loss(self, inputs: LossInputs) -> LossOutput:
        return supervised_loss(inputs)
