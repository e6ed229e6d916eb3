from __future__ import annotations

import numpy as np
import pytest

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import UnknownName
from agentgym_train.algorithms import ALGORITHMS, algorithm
from agentgym_train.algorithms.advantages import group_advantages, has_spread
from agentgym_train.algorithms.grpo import GRPO, GRPOConfig
from agentgym_train.algorithms.sft import SFT, SFTConfig
from agentgym_train.errors import ConfigError, TokenError


def group_of(make_episode, returns, *, reasons=None, task_id="t/0"):
    reasons = reasons or [EndReason.HORIZON] * len(returns)
    return [
        make_episode(
            [([5], [1, 2], 0.0), ([6], [3], value)],
            end_reason=reason,
            task_id=task_id,
            member=member,
        )
        for member, (value, reason) in enumerate(zip(returns, reasons, strict=True))
    ]


def advantages_of(samples):
    for sample in samples:
        assert len(set(sample.advantages)) == 1  # one number an episode, on each sampled token
    return [float(sample.advantages[0]) for sample in samples]


def test_returns_one_and_zero_give_one_over_root_two():
    np.testing.assert_allclose(group_advantages([1, 0]), [0.70710578, -0.70710578], atol=1e-8)


def test_the_standard_deviation_is_the_unbiased_one():
    # mean 2, squared deviations 4 + 1 + 0 + 1 + 4 = 10, over 4: 2.5
    expected = np.array([-2, -1, 0, 1, 2]) / np.sqrt(2.5)
    np.testing.assert_allclose(group_advantages([0, 1, 2, 3, 4]), expected, atol=1e-5)


def test_without_standard_deviation_only_the_mean_is_subtracted():
    assert group_advantages([1, 0, 0, 0], normalize_std=False).tolist() == [0.75, *[-0.25] * 3]


def test_without_standard_deviation_leave_one_out_is_larger_by_n_over_n_minus_one():
    returns = np.array([0.3, 0.9, 0.1, 0.5])
    leave_one_out = [r - np.delete(returns, i).mean() for i, r in enumerate(returns)]
    ours = group_advantages(returns, normalize_std=False)
    np.testing.assert_allclose(leave_one_out, 4 / 3 * ours, rtol=1e-12)


@pytest.mark.parametrize("returns", [[0, 0, 0], [0.1 + 0.2, 0.3, 0.3]])
def test_a_group_without_spread_gets_zeros(returns):
    assert not has_spread(returns)
    assert group_advantages(returns).tolist() == [0, 0, 0]


def test_one_return_has_nothing_to_compare_with():
    with pytest.raises(ValueError, match="at least 2 returns, got 1"):
        group_advantages([1.0])


def test_grpo_gives_every_sampled_token_its_episodes_advantage(make_episode):
    groups = [group_of(make_episode, [1.0, 0.0]), group_of(make_episode, [3.0, 1.0, 2.0])]
    samples = GRPO().assign(groups, step=0)
    assert [sample.num_sampled for sample in samples] == [3] * 5
    expected = [0.7071, -0.7071, 1.0, -1.0, 0.0]
    np.testing.assert_allclose(advantages_of(samples), expected, atol=1e-4)


def test_grpo_leaves_out_groups_without_spread(make_episode):
    groups = [group_of(make_episode, [0.0, 0.0]), group_of(make_episode, [1.0, 0.0])]
    assert len(GRPO().assign(groups, step=0)) == 2
    assert GRPO().assign(groups[:1], step=0) == []


def test_grpo_may_keep_groups_without_spread_with_zero_advantage(make_episode):
    group = group_of(make_episode, [0.0, 0.0])
    samples = GRPO(GRPOConfig(drop_zero_variance=False)).assign([group], step=0)
    assert advantages_of(samples) == [0.0, 0.0]


def test_a_group_with_an_episode_that_broke_is_dropped_by_default(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason.FAULT]
    broken = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    whole = group_of(make_episode, [1.0, 0.0])
    assert advantages_of(GRPO().assign([broken, whole], step=0)) == advantages_of(
        GRPO().assign([whole], step=0)
    )


@pytest.mark.parametrize("reason", ["fault", "context", "budget", "stopped"])
def test_an_episode_that_broke_or_was_cut_off_changes_no_siblings_advantage(make_episode, reason):
    whole = group_of(make_episode, [1.0, 0.0, 0.0])
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason(reason), EndReason.FAILURE]
    with_broken = group_of(make_episode, [1.0, 0.0, 100.0, 0.0], reasons=reasons)
    found = GRPO(GRPOConfig(drop_group_on_fault=False)).assign([with_broken], step=0)
    assert len(found) == 3
    assert advantages_of(found) == advantages_of(GRPO().assign([whole], step=0))


def test_a_broken_episode_needs_no_token_record(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason.FAULT]
    group = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    group[2].turns.clear()
    assert len(GRPO(GRPOConfig(drop_group_on_fault=False)).assign([group], step=0)) == 2


def test_end_reasons_can_be_let_in_but_a_fault_never(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.CONTEXT, EndReason.FAULT]
    group = group_of(make_episode, [1.0, 0.0, 0.0], reasons=reasons)
    masking = GRPO(GRPOConfig(drop_group_on_fault=False))
    assert masking.assign([group], step=0) == []  # one is left, nothing to compare with
    keeping = GRPO(GRPOConfig(drop_group_on_fault=False, masked_end_reasons=()))
    assert len(keeping.assign([group], step=0)) == 2


def test_a_group_of_one_is_refused(make_episode):
    with pytest.raises(ValueError, match="at least 2 episodes to compare, got 1"):
        GRPO().assign([group_of(make_episode, [1.0])], step=0)


def test_a_group_of_different_tasks_is_refused(make_episode):
    mixed = group_of(make_episode, [1.0]) + group_of(make_episode, [0.0], task_id="t/1")
    with pytest.raises(ValueError, match=r"same task and seed, got \[\('t/0', 0\), \('t/1', 0\)\]"):
        GRPO().assign([mixed], step=0)


def test_a_running_episode_is_refused(make_episode):
    group = group_of(make_episode, [1.0, 0.0], reasons=[EndReason.SUCCESS, EndReason.RUNNING])
    with pytest.raises(ValueError, match="episode of task 't/0' has not ended"):
        GRPO().assign([group], step=0)


def test_a_contradicting_record_is_never_trained_on(make_episode):
    group = group_of(make_episode, [1.0, 0.0])
    group[1].turns[0].logprobs = [-1.0]
    with pytest.raises(TokenError, match="member 1: turn 0 has 2 sampled tokens but 1"):
        GRPO().assign([group], step=0)


def test_permuted_rewards_stay_in_their_group_and_depend_on_seed_and_step(make_episode):
    groups = [
        group_of(make_episode, list(range(8)), task_id="t/0"),
        group_of(make_episode, list(range(10, 18)), task_id="t/1"),
    ]
    config = GRPOConfig(permute_rewards=True, normalize_std=False)

    def assign(seed, step):
        return advantages_of(GRPO(config, seed=seed).assign(groups, step))

    deviations = [i - 3.5 for i in range(8)]
    permuted = assign(0, 0)
    assert sorted(permuted[:8]) == sorted(permuted[8:]) == deviations
    assert permuted[:8] != deviations
    assert permuted[:8] != permuted[8:]
    assert assign(0, 0) == permuted
    assert assign(0, 1) != permuted
    assert assign(1, 0) != permuted


def test_permuted_rewards_say_nothing_about_the_episode(make_episode):
    group = group_of(make_episode, [1.0] * 4 + [0.0] * 4)
    control = GRPO(GRPOConfig(permute_rewards=True, normalize_std=False))
    means = np.mean([advantages_of(control.assign([group], step)) for step in range(400)], axis=0)
    # Each is 0.5 or -0.5; the mean of 400 has a standard error of 0.025.
    assert np.abs(means).max() < 0.1


def test_sft_takes_successes_and_ignores_the_teachers_log_probabilities(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.HORIZON, EndReason.FAULT, EndReason.CONTEXT]
    group = group_of(make_episode, [1.0, 0.0, 0.0, 0.0], reasons=reasons)
    (sample,) = SFT().assign([group], step=0)
    assert sample.old_logprobs is None
    assert sample.advantages is None
    assert len(SFT(SFTConfig(successes_only=False)).assign([group], step=0)) == 2


def test_algorithms_are_found_by_name():
    assert [algorithm(name).name for name in ALGORITHMS] == ["grpo", "sft"]
    config = GRPOConfig(kl_coefficient=0.5)
    assert algorithm("grpo", config, seed=3).needs_reference
    assert not algorithm("grpo").needs_reference


def test_an_unknown_algorithm_gets_near_names():
    with pytest.raises(UnknownName, match="unknown algorithm 'gpro'; did you mean 'grpo'"):
        algorithm("gpro")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip_low": 1.0}, "clip_low must be between 0 and 1 .* got 1.0 and 0.28"),
        ({"clip_high": 0.0}, "clip_high above 0, got 0.2 and 0.0"),
        ({"entropy_coefficient": -0.1}, "must not be negative, got 0.0 and -0.1"),
        ({"masked_end_reasons": ("timeout",)}, r"unknown end reasons \['timeout'\]; valid are"),
    ],
)
def test_grpo_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        GRPOConfig(**settings)
