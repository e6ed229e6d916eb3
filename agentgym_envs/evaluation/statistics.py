"""Means over tasks with intervals, and unbiased pass@k.

Tasks are the sample: an evaluation is asked what the policy would do on other tasks like these, so
intervals come from resampling tasks, never episodes. Several episodes of one task are one
observation, their mean.

The interval is the percentile bootstrap: `RESAMPLES` times as many tasks are drawn with
replacement, and the 2.5 and 97.5 % quantiles of the means are its ends. Where all tasks agree
there is nothing to resample, and the bootstrap would claim certainty. Then the share p of tasks
that would not agree is bounded by what T tasks can exclude, ``(1 - p)^T >= 0.025``, and the mean by
tasks of that share at the end of the range; for 0 of T solved this is Clopper and Pearson's limit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

RESAMPLES = 10_000
_TAIL = 0.025
_MAX_DRAWS = 1 << 20
"""Most tasks drawn at once, which bounds memory."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over tasks with its 95 % interval.

    Attributes:
        value: the mean; NaN if there is no task.
        low: lower end of the interval.
        high: upper end.
        tasks: number of tasks behind it.
    """

    value: float
    low: float
    high: float
    tasks: int

    def to_json(self) -> dict[str, Any]:
        """As JSON values; the value of no task is null."""
        value = None if math.isnan(self.value) else self.value
        return {"value": value, "interval_95": [self.low, self.high], "tasks": self.tasks}

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(
    values: Sequence[float] | np.ndarray, *, bounds: tuple[float, float] = (0.0, 1.0), seed: int = 0
) -> Estimate:
    """The mean of one number a task.

    Args:
        values: (T,); NaN where a task has none.
        bounds: smallest and largest value that a task can have.
        seed: of the resampling.
    """
    return estimates(np.asarray(values, dtype=float)[:, None], bounds=bounds, seed=seed)[0]


def estimates(
    values: np.ndarray, *, bounds: tuple[float, float] = (0.0, 1.0), seed: int = 0
) -> list[Estimate]:
    """The means of several numbers a task, all from the same resampled tasks.

    Args:
        values: (T, M); NaN where a task has none. A resample that draws only such tasks is left
            out.
        bounds: smallest and largest value that a task can have.
        seed: of the resampling.

    Returns:
        M estimates.
    """
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    drawn = _resampled_means(filled, known, np.random.default_rng(seed)) if len(values) else None
    found = []
    for column, there in enumerate(known.T):
        present = filled[there, column]
        low, high = _interval_if_equal(present, bounds)
        if drawn is not None and len(present) and np.ptp(present) > 0:
            low, high = np.nanquantile(drawn[:, column], [_TAIL, 1 - _TAIL])
        mean = float(present.mean()) if len(present) else math.nan
        found.append(Estimate(mean, float(low), float(high), len(present)))
    return found


def _resampled_means(filled: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of resampled tasks, (RESAMPLES, M); NaN where no known value was drawn."""
    num_tasks = len(filled)
    chunk = max(1, min(RESAMPLES, _MAX_DRAWS // num_tasks))
    means = []
    for start in range(0, RESAMPLES, chunk):
        size = min(chunk, RESAMPLES - start)
        draws = rng.integers(num_tasks, size=(size, num_tasks))
        flat = (draws + num_tasks * np.arange(size)[:, None]).ravel()
        times = np.bincount(flat, minlength=size * num_tasks).reshape(size, num_tasks)
        with np.errstate(invalid="ignore"):
            means.append((times @ filled) / (times @ known.astype(float)))
    return np.concatenate(means)


def _interval_if_equal(values: np.ndarray, bounds: tuple[float, float]) -> tuple[float, float]:
    """The interval for tasks that all have the same value; see the module docstring."""
    lowest, highest = bounds
    if not len(values):
        return lowest, highest
    share = 1 - _TAIL ** (1 / len(values))
    value = float(values[0])
    return value - share * (value - lowest), value + share * (highest - value)


def paired_interval(
    first: Sequence[float | None], second: Sequence[float | None], *, seed: int = 0
) -> Estimate:
    """The mean difference of two policies on the same tasks, with its interval over tasks.

    Args:
        first: a number in 0..1 for each task, such as solved or not; None where it has none.
        second: the same tasks in the same order. A task that lacks either number is left out.
        seed: of the resampling.

    Returns:
        First minus second.

    Raises:
        ValueError: their lengths differ.
    """
    if len(first) != len(second):
        raise ValueError(f"one number a task for both expected, got {len(first)} and {len(second)}")
    differences = np.array(first, dtype=float) - np.array(second, dtype=float)
    return estimate(differences, bounds=(-1.0, 1.0), seed=seed)


def pass_at_k(episodes: int, solved: int, k: int) -> float:
    """The probability that of `k` episodes, drawn without replacement, one is solved.

    ``1 - C(n - c, k) / C(n, k)`` for c of n episodes: unbiased for the chance that k fresh episodes
    hold a success, which ``1 - (1 - c/n)^k`` is not.

    Reference: M. Chen et al., Evaluating Large Language Models Trained on Code, 2021, eq. 1.

    Args:
        episodes: n, how many were played.
        solved: c, how many of them were solved.
        k: 1..n.

    Raises:
        ValueError: fewer episodes than `k`.
    """
    if not 1 <= k <= episodes or not 0 <= solved <= episodes:
        raise ValueError(f"pass@{k} of {solved} solved in {episodes} episodes is not defined")
    return 1.0 - math.comb(episodes - solved, k) / math.comb(episodes, k)
