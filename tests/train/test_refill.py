"""Refill: over everything that can happen, the mean gradient is that without refill."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from agentgym_envs.episodes import EndReason
from agentgym_train.algorithms import algorithm
from agentgym_train.algorithms.gigpo import GiGPO
from agentgym_train.algorithms.grpo import GRPO, GRPOConfig
from agentgym_train.algorithms.ppo import PPO
from agentgym_train.algorithms.refill import RefillConfig, collect, unbiased_share
from agentgym_train.algorithms.rloo import RLOO
from agentgym_train.algorithms.settings import CreditConfig, LossConfig
from agentgym_train.errors import ConfigError

# ------------------------------------------------------------------------------------- the share


@pytest.mark.parametrize(("enough", "tries"), [(2, 2), (2, 7), (3, 5), (5, 40)])
def test_with_rounds_of_one_group_it_is_inverse_sampling(enough, tries):
    # The last of `enough` informative groups is group number `tries`.
    found = unbiased_share([1] * tries, enough, enough)
    assert found == pytest.approx((enough - 1) / (tries - 1), rel=1e-12)


@pytest.mark.parametrize("sizes", [[1] * 9, [3, 3, 3], [4, 5], [9]])
@pytest.mark.parametrize("informative", [0, 1, 3])
def test_where_the_rounds_ran_out_it_is_the_plain_share(sizes, informative):
    assert unbiased_share(sizes, informative, 4) == pytest.approx(informative / 9, rel=1e-12)


def test_a_first_round_that_brings_enough_is_counted_as_it_is():
    assert unbiased_share([8], 5, 2) == 5 / 8


def test_the_share_of_two_rounds_worked_by_hand():
    # Rounds of 2, 2 are enough, 3 came in the end. Before the last round there was 1 of 2 (there
    # cannot have been 2, and 0 leaves 3 for a round of 2): the first group, or the second.
    assert unbiased_share([2, 2], 3, 2) == 0.5
    # With 2 in the end there was 1 of 2 and 1 of 2 (4 orders) or none and 2 (1 order): of these 5
    # orders the first group is informative in 2.
    assert unbiased_share([2, 2], 2, 2) == pytest.approx(2 / 5)


def test_rounds_in_which_no_group_took_part_say_nothing():
    assert unbiased_share([0], 0, 2) == 0.0
    assert unbiased_share([0, 4], 3, 2) == 0.75
    assert unbiased_share([2, 0, 2], 2, 2) == unbiased_share([2, 2], 2, 2)


def test_the_share_of_many_groups_is_a_number():
    share = unbiased_share([512] * 4, 700, 600)
    assert 0.25 < share < 0.4


def expectation(estimate, size, enough, chance, sizes=(), found=0):
    """The mean of `estimate` over everything that can happen in at most 4 rounds."""
    if sizes and (found >= enough or len(sizes) == 4):
        return estimate(sizes, found, enough)
    return sum(
        float(comb(size, k) * chance**k * (1 - chance) ** (size - k))
        * expectation(estimate, size, enough, chance, (*sizes, size), found + k)
        for k in range(size + 1)
    )


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("enough", [2, 3])
@pytest.mark.parametrize("chance", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_the_expected_share_is_the_chance_of_an_informative_group(size, enough, chance):
    found = expectation(unbiased_share, size, enough, chance)
    assert found == pytest.approx(float(chance), abs=1e-12)


def test_the_plain_share_of_all_groups_played_would_be_too_large():
    plain = expectation(lambda sizes, found, _: found / sum(sizes), 2, 2, Fraction(1, 2))
    assert plain > 0.54


# --------------------------------------------------------------------------------- the gradient

# What a group of two episodes can be: its chance, whether the first succeeds, whether the second,
# and the sampled tokens of each. Only the last two have a gradient.
KINDS = [(0.35, 0, 0, 1, 1), (0.2, 1, 1, 2, 2), (0.3, 1, 0, 1, 3), (0.15, 0, 1, 2, 2)]


@pytest.fixture
def group_of(make_episode):
    def make(kind, number):
        _, *successes, first, second = KINDS[kind]
        return [
            make_episode(
                [([5], list(range(1 + kind, 1 + kind + tokens)), float(success))],
                task_id=f"t/{number}",
                member=member,
                end_reason=EndReason.SUCCESS if success else EndReason.FAILURE,
            )
            for member, (success, tokens) in enumerate(zip(successes, (first, second), strict=True))
        ]

    return make


def gradient(chosen, samples):
    """The surrogate's gradient in the logits of each token, were these free parameters: (29,)."""
    weighed, normalizer = chosen.weigh(samples)
    found = np.zeros(29)
    for sample in weighed:
        ids = sample.token_ids[sample.sampled_mask]
        np.add.at(found, ids, sample.advantages * sample.weight / normalizer)
    return found


def step_gradient(chosen, collection):
    samples = collection.rescale(chosen.assign(chosen.select(collection.groups, 0)))
    return gradient(chosen, samples) if samples else np.zeros(29)


ALL_COUNT = CreditConfig(drop_zero_variance=False)


def expected_gradient(chosen, group_of, config, *, size, broken=()):
    """The mean over every sequence of groups, each weighed by its chance."""
    groups = {
        (kind, number): group_of(kind, number)
        for kind in range(len(KINDS))
        for number in range(size * config.rounds)
    }
    for (_, number), group in groups.items():
        if number in broken:
            group[0].end_reason = EndReason.FAULT
    expected, chance_of_all = np.zeros(29), 0.0
    # Depth first, so that a sequence is only as long as what is played of it.
    pending = [()]
    while pending:
        kinds = pending.pop()
        needed = []

        def play(number, kinds=kinds, needed=needed):
            first, last = number * size, (number + 1) * size
            if last > len(kinds):
                needed.append(last)
                raise LookupError
            return [groups[kinds[n], n] for n in range(first, last)]

        try:
            collection = collect(play, chosen, config, 0)
        except LookupError:
            more = needed[0] - len(kinds)
            pending += [(*kinds, *k) for k in itertools.product(range(len(KINDS)), repeat=more)]
            continue
        chance = float(np.prod([KINDS[kind][0] for kind in kinds]))
        chance_of_all += chance
        expected += chance * step_gradient(chosen, collection)
    assert chance_of_all == pytest.approx(1.0, abs=1e-12)
    return expected


def without_refill(kind, group_of, loss):
    """The expected gradient of a step that counts every group: that of one group, if the number of
    units is the same in all.
    """
    chosen = kind(loss=loss, credit=ALL_COUNT)
    expected = np.zeros(29)
    for number, (chance, *_) in enumerate(KINDS):
        samples = chosen.assign(chosen.select([group_of(number, 0)], 0))
        expected += chance * gradient(chosen, samples)
    return expected


@pytest.mark.parametrize(
    "loss",
    [
        LossConfig(aggregation="group"),
        LossConfig(aggregation="sequence"),
        LossConfig(aggregation="constant", aggregation_constant=7),
    ],
    ids=lambda loss: loss.aggregation,
)
@pytest.mark.parametrize(
    ("size", "enough", "rounds"), [(1, 2, 4), (2, 2, 2), (2, 3, 2)], ids=lambda number: f"{number}"
)
@pytest.mark.parametrize("kind", [GRPO, RLOO])
def test_the_expected_gradient_is_that_without_refill(kind, size, enough, rounds, loss, group_of):
    chosen = kind(loss=loss)
    config = RefillConfig(groups=enough, rounds=rounds)
    found = expected_gradient(chosen, group_of, config, size=size)
    expected = without_refill(kind, group_of, loss)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_groups_that_broke_count_as_never_played(group_of):
    loss = LossConfig(aggregation="group")
    config = RefillConfig(groups=2, rounds=4)
    found = expected_gradient(RLOO(loss=loss), group_of, config, size=1, broken={0, 2})
    np.testing.assert_allclose(found, without_refill(RLOO, group_of, loss), atol=1e-12)


def collected(chosen, group_of, kinds, **settings):
    """What comes of rounds that hold groups of these kinds."""
    played = []

    def play(number):
        played.append(number)
        return [group_of(kind, 10 * number + i) for i, kind in enumerate(kinds[number])]

    found = collect(play, chosen, RefillConfig(**settings), 0)
    assert played == list(range(len(found.rounds)))
    return found


def test_rounds_are_played_until_there_is_enough_or_no_round_is_left(group_of):
    kinds = [[0, 2], [1, 0], [3, 3], [2, 2]]
    assert len(collected(RLOO(), group_of, [*kinds, [0, 0]], groups=6).rounds) == 4  # the default
    assert len(collected(RLOO(), group_of, kinds, groups=5, rounds=2).rounds) == 2
    found = collected(RLOO(), group_of, kinds, groups=2)
    assert [group[0].task.id for group in found.groups] == [
        *["t/0", "t/1"],
        *["t/10", "t/11"],
        *["t/20", "t/21"],
    ]
    # Both of the last round are informative, and 1 of the 4 before: the first, in 1 order of 4.
    assert found.share == pytest.approx(1 / 4)
    assert found.metrics() == {"rollout/groups": 6.0, "rollout/informative": found.share}


def test_without_refill_one_round_is_played_and_nothing_is_scaled(group_of):
    found = collected(PPO(), group_of, [[0, 0]])  # it asks the algorithm nothing
    assert (len(found.rounds), found.share, found.scale) == (1, None, 1.0)
    assert found.metrics() == {"rollout/groups": 2.0}
    samples = RLOO().assign(RLOO().select([group_of(2, 0)], 0))
    for one, other in zip(found.rescale(samples), samples, strict=True):
        assert one.advantages.tolist() == other.advantages.tolist()
    unassigned = RLOO().select([group_of(2, 0)], 0)
    assert found.rescale(unassigned) == unassigned


def test_a_step_in_which_no_group_has_a_gradient_learns_nothing(group_of):
    found = collected(RLOO(), group_of, [[0, 1], [1, 0]], groups=2, rounds=2)
    assert found.share == found.scale == 0.0
    assert RLOO().assign(RLOO().select(found.groups, 0)) == []
    assert collected(RLOO(), group_of, [[], []], groups=2, rounds=2).scale == 0.0


@pytest.mark.parametrize(
    ("aggregation", "scale"),
    [
        # One of the two groups has a gradient; it has 4 tokens, the other 2.
        ("group", 1 / 2),
        ("sequence", 1 / 2),
        ("token", 4 / 6),
    ],
)
def test_a_first_round_that_brings_enough_gives_the_mean_over_all_groups(
    group_of, aggregation, scale
):
    chosen = RLOO(loss=LossConfig(aggregation=aggregation))
    found = collected(chosen, group_of, [[0, 2]], groups=2, rounds=1)
    assert found.scale == pytest.approx(scale)
    everything = RLOO(loss=chosen.loss_config, credit=ALL_COUNT)
    samples = everything.assign(everything.select(found.groups, 0))
    np.testing.assert_allclose(step_gradient(chosen, found), gradient(everything, samples))


def test_a_token_mean_divides_by_the_tokens_that_all_groups_would_have(group_of):
    chosen = RLOO(loss=LossConfig(aggregation="token"))
    found = collected(chosen, group_of, [[0, 2, 1, 0], [2, 2, 0, 1]], groups=2)
    # 3 of 8: 1 before the last round in 4 * 6 orders, none in 4; the first in a quarter of the 24.
    assert found.share == pytest.approx(6 / 28)
    # Informative groups have 4 tokens; the others 2, 4, 2, 2 and 4, in the mean 2.8.
    counted, rest = 6 / 28 * 4, 22 / 28 * 2.8
    assert found.scale == pytest.approx(counted / (counted + rest))


def test_a_permuted_control_is_refilled_by_what_it_will_learn_from(make_episode):
    """Whether a group of GiGPO has a gradient may depend on the permutation of its returns."""

    def group(number):
        episodes = [
            make_episode([([5], [1], r), ([6], [2], 1 - r)], task_id=f"t/{number}", member=m)
            for m, r in enumerate([1.0, 0.0, 0.0])
        ]
        episodes[1].turns[1].reward = 2.0
        for member, episode in enumerate(episodes):
            for turn, key in zip(episode.turns, f"a{'bcc'[member]}", strict=True):
                turn.state_key = key
        return episodes

    chosen = GiGPO(credit=CreditConfig(permute_rewards=True))
    groups = [group(number) for number in range(6)]
    found = collect(lambda r: groups[2 * r : 2 * r + 2], chosen, RefillConfig(groups=5), 3)
    together = chosen.select(found.groups, 3)
    alone = [s for number, g in enumerate(found.groups) for s in chosen.select([g], 3)]
    assert [s.rewards.tolist() for s in together] == [s.rewards.tolist() for s in alone]


# ---------------------------------------------------------------------------------- the settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": -1}, "^refill.groups must be at least 0, got -1"),
        ({"rounds": 0}, "^refill.rounds must be at least 1, got 0"),
        ({"groups": 1}, "refill.groups must be at least 2, or 0 .* got 1: without bias, one group"),
    ],
)
def test_refill_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        RefillConfig(**settings)


@pytest.mark.parametrize(
    "chosen",
    [
        algorithm("ppo"),
        algorithm("reinforce_pp"),
        algorithm("sft"),
        algorithm("dpo"),
        algorithm("evolve"),
        GRPO(GRPOConfig(scale="batch")),
        RLOO(loss=LossConfig(kl_coefficient=0.1, kl_in="reward")),
        GRPO(credit=ALL_COUNT),
    ],
    ids=lambda chosen: chosen.name,
)
def test_an_algorithm_whose_refill_would_be_biased_is_refused(chosen):
    with pytest.raises(ConfigError, match=f"refill.groups = 2 needs .* got {chosen.name}"):
        RefillConfig(groups=2).check(chosen)
    RefillConfig(groups=0).check(chosen)


def test_algorithms_that_compare_within_groups_may_be_refilled():
    for chosen in (GRPO(), GRPO(GRPOConfig(scale="none")), RLOO(), GiGPO()):
        RefillConfig(groups=2).check(chosen)
    RefillConfig(groups=2).check(RLOO(loss=LossConfig(kl_coefficient=0.1)))
