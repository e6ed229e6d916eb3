"""Rules over the log: what breaks them, what they remember, and what a stop says."""

import dataclasses
import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentgym_envs.horizons import AdaptiveHorizon
from agentgym_envs.monitoring import Rule, replay
from agentgym_train.config import TrainConfig, config_from_dict, config_to_dict
from agentgym_train.errors import ConfigError
from agentgym_train.loop import _watch
from agentgym_train.metrics import METRICS
from agentgym_train.monitor import MonitorConfig, collapsed

OFF = MonitorConfig(
    **{
        field.name: dataclasses.replace(getattr(MonitorConfig(), field.name), action="off")
        for field in dataclasses.fields(MonitorConfig)
    }
)
NAME = "train/grad_norm"


def monitor_of(condition, limit, patience=1, action="warn"):
    """A monitor with one rule."""
    rule = Rule(NAME, condition, limit, patience, action)
    return dataclasses.replace(OFF, grad_norm=rule).build()


def test_an_alarm_says_what_was_seen_and_what_is_asked_for():
    (alarm,) = monitor_of("above", 0.5, action="lower").check({NAME: 1.0})
    assert (alarm.rule, alarm.action) == ("grad_norm", "lower")
    assert alarm.reason == (
        "monitor.grad_norm: train/grad_norm (mean gradient norm before clipping) is 1, a mean of 1;"
        " the bound is 0.5 (above 0.5)"
    )


def test_a_restored_monitor_goes_on_as_if_nothing_had_happened():
    rng = random.Random(0)
    names = {getattr(MonitorConfig(), field.name).metric for field in dataclasses.fields(OFF)}
    steps = [
        {name: rng.expovariate(1) * (1 + step / 20) for name in sorted(names) if rng.random() < 0.9}
        for step in range(120)
    ]
    whole = MonitorConfig().build()
    expected = [whole.check(values) for values in steps]
    assert sum(map(bool, expected)) > 10
    for cut in (0, 1, 17, 60):
        first = MonitorConfig().build()
        found = [first.check(values) for values in steps[:cut]]
        second = MonitorConfig().build()
        second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
        found += [second.check(values) for values in steps[cut:]]
        assert found == expected
        assert second.state_dict() == whole.state_dict()


def test_rules_may_be_switched_between_two_runs_of_a_state():
    monitor = monitor_of("above", 1.0, 2)
    monitor.check({NAME: 2.0})
    other = dataclasses.replace(OFF, turns=Rule(NAME, "above", 1.0, 2, "warn")).build()
    other.load_state_dict(monitor.state_dict())
    assert other.check({NAME: 2.0}) == []  # the rule is new, so it has seen one value


def test_wrong_rules_are_refused_by_name():
    rule = MonitorConfig().invalid
    with pytest.raises(ConfigError, match=r"monitor.invalid.patience must be .* at least 1, got 0"):
        MonitorConfig(invalid=dataclasses.replace(rule, patience=0))
    with pytest.raises(ConfigError, match=r"of the rule monitor.turns 'rollout/turn'; did you me"):
        MonitorConfig(turns=dataclasses.replace(rule, metric="rollout/turn"))
    with pytest.raises(ConfigError, match=r"held_out.limit is .* a factor .* got 1.5 for 'fall'"):
        MonitorConfig(held_out=dataclasses.replace(rule, condition="fall", limit=1.5))
    with pytest.raises(ConfigError, match=r"turns.limit is .* a factor .* got 1 for 'spike'"):
        MonitorConfig(turns=dataclasses.replace(rule, condition="spike", limit=1.0))


def test_a_rule_is_switched_by_one_line_and_keeps_the_rest_of_its_defaults():
    config = config_from_dict({"monitor": {"invalid": {"action": "off"}}})
    expected = dataclasses.replace(MonitorConfig().invalid, action="off")
    assert config.monitor == MonitorConfig(invalid=expected)
    assert config_from_dict(config_to_dict(config)) == config
    with pytest.raises(ConfigError, match=r"monitor.invalid.action must be one of 'off', 'warn'"):
        config_from_dict({"monitor": {"invalid": {"action": "explode"}}})


def course(success, *, steps=100, **others):
    """Lines of a log whose success moves evenly between two values."""
    low, high = success
    lines = [{"step": step, "phase": "warmup", "train/entropy": 9.0} for step in range(5)]
    for index in range(steps):
        value = low + (high - low) * index / (steps - 1)
        values = {
            "rollout/success": value,
            "rollout/invalid": 0.5 - 0.4 * value,
            "rollout/unsolved": max(0.0, 0.4 - value),
            "rollout/turns_success": 6.0 - 2 * value,
            "rollout/repeats": 0.05,
            "train/entropy": 1.2 - value,
            "train/grad_norm": 0.5 + value,
            "train/logprob_gap_mean": 2e-7,
        }
        if index % 20 == 0:
            values["eval/success"] = value
        moved = {
            name: start + (end - start) * index / steps for name, (start, end) in others.items()
        }
        lines.append({"step": 5 + index, "phase": "grpo"} | values | moved)
    return lines


def test_a_run_that_learns_raises_no_alarm():
    assert list(replay(MonitorConfig().build(), course((0.3, 0.98)))) == []
    assert list(replay(MonitorConfig().build(), course((0.6, 0.6)))) == []


def alarms_of(lines):
    return {(alarm.rule, alarm.action) for _, alarm in replay(MonitorConfig().build(), lines)}


def test_a_run_that_collapses_is_stopped_and_the_horizon_lowered_before():
    lines = course((0.6, 0.0), **{"rollout/invalid": (0.4, 1.0), "train/entropy": (1.0, 4.0)})
    expected = {("success", "warn"), ("held_out", "stop"), ("invalid", "lower")}
    assert alarms_of(lines) >= expected | {("entropy_high", "stop")}
    alarms = list(replay(MonitorConfig().build(), lines))
    when = {alarm.rule: step for step, alarm in reversed(alarms)}
    assert when["entropy_high"] < when["held_out"]


@pytest.mark.parametrize(
    ("metric", "values", "rule", "action"),
    [
        ("rollout/repeats", (0.1, 0.9), "repeats", "lower"),
        ("rollout/unsolved", (1.0, 1.0), "unsolved", "warn"),
        ("train/entropy", (0.05, 0.0), "entropy_low", "warn"),
        ("train/logprob_gap_mean", (0.01, 0.2), "sampler_gap", "stop"),
    ],
)
def test_each_sign_has_its_rule(metric, values, rule, action):
    assert (rule, action) in alarms_of(course((0.5, 0.6), **{metric: values}))


def test_jumps_of_the_gradient_norm_and_of_the_turns_are_told():
    lines = course((0.5, 0.6))
    for line in lines[60:]:
        line["train/grad_norm"] = 40.0
        line["rollout/turns_success"] = 12.0
    assert alarms_of(lines) == {("grad_norm", "warn"), ("turns", "warn")}


def test_what_an_adaptive_horizon_has_lowered_is_not_lowered_again_for_the_same_step():
    schedule = AdaptiveHorizon([2, 4, 8, 16])
    schedule.load_state_dict(schedule.state_dict() | {"horizon": 16})
    parts = SimpleNamespace(
        monitor=monitor_of("above", 1.0, action="lower"), horizon=schedule, config=TrainConfig()
    )
    schedule.lower(5, "its own reason")
    for step, played, left in ((5, 16, 8), (6, 8, 4), (7, 4, 2)):
        assert _watch(parts, step, {NAME: 2.0, "rollout/horizon": float(played)}) == []
        assert schedule.horizon(step + 1) == left
    assert [change.step for change in schedule.changes] == [6, 7, 8]


def test_a_stop_says_what_fired_what_to_look_at_and_where_the_best_is():
    alarms = monitor_of("above", 1.0, action="stop").check({NAME: 2.0})
    text = str(collapsed(alarms, "runs/one", {"step": 38, "success": 0.505}))
    for part in (
        "monitor.grad_norm: train/grad_norm",
        "runs/one/episodes",
        "[monitor] of runs/one/config.toml",
        "the best checkpoint, of step 38 with held-out success 0.505, is kept",
        "--model.path runs/one/checkpoints/step-000038/model",
    ):
        assert part in text
    assert "\n" not in text
    assert "none are known as the best" in str(collapsed(alarms, "runs/one", None))


def test_the_docs_explain_every_rule_as_it_is():
    page = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for field in dataclasses.fields(MonitorConfig):
        rule = getattr(MonitorConfig(), field.name)
        row = f"| `{field.name}` | `{rule.metric}` | {rule.condition} {rule.limit:g} |"
        assert f"{row} {rule.patience} | {rule.action} |" in page
        assert rule.metric in METRICS
