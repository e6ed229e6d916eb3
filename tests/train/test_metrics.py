"""Numbers of the log."""

import pytest

from agentgym_envs.episodes import EndReason
from agentgym_train.loggers.base import Loggers
from agentgym_train.metrics import METRICS, summarize, wilson_interval


def test_wilson_interval_equals_the_published_example():
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81 of 263.
    low, high = wilson_interval(81, 263)
    assert low == pytest.approx(0.2553, abs=5e-5)
    assert high == pytest.approx(0.3662, abs=5e-5)


def test_wilson_interval_stays_within_0_and_1():
    assert wilson_interval(0, 10)[0] == 0.0
    assert wilson_interval(10, 10)[1] == pytest.approx(1.0)
    assert wilson_interval(10, 10)[1] <= 1.0
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_summary_of_two_groups_worked_by_hand(make_episode):
    won = make_episode([([1, 2], [3], 0.0), ([4], [5, 6], 1.0)], end_reason=EndReason.SUCCESS)
    won.success = True
    lost = make_episode([([1, 2], [3, 4, 5], 0.0)])
    lost.turns[0].action_valid = False
    lost.turns[0].finish_reason = "length"
    broken = make_episode([], end_reason=EndReason.FAULT)
    values = summarize([won, lost, lost, broken], group_size=2)
    assert values["rollout/success"] == pytest.approx(1 / 3)  # faults are not played episodes
    assert values["rollout/turns"] == pytest.approx(4 / 3)
    assert values["rollout/invalid"] == pytest.approx(2 / 4)
    assert values["rollout/cut"] == pytest.approx(2 / 4)
    assert values["rollout/reply_tokens"] == pytest.approx((1 + 2 + 3 + 3) / 4)
    assert values["rollout/episode_tokens"] == pytest.approx((6 + 5 + 5) / 3)
    assert values["rollout/useful"] == pytest.approx(2 / 4)
    assert values["end/fault"] == pytest.approx(1 / 4)
    assert set(values) <= set(METRICS)


def test_a_metric_that_is_not_in_the_table_is_refused():
    with pytest.raises(KeyError, match="train/los"):
        Loggers([]).log(0, "grpo", {"train/los": 1.0})
