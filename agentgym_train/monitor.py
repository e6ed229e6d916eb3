"""The collapse monitor: rules over the numbers of the last steps, and what a broken one asks for.

A rule watches one metric. Its level is the mean over the last `patience` steps that measured it, so
that one odd step says nothing, and the level is held against a fixed limit or against what the run
itself has shown. A rule that fired starts to collect anew: what it asked for needs time to show.

The monitor reads nothing but the log, so the alarms of any run can be told afterwards from its
metrics (`replay`), and it does nothing: the loop warns, lowers the horizon or stops.

Left out: rules over several metrics at once.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agentgym_envs.rollouts import mean
from agentgym_train.errors import Collapsed, ConfigError, at_least
from agentgym_train.metrics import METRICS

Action = Literal["off", "warn", "lower", "stop"]
Condition = Literal["above", "below", "rise", "fall", "spike"]

_USUAL = 20
"""Usual is the median of so many steps before those that are judged."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """When something is wrong with one metric, and what is done then."""

    metric: str
    """What is watched."""
    condition: Condition
    """`above` or `below` the limit; `rise`: more than the limit above its lowest level so far;
    `fall`: less than the limit times its highest level so far; `spike`: more than the limit times
    the median of the 20 steps before."""
    limit: float
    """A value of the metric, or, for `fall` and `spike`, a factor."""
    patience: int
    """How many steps that measured the metric are averaged before they are judged."""
    action: Action
    """`warn`; `lower` the horizon, where the schedule can, and warn; `stop` the run, of which the
    best checkpoint is kept; `off`."""


@dataclasses.dataclass(frozen=True)
class MonitorConfig:
    """Rules that are checked after every step but those of the warm-up."""

    invalid: Rule = Rule("rollout/invalid", "rise", 0.35, 10, "lower")
    """The policy forgets how to say what the world understands."""
    repeats: Rule = Rule("rollout/repeats", "above", 0.4, 10, "lower")
    """The policy goes round in circles."""
    success: Rule = Rule("rollout/success", "fall", 0.4, 10, "warn")
    """Training episodes fail that used to succeed, or the tasks have become harder."""
    held_out: Rule = Rule("eval/success", "fall", 0.5, 2, "stop")
    """Held-out tasks fail that used to succeed, at one horizon; patience counts evaluations."""
    unsolved: Rule = Rule("rollout/unsolved", "above", 0.95, 20, "warn")
    """No group holds a success to learn from."""
    entropy_high: Rule = Rule("train/entropy", "rise", 1.0, 10, "stop")
    """The policy dissolves into noise."""
    entropy_low: Rule = Rule("train/entropy", "below", 0.01, 10, "warn")
    """The policy no longer tries anything."""
    sampler_gap: Rule = Rule("train/logprob_gap_mean", "above", 0.1, 3, "stop")
    """The learner trains on another distribution than was sampled from."""
    grad_norm: Rule = Rule("train/grad_norm", "spike", 10.0, 3, "warn")
    """Updates are of another size than they were."""
    turns: Rule = Rule("rollout/turns_success", "spike", 2.0, 10, "warn")
    """Successes take far longer than they did."""

    def __post_init__(self) -> None:
        for name, rule in _rules(self).items():
            at_least(rule, f"monitor.{name}", 1, "patience")
            if rule.metric not in METRICS:
                raise ConfigError(
                    f"monitor.{name}.metric must be a name in agentgym_train/metrics.toml, got "
                    f"{rule.metric!r}"
                )
            if not {"fall": rule.limit < 1, "spike": rule.limit > 1}.get(rule.condition, True):
                raise ConfigError(
                    f"monitor.{name}.limit is a factor, below 1 for 'fall' and above 1 for "
                    f"'spike'; got {rule.limit:g} for {rule.condition!r}"
                )


@dataclasses.dataclass(frozen=True)
class Alarm:
    """A rule that was broken: its name, what it asks for, and what was seen."""

    rule: str
    action: Action
    reason: str


@dataclasses.dataclass
class _Seen:
    """What a rule remembers: values since it last fired, and the extremes of its level."""

    values: list[float] = dataclasses.field(default_factory=list)
    lowest: float = sys.float_info.max
    highest: float = -sys.float_info.max


class Monitor:
    """Checks the rules step by step.

    Args:
        config: the rules.
    """

    def __init__(self, config: MonitorConfig) -> None:
        self._rules = {name: rule for name, rule in _rules(config).items() if rule.action != "off"}
        self._seen = {name: _Seen() for name in self._rules}

    def check(self, values: Mapping[str, float]) -> list[Alarm]:
        """The rules that are broken after a step.

        Args:
            values: the numbers of the step; one that is missing or not finite tells nothing.
        """
        alarms = []
        for name, rule in self._rules.items():
            value = values.get(rule.metric, math.nan)
            if math.isfinite(value) and (reason := _judge(rule, self._seen[name], value)):
                alarms.append(Alarm(name, rule.action, f"monitor.{name}: {reason}"))
        return alarms

    def state_dict(self) -> dict[str, Any]:
        """What the rules remember, as JSON values."""
        return {name: dataclasses.asdict(seen) for name, seen in self._seen.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave; rules that were not there then start anew."""
        for name in self._seen.keys() & state.keys():
            self._seen[name] = _Seen(**state[name])


def _rules(config: MonitorConfig) -> dict[str, Rule]:
    return {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}


def _judge(rule: Rule, seen: _Seen, value: float) -> str:
    """Take in a value; says what is wrong, or "" if nothing is."""
    seen.values = [*seen.values, value][-(rule.patience + _USUAL) :]
    if len(seen.values) < rule.patience:
        return ""
    earlier, level = seen.values[: -rule.patience], mean(seen.values[-rule.patience :])
    seen.lowest, seen.highest = min(seen.lowest, level), max(seen.highest, level)
    usual = statistics.median(earlier) if len(earlier) == _USUAL else math.inf
    bound = {
        "above": rule.limit,
        "below": rule.limit,
        "rise": seen.lowest + rule.limit,
        "fall": seen.highest * rule.limit,
        "spike": usual * rule.limit,
    }[rule.condition]
    if not (level < bound if rule.condition in ("below", "fall") else level > bound):
        return ""
    seen.values = []
    return (
        f"{rule.metric} ({METRICS[rule.metric].meaning}) is {level:.3g}, a mean of {rule.patience};"
        f" the bound is {bound:.3g} ({rule.condition} {rule.limit:g})"
    )


def replay(
    config: MonitorConfig, lines: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[int, Alarm]]:
    """The alarms that the log of a run gives rise to, with their steps.

    Args:
        config: the rules.
        lines: of ``metrics.jsonl``, from the beginning.
    """
    monitor = Monitor(config)
    for line in lines:
        if line["phase"] != "warmup":
            yield from ((line["step"], alarm) for alarm in monitor.check(line))


def collapsed(
    alarms: Sequence[Alarm], run: str | Path, best: Mapping[str, float] | None
) -> Collapsed:
    """The error that stops a run.

    Args:
        alarms: what fired.
        run: folder of the run.
        best: `Progress.best`, the weights that were best on held-out tasks.
    """
    kept = (
        f"the best checkpoint, of step {best['step']} with held-out success {best['success']:.3f}, "
        f"is kept: 'python -m agentgym_train resume {run} --from best' goes on from it"
        if best
        else "no weights were evaluated on held-out tasks, so none are known as the best"
    )
    return Collapsed(
        f"training has collapsed: {'; '.join(alarm.reason for alarm in alarms)}. Read the newest "
        f"episodes in {run}/episodes and the curves of 'python -m agentgym_train report {run}'; "
        f"rules are switched off in [monitor] of {run}/config.toml; {kept}"
    )
