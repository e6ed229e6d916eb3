"""`AdaptiveHorizon`: longer episodes when the policy has learned what it can at this length.

Episodes that end by the horizon say that more turns might help. They say it from the first step
on, when what is missing is skill. So the horizon is raised when many episodes end by it *and*
success has stopped growing, of all episodes and of those that ended otherwise: what this length
can teach is learned. (Where worlds end by success alone, the second rate is 1 from the start, and
the first one decides.)

It is lowered when success falls far below the best at this horizon, or the invalid share rises far
above its least; at the lowest stage that one begins anew, and with it what is best and least. Three
things keep it from swinging: a stage lasts `min_steps` before it is raised, a sign must hold
`patience` steps in a row, and raising and lowering look at different numbers.

Left out: a horizon a task. Schedules see outcomes, not tasks; for that there are task curricula.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs import arguments
from agentgym_envs.episodes import EndReason
from agentgym_envs.horizons.base import check_stages, check_step
from agentgym_envs.horizons.outcome import EpisodeOutcome

_logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class AdaptiveRules:
    """When an adaptive horizon moves. All rates are over the episodes of some steps together.

    Checked by the schedule that they are given to.
    """

    window: int = 10
    """Steps whose episodes make a rate. Growth compares the newest window with the one before."""
    min_steps: int = 20
    """Steps at a stage before it is raised; at least two windows."""
    patience: int = 3
    """Steps in a row at which a sign must hold."""
    raise_share: float = 0.2
    """Raise only if at least this share of episodes ends by the horizon."""
    min_gain: float = 0.02
    """Success has stopped growing when it gains less than this from one window to the next. With n
    episodes a window the difference has a standard error of up to sqrt(0.5 / n)."""
    max_drop: float = 0.2
    """Lower when success is at least this far below its best window since the stage began."""
    max_invalid_rise: float = 0.35
    """Lower when the share of invalid turns is at least this far above its least window since the
    stage began. Good runs may begin with most replies invalid, so it is the rise that tells."""
    max_invalid: float = 0.8
    """Do not raise while a larger share of turns is invalid."""

    def check(self) -> None:
        """Refuse rules that cannot be kept.

        Raises:
            ValueError: names the rule and its value.
        """
        for name in ("window", "patience"):
            arguments.whole_number(name, getattr(self, name), least=1)
        if arguments.whole_number("min_steps", self.min_steps, least=1) < 2 * self.window:
            raise ValueError(
                f"min_steps must be at least two windows, got min_steps = {self.min_steps} and "
                f"window = {self.window}; raise min_steps or lower window"
            )
        for name in ("raise_share", "min_gain", "max_drop", "max_invalid_rise", "max_invalid"):
            if not 0.0 < arguments.finite(name, getattr(self, name)) <= 1.0:
                raise ValueError(f"{name} is a share above 0, up to 1; got {getattr(self, name)}")


class HorizonChange(NamedTuple):
    """When and why a horizon changed.

    Attributes:
        step: the first step with the new horizon.
        horizon: the new horizon, in turns.
        reason: why, in words.
    """

    step: int
    horizon: int
    reason: str


class AdaptiveHorizon:
    """Raises the horizon when learning at it has stopped, lowers it at signs of collapse.

    Only episodes played at the present horizon count: those that were begun at another one, and
    those in which the world broke, are left out.

    Args:
        stages: the horizons it moves between, in turns; they grow. It begins with the first.
        rules: when it moves.

    Attributes:
        changes: what changed it when, oldest first.

    Raises:
        ValueError: one stage, stages that do not grow, or rules that cannot be kept.
    """

    def __init__(self, stages: Sequence[int], rules: AdaptiveRules | None = None) -> None:
        self.stages = check_stages(stages)
        if len(stages) == 1:
            raise ValueError(
                f"an adaptive horizon moves between at least two stages, got {list(stages)}; "
                "add a longer one, or take a fixed horizon"
            )
        self.rules = rules or AdaptiveRules()
        self.rules.check()
        self.changes: list[HorizonChange] = []
        self._stage = 0
        self._next_step = 0
        self._seen = _Evidence()

    def horizon(self, step: int) -> int:
        """The present horizon, for whatever step is to be played next."""
        check_step(step)
        return self.stages[self._stage]

    def observe(self, step: int, outcomes: Iterable[EpisodeOutcome]) -> None:
        """Take note of the episodes of a step, and move if it is time.

        Raises:
            ValueError: this step or a later one has been observed already.
        """
        if check_step(step) < self._next_step:
            raise ValueError(
                f"step {step} has been observed already, expected {self._next_step} or later; "
                "observe a step once, and load the schedule's state where a run goes on"
            )
        self._next_step = step + 1
        counts = self._count(outcomes)
        if not counts.episodes:
            return
        seen, rules = self._seen, self.rules
        seen.add(counts, rules.window)
        collapse = seen.collapse(rules)
        plateau = "" if collapse else seen.plateau(rules)
        seen.signs_to_lower = seen.signs_to_lower + 1 if collapse else 0
        seen.signs_to_raise = seen.signs_to_raise + 1 if plateau else 0
        if seen.signs_to_lower >= rules.patience:
            self.lower(step, collapse)
        elif seen.signs_to_raise >= rules.patience and seen.steps >= rules.min_steps:
            self._raise(step, plateau)

    def lower(self, step: int, reason: str) -> bool:
        if self._stage > 0:
            self._move(step, self._stage - 1, reason)
            return True
        self._seen = _Evidence()
        return False

    def state_dict(self) -> dict[str, Any]:
        return {
            "horizon": self.stages[self._stage],
            "next_step": self._next_step,
            "seen": {**vars(self._seen), "recent": [list(each) for each in self._seen.recent]},
            "changes": [list(change) for change in self.changes],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        try:
            seen = _Evidence(**state["seen"])
            seen.recent = [_Counts(*counts) for counts in seen.recent]
            changes = [HorizonChange(*change) for change in state["changes"]]
            stage, next_step = self.stages.index(state["horizon"]), int(state["next_step"])
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"not the state of an adaptive horizon with stages {list(self.stages)}: {error!r}"
            ) from error
        self._stage, self._next_step, self._seen, self.changes = stage, next_step, seen, changes

    def _count(self, outcomes: Iterable[EpisodeOutcome]) -> _Counts:
        here = self.stages[self._stage]
        found = [each for each in outcomes if each.is_evidence and each.horizon == here]
        return _Counts(
            episodes=len(found),
            at_horizon=sum(each.end_reason is EndReason.HORIZON for each in found),
            solved=sum(each.success for each in found),
            turns=sum(each.turns for each in found),
            invalid=sum(each.invalid * each.turns for each in found),
        )

    def _raise(self, step: int, reason: str) -> None:
        if self._stage + 1 < len(self.stages):
            self._move(step, self._stage + 1, reason)

    def _move(self, step: int, stage: int, reason: str) -> None:
        self._stage, self._seen = stage, _Evidence()
        self.changes.append(HorizonChange(step + 1, self.stages[stage], reason))
        _logger.info("from step %d on %d turns: %s", *self.changes[-1])

    def __repr__(self) -> str:
        return f"AdaptiveHorizon(stages={list(self.stages)}, rules={self.rules})"


class _Counts(NamedTuple):
    """Episodes of one step, or of several together."""

    episodes: int
    at_horizon: int
    solved: int
    turns: int
    invalid: float
    """Invalid turns."""

    @classmethod
    def total(cls, steps: Sequence[_Counts]) -> _Counts:
        return cls(*(sum(column) for column in zip(*steps, strict=True)))

    @property
    def success(self) -> float:
        return self.solved / self.episodes

    @property
    def success_otherwise(self) -> float:
        """Success of the episodes that did not end by the horizon; 0 if there are none."""
        return self.solved / max(self.episodes - self.at_horizon, 1)

    @property
    def invalid_share(self) -> float:
        return self.invalid / max(self.turns, 1)


@dataclasses.dataclass
class _Evidence:
    """What was seen since the present stage began; the signs are steps in a row."""

    steps: int = 0
    recent: list[_Counts] = dataclasses.field(default_factory=list)
    best_success: float = 0.0
    least_invalid: float = 1.0
    signs_to_raise: int = 0
    signs_to_lower: int = 0

    def add(self, counts: _Counts, window: int) -> None:
        self.steps += 1
        self.recent = [*self.recent, counts][-2 * window :]
        if len(self.recent) >= window:
            now = _Counts.total(self.recent[-window:])
            self.best_success = max(self.best_success, now.success)
            self.least_invalid = min(self.least_invalid, now.invalid_share)

    def collapse(self, rules: AdaptiveRules) -> str:
        """Why the horizon should be lowered, or ""."""
        if len(self.recent) < rules.window:
            return ""
        now = _Counts.total(self.recent[-rules.window :])
        if now.invalid_share - self.least_invalid >= rules.max_invalid_rise:
            return f"invalid turns rose from {self.least_invalid:.0%} to {now.invalid_share:.0%}"
        if self.best_success - now.success >= rules.max_drop:
            return f"success fell from {self.best_success:.0%} to {now.success:.0%}"
        return ""

    def plateau(self, rules: AdaptiveRules) -> str:
        """Why the horizon should be raised, or ""."""
        if len(self.recent) < 2 * rules.window:
            return ""
        before = _Counts.total(self.recent[: rules.window])
        now = _Counts.total(self.recent[rules.window :])
        at_horizon = now.at_horizon / now.episodes
        if at_horizon < rules.raise_share or now.invalid_share > rules.max_invalid:
            return ""
        gain = max(now.success - before.success, now.success_otherwise - before.success_otherwise)
        if gain >= rules.min_gain:
            return ""
        return f"{at_horizon:.0%} end by the horizon and success stays at {now.success:.0%}"
