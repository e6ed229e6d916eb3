"""Algorithms from episodes to advantages: who takes part, what is compared, where credit lands."""

from __future__ import annotations

import dataclasses
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import UnknownName
from agentgym_train.algorithms import ALGORITHMS, algorithm
from agentgym_train.algorithms.gigpo import GiGPO, GiGPOConfig
from agentgym_train.algorithms.grpo import GRPO, GRPOConfig
from agentgym_train.algorithms.losses import LossInputs
from agentgym_train.algorithms.policy_gradient import PolicyGradient
from agentgym_train.algorithms.ppo import PPO, PPOConfig
from agentgym_train.algorithms.reinforce_pp import ReinforcePP, ReinforcePPConfig
from agentgym_train.algorithms.rloo import RLOO
from agentgym_train.algorithms.settings import CreditConfig, LossConfig
from agentgym_train.algorithms.sft import SFT, SFTConfig
from agentgym_train.algorithms.weights import weigh
from agentgym_train.batching import collate
from agentgym_train.critic import Critic, CriticConfig
from agentgym_train.errors import ConfigError, TokenError
from agentgym_train.learner import Learner, LearnerConfig

KEEP_ALL = CreditConfig(drop_zero_variance=False)
POLICY_GRADIENTS = [n for n, kind in ALGORITHMS.items() if issubclass(kind, PolicyGradient)]


def group_of(make_episode, returns, *, reasons=None, task_id="t/0", keys=None):
    """Episodes of three sampled tokens in two turns, the reward at the end."""
    reasons = reasons or [EndReason.HORIZON] * len(returns)
    group = []
    for member, (value, reason) in enumerate(zip(returns, reasons, strict=True)):
        turns = [([5], [1, 2], 0.0), ([6], [3], value)]
        episode = make_episode(turns, end_reason=reason, task_id=task_id, member=member)
        for turn, key in zip(episode.turns, keys[member] if keys else "ab", strict=True):
            turn.state_key = key
        group.append(episode)
    return group


def valued(samples, *, value=0.0, final_value=0.0):
    """Samples as a critic would leave them that says `value` everywhere."""
    return [
        dataclasses.replace(
            sample,
            old_values=np.full(sample.num_sampled, value),
            final_value=final_value if sample.bootstraps else 0.0,
        )
        for sample in samples
    ]


def credit_of(algorithm, groups, step=0):
    return algorithm.assign(valued(algorithm.select(groups, step)))


def one_each(samples):
    """The advantage of each sample, the same for all of its tokens."""
    for sample in samples:
        assert len(set(sample.advantages)) == 1
    return [float(sample.advantages[0]) for sample in samples]


# ------------------------------------------------------------------------------ who takes part


def test_groups_without_spread_are_left_out(make_episode):
    groups = [group_of(make_episode, [0.0, 0.0]), group_of(make_episode, [1.0, 0.0])]
    assert [sample.group for sample in credit_of(GRPO(), groups)] == [1, 1]
    assert credit_of(GRPO(), groups[:1]) == []


def test_groups_without_spread_may_be_kept_with_zero_advantage(make_episode):
    samples = credit_of(GRPO(credit=KEEP_ALL), [group_of(make_episode, [0.0, 0.0])])
    assert one_each(samples) == [0.0, 0.0]


@pytest.mark.parametrize("name", POLICY_GRADIENTS)
def test_episodes_without_any_reward_pass_every_estimator(make_episode, name):
    groups = [group_of(make_episode, [0.0, 0.0]), group_of(make_episode, [0.0, 0.0, 0.0])]
    samples = credit_of(algorithm(name, credit=KEEP_ALL), groups)
    assert one_each(samples) == [0.0] * 5
    assert credit_of(algorithm(name), groups) == []


@pytest.mark.parametrize("name", POLICY_GRADIENTS)
def test_nothing_to_learn_from_passes_every_estimator(name):
    assert credit_of(algorithm(name), []) == []


def test_a_group_with_an_episode_that_broke_is_dropped_by_default(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason.FAULT]
    broken = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    whole = group_of(make_episode, [1.0, 0.0])
    assert [sample.group for sample in GRPO().select([broken, whole], 0)] == [1, 1]


@pytest.mark.parametrize("name", POLICY_GRADIENTS)
@pytest.mark.parametrize("reason", ["fault", "context", "budget", "stopped", "horizon"])
def test_a_masked_episode_changes_no_siblings_credit(make_episode, name, reason):
    credit = CreditConfig(**{f"on_{reason}": "mask"})
    whole = group_of(make_episode, [1.0, 0.0, 0.0], reasons=[EndReason.SUCCESS] * 3)
    reasons = [EndReason.SUCCESS] * 2 + [EndReason(reason), EndReason.FAILURE]
    with_broken = group_of(make_episode, [1.0, 0.0, 100.0, 0.0], reasons=reasons)
    found = credit_of(algorithm(name, credit=credit), [with_broken])
    expected = credit_of(algorithm(name), [whole])
    assert len(found) == 3
    for one, other in zip(found, expected, strict=True):
        assert one.advantages.tolist() == other.advantages.tolist()


@pytest.mark.parametrize("reason", ["fault", "context", "budget", "stopped", "horizon"])
def test_a_dropped_episode_takes_its_group_with_it(make_episode, reason):
    reasons = [EndReason.SUCCESS, EndReason.FAILURE, EndReason(reason)]
    group = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    dropping = GRPO(credit=CreditConfig(**{f"on_{reason}": "drop"}))
    assert dropping.select([group], 0) == []
    assert PPO(credit=dropping.credit_config).select([group], 0) == []


def test_by_default_only_a_horizon_is_like_an_end_of_the_world(make_episode):
    credit = CreditConfig()
    assert {str(reason): credit.treatment(reason) for reason in EndReason if reason} == {
        "success": "keep",
        "failure": "keep",
        "horizon": "keep",
        "fault": "drop",
        "context": "mask",
        "budget": "mask",
        "stopped": "mask",
    }


@pytest.mark.parametrize("reason", ["horizon", "context", "budget"])
def test_whether_some_episodes_need_the_value_of_their_final_observation(reason):
    assert CreditConfig().bootstraps is False
    assert CreditConfig(**{f"on_{reason}": "bootstrap"}).bootstraps is True


def test_a_masked_episode_needs_no_token_record(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason.FAULT]
    group = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    group[2].turns.clear()
    assert len(GRPO(credit=CreditConfig(on_fault="mask")).select([group], 0)) == 2


def test_a_group_of_which_one_is_left_is_left_out_unless_nothing_is_compared(make_episode):
    group = group_of(make_episode, [1.0, 0.0], reasons=[EndReason.SUCCESS, EndReason.CONTEXT])
    assert GRPO().select([group], 0) == []
    assert len(PPO().select([group], 0)) == 1
    keeping = GRPO(credit=CreditConfig(on_context="keep"))
    assert one_each(credit_of(keeping, [group])) == pytest.approx([0.7071, -0.7071], abs=1e-4)


def test_only_a_bootstrapping_episode_carries_its_final_observation(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason.CONTEXT]
    group = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    for episode in group:
        episode.tail_ids = [7, 8]
    credit = CreditConfig(on_horizon="bootstrap", on_context="keep")
    samples = PPO(credit=credit).select([group], 0)
    assert [sample.bootstraps for sample in samples] == [False, True, False]
    assert samples[0].token_ids.tolist() == [5, 1, 2, 6, 3]
    assert samples[1].token_ids.tolist() == [5, 1, 2, 6, 3, 7, 8]
    assert samples[1].sampled_mask.tolist() == [False, True, True, False, True, False, False]
    assert samples[2].token_ids.tolist() == [5, 1, 2, 6, 3]


def test_bootstrapping_from_an_observation_that_was_not_kept_is_refused(make_episode):
    group = group_of(make_episode, [0.0])
    with pytest.raises(TokenError, match="member 0: its final observation was not recorded"):
        PPO(credit=CreditConfig(on_horizon="bootstrap")).select([group], 0)


@pytest.mark.parametrize("name", ["grpo", "rloo", "gigpo"])
def test_a_group_of_one_is_refused_where_groups_are_compared(make_episode, name):
    with pytest.raises(ValueError, match="at least 2 episodes to compare, got 1"):
        algorithm(name).select([group_of(make_episode, [1.0])], 0)


def test_a_group_of_one_will_do_where_nothing_is_compared(make_episode):
    group = group_of(make_episode, [1.0])
    assert len(PPO().select([group], 0)) == len(ReinforcePP().select([group], 0)) == 1
    with pytest.raises(ValueError, match="at least 2 episodes to compare, got 1"):
        ReinforcePP(ReinforcePPConfig(baseline="group")).select([group], 0)


def test_an_empty_group_is_refused(make_episode):
    with pytest.raises(ValueError, match="at least 1 episodes to compare, got 0"):
        PPO().select([[]], 0)


def test_a_group_of_different_tasks_is_refused(make_episode):
    mixed = group_of(make_episode, [1.0]) + group_of(make_episode, [0.0], task_id="t/1")
    with pytest.raises(ValueError, match=r"same task and seed, got \[\('t/0', 0\), \('t/1', 0\)\]"):
        GRPO().select([mixed], 0)


def test_a_running_episode_is_refused(make_episode):
    group = group_of(make_episode, [1.0, 0.0], reasons=[EndReason.SUCCESS, EndReason.RUNNING])
    with pytest.raises(ValueError, match="episode of task 't/0' has not ended"):
        GRPO().select([group], 0)


def test_a_contradicting_record_is_never_trained_on(make_episode):
    group = group_of(make_episode, [1.0, 0.0])
    group[1].turns[0].logprobs = [-1.0]
    with pytest.raises(TokenError, match="member 1: turn 0 has 2 sampled tokens but 1"):
        GRPO().select([group], 0)


@pytest.mark.parametrize("name", POLICY_GRADIENTS)
def test_credit_depends_on_neither_the_order_of_episodes_nor_that_of_groups(random_groups, name):
    groups = random_groups(4, 4)
    for episode in (episode for group in groups for episode in group):
        for index, turn in enumerate(episode.turns):
            turn.state_key = f"{index % 2}"
    rng = np.random.default_rng(0)
    chosen = algorithm(name, credit=KEEP_ALL)
    samples = valued(chosen.select(groups, 0), value=0.3)
    order = rng.permutation(len(samples))
    straight = chosen.assign(samples)
    shuffled = chosen.assign([samples[i] for i in order])
    for position, index in enumerate(order):
        np.testing.assert_allclose(
            shuffled[position].advantages, straight[index].advantages, rtol=1e-9, atol=1e-12
        )


def assign_on_ranks(chosen, shares):
    """What ranks assign to their samples, one after another; each sums over all of them."""
    sent, barrier = [np.zeros(0)] * len(shares), threading.Barrier(len(shares), timeout=20)

    def on_rank(rank):
        def total(values):
            sent[rank] = values
            barrier.wait()
            summed = sum(sent)
            barrier.wait()
            return summed

        return chosen.assign(shares[rank], total)

    with ThreadPoolExecutor(len(shares)) as pool:
        return [sample for part in pool.map(on_rank, range(len(shares))) for sample in part]


@pytest.mark.parametrize(
    "chosen",
    [
        GRPO(),
        GRPO(GRPOConfig(scale="batch")),
        RLOO(),
        ReinforcePP(),
        ReinforcePP(ReinforcePPConfig(whiten_over="episodes")),
        ReinforcePP(ReinforcePPConfig(baseline="group")),
        PPO(),
        GiGPO(),
    ],
    ids=lambda chosen: f"{chosen.name} {chosen.config}",
)
def test_ranks_give_the_credit_that_one_would(random_groups, chosen):
    samples = valued(chosen.select(random_groups(3, 5), 0), value=0.3)
    shares = [samples[:10], samples[10:], []]  # the last rank has none
    found = assign_on_ranks(chosen, shares)
    for one, other in zip(found, chosen.assign(samples), strict=True):
        np.testing.assert_allclose(one.advantages, other.advantages, rtol=1e-10)


class CreditsOne(PolicyGradient[None]):
    """Gives credit to the episodes of one group only."""

    name = "credits_one"
    settings = type(None)

    def credit(self, samples, total):
        return [sample.with_advantages(1.0) if sample.group else sample for sample in samples]


def test_a_group_to_which_no_credit_was_given_is_left_out(make_episode):
    groups = [group_of(make_episode, [1.0, 0.0]), group_of(make_episode, [1.0, 0.0])]
    assert [sample.group for sample in credit_of(CreditsOne(), groups)] == [1, 1]


# --------------------------------------------------------------------------------- the control


def test_permuted_returns_stay_in_their_group_and_depend_on_seed_and_step(make_episode):
    groups = [
        group_of(make_episode, list(range(8)), task_id="t/0"),
        group_of(make_episode, list(range(10, 18)), task_id="t/1"),
    ]
    config = GRPOConfig(scale="none")

    def assign(seed, step):
        control = GRPO(config, credit=CreditConfig(permute_rewards=True), seed=seed)
        return one_each(credit_of(control, groups, step))

    deviations = [i - 3.5 for i in range(8)]
    permuted = assign(0, 0)
    assert sorted(permuted[:8]) == sorted(permuted[8:]) == deviations
    assert permuted[:8] != deviations
    assert permuted[:8] != permuted[8:]
    assert assign(0, 0) == permuted
    unseeded = GRPO(config, credit=CreditConfig(permute_rewards=True))
    assert one_each(credit_of(unseeded, groups)) == permuted
    assert assign(0, 1) != permuted
    assert assign(1, 0) != permuted


def test_permuted_returns_say_nothing_about_the_episode(make_episode):
    group = group_of(make_episode, [1.0] * 4 + [0.0] * 4)
    control = GRPO(GRPOConfig(scale="none"), credit=CreditConfig(permute_rewards=True))
    means = np.mean([one_each(credit_of(control, [group], step)) for step in range(400)], axis=0)
    # Each is 0.5 or -0.5; the mean of 400 has a standard error of 0.025.
    assert np.abs(means).max() < 0.1


def test_a_permuted_return_sits_on_the_last_token_of_another_episode(make_episode):
    group = group_of(make_episode, [1.0, 2.0, 3.0])
    group[0].turns[0].reward = 4.0  # its return is 5
    samples = PPO(credit=CreditConfig(permute_rewards=True)).select([group], 3)
    assert [sample.rewards[:2].tolist() for sample in samples] == [[0.0, 0.0]] * 3
    found = [sample.rewards[2] for sample in samples]
    assert sorted(found) == [2.0, 3.0, 5.0]
    assert found != [5.0, 2.0, 3.0]


def test_equal_returns_stay_as_they_are_and_use_up_no_random_number(make_episode):
    equal = group_of(make_episode, [1.0, 0.0], task_id="t/1")
    equal[1].turns[0].reward = 1.0
    other = group_of(make_episode, [float(i) for i in range(8)])
    control = PPO(credit=CreditConfig(permute_rewards=True))
    with_equal = control.select([equal, other], 0)
    assert [sample.rewards.tolist() for sample in with_equal[:2]] == [[0, 0, 1], [0, 1, 0]]
    alone = control.select([other], 0)
    assert [s.rewards.tolist() for s in with_equal[2:]] == [s.rewards.tolist() for s in alone]


# --------------------------------------------------------------------------- grpo, rloo, gigpo


def test_grpo_gives_every_sampled_token_its_episodes_advantage(make_episode):
    groups = [group_of(make_episode, [1.0, 0.0]), group_of(make_episode, [3.0, 1.0, 2.0])]
    samples = credit_of(GRPO(), groups)
    assert [sample.num_sampled for sample in samples] == [3] * 5
    np.testing.assert_allclose(one_each(samples), [0.7071, -0.7071, 1.0, -1.0, 0.0], atol=1e-4)


def test_grpo_without_scale_subtracts_the_mean_only(make_episode):
    samples = credit_of(GRPO(GRPOConfig(scale="none")), [group_of(make_episode, [3.0, 1.0, 2.0])])
    assert one_each(samples) == [1.0, -1.0, 0.0]


def test_grpo_by_batch_divides_by_the_deviation_of_all_returns(make_episode):
    groups = [group_of(make_episode, [1.0, 0.0]), group_of(make_episode, [3.0, 1.0, 2.0])]
    # returns 1, 0, 3, 1, 2: mean 1.4, squared deviations 5.2, over 4
    std = np.sqrt(5.2 / 4)
    found = one_each(credit_of(GRPO(GRPOConfig(scale="batch")), groups))
    np.testing.assert_allclose(found, np.array([0.5, -0.5, 1, -1, 0]) / (std + 1e-6), rtol=1e-12)


def test_rloo_compares_with_the_others_and_is_grpo_without_std_but_for_a_factor(make_episode):
    groups = [group_of(make_episode, [1.0, 0.0, 0.0, 0.0]), group_of(make_episode, [0.0, 3.0])]
    found = one_each(credit_of(RLOO(), groups))
    np.testing.assert_allclose(found, [1.0, *[-1 / 3] * 3, -3.0, 3.0], rtol=1e-12)
    grpo = one_each(credit_of(GRPO(GRPOConfig(scale="none")), groups))
    np.testing.assert_allclose(found, np.array(grpo) * ([4 / 3] * 4 + [2] * 2), rtol=1e-12)


def test_a_return_is_the_sum_of_all_rewards(make_episode):
    good, bad = group_of(make_episode, [1.0, 1.0])
    good.turns[0].reward = 0.5
    assert one_each(credit_of(RLOO(), [[good, bad]])) == [0.5, -0.5]


def gigpo_groups(make_episode):
    """Two groups; within the first, states a and b are seen twice, c once."""
    first = group_of(make_episode, [1.0, 0.0], keys=["ab", "ba"])
    first[0].turns[0].reward = 0.25
    second = group_of(make_episode, [2.0, 0.0], task_id="t/1", keys=["cx", "ay"])
    return [first, second]


def test_gigpo_adds_a_comparison_of_turns_taken_in_the_same_state(make_episode):
    config = GiGPOConfig(normalize_std=False, step_weight=2.0, turn_discount=0.5)
    samples = credit_of(GiGPO(config), gigpo_groups(make_episode))
    # First group, returns 1.25 and 0: 0.625 and -0.625. From turn to turn at half: in the first
    # episode a: 0.25 + 0.5 * 1 = 0.75 and b: 1; in the second b: 0 and a: 0. State a: 0.75 and 0,
    # so +-0.375; b: 1 and 0, so +-0.5. Twice that: 0.75 and 1.
    assert samples[0].advantages.tolist() == [0.625 + 0.75, 0.625 + 0.75, 0.625 + 1.0]
    assert samples[1].advantages.tolist() == [-0.625 - 1.0, -0.625 - 1.0, -0.625 - 0.75]
    # In the second group no state was seen twice, and a of the other group is another one.
    assert samples[2].advantages.tolist() == [1.0] * 3
    assert samples[3].advantages.tolist() == [-1.0] * 3


def test_gigpo_finds_the_state_of_every_turn_of_many(make_episode):
    group = []
    for member, (keys, value) in enumerate([("abc", 1.0), ("bca", 0.0)]):
        turns = [([5], [1, 2], 0.0), ([6], [3], 0.0), ([7], [4], value)]
        episode = make_episode(turns, member=member)
        for turn, key in zip(episode.turns, keys, strict=True):
            turn.state_key = key
        group.append(episode)
    config = GiGPOConfig(normalize_std=False, turn_discount=0.5)
    samples = credit_of(GiGPO(config), [group])
    # The first is 0.5 better. From its turns on come 0.25, 0.5 and 1, from those of the other 0.
    assert samples[0].advantages.tolist() == [0.5 + 0.125] * 2 + [0.5 + 0.25, 0.5 + 0.5]
    assert samples[1].advantages.tolist() == [-0.5 - 0.25] * 2 + [-0.5 - 0.5, -0.5 - 0.125]


def test_gigpo_may_divide_both_parts_by_standard_deviations(make_episode):
    samples = credit_of(GiGPO(), gigpo_groups(make_episode)[:1])
    expected = 2 / np.sqrt(2)  # any two numbers are 1 / sqrt(2) standard deviations off their mean
    assert samples[0].advantages == pytest.approx([expected] * 3, abs=1e-5)
    assert samples[1].advantages == pytest.approx([-expected] * 3, abs=1e-5)


def test_gigpo_finds_credit_in_a_group_whose_returns_are_equal(make_episode):
    group = group_of(make_episode, [1.0, 0.0], keys=["ab", "ab"])
    group[1].turns[0].reward = 1.0  # the same return, a turn earlier
    config = GiGPOConfig(normalize_std=False, turn_discount=0.5)
    samples = credit_of(GiGPO(config), [group])
    # a: 0.5 and 1; b: 1 and 0
    assert samples[0].advantages.tolist() == [-0.25, -0.25, 0.5]
    assert samples[1].advantages.tolist() == [0.25, 0.25, -0.5]


def test_gigpo_without_state_keys_is_refused(make_episode):
    group = group_of(make_episode, [1.0, 0.0])
    group[0].turns[1].state_key = None
    one_turn = [make_episode([([5], [1], value)], member=m) for m, value in enumerate([1.0, 0.0])]
    for unrecorded in (group, one_turn):
        with pytest.raises(TokenError, match="no state keys were recorded"):
            credit_of(GiGPO(), [unrecorded])


def test_gigpo_without_weight_on_turns_is_grpo(make_episode):
    groups = gigpo_groups(make_episode)
    found = one_each(credit_of(GiGPO(GiGPOConfig(step_weight=0.0)), groups))
    assert found == one_each(credit_of(GRPO(), groups))


# -------------------------------------------------------------------------------- reinforce++


def test_reinforce_pp_whitens_the_return_from_each_token_on(make_episode):
    good, bad = group_of(make_episode, [1.0, 0.0])
    good.turns[0].reward = 1.0
    samples = credit_of(ReinforcePP(), [[good, bad]])
    # returns from each token on: 2, 2, 1 and 0, 0, 0: mean 5 / 6
    onward = np.array([2, 2, 1, 0, 0, 0])
    expected = (onward - onward.mean()) / onward.std(ddof=1)
    np.testing.assert_allclose(np.concatenate([s.advantages for s in samples]), expected, rtol=1e-6)


def test_reinforce_pp_discounts_from_sampled_token_to_sampled_token(make_episode):
    episode = make_episode([([5] * 50, [1, 2], 0.0), ([6] * 200, [3], 1.0)])
    samples = credit_of(ReinforcePP(ReinforcePPConfig(discount=0.5)), [[episode]])
    onward = np.array([0.25, 0.5, 1.0])
    expected = (onward - onward.mean()) / onward.std(ddof=1)
    np.testing.assert_allclose(samples[0].advantages, expected, rtol=1e-6)


def test_reinforce_pp_may_let_episodes_weigh_the_same(make_episode):
    short = make_episode([([5], [1], 1.0)])
    long = make_episode([([5], [1, 2, 3], 0.0)], member=1)
    config = ReinforcePPConfig(whiten_over="episodes")
    # mean 0.5 and variance 0.5 over episodes; over tokens 0.25 and 0.25
    by_episode = one_each(credit_of(ReinforcePP(config), [[short, long]]))
    assert by_episode == pytest.approx([0.5 / 0.5**0.5, -0.5 / 0.5**0.5])
    by_token = one_each(credit_of(ReinforcePP(), [[short, long]]))
    assert by_token == pytest.approx([0.75 / 0.25**0.5, -0.25 / 0.25**0.5])


def test_the_group_baseline_of_reinforce_pp_ignores_a_constant_added_to_a_group(make_episode):
    chosen = ReinforcePP(ReinforcePPConfig(baseline="group"))
    plain = [group_of(make_episode, [1.0, 0.0]), group_of(make_episode, [1.0, 0.0, 0.0])]
    lifted = [plain[0], group_of(make_episode, [6.0, 5.0, 5.0])]
    centered = np.array([0.5, -0.5, 2 / 3, -1 / 3, -1 / 3]).repeat(3)
    expected = centered / centered.std(ddof=1)
    for groups in (plain, lifted):
        found = np.concatenate([sample.advantages for sample in credit_of(chosen, groups)])
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    without = [credit_of(ReinforcePP(), groups) for groups in (plain, lifted)]
    assert one_each(without[0]) != pytest.approx(one_each(without[1]), abs=0.1)


# ---------------------------------------------------------------------------------------- ppo


def test_ppo_targets_are_unwhitened_advantages_plus_values(make_episode):
    config = PPOConfig(discount=0.5, turn_discount=0.9, trace=0.8)
    group = group_of(make_episode, [1.0, 0.0])
    values = np.array([[0.1, 0.2, 0.3], [0.0, 0.4, 0.0]])
    (sample, other) = credit_of_values(PPO(config), group, values)
    # delta: 0.5 * 0.2 - 0.1 = 0; 0.9 * 0.3 - 0.2 = 0.07; 1 - 0.3 = 0.7
    first = np.array([0.4 * (0.07 + 0.72 * 0.7), 0.07 + 0.72 * 0.7, 0.7])
    # delta: 0.5 * 0.4 = 0.2; -0.4; 0
    second = np.array([0.2 + 0.4 * -0.4, -0.4, 0.0])
    np.testing.assert_allclose(sample.value_targets, first + values[0], rtol=1e-12)
    np.testing.assert_allclose(other.value_targets, second + values[1], atol=1e-12)
    both = np.concatenate([first, second])
    white = (both - both.mean()) / both.std(ddof=1)
    found = np.concatenate([sample.advantages, other.advantages])
    np.testing.assert_allclose(found, white, rtol=1e-6)


def credit_of_values(algorithm, group, values):
    samples = algorithm.select([group], 0)
    return algorithm.assign(
        [
            dataclasses.replace(sample, old_values=np.array(numbers))
            for sample, numbers in zip(samples, values, strict=True)
        ]
    )


RAW = PPOConfig(whiten=False)


@pytest.mark.parametrize("observation_tokens", [0, 50, 200])
def test_observation_tokens_cost_no_credit(make_episode, observation_tokens):
    # With a trace of 0.95 per token, 200 of them would leave 0.00003 of the first turn's credit.
    episode = make_episode(
        [([5], [1, 2], 0.0), ([6] * (1 + observation_tokens), [3, 4], 1.0)],
        end_reason=EndReason.SUCCESS,
    )
    (sample,) = credit_of(PPO(RAW), [[episode]])
    np.testing.assert_allclose(sample.advantages, [0.95**3, 0.95**2, 0.95, 1.0], rtol=1e-12)


def test_a_reward_answering_a_turn_without_sampled_tokens_is_not_lost(make_episode):
    episode = make_episode([([5], [1, 2], 0.0), ([6], [], 1.0)])
    (sample,) = credit_of(PPO(PPOConfig(whiten=False, trace=1.0)), [[episode]])
    assert sample.advantages.tolist() == [1.0, 1.0]


def test_a_perfect_critic_leaves_no_advantage_to_train_on(make_episode):
    group = group_of(make_episode, [1.0, 0.0])
    keeping = PPO(RAW, credit=KEEP_ALL)
    samples = credit_of_values(keeping, group, [[1.0] * 3, [0.0] * 3])
    assert one_each(samples) == [0.0, 0.0]
    assert samples[0].value_targets.tolist() == [1.0] * 3


class SaysByToken(torch.nn.Module):
    """A trunk whose value after a token is a number of that token."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    @property
    def base_model(self):
        return self

    def forward(self, input_ids, **_):
        hidden = torch.tensor(self.values)[input_ids][..., None]
        return types.SimpleNamespace(last_hidden_state=hidden)


def test_what_the_critic_says_on_observations_is_never_read(make_episode, tiny_model):
    # Before each sampled token (after 5, 1, 8 and 3) the critic is perfect; after all others,
    # observations among them, it says 7.
    episode = make_episode(
        [([9, 5], [1, 2], 0.25), ([6, 7, 8], [3, 4], 1.0)], end_reason=EndReason.SUCCESS
    )
    model = tiny_model()
    critic = Critic(model, CriticConfig(learning_rate=1e-3))
    critic.trunk = SaysByToken([7.0, 1.25, 7.0, 1.0, 7.0, 1.25, 7.0, 7.0, 1.0, 7.0])
    critic.weight, critic.bias = (
        torch.nn.Parameter(torch.ones(1)),
        torch.nn.Parameter(torch.zeros(1)),
    )
    chosen = PPO(RAW, credit=KEEP_ALL)
    learner = Learner(model, LearnerConfig(), seed=0, critic=critic)
    (sample,) = chosen.assign(learner.score(chosen.select([[episode]], 0), chosen))
    assert sample.old_values.tolist() == [1.25, 1.25, 1.0, 1.0]
    assert sample.advantages.tolist() == [0.0] * 4
    assert sample.value_targets.tolist() == [1.25, 1.25, 1.0, 1.0]


def test_an_episode_cut_at_the_horizon_goes_on_with_the_value_of_its_final_observation(
    make_episode,
):
    reasons = [EndReason.HORIZON, EndReason.SUCCESS]
    group = group_of(make_episode, [0.0, 0.0], reasons=reasons)
    for episode in group:
        episode.tail_ids = [7]
    config = PPOConfig(whiten=False, trace=1.0, turn_discount=0.5)
    credit = CreditConfig(on_horizon="bootstrap", drop_zero_variance=False)
    ppo = PPO(config, credit=credit)
    samples = ppo.assign(valued(ppo.select([group], 0), final_value=4.0))
    assert samples[0].advantages.tolist() == [1.0, 1.0, 2.0]
    assert samples[1].advantages.tolist() == [0.0, 0.0, 0.0]
    cut = ppo.assign(valued(ppo.select([group], 0), final_value=0.0))
    assert cut[0].advantages.tolist() == [0.0, 0.0, 0.0]


def test_ppo_without_values_is_refused(make_episode):
    ppo = PPO()
    with pytest.raises(ValueError, match=r"ppo needs old_values, .* add a critic"):
        ppo.assign(ppo.select([group_of(make_episode, [1.0])], 0))


# ---------------------------------------------------------------------- divergence in the reward


@pytest.mark.parametrize(
    ("estimator", "charge"),
    [("k1", 0.5), ("k2", 0.125), ("k3", np.exp(-0.5) - 1 + 0.5)],
)
def test_a_divergence_in_the_reward_is_taken_off_token_by_token(make_episode, estimator, charge):
    loss = LossConfig(kl_coefficient=0.1, kl_estimator=estimator, kl_in="reward")
    ppo = PPO(PPOConfig(whiten=False, trace=0.0), loss=loss)
    (sample,) = valued(ppo.select([group_of(make_episode, [1.0])], 0))
    # The first token is likelier by 0.5 under the policy than under the reference.
    scored = dataclasses.replace(sample, ref_logprobs=np.array([-1.5, -1.0, -1.0]))
    (found,) = ppo.assign([scored])
    np.testing.assert_allclose(found.advantages, [-0.1 * charge, 0.0, 1.0], atol=1e-12)


def test_a_divergence_in_the_reward_is_part_of_the_return_that_groups_compare(make_episode):
    loss = LossConfig(kl_coefficient=0.1, kl_estimator="k1", kl_in="reward")
    rloo = RLOO(loss=loss)
    samples = rloo.select([group_of(make_episode, [1.0, 1.0])], 0)
    refs = [np.array([-2.0, -1.0, -1.0]), np.array([-1.0, -1.0, -1.0])]
    scored = [
        dataclasses.replace(sample, ref_logprobs=ref)
        for sample, ref in zip(samples, refs, strict=True)
    ]
    np.testing.assert_allclose(one_each(rloo.assign(scored)), [-0.1, 0.1], rtol=1e-9)


def test_a_divergence_in_the_loss_leaves_the_rewards_alone(make_episode):
    grpo = GRPO(loss=LossConfig(kl_coefficient=0.1))
    assert grpo.needs_reference
    samples = grpo.assign(grpo.select([group_of(make_episode, [1.0, 0.0])], 0))
    assert one_each(samples) == pytest.approx([0.7071, -0.7071], abs=1e-4)


def test_a_divergence_in_the_reward_without_reference_is_refused(make_episode):
    loss = LossConfig(kl_coefficient=0.1, kl_in="reward")
    grpo = GRPO(loss=loss)
    samples = grpo.select([group_of(make_episode, [1.0, 0.0])], 0)
    teachers = [
        dataclasses.replace(sample, old_logprobs=None, ref_logprobs=np.zeros(3))
        for sample in samples
    ]
    for incomplete in (samples, teachers):
        with pytest.raises(ValueError, match="needs old_logprobs and ref_logprobs"):
            grpo.assign(incomplete)


def test_a_divergence_of_weight_zero_needs_no_reference(make_episode):
    grpo = GRPO(loss=LossConfig(kl_in="reward"))
    assert not grpo.needs_reference
    assert len(credit_of(grpo, [group_of(make_episode, [1.0, 0.0])])) == 2


@pytest.mark.parametrize("name", POLICY_GRADIENTS)
def test_the_loss_of_a_policy_gradient_is_that_of_its_settings(make_episode, name):
    loss = LossConfig(clip_low=0.5, entropy_coefficient=0.0)
    chosen = algorithm(name, loss=loss)
    group = group_of(make_episode, [1.0, 0.0])
    batch = collate([sample.with_advantages(-2.0) for sample in chosen.select([group], 0)])
    logprobs = batch.old_logprobs + np.log(0.25)
    output = chosen.loss(LossInputs(batch, logprobs, logprobs, normalizer=6))
    assert output.loss.item() == pytest.approx(1.0)  # a ratio of 0.25 counts as 0.5


# ------------------------------------------------------------------------------------- weights


def lengths_and_groups(make_episode, shape):
    """Samples of the given (number of tokens, group)."""
    samples = []
    for tokens, group in shape:
        episode = make_episode([([5], [1] * tokens, 1.0)])
        (sample,) = PPO().select([[episode]], 0)
        samples.append(dataclasses.replace(sample, group=group))
    return samples


@pytest.mark.parametrize(
    ("aggregation", "constant", "weights", "normalizer"),
    [
        ("token", 0, [1, 1, 1], 8),
        ("sequence", 0, [1 / 2, 1 / 5, 1], 3),
        ("group", 0, [1 / 3, 1 / 5, 1 / 3], 2),  # 2 + 1 tokens in one group, 5 in the other
        ("constant", 10, [1, 1, 1], 30),
    ],
)
def test_what_the_loss_is_a_mean_over(make_episode, aggregation, constant, weights, normalizer):
    samples = lengths_and_groups(make_episode, [(2, 7), (5, 3), (1, 7)])
    weighed, found = weigh(samples, aggregation, constant)
    assert [sample.weight for sample in weighed] == weights
    assert found == normalizer
    assert [sample.num_sampled for sample in weighed] == [2, 5, 1]


@pytest.mark.parametrize("aggregation", ["token", "sequence", "group", "constant"])
def test_there_is_no_mean_over_nothing(aggregation):
    assert weigh([], aggregation, 10) == ([], 0)


def test_an_algorithm_weighs_as_its_loss_says(make_episode):
    samples = lengths_and_groups(make_episode, [(2, 0), (4, 0)])
    constant = LossConfig(aggregation="constant", aggregation_constant=50)
    assert RLOO(loss=constant).weigh(samples)[1] == 100
    assert RLOO(loss=LossConfig(aggregation="sequence")).weigh(samples)[0][1].weight == 0.25
    assert RLOO().weigh(samples)[1] == SFT().weigh(samples)[1] == 6


# ---------------------------------------------------------------------------------- sft, names


def test_sft_takes_successes_and_ignores_the_teachers_log_probabilities(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason.CONTEXT]
    group = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    (sample,) = SFT().select([group], 0)
    assert sample.old_logprobs is None
    assert SFT().assign([sample])[0] is sample
    assert not SFT().needs_reference
    assert not SFT().needs_proximal
    batch = collate([sample])
    assert batch.weights.dtype == torch.float32
    inputs = LossInputs(batch, batch.weights - 3.0, batch.weights, normalizer=3)
    assert SFT().loss(inputs).loss.item() == pytest.approx(2.0)
    assert len(SFT(SFTConfig(successes_only=False)).select([group], 0)) == 2


def test_algorithms_are_found_by_name_with_their_settings():
    assert POLICY_GRADIENTS == ["grpo", "rloo", "reinforce_pp", "ppo", "gigpo"]
    assert list(ALGORITHMS) == [*POLICY_GRADIENTS, "sft", "dpo", "evolve"]
    assert [algorithm(name).name for name in ALGORITHMS] == list(ALGORITHMS)
    found = algorithm("ppo", PPOConfig(trace=0.5), loss=LossConfig(importance_cap=2.0))
    assert found.config.trace == 0.5
    assert found.needs_proximal
    assert not found.needs_reference
    assert not algorithm("grpo").needs_proximal
    assert algorithm("grpo", loss=LossConfig(importance_cap=1.0)).needs_proximal
    assert algorithm("rloo", loss=LossConfig(kl_coefficient=0.5)).needs_reference


def test_an_unknown_algorithm_gets_near_names():
    with pytest.raises(UnknownName, match="unknown algorithm 'gpro'; did you mean 'grpo'"):
        algorithm("gpro")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip_low": 1.0}, "clip_low must be between 0 and 1 .* got 1.0 and 0.28"),
        ({"clip_low": 0.0}, "clip_low must be between 0 and 1 .* got 0.0 and 0.28"),
        ({"clip_high": 0.0}, "clip_high above 0, got 0.2 and 0.0"),
        ({"entropy_coefficient": -0.1}, "^loss.entropy_coefficient must be at least 0, got -0.1"),
        ({"kl_coefficient": -0.1}, "^loss.kl_coefficient must be at least 0, got -0.1"),
        ({"dual_clip": 1.0}, "dual_clip must be 0 or above 1 .* got 1.0"),
        ({"kl_estimator": "k1"}, "k1 in the loss is 0 on average; choose"),
        ({"importance_cap": 0.5}, "importance_cap must be 0 or at least 1, got 0.5"),
        ({"aggregation": "constant"}, "aggregation_constant above 0; got 'constant' and 0"),
        ({"aggregation_constant": 5}, "aggregation_constant above 0; got 'token' and 5"),
        (
            {"aggregation": "constant", "aggregation_constant": -5},
            "aggregation_constant above 0; got 'constant' and -5",
        ),
    ],
)
def test_loss_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        LossConfig(**settings)


def test_defaults_are_those_of_the_docs():
    loss = LossConfig()
    assert (loss.clip_low, loss.clip_high, loss.dual_clip, loss.importance_cap) == (0.2, 0.28, 0, 0)
    assert (loss.ratio, loss.aggregation, loss.entropy_coefficient) == ("token", "token", 0.01)
    assert (loss.kl_coefficient, loss.kl_estimator, loss.kl_in) == (0.0, "k3", "loss")
    assert ReinforcePPConfig() == ReinforcePPConfig("none", "tokens", 1.0)
    assert PPOConfig() == PPOConfig(1.0, 1.0, 0.95, whiten=True)
    assert CriticConfig() == CriticConfig(learning_rate=0.0, clip=0.2)


def test_settings_at_the_edge_of_what_works():
    LossConfig(kl_estimator="k1", kl_in="reward")
    LossConfig(kl_estimator="k1", kl_ratio=True)
    LossConfig(importance_cap=1.0, dual_clip=1.1, clip_low=0.99, clip_high=0.01)
    LossConfig(kl_coefficient=0.0, entropy_coefficient=0.0)
    LossConfig(aggregation="constant", aggregation_constant=1)
    for edge in (0.0, 1.0):
        GiGPOConfig(step_weight=0.0, turn_discount=edge)
        PPOConfig(discount=edge, turn_discount=edge, trace=edge)
    ReinforcePPConfig(discount=1.0)
    ReinforcePPConfig(discount=0.001)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PPOConfig(trace=1.1), r"ppo.trace must be in \[0, 1\], got 1.1"),
        (lambda: PPOConfig(discount=-0.1), r"ppo.discount must be in \[0, 1\], got -0.1"),
        (lambda: PPOConfig(turn_discount=2.0), r"ppo.turn_discount must be in \[0, 1\], got 2.0"),
        (lambda: GiGPOConfig(step_weight=-1.0), "must not be negative .* got -1.0 and 0.95"),
        (lambda: GiGPOConfig(turn_discount=1.5), r"in \[0, 1\], got 1.0 and 1.5"),
        (lambda: ReinforcePPConfig(discount=0.0), r"discount must be in \(0, 1\], got 0.0"),
        (lambda: ReinforcePPConfig(discount=1.5), r"discount must be in \(0, 1\], got 1.5"),
        (
            lambda: ReinforcePPConfig(baseline="group", discount=0.5),
            "compares whole returns; set reinforce_pp.discount to 1, got 0.5",
        ),
    ],
)
def test_settings_of_algorithms_that_cannot_work_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
