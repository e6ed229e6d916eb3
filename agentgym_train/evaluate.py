"""Held-out evaluation: success on fixed tasks at one fixed horizon, with counts and intervals.

Every task is played once with the policy's own sampling and once greedily. The tasks and the
random numbers are the same at every evaluation of a run, so two reports are paired task by task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from agentgym_envs.episodes import EndReason, Episode
from agentgym_envs.tasks import Task
from agentgym_train.errors import ConfigError
from agentgym_train.metrics import mean, wilson_interval
from agentgym_train.rollout.collector import Collector, Interrupt, group_jobs


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """Held-out evaluation."""

    tasks: int = 200
    """Number of tasks of each evaluation."""
    horizon: int = 8
    """Most turns of an evaluation episode, at every step the same."""
    every: int = 20
    """Training steps between evaluations on the dev split; 0 for none. Before and after training
    the test split is used."""

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.horizon < 1 or self.every < 0:
            raise ConfigError(
                "eval.tasks and eval.horizon must be at least 1 and eval.every at least 0, got "
                f"{self.tasks}, {self.horizon} and {self.every}"
            )


@dataclasses.dataclass(frozen=True)
class EvalReport:
    """What an evaluation found.

    Attributes:
        split: the split of the tasks.
        horizon: most turns.
        sampled: whether the goal was reached, by task, sampled at the configured temperature.
        greedy: the same with the likeliest token each time.
        categories: number of tasks and of sampled successes by category.
        faults: episodes that broke; they count as not solved.
    """

    split: str
    horizon: int
    sampled: tuple[bool, ...]
    greedy: tuple[bool, ...]
    categories: dict[str, tuple[int, int]]
    faults: int

    @property
    def success(self) -> float:
        """Share of tasks solved, sampled."""
        return mean(self.sampled)

    @property
    def success_greedy(self) -> float:
        """Share of tasks solved greedily."""
        return mean(self.greedy)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of `success`, over tasks."""
        return wilson_interval(sum(self.sampled), len(self.sampled))

    def metrics(self) -> dict[str, float]:
        """The ``eval/`` numbers."""
        low, high = self.interval
        return {
            "eval/success": self.success,
            "eval/success_low": low,
            "eval/success_high": high,
            "eval/success_greedy": self.success_greedy,
            "eval/episodes": float(len(self.sampled)),
        }

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values, task by task."""
        return {
            "split": self.split,
            "horizon": self.horizon,
            "n": len(self.sampled),
            "success": self.success,
            "interval_95": list(self.interval),
            "success_greedy": self.success_greedy,
            "sampled": [int(solved) for solved in self.sampled],
            "greedy": [int(solved) for solved in self.greedy],
            "categories": {name: list(counts) for name, counts in self.categories.items()},
            "faults": self.faults,
        }

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{sum(self.sampled)}/{len(self.sampled)} = {self.success:.3f} [{low:.2f}, {high:.2f}]"
            f" sampled, {self.success_greedy:.3f} greedy ({self.split}, horizon {self.horizon})"
        )


def evaluate(
    collector: Collector,
    tasks: Sequence[Task],
    *,
    horizon: int,
    interrupt: Interrupt | None = None,
) -> EvalReport:
    """Play every task once sampled and once greedily.

    Args:
        collector: who plays.
        tasks: at least one task, all of one split.
        horizon: most turns.
        interrupt: called between pieces of work.
    """
    if not tasks:
        raise ConfigError("there is no task to evaluate on: the task set is empty")
    jobs = list(group_jobs(tasks, group_size=1, horizon=horizon, seed=collector.seed))
    sampled = collector.collect(jobs, purpose="eval", interrupt=interrupt)
    greedy = collector.collect(jobs, purpose="eval", temperature=0.0, interrupt=interrupt)
    return EvalReport(
        split=tasks[0].split,
        horizon=horizon,
        sampled=tuple(episode.success for episode in sampled),
        greedy=tuple(episode.success for episode in greedy),
        categories=_by_category(sampled),
        faults=sum(e.end_reason is EndReason.FAULT for e in (*sampled, *greedy)),
    )


def _by_category(episodes: Sequence[Episode]) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for episode in episodes:
        tasks, solved = counts.get(episode.task.category, (0, 0))
        counts[episode.task.category] = (tasks + 1, solved + int(episode.success))
    return dict(sorted(counts.items()))
