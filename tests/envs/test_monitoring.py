"""Rules over a log: what breaks them, and what they remember."""

import json
import random

import pytest

from agentgym_envs.errors import UnknownName
from agentgym_envs.monitoring import Monitor, Rule, replay

NAME = "train/grad_norm"
MEANINGS = {NAME: "mean gradient norm", "train/loss": "loss"}


def monitor_of(condition, limit, patience=1, action="warn", metric=NAME):
    """A monitor with one rule."""
    return Monitor({"size": Rule(metric, condition, limit, patience, action)}, MEANINGS)


def fired(monitor, values):
    """The positions of the values at which the rule fires."""
    return [index for index, value in enumerate(values) if monitor.check({NAME: value})]


def test_a_level_is_a_mean_over_patience_steps():
    assert fired(monitor_of("above", 1.0), [1.0, 1.1, 0.9]) == [1]
    assert fired(monitor_of("above", 1.0, 3), [0.0, 0.0, 3.0, 0.1, 0.1]) == [3]  # 3.1 / 3
    assert fired(monitor_of("below", 1.0, 2), [1.0, 1.0, 0.9, 1.2]) == [2]


def test_a_rise_is_counted_from_the_lowest_level():
    assert fired(monitor_of("rise", 0.5), [0.9, 1.3, 0.2, 0.6, 0.8]) == [4]
    assert fired(monitor_of("rise", 0.5, 2), [0.0, 1.0, 0.0, 1.0, 1.1]) == [4]  # 1.05 after 0.5


def test_a_fall_is_a_share_of_the_highest_level():
    assert fired(monitor_of("fall", 0.5), [0.4, 0.3, 0.8, 0.5, 0.3]) == [4]
    assert fired(monitor_of("fall", 0.5), [0.0, 0.0, 0.0]) == []


def test_a_spike_is_a_multiple_of_the_median_of_the_twenty_steps_before():
    usual = [1.0] * 19 + [100.0]  # its median is 1
    assert fired(monitor_of("spike", 10.0), [*usual[:19], 50.0]) == []  # too early to tell
    assert fired(monitor_of("spike", 10.0), [*usual, 10.0, 10.1]) == [21]


def test_a_step_that_did_not_measure_it_tells_nothing():
    monitor = monitor_of("above", 1.0, 2)
    steps = [{NAME: 2.0}, {}, {NAME: float("nan")}, {"train/loss": 9.0}, {NAME: 2.0}]
    assert [len(monitor.check(values)) for values in steps] == [0, 0, 0, 0, 1]


def test_a_rule_that_fired_waits_for_its_patience_again():
    assert fired(monitor_of("above", 1.0, 3), [2.0] * 9) == [2, 5, 8]


def test_a_rule_that_is_off_never_fires():
    assert fired(monitor_of("above", 1.0, action="off"), [2.0] * 9) == []


def test_an_alarm_says_what_was_seen_and_what_is_asked_for():
    (alarm,) = monitor_of("above", 0.5, action="lower").check({NAME: 1.0})
    assert (alarm.rule, alarm.action) == ("size", "lower")
    assert alarm.reason == (
        "monitor.size: train/grad_norm (mean gradient norm) is 1, a mean of 1; the bound is 0.5 "
        "(above 0.5)"
    )


def test_rules_remember_through_json_and_one_that_is_new_starts_anew():
    rng = random.Random(0)
    values = [rng.expovariate(1.0) for _ in range(60)]
    whole = fired(monitor_of("spike", 1.5, 2), values)
    assert whole[0] < 31 < whole[1]
    first, second = monitor_of("spike", 1.5, 2), monitor_of("spike", 1.5, 2)
    found = fired(first, values[:31])
    second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    assert found + [31 + index for index in fired(second, values[31:])] == whole
    other = Monitor({"new": Rule(NAME, "above", 0.0, 40, "warn")}, MEANINGS)
    other.load_state_dict(first.state_dict())
    assert fired(other, [1.0] * 39) == []


def test_a_log_is_judged_afterwards_but_for_its_warm_up():
    lines = [{"step": step, "phase": "play", NAME: float(step)} for step in range(4)]
    lines[3]["phase"] = "warmup"
    assert [step for step, _ in replay(monitor_of("above", 1.0), lines)] == [2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": 0}, "monitor.size.patience must be a whole number of at least 1, got 0"),
        ({"patience": 2.5}, "monitor.size.patience must be a whole number .* got 2.5"),
        ({"limit": 1.5}, "monitor.size.limit is .* a factor .* got 1.5 for 'fall'"),
        ({"limit": 0.0}, "monitor.size.limit is .* a factor .* got 0 for 'fall'"),
        ({"condition": "spike"}, "monitor.size.limit is .* a factor .* got 0.5 for 'spike'"),
        ({"condition": "rise", "limit": -1.0}, "monitor.size.limit is at least 0 .* got -1"),
        ({"limit": float("nan")}, "monitor.size.limit must be a finite number, got nan"),
        ({"condition": "abov"}, "unknown condition of the rule monitor.size 'abov'.*'above'"),
        ({"action": "wran"}, "unknown action of the rule monitor.size 'wran'.*'warn'"),
    ],
)
def test_rules_that_cannot_be_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        monitor_of(**{"condition": "fall", "limit": 0.5} | settings)


def test_a_metric_that_is_not_there_suggests_one_that_is():
    with pytest.raises(UnknownName, match=r"rule monitor.size 'train/los'; did you .*'train/loss'"):
        monitor_of("above", 1.0, metric="train/los")
