"""Groups: the episodes of one task and seed, which of them count, and comparing them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from agentgym_envs.episodes import EndReason, Episode
from agentgym_train.algorithms.advantages import FloatArray, has_spread
from agentgym_train.algorithms.settings import CreditConfig
from agentgym_train.batching import Sample


def check_group(group: Sequence[Episode], *, at_least: int) -> None:
    """Refuse a group whose episodes cannot be compared with one another.

    Raises:
        ValueError: an episode is still running, there are too few, or they are of different tasks
            or seeds.
    """
    for episode in group:
        if episode.end_reason is EndReason.RUNNING:
            raise ValueError(f"episode of task {episode.task.id!r} has not ended")
    if len(group) < at_least:
        raise ValueError(
            f"a group needs at least {at_least} episodes to compare, got {len(group)}; raise the "
            "number of episodes per task"
        )
    kinds = {(episode.task.id, episode.seed) for episode in group}
    if len(kinds) > 1:
        raise ValueError(
            f"the episodes of a group must have the same task and seed, got "
            f"{sorted(kinds, key=str)}"
        )


def participants(group: Sequence[Episode], config: CreditConfig) -> list[Episode]:
    """The episodes of a group that count, in baselines and in the loss."""
    treatments = [config.treatment(episode.end_reason) for episode in group]
    if "drop" in treatments:
        return []
    pairs = zip(group, treatments, strict=True)
    return [episode for episode, treatment in pairs if treatment != "mask"]


def permute_returns(samples: Sequence[Sample], rng: np.random.Generator) -> list[Sample]:
    """The samples of a group with each other's returns, on their last tokens."""
    returns = np.array([sample.rewards.sum() for sample in samples])
    if not has_spread(returns):
        return list(samples)
    permuted = []
    for sample, return_ in zip(samples, rng.permutation(returns), strict=True):
        rewards = np.zeros(sample.num_sampled)
        rewards[-1] = return_
        permuted.append(dataclasses.replace(sample, rewards=rewards))
    return permuted


def compare(samples: Sequence[Sample], estimate: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """The advantage of each sample: `estimate` of the returns of its group."""
    returns = np.array([sample.rewards.sum() for sample in samples])
    groups = np.array([sample.group for sample in samples])
    advantages = np.zeros(len(samples))
    for group in np.unique(groups):
        advantages[groups == group] = estimate(returns[groups == group])
    return advantages
