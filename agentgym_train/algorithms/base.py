"""What an algorithm is to the loop and the learner, and what it does unless it says otherwise.

An update goes: `select` episodes, have the learner score the samples (reference, critic), give
credit in `assign`, then learn by `weigh` and `loss`.

An episode that broke tells nothing about the policy, so it is neither trained on nor part of a
baseline; neither is one that is masked for how it ended, since a sibling's advantage must not
depend on an episode that was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.advantages import Total, alone
from agentgym_train.algorithms.groups import check_group, participants, permute_returns
from agentgym_train.algorithms.losses import LossInputs, LossOutput
from agentgym_train.algorithms.settings import CreditConfig, LossConfig
from agentgym_train.algorithms.weights import weigh
from agentgym_train.batching import Sample, sample_from_episode

Config = TypeVar("Config")


class BaseAlgorithm(Generic[Config]):
    """Who takes part, credit, and a loss.

    Args:
        config: the algorithm's own settings; None for the defaults.
        loss: the settings of the policy loss, for those that have one.
        credit: which episodes take part.
        seed: of the permutation of rewards.
    """

    name: str
    """The name it is found by."""
    settings: type[Config]
    """Class of the algorithm's own settings."""
    one_update = False
    """Whether a batch must be learned from in a single optimizer step."""

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

    @property
    def compares_groups(self) -> bool:
        """Whether the credit of an episode depends on the others of its group."""
        return False

    @property
    def needs_reference(self) -> bool:
        """Whether it reads log-probabilities of a reference model."""
        return False

    @property
    def needs_proximal(self) -> bool:
        """Whether it reads log-probabilities by the learner before its first update."""
        return False

    def select(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        """The samples of the episodes that take part.

        Args:
            groups: episodes by group, all of a group with the same task and seed.
            step: training step, counted from 0; keys whatever is random.

        Raises:
            TokenError: a token record that contradicts itself.
        """
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
                samples = permute_returns(samples, self.rng(group, step))
            selected += samples
        return selected

    def rng(self, group: Sequence[Episode], step: int) -> np.random.Generator:
        """Where the random choices within a group come from, whatever the other groups are."""
        return np.random.default_rng((self._seed, step, *group[0].task.id.encode()))

    def assign(self, samples: Sequence[Sample], total: Total = alone) -> list[Sample]:
        """The samples to train on, with credit if the loss reads it.

        Args:
            samples: what `select` gave, scored by the learner.
            total: sums an array over all ranks.
        """
        return list(samples)

    def weigh(self, samples: Sequence[Sample]) -> tuple[list[Sample], int]:
        """The samples of an optimizer batch with their weights, and this rank's normalizer."""
        return weigh(samples)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """The loss of some sampled tokens of an optimizer batch."""
        raise NotImplementedError


Algorithm = BaseAlgorithm[Any]
"""An algorithm, whatever its settings."""
