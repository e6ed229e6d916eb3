"""Refill: play on until enough groups tell something, without bias from when one stops.

A group whose returns are all equal has no gradient in an algorithm that compares within groups.
Refilling plays further rounds of tasks in a step until `RefillConfig.groups` of them have one. The
mean over all groups played would then be too large, since a step stops on a good round; the mean
over those with a gradient ignores how rare they are. What is estimated here is the gradient without
refill, in which every group of the first round counts.

The first group is played whatever follows, so its gradient alone is an unbiased estimate. So is the
mean of that over every order in which the same groups could have come with the same end: groups of
a step are exchangeable. It is the mean gradient over those that have one times the share of orders
in which the first is among them (`unbiased_share`): Girshick, Mosteller and Savage, Ann. Math.
Stat. 17 (1946) 13. With rounds of one group and the M-th informative one at K it is the (M - 1) /
(K - 1) of inverse sampling; where the rounds ran out, the plain share. No group played is thrown
away.

Left out: refilling where statistics of the whole batch enter the advantages (whitening), and rounds
with so many tasks of each family, whose groups are not exchangeable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from math import comb

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.base import Algorithm
from agentgym_train.algorithms.policy_gradient import PolicyGradient
from agentgym_train.batching import Sample
from agentgym_train.errors import ConfigError, at_least

Group = Sequence[Episode]


@dataclasses.dataclass(frozen=True)
class RefillConfig:
    """Playing on in a step until enough groups have a gradient."""

    groups: int = 0
    """How many are enough; 0: one round is played, whatever comes."""
    rounds: int = 4
    """Most rounds of `batch.tasks_per_step` tasks in a step, the first included."""

    def __post_init__(self) -> None:
        at_least(self, "refill", 0, "groups")
        at_least(self, "refill", 1, "rounds")
        if self.groups == 1:
            raise ConfigError(
                "refill.groups must be at least 2, or 0 for no refill, got 1: without bias, one "
                "group says nothing about how rare such groups are"
            )

    def check(self, algorithm: Algorithm) -> None:
        """Refuse an algorithm with which refilling would not be without bias.

        Raises:
            ConfigError: says what to change.
        """
        if self.groups and not (isinstance(algorithm, PolicyGradient) and algorithm.refillable):
            raise ConfigError(
                f"refill.groups = {self.groups} needs groups that have no gradient whatever the "
                "others are, and that are left out: choose rloo, gigpo, or grpo with grpo.scale "
                "'group' or 'none', with loss.kl_in 'loss' and credit.drop_zero_variance; or set "
                f"refill.groups to 0; got {algorithm.name}"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Collection:
    """The groups of a step.

    Without refill `scale` is 1: the loss is a mean over the groups with a gradient.

    Attributes:
        rounds: the groups of each round; figures about the policy are those of the first, whose
            size does not depend on what happened in it.
        share: estimated share of groups that have a gradient, or None without refill.
        scale: what makes the mean over these one over all groups.
    """

    rounds: list[list[Group]]
    share: float | None = None
    scale: float = 1.0

    @property
    def groups(self) -> list[Group]:
        """Those of all rounds, in order."""
        return [group for groups in self.rounds for group in groups]

    def rescale(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples that `assign` gave, with advantages, where they have some, times `scale`."""
        return [
            s if s.advantages is None else s.with_advantages(s.advantages * self.scale)
            for s in samples
        ]

    def metrics(self) -> dict[str, float]:
        """The ``rollout/`` numbers of the collection."""
        found = {"rollout/groups": float(len(self.groups))}
        return found if self.share is None else found | {"rollout/informative": self.share}


def collect(
    play: Callable[[int], list[Group]], algorithm: Algorithm, config: RefillConfig, step: int
) -> Collection:
    """Play rounds of groups until enough of them have a gradient.

    A group none of which takes part (an episode broke, for example) counts as never played.

    Args:
        play: plays round r of the step, counted from 0, and gives its groups in the order of tasks.
        algorithm: says which groups have a gradient, and what its loss is a mean over.
        config: how many are enough.
        step: training step, counted from 0.
    """
    if not config.groups:
        return Collection([play(0)])
    rounds: list[list[Group]] = []
    sizes: list[int] = []  # groups of each round that take part
    units: dict[bool, list[int]] = {True: [], False: []}  # of the loss's mean, by "has a gradient"
    while len(units[True]) < config.groups and len(rounds) < config.rounds:
        rounds.append(play(len(rounds)))
        selected = [algorithm.select([group], step) for group in rounds[-1]]
        sizes.append(sum(map(bool, selected)))
        for samples in filter(None, selected):
            units[bool(algorithm.assign(samples))].append(algorithm.weigh(samples)[1])
    share = unbiased_share(sizes, len(units[True]), config.groups)
    per_group = {has: sum(counts) / max(len(counts), 1) for has, counts in units.items()}
    counted, rest = share * per_group[True], (1 - share) * per_group[False]
    return Collection(rounds, share, counted / (counted + rest) if counted else 0.0)


def unbiased_share(sizes: Sequence[int], informative: int, enough: int) -> float:
    """The share of informative groups, estimated without bias from how a collection ended.

    Args:
        sizes: groups of each round that was played; only the last may have brought enough.
        informative: how many of all of them were.
        enough: how many end the collection.

    Returns:
        The share of orders with this end in which the first group is informative.
    """
    before, last = sum(sizes[:-1]), sizes[-1]
    if not before:
        return informative / last if last else 0.0
    # Orders in which j of the groups before the last round are informative.
    orders = {
        j: comb(before, j) * comb(last, informative - j)
        for j in range(min(enough, informative + 1))
    }
    return sum(j * ways for j, ways in orders.items()) / (before * sum(orders.values()))
