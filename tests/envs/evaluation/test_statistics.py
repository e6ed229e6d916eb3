"""Means over tasks, their intervals, and pass@k."""

import itertools
import math

import numpy as np
import pytest

from agentgym_envs.evaluation import Estimate, estimate, estimates, paired_interval, pass_at_k


@pytest.mark.parametrize("episodes", range(1, 8))
def test_pass_at_k_is_the_share_of_subsets_that_hold_a_success(episodes):
    for solved in range(episodes + 1):
        outcomes = [True] * solved + [False] * (episodes - solved)
        for k in range(1, episodes + 1):
            subsets = list(itertools.combinations(outcomes, k))
            share = sum(any(subset) for subset in subsets) / len(subsets)
            assert pass_at_k(episodes, solved, k) == pytest.approx(share, abs=1e-12)


def test_pass_at_k_is_unbiased_and_the_plug_in_formula_is_not():
    chance, episodes, k = 0.3, 4, 2
    weights = [
        math.comb(episodes, c) * chance**c * (1 - chance) ** (episodes - c)
        for c in range(episodes + 1)
    ]
    mean = sum(w * pass_at_k(episodes, c, k) for c, w in enumerate(weights))
    plug_in = sum(w * (1 - (1 - c / episodes) ** k) for c, w in enumerate(weights))
    assert mean == pytest.approx(1 - (1 - chance) ** k, abs=1e-12)
    assert plug_in < mean - 0.04


@pytest.mark.parametrize(("episodes", "solved", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_pass_at_k_of_too_few_episodes_is_refused(episodes, solved, k):
    with pytest.raises(ValueError, match=f"pass@{k} of {solved} solved in {episodes} episodes"):
        pass_at_k(episodes, solved, k)


def test_the_interval_is_that_of_all_resamples_of_three_tasks():
    values = [0.0, 0.25, 1.0]
    exact = [np.mean(draw) for draw in itertools.product(values, repeat=3)]  # 27, equally likely
    low, high = np.quantile(exact, [0.025, 0.975], method="inverted_cdf")
    found = estimate(values)
    assert found.value == pytest.approx(1.25 / 3)
    assert (found.low, found.high) == pytest.approx((low, high)) == (0.0, 1.0)


def test_the_interval_of_many_tasks_is_the_normal_one():
    solved = [1.0] * 120 + [0.0] * 280
    spread = 1.96 * math.sqrt(0.3 * 0.7 / 400)
    found = estimate(solved)
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - spread, abs=0.006)
    assert found.high == pytest.approx(0.3 + spread, abs=0.006)
    assert found.tasks == 400


def test_the_interval_covers_the_truth_as_often_as_it_says(monkeypatch):
    monkeypatch.setattr("agentgym_envs.evaluation.statistics.RESAMPLES", 500)
    rng = np.random.default_rng(5)
    covered = 0
    for seed in range(200):
        found = estimate((rng.random(50) < 0.6).astype(float), seed=seed)
        covered += found.low <= 0.6 <= found.high
    assert 0.89 <= covered / 200 <= 0.99


@pytest.mark.parametrize("num_tasks", [1, 10, 200])
def test_tasks_that_all_agree_do_not_make_certainty(num_tasks):
    # Clopper and Pearson's limit for 0 of n: the p for which (1 - p)^n is 2.5 %.
    limit = 1 - 0.025 ** (1 / num_tasks)
    assert estimate([0.0] * num_tasks) == Estimate(0.0, 0.0, pytest.approx(limit), num_tasks)
    assert estimate([1.0] * num_tasks) == Estimate(1.0, pytest.approx(1 - limit), 1.0, num_tasks)
    halves = estimate([0.5] * num_tasks)
    assert (halves.low, halves.high) == pytest.approx((0.5 - limit / 2, 0.5 + limit / 2))


def test_tasks_that_agree_but_for_rounding_make_no_certainty_either():
    values = [0.1, 0.1 * 3 / 3, 0.1]
    assert len(set(values)) == 2
    found, same = estimate(values), estimate([0.1] * 3)
    assert (found.low, found.high) == pytest.approx((same.low, same.high))
    assert found.high > 0.7


def test_few_tasks_show_little_however_near_one_another_they_are():
    share = 1 - 0.025**0.5  # what two tasks cannot exclude; the bootstrap of them says 0.9 to 1
    found = estimate([0.9, 1.0])
    assert (found.low, found.high) == pytest.approx((0.95 * (1 - share), 1.0))
    assert paired_interval([0.9, 1.0], [0.0, 0.0]).low == pytest.approx(0.95 - share * 1.95)


def test_one_task_that_differs_does_not_narrow_the_interval():
    all_solved, one_not = estimate([1.0] * 200), estimate([1.0] * 199 + [0.0])
    assert one_not.low < all_solved.low
    assert one_not.high == 1.0


def test_two_equal_policies_seldom_look_different_on_few_tasks(monkeypatch):
    monkeypatch.setattr("agentgym_envs.evaluation.statistics.RESAMPLES", 500)
    rng = np.random.default_rng(2)
    for num_tasks in (2, 3, 5, 10):
        missed = 0
        for _ in range(200):
            first, second = rng.binomial(8, 0.5, size=(2, num_tasks)) / 8
            found = paired_interval(first, second)
            missed += not found.low <= 0 <= found.high
        assert missed <= 20  # 10 of an interval of 95 %; resampling two tasks alone misses 44


def test_clopper_and_pearsons_limit_as_published():
    # The "rule of three" for 95 % one-sided; two-sided for 0 of 10 tables give 0.3085.
    assert estimate([0.0] * 10).high == pytest.approx(0.3085, abs=5e-5)


def test_no_task_says_nothing():
    found = estimate([])
    assert math.isnan(found.value)
    assert (found.low, found.high, found.tasks) == (0.0, 1.0, 0)
    assert found.to_json() == {"value": None, "interval_95": [0.0, 1.0], "tasks": 0}


def test_tasks_without_a_number_are_left_out():
    found = estimate([1.0, math.nan, 1.0, 0.0, math.nan])
    assert found.value == pytest.approx(2 / 3)
    assert found.tasks == 3
    assert estimate([math.nan]).tasks == 0


def test_columns_are_estimated_as_if_each_stood_alone():
    rng = np.random.default_rng(0)
    columns = rng.random((40, 3))
    columns[:, 2] = 1.0
    for index, found in enumerate(estimates(columns)):
        alone = estimate(columns[:, index])
        assert found.to_json()["interval_95"] == pytest.approx([alone.low, alone.high], abs=1e-12)
        assert (found.value, found.tasks) == (pytest.approx(alone.value), alone.tasks)


def test_the_same_seed_gives_the_same_interval_and_chunks_do_not_show(monkeypatch):
    values = np.random.default_rng(1).random(30)
    first = estimate(values)
    assert estimate(values) == first
    assert estimate(values, seed=1) != first
    monkeypatch.setattr("agentgym_envs.evaluation.statistics._MAX_DRAWS", 1)
    one_at_a_time = estimate(values)
    assert one_at_a_time.low == pytest.approx(first.low, abs=0.01)
    assert one_at_a_time.high == pytest.approx(first.high, abs=0.01)


def test_pairing_takes_the_difficulty_of_tasks_out():
    easy_then_hard = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0] * 10
    better = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0] * 10
    paired = paired_interval(better, easy_then_hard)
    assert paired.value == pytest.approx(0.1)
    assert 0.03 < paired.low < paired.high < 0.17
    spread = math.sqrt(0.1 * 0.9 / 100)
    assert paired.high - paired.low == pytest.approx(2 * 1.96 * spread, abs=0.02)


def test_a_difference_of_nothing_is_bounded_on_both_sides():
    limit = 1 - 0.025 ** (1 / 20)
    found = paired_interval([1] * 20, [1] * 20)
    assert found == Estimate(0.0, pytest.approx(-limit), pytest.approx(limit), 20)


def test_pairs_that_lack_a_number_are_left_out():
    assert paired_interval([1, None, 0, 1], [0, 1, None, 0]).tasks == 2
    with pytest.raises(ValueError, match="got 2 and 1"):
        paired_interval([1, 0], [1])
