"""Means over tasks with intervals, and unbiased pass@k.

Tasks are the sample: an evaluation is asked what the policy would do on other tasks like these, so
intervals come from resampling tasks, never episodes. Several episodes of one task are one
observation, their mean.

The interval is the percentile bootstrap: `RESAMPLES` times as many tasks are drawn with
replacement, and the 2.5 and 97.5 % quantiles of the means are its ends. It knows nothing of tasks
unlike those that were played: of two tasks, or of many that all agree, it claims far too much. So
the interval holds at least what T tasks cannot exclude: that a share p of tasks, with
``(1 - p)^T = 0.025``, lies at an end of the range and all others at the mean. For 0 of T solved
this is Clopper and Pearson's limit. Where the tasks spread by more than ``1.9 / sqrt(T)`` of the
distance from the mean to that end, as with 100 tasks of which half are solved, it changes nothing.
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
        if drawn is None or not len(present):
            found.append(Estimate(math.nan, *bounds, 0))
            continue
        mean = float(present.mean())
        low, high = _not_excluded(mean, len(present), bounds)
        drawn_low, drawn_high = np.nanquantile(drawn[:, column], [_TAIL, 1 - _TAIL])
        ends = min(low, float(drawn_low)), max(high, float(drawn_high))
        found.append(Estimate(mean, *ends, len(present)))
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


def _not_excluded(mean: float, num_tasks: int, bounds: tuple[float, float]) -> tuple[float, float]:
    """The means that so many tasks leave possible, however alike they are; see the module."""
    share = 1 - _TAIL ** (1 / num_tasks)
    lowest, highest = bounds
    return mean - share * (mean - lowest), mean + share * (highest - mean)


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
