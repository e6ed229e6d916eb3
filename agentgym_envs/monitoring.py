"""A monitor of training: rules over the numbers of the last steps, and what a broken one asks for.

A rule watches one number. Its level is the mean over the last `patience` steps that measured it, so
that one odd step says nothing, and the level is held against a fixed limit or against what the run
itself has shown. A rule that fired starts to collect anew: what it asked for needs time to show.

The monitor reads nothing but the log of a run, whatever wrote it, so alarms can be told afterwards
as well (`replay`), and it does nothing: who trains warns, lowers the horizon or stops.

Left out: rules over several numbers at once.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

from agentgym_envs import arguments
from agentgym_envs.rollouts import mean

Action = Literal["off", "warn", "lower", "stop"]
Condition = Literal["above", "below", "rise", "fall", "spike"]

_CONDITIONS, _ACTIONS = get_args(Condition), get_args(Action)
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
    """Checks rules step by step.

    Args:
        rules: by name.
        meanings: what each metric is, by its name; no other may be watched.

    Raises:
        UnknownName: a rule watches a metric that is not there.
        ValueError: a rule that cannot be.
    """

    def __init__(self, rules: Mapping[str, Rule], meanings: Mapping[str, str]) -> None:
        for name, rule in rules.items():
            _check(name, rule, meanings)
        self._rules = {name: rule for name, rule in rules.items() if rule.action != "off"}
        self._meanings = meanings
        self._seen = {name: _Seen() for name in self._rules}

    def check(self, values: Mapping[str, float]) -> list[Alarm]:
        """The rules that are broken after a step.

        Args:
            values: the numbers of the step; one that is missing or not finite tells nothing.
        """
        alarms = []
        for name, rule in self._rules.items():
            value = values.get(rule.metric, math.nan)
            if math.isfinite(value) and (found := _judge(rule, self._seen[name], value)):
                meaning = self._meanings[rule.metric]
                reason = f"monitor.{name}: {rule.metric} ({meaning}) is {found}"
                alarms.append(Alarm(name, rule.action, reason))
        return alarms

    def state_dict(self) -> dict[str, Any]:
        """What the rules remember, as JSON values."""
        return {name: dataclasses.asdict(seen) for name, seen in self._seen.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave; rules that were not there then start anew."""
        for name in self._seen.keys() & state.keys():
            self._seen[name] = _Seen(**state[name])


def _check(name: str, rule: Rule, meanings: Mapping[str, str]) -> None:
    for what, known in (("metric", meanings), ("condition", _CONDITIONS), ("action", _ACTIONS)):
        arguments.one_of(f"{what} of the rule monitor.{name}", getattr(rule, what), known)
    arguments.whole_number(f"monitor.{name}.patience", rule.patience, least=1)
    arguments.finite(f"monitor.{name}.limit", rule.limit)
    possible = {"rise": rule.limit >= 0, "fall": 0 < rule.limit < 1, "spike": rule.limit > 1}
    if not possible.get(rule.condition, True):
        raise ValueError(
            f"monitor.{name}.limit is at least 0 for 'rise', and a factor for the others: between "
            f"0 and 1 for 'fall', above 1 for 'spike'; got {rule.limit:g} for {rule.condition!r}"
        )


def _judge(rule: Rule, seen: _Seen, value: float) -> str:
    """Take in a value; says how far off it is, or "" if nothing is wrong."""
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
        f"{level:.3g}, a mean of {rule.patience}; the bound is {bound:.3g} "
        f"({rule.condition} {rule.limit:g})"
    )


def replay(monitor: Monitor, lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, Alarm]]:
    """The alarms that the log of a run gives rise to, with their steps.

    Args:
        monitor: one that has seen nothing yet.
        lines: the log from the beginning: numbers by name, with ``step`` and ``phase``; what is of
            the phase ``warmup`` is not judged.
    """
    for line in lines:
        if line["phase"] != "warmup":
            yield from ((line["step"], alarm) for alarm in monitor.check(line))
