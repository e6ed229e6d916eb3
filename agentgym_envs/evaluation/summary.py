"""What the episodes of an evaluation say, as one frozen `Summary`.

A fault is no result: such episodes are counted and left out of everything else. The mean of a task
comes first, the mean over tasks second, so tasks weigh the same however many of their episodes
broke.

The grid answers "how far does the policy get in h turns and k tries" from one set of episodes,
played at the largest horizon: an episode counts as solved within h turns if it ended with success
at turn h or before. That is exact as long as neither world nor policy knows the horizon; a policy
that is told how many turns are left must be played at each.

Left out: success as "score above 0". Success is the environment's own flag.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from agentgym_envs.episodes import EndReason, Episode
from agentgym_envs.errors import InvalidEvaluation
from agentgym_envs.evaluation.statistics import Estimate, estimates, pass_at_k
from agentgym_envs.tasks import Task

SUMMARY_SCHEMA = 1


@dataclasses.dataclass(frozen=True)
class TaskResult:
    """The episodes of one task.

    Attributes:
        id: of the task.
        category: of the task.
        episodes: how many were played to an end.
        solved: how many of them ended with success.
        score: their mean final score, or None if there is none.
        faults: how many broke.
    """

    id: str
    category: str
    episodes: int
    solved: int
    score: float | None
    faults: int

    @property
    def success(self) -> float | None:
        """Share of the episodes that were solved."""
        return self.solved / self.episodes if self.episodes else None


@dataclasses.dataclass(frozen=True)
class Grid:
    """pass@k by horizon.

    Attributes:
        horizons: most turns, ascending; the last is that of the evaluation.
        ks: numbers of tries, ascending; the column of 1 is avg@k, the mean success.
        cells: an estimate for each horizon and k.
    """

    horizons: tuple[int, ...]
    ks: tuple[int, ...]
    cells: tuple[tuple[Estimate, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """The grid as JSON values."""
        return {
            "horizons": list(self.horizons),
            "ks": list(self.ks),
            "cells": [[cell.to_json() for cell in row] for row in self.cells],
        }


@dataclasses.dataclass(frozen=True)
class Summary:
    """The figures of an evaluation.

    Attributes:
        success: mean over tasks of the share of episodes solved: avg@k.
        score: mean over tasks of the mean final score.
        grid: pass@k by horizon.
        categories: success and score by category, sorted by name.
        tasks: task by task, in the order of the evaluation.
        turns: mean number of turns of ``all`` episodes, the ``solved`` and the ``unsolved``.
        tokens: means where episodes carry tokens: ``sampled`` and ``context`` an episode, and
            ``sampled_a_turn``; else empty.
        invalid: share of turns whose reply could not be parsed or done, or None without turns.
        end_reasons: number of episodes by end reason, faults included.
        faults: number of episodes that broke.
    """

    success: Estimate
    score: Estimate
    grid: Grid
    categories: Mapping[str, Mapping[str, Estimate]]
    tasks: tuple[TaskResult, ...]
    turns: Mapping[str, float | None]
    tokens: Mapping[str, float | None]
    invalid: float | None
    end_reasons: Mapping[str, int]
    faults: int

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return {
            "schema": SUMMARY_SCHEMA,
            "success": self.success.to_json(),
            "score": self.score.to_json(),
            "pass_at": {
                str(k): cell.to_json()
                for k, cell in zip(self.grid.ks, self.grid.cells[-1], strict=True)
            },
            "grid": self.grid.to_json(),
            "categories": {
                name: {key: found.to_json() for key, found in figures.items()}
                for name, figures in self.categories.items()
            },
            "turns": dict(self.turns),
            "tokens": dict(self.tokens),
            "invalid": self.invalid,
            "end_reasons": dict(self.end_reasons),
            "faults": self.faults,
            "tasks": [dataclasses.asdict(task) for task in self.tasks],
        }


def summarize(
    tasks: Sequence[Task],
    episodes: Iterable[Episode],
    *,
    horizon: int,
    k: int,
    horizons: Sequence[int] = (),
    ks: Sequence[int] = (),
) -> Summary:
    """Summarize the episodes of an evaluation.

    Args:
        tasks: what was evaluated on.
        episodes: of these tasks, each played with `horizon`, in any order.
        horizon: most turns of each episode.
        k: episodes of each task, broken ones included.
        horizons: rows of the grid, at most `horizon`; halves of `horizon` down to 1 if empty.
        ks: columns of the grid, at most `k`; doublings of 1 up to `k` if empty.

    Raises:
        InvalidEvaluation: an episode of another task or horizon, one that has not ended or has no
            score from 0 to 1, more than `k` of a task, or rows or columns that the episodes cannot
            fill.
    """
    of_task = _by_task(tasks, episodes, horizon, k)
    results = tuple(_task_result(task, of_task[task.id]) for task in tasks)
    played = [[e for e in of_task[task.id] if not _is_fault(e)] for task in tasks]
    flat = [episode for group in played for episode in group]
    turns = [turn for episode in flat for turn in episode.turns]
    reasons = Counter(str(e.end_reason) for group in of_task.values() for e in group)
    success, score = _rates(results)
    return Summary(
        success=success,
        score=score,
        grid=_grid(
            played,
            _ascending("horizon", horizons or _halves(horizon), horizon),
            _ascending("k", ks or _doublings(k), k),
        ),
        categories=_by_category(results),
        tasks=results,
        turns={
            "all": _mean(len(e.turns) for e in flat),
            "solved": _mean(len(e.turns) for e in flat if e.success),
            "unsolved": _mean(len(e.turns) for e in flat if not e.success),
        },
        tokens=_tokens(flat),
        invalid=_mean(not turn.action_valid for turn in turns),
        end_reasons=dict(sorted(reasons.items())),
        faults=sum(task.faults for task in results),
    )


def require_whole(episode: Episode) -> None:
    """Refuse an episode that says nothing of its task.

    Raises:
        InvalidEvaluation: it has not ended, or its score is no number from 0 to 1.
    """
    if not episode.end_reason:
        raise InvalidEvaluation(
            f"an episode of task {episode.task.id!r} has not ended: it has no end reason; play it "
            "to its end, or give it the reason 'stopped' to have it count as not solved"
        )
    if not _is_fault(episode) and not 0 <= episode.score <= 1:
        raise InvalidEvaluation(
            f"an episode of task {episode.task.id!r} has the score {episode.score}; its "
            "environment must give a number from 0 to 1"
        )


def _by_task(
    tasks: Sequence[Task], episodes: Iterable[Episode], horizon: int, k: int
) -> dict[str, list[Episode]]:
    found: dict[str, list[Episode]] = {task.id: [] for task in tasks}
    for episode in episodes:
        if episode.task.id not in found:
            raise InvalidEvaluation(
                f"an episode of task {episode.task.id!r}, which is not one of the {len(tasks)}"
            )
        if episode.horizon != horizon:
            raise InvalidEvaluation(
                f"an episode of task {episode.task.id!r} was played with horizon "
                f"{episode.horizon}, the evaluation's is {horizon}; all need the same"
            )
        require_whole(episode)
        found[episode.task.id].append(episode)
    for task_id, group in found.items():
        if len(group) > k:
            raise InvalidEvaluation(
                f"{len(group)} episodes of task {task_id!r}, but k is {k}; count none twice, or "
                "raise k"
            )
    return found


def _is_fault(episode: Episode) -> bool:
    return episode.end_reason is EndReason.FAULT


def _task_result(task: Task, episodes: Sequence[Episode]) -> TaskResult:
    played = [episode for episode in episodes if not _is_fault(episode)]
    return TaskResult(
        id=task.id,
        category=task.category,
        episodes=len(played),
        solved=sum(episode.success for episode in played),
        score=_mean(episode.score for episode in played),
        faults=len(episodes) - len(played),
    )


def _by_category(results: Sequence[TaskResult]) -> dict[str, dict[str, Estimate]]:
    members: dict[str, list[TaskResult]] = defaultdict(list)
    for task in results:
        members[task.category].append(task)
    return {
        name: dict(zip(("success", "score"), _rates(group), strict=True))
        for name, group in sorted(members.items())
    }


def _rates(results: Sequence[TaskResult]) -> list[Estimate]:
    """Success and score."""
    values = [(task.success, task.score) for task in results]
    return estimates(np.array(values, dtype=float).reshape(-1, 2))


def _grid(
    played: Sequence[Sequence[Episode]], horizons: tuple[int, ...], ks: tuple[int, ...]
) -> Grid:
    columns = np.array(
        [
            [
                pass_at_k(len(group), sum(e.success and len(e.turns) <= h for e in group), k)
                if len(group) >= k
                else np.nan
                for h in horizons
                for k in ks
            ]
            for group in played
        ]
    ).reshape(len(played), len(horizons) * len(ks))
    cells = iter(estimates(columns))
    return Grid(horizons, ks, tuple(tuple(next(cells) for _ in ks) for _ in horizons))


def _ascending(name: str, values: Sequence[int], largest: int) -> tuple[int, ...]:
    chosen = tuple(sorted({*values, largest}))
    if chosen[0] < 1 or chosen[-1] > largest:
        raise InvalidEvaluation(
            f"the grid's {name} must be from 1 to {largest}, which was played; got {list(values)}"
        )
    return chosen


def _halves(horizon: int) -> list[int]:
    values = [horizon]
    while values[-1] > 1:
        values.append(-(-values[-1] // 2))
    return values


def _doublings(k: int) -> list[int]:
    return [1 << exponent for exponent in range(k.bit_length())]


def _tokens(episodes: Sequence[Episode]) -> dict[str, float | None]:
    with_tokens = [episode for episode in episodes if episode.turns and episode.has_tokens]
    if not with_tokens:
        return {}
    masks = [episode.sampled_mask for episode in with_tokens]
    sampled = [sum(mask) for mask in masks]
    return {
        "sampled": _mean(sampled),
        "context": _mean(len(mask) - count for mask, count in zip(masks, sampled, strict=True)),
        "sampled_a_turn": sum(sampled) / sum(len(episode.turns) for episode in with_tokens),
    }


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
