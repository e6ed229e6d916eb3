"""Supervised fine-tuning: make the tokens of given episodes likelier.

The tokens come from a teacher: an oracle, a person, another model. Imitating the policy's own best
episodes is `agentgym_train.algorithms.evolve`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.base import BaseAlgorithm, Config
from agentgym_train.algorithms.groups import participants
from agentgym_train.algorithms.losses import LossInputs, LossOutput, supervised_loss
from agentgym_train.batching import Sample, sample_from_episode


class Imitation(BaseAlgorithm[Config]):
    """Supervised fine-tuning but for `worth`. Arguments as for `BaseAlgorithm`."""

    def worth(self, episode: Episode) -> float:
        """The weight of an episode's tokens in the loss; 0 leaves it out."""
        raise NotImplementedError

    def select(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        selected = []
        for group in groups:
            members = participants(group, self.credit_config)
            worths = np.array([self.worth(episode) for episode in members])
            if self.credit_config.permute_rewards:
                worths = self.rng(group, step).permutation(worths)
            for episode, worth in zip(members, worths.tolist(), strict=True):
                if worth:
                    sample = sample_from_episode(episode)
                    # What a teacher's record has for log-probabilities are not the policy's.
                    selected.append(dataclasses.replace(sample, old_logprobs=None, weight=worth))
        return selected

    def loss(self, inputs: LossInputs) -> LossOutput:
        return supervised_loss(inputs)


@dataclasses.dataclass(frozen=True)
class SFTConfig:
    """Supervised fine-tuning."""

    successes_only: bool = True
    """Leave out episodes that did not reach the goal."""


class SFT(Imitation[SFTConfig]):
    """Supervised fine-tuning on the sampled tokens of episodes."""

    name = "sft"
    settings = SFTConfig

    def worth(self, episode: Episode) -> float:
        return float(episode.success or not self.config.successes_only)
