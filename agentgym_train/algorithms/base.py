"""What the learner knows of an algorithm.

An update goes: `select` episodes, have the learner score the samples (reference, critic), give
credit in `assign`, then learn by `weigh` and `loss`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.advantages import Total, alone
from agentgym_train.algorithms.losses import LossInputs, LossOutput
from agentgym_train.batching import Sample


class Algorithm(Protocol):
    """Advantages and a loss."""

    @property
    def name(self) -> str:
        """The name it is found by."""
        ...

    @property
    def needs_reference(self) -> bool:
        """Whether it reads log-probabilities of a reference model."""
        ...

    @property
    def needs_proximal(self) -> bool:
        """Whether it reads log-probabilities by the learner before its first update."""
        ...

    def select(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        """The samples of the episodes that take part.

        Args:
            groups: episodes by group, all of a group with the same task and seed.
            step: training step, counted from 0; keys whatever is random.

        Raises:
            TokenError: a token record that contradicts itself.
        """
        ...

    def assign(self, samples: Sequence[Sample], total: Total = alone) -> list[Sample]:
        """The samples to train on, with credit if the loss reads it.

        Args:
            samples: what `select` gave, scored by the learner.
            total: sums an array over all ranks.
        """
        ...

    def weigh(self, samples: Sequence[Sample]) -> tuple[list[Sample], int]:
        """The samples of an optimizer batch with their weights, and this rank's normalizer."""
        ...

    def loss(self, inputs: LossInputs) -> LossOutput:
        """The loss of some sampled tokens of an optimizer batch."""
        ...
