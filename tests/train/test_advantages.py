"""Estimators against numbers worked by hand and against sums written out."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_train.algorithms.advantages import (
    alone,
    gae,
    group_advantages,
    has_spread,
    leave_one_out,
    moments,
    step_advantages,
    whiten,
)


def test_returns_one_and_zero_give_one_over_root_two():
    np.testing.assert_allclose(group_advantages([1, 0]), [0.70710578, -0.70710578], atol=1e-8)


def test_the_standard_deviation_is_the_unbiased_one():
    # mean 2, squared deviations 4 + 1 + 0 + 1 + 4 = 10, over 4: 2.5
    expected = np.array([-2, -1, 0, 1, 2]) / np.sqrt(2.5)
    np.testing.assert_allclose(group_advantages([0, 1, 2, 3, 4]), expected, atol=1e-5)


def test_epsilon_is_added_to_the_standard_deviation():
    expected = np.array([0.5, -0.5]) / (np.sqrt(0.5) + 1e-6)
    np.testing.assert_allclose(group_advantages([1, 0]), expected, rtol=1e-12)


def test_without_standard_deviation_only_the_mean_is_subtracted():
    assert group_advantages([1, 0, 0, 0], normalize_std=False).tolist() == [0.75, *[-0.25] * 3]


def test_leave_one_out_compares_with_the_mean_of_the_others():
    returns = np.array([0.3, 0.9, 0.1, 0.5])
    expected = [value - np.delete(returns, i).mean() for i, value in enumerate(returns)]
    np.testing.assert_allclose(leave_one_out(returns), expected, rtol=1e-12)


def test_leave_one_out_is_larger_than_the_deviation_from_the_mean_by_n_over_n_minus_one():
    assert leave_one_out([1, 0, 0, 0]).tolist() == [1.0, *[-1 / 3] * 3]
    ours = group_advantages([1, 0, 0, 0], normalize_std=False)
    np.testing.assert_allclose(leave_one_out([1, 0, 0, 0]), 4 / 3 * ours, rtol=1e-12)


@pytest.mark.parametrize("estimate", [group_advantages, leave_one_out])
@pytest.mark.parametrize("returns", [[0, 0, 0], [0.1 + 0.2, 0.3, 0.3], [0, 0, 1e-8]])
def test_a_group_without_spread_gets_exact_zeros(estimate, returns):
    assert not has_spread(returns)
    assert estimate(returns).tolist() == [0, 0, 0]
    assert estimate(returns).dtype == np.float64


def test_a_spread_as_small_as_a_step_penalty_counts():
    assert has_spread([1.0, 1.0 - 1e-6]) is True
    assert has_spread([0.0, 1.1e-8])  # numbers no more than 1e-8 apart are the same


@pytest.mark.parametrize("estimate", [group_advantages, leave_one_out])
def test_one_return_has_nothing_to_compare_with(estimate):
    with pytest.raises(ValueError, match="at least 2 returns, got 1"):
        estimate([1.0])


def test_steps_are_compared_with_those_of_the_same_state_only():
    keys = ["a", "b", "a", "c", "b", "b"]
    returns = np.array([1.0, 4.0, 3.0, 9.0, 1.0, 1.0])
    # a: 1 and 3, mean 2; b: 4, 1, 1, mean 2; c stands alone.
    found = step_advantages(keys, returns, normalize_std=False)
    assert found.tolist() == [-1.0, 2.0, 1.0, 0.0, -1.0, -1.0]
    root2, root3 = np.sqrt(2), np.sqrt(3)  # unbiased standard deviations
    expected = [-1 / root2, 2 / root3, 1 / root2, 0.0, -1 / root3, -1 / root3]
    np.testing.assert_allclose(step_advantages(keys, returns), expected, atol=2e-6)


def test_there_are_no_step_advantages_of_nothing():
    assert step_advantages([], np.zeros(0)).shape == (0,)


# ------------------------------------------------------------------------------------------- gae


def turns_of(*lengths):
    return np.repeat(np.arange(len(lengths)), lengths)


def gae_written_out(rewards, values, turns, *, final_value, discount, turn_discount, trace):
    """The definition as a double sum: A_k = sum over j >= k of (prod of g trace) delta_j."""
    n = len(rewards)
    following = [*values[1:], final_value]
    g = [discount if k + 1 < n and turns[k + 1] == turns[k] else turn_discount for k in range(n)]
    deltas = [rewards[k] + g[k] * following[k] - values[k] for k in range(n)]
    return [
        sum(np.prod([g[i] * trace for i in range(k, j)]) * deltas[j] for j in range(k, n))
        for k in range(n)
    ]


def test_gae_of_three_tokens_worked_by_hand():
    # Two turns of two tokens and one; a reward of 2 at the end of the first, 1 at the end.
    # deltas: 0 + 0.5 * 2 - 1 = 0; 2 + 0.9 * 3 - 2 = 2.7; 1 + 0.9 * 4 - 3 = 1.6
    # A2 = 1.6; A1 = 2.7 + 0.9 * 0.8 * 1.6 = 3.852; A0 = 0 + 0.5 * 0.8 * 3.852 = 1.5408
    found = gae(
        np.array([0.0, 2.0, 1.0]),
        np.array([1.0, 2.0, 3.0]),
        turns_of(2, 1),
        final_value=4.0,
        discount=0.5,
        turn_discount=0.9,
        trace=0.8,
    )
    np.testing.assert_allclose(found, [1.5408, 3.852, 1.6], rtol=1e-12)


@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
    rates=st.tuples(*[st.floats(0, 1)] * 3),
)
def test_gae_equals_its_definition_as_a_double_sum(lengths, seed, rates):
    rng = np.random.default_rng(seed)
    turns = turns_of(*lengths)
    rewards, values = rng.normal(size=len(turns)), rng.normal(size=len(turns))
    settings = dict(zip(("discount", "turn_discount", "trace"), rates, strict=True))
    settings["final_value"] = rng.normal()
    expected = gae_written_out(rewards, values, turns, **settings)
    np.testing.assert_allclose(gae(rewards, values, turns, **settings), expected, atol=1e-12)


def test_a_perfect_critic_leaves_no_advantage():
    rewards = np.array([0.0, 0.0, 0.25, 0.0, 1.0])
    perfect = np.cumsum(rewards[::-1])[::-1].copy()  # the return from each token on
    assert gae(rewards, perfect, turns_of(2, 1, 2), trace=0.95).tolist() == [0.0] * 5


def test_with_a_trace_of_one_the_advantages_telescope_to_return_minus_value():
    rewards = np.array([0.0, 0.5, 0.0, 1.0])
    values = np.array([0.3, -0.1, 0.8, 0.2])
    expected = np.array([1.5, 1.5, 1.0, 1.0]) - values
    np.testing.assert_allclose(gae(rewards, values, turns_of(2, 2)), expected, rtol=1e-12)


def test_without_values_it_is_the_discounted_return():
    # 1 at the end of the third turn: half a turn before that, a fifth a token.
    rewards = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    found = gae(rewards, np.zeros(5), turns_of(1, 2, 2), discount=0.2, turn_discount=0.5)
    np.testing.assert_allclose(found, [0.01, 0.02, 0.1, 0.2, 1.0], rtol=1e-12)


def test_a_final_value_is_what_would_have_come():
    found = gae(np.zeros(2), np.zeros(2), turns_of(1, 1), final_value=2.0, turn_discount=0.5)
    assert found.tolist() == [0.5, 1.0]
    assert gae(np.zeros(2), np.zeros(2), turns_of(1, 1)).tolist() == [0.0, 0.0]


# ---------------------------------------------------------------------------------------- whiten

ARRAYS = [np.array([1.0, 2.0, 6.0]), np.array([3.0])]


def test_moments_count_every_number_or_every_array_the_same():
    # 1, 2, 6, 3: mean 3, squared deviations 4 + 1 + 9 + 0, over 3
    assert moments(ARRAYS, alone) == pytest.approx((3.0, np.sqrt(14 / 3)))
    # means 3 and 3: mean 3; ((4 + 1 + 9) / 3 + 0) / (2 - 1)
    assert moments(ARRAYS, alone, per_array=True) == pytest.approx((3.0, np.sqrt(14 / 3)))
    # arrays of means 1.5 and 6: by number 3, by array 3.75
    uneven = [np.array([1.0, 2.0]), np.array([6.0])]
    assert moments(uneven, alone) == pytest.approx((3.0, np.sqrt((4 + 1 + 9) / 2)))
    by_array = ((2.75**2 + 1.75**2) / 2 + 2.25**2) / 1
    assert moments(uneven, alone, per_array=True) == pytest.approx((3.75, np.sqrt(by_array)))


def test_moments_of_nothing_and_of_one_number_are_zero_and_it():
    assert moments([], alone) == (0.0, 0.0)
    assert moments([np.array([5.0])], alone) == (5.0, 0.0)


def test_whitened_numbers_have_mean_zero_and_standard_deviation_one_and_keep_their_order():
    white = whiten(ARRAYS, alone)
    assert [len(array) for array in white] == [3, 1]
    expected = (np.array([1.0, 2.0, 6.0, 3.0]) - 3) / np.sqrt(14 / 3)
    np.testing.assert_allclose(np.concatenate(white), expected, rtol=1e-6)


def test_long_arrays_do_not_set_the_mean_when_arrays_weigh_the_same():
    success, failure = np.ones(1), np.zeros(9)
    by_number = whiten([success, failure], alone)
    by_array = whiten([success, failure], alone, per_array=True)
    # by number: mean 0.1, variance (0.81 + 9 * 0.01) / 9 = 0.1; by array: mean 0.5, variance 0.5
    assert by_number[0][0] == pytest.approx(0.9 / np.sqrt(0.1))
    assert by_number[1][0] == pytest.approx(-0.1 / np.sqrt(0.1))
    assert by_array[0][0] == pytest.approx(0.5 / np.sqrt(0.5))
    assert by_array[1][0] == pytest.approx(-0.5 / np.sqrt(0.5))


ROUNDED = np.array([-1e-8, 0.0, 1e-8])  # a standard deviation of 1e-8


@pytest.mark.parametrize("arrays", [[np.full(3, 0.1)], [np.array([7.0])], [ROUNDED]])
def test_numbers_equal_but_for_rounding_become_exact_zeros(arrays):
    assert [array.tolist() for array in whiten(arrays, alone)] == [[0.0] * len(arrays[0])]


def test_there_is_nothing_to_whiten():
    assert whiten([], alone) == []


@pytest.mark.parametrize("per_array", [False, True])
def test_ranks_whiten_together_as_one_would(per_array):
    rng = np.random.default_rng(3)
    arrays = [rng.normal(2, 3, size=n) for n in (3, 1, 5, 2)]
    shares = [arrays[:3], arrays[3:], []]  # the last rank has none
    sent: list[np.ndarray] = [np.zeros(0)] * 3
    barrier = threading.Barrier(3, timeout=20)

    def on_rank(rank):
        def total(values):
            sent[rank] = values
            barrier.wait()
            summed = sum(sent)
            barrier.wait()
            return summed

        return whiten(shares[rank], total, per_array=per_array)

    with ThreadPoolExecutor(3) as pool:
        found = [array for part in pool.map(on_rank, range(3)) for array in part]
    for one, other in zip(found, whiten(arrays, alone, per_array=per_array), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
