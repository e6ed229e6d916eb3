"""What an algorithm is: it turns groups of episodes into samples, and samples into a loss.

Who takes part is decided here, the same for all: an episode that broke (`fault`) tells nothing
about the policy, so it is neither trained on nor part of a baseline. Episodes with a masked end
reason are left out in the same way, since a sibling's advantage must not depend on an episode
that was cut off. Episodes that reached the horizon take part: leaving them out would delete most
of the failures of an early curriculum stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentgym_envs.episodes import EndReason, Episode
from agentgym_train.algorithms.losses import LossInputs, LossOutput
from agentgym_train.batching import Sample
from agentgym_train.errors import ConfigError

MASKED_END_REASONS: tuple[str, ...] = ("context", "budget", "stopped")
"""End reasons that keep an episode out unless the settings say otherwise."""


class Algorithm(Protocol):
    """Advantages and a loss."""

    @property
    def name(self) -> str:
        """The name it is found by."""
        ...

    @property
    def needs_reference(self) -> bool:
        """Whether `loss` reads log-probabilities of a reference model."""
        ...

    def assign(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        """The samples to train on, with advantages if the loss reads them.

        Args:
            groups: episodes by group, all of a group with the same task and seed.
            step: training step, counted from 0; keys whatever is random.

        Raises:
            TokenError: a token record that contradicts itself.
        """
        ...

    def loss(self, inputs: LossInputs) -> LossOutput:
        """The loss of some sampled tokens of an optimizer batch."""
        ...


def check_end_reasons(names: Sequence[str]) -> None:
    """Refuse names that are no end reason.

    Raises:
        ConfigError: one is unknown or empty.
    """
    valid = [str(reason) for reason in EndReason if reason]
    unknown = [name for name in names if name not in valid]
    if unknown:
        raise ConfigError(f"unknown end reasons {unknown}; valid are {', '.join(valid)}")


def participants(group: Sequence[Episode], masked: Sequence[str]) -> list[Episode]:
    """The episodes of a group that count, in baselines and in the loss.

    Args:
        group: episodes that have ended.
        masked: end reasons to leave out; `fault` always is.

    Raises:
        ValueError: an episode is still running.
    """
    for episode in group:
        if episode.end_reason is EndReason.RUNNING:
            raise ValueError(f"episode of task {episode.task.id!r} has not ended")
    out = {EndReason.FAULT, *masked}
    return [episode for episode in group if episode.end_reason not in out]


def has_fault(group: Sequence[Episode]) -> bool:
    """Whether an episode of the group broke."""
    return any(episode.end_reason is EndReason.FAULT for episode in group)


def check_group(group: Sequence[Episode]) -> None:
    """Refuse a group whose episodes cannot be compared with one another.

    Raises:
        ValueError: fewer than two episodes, or of different tasks or seeds.
    """
    if len(group) < 2:
        raise ValueError(
            f"a group needs at least 2 episodes to compare, got {len(group)}; raise the number of "
            "episodes per task"
        )
    kinds = {(episode.task.id, episode.seed) for episode in group}
    if len(kinds) > 1:
        raise ValueError(
            f"the episodes of a group must have the same task and seed, got "
            f"{sorted(kinds, key=str)}"
        )
