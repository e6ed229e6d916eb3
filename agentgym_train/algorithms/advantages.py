"""Advantages, as pure functions of numbers.

What is compared with what is the caller's business. Statistics of returns run over episodes, never
over tokens or turns: otherwise long episodes, which usually fail, would set the baseline.
Everything over tokens runs over sampled ones only, as if the tokens between did not exist: no
reward, no value and no discount sits on an observation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

Total = Callable[[FloatArray], FloatArray]
"""Sums an array over all ranks."""


def alone(values: FloatArray) -> FloatArray:
    """The `Total` of one process."""
    return values


_ROUNDING = 1e-8
"""Returns that differ by no more are the same number, summed in another order."""


def has_spread(returns: Sequence[float] | FloatArray) -> bool:
    """Whether the returns of a group differ, so that it tells good episodes from bad ones."""
    return bool(np.ptp(returns) > _ROUNDING)


def group_advantages(
    returns: Sequence[float] | FloatArray,
    *,
    normalize_std: bool = True,
    epsilon: float = 1e-6,
) -> FloatArray:
    """GRPO: each return minus the group's mean, over the group's standard deviation.

    The standard deviation is the unbiased one (divided by G-1). Without it the advantage is
    (G-1)/G of `leave_one_out`'s. A group without spread gets zeros.

    Reference: section 4.1.2 of arXiv 2402.03300; without standard deviation arXiv 2503.20783.

    Args:
        returns: undiscounted return of each episode of a group: (G,), G >= 2.
        normalize_std: divide by the standard deviation.
        epsilon: added to it.

    Returns:
        The advantage of each episode: (G,).

    Raises:
        ValueError: fewer than two returns: there is nothing to compare with.
    """
    values = np.asarray(returns, dtype=np.float64)
    if values.shape[0] < 2:
        raise ValueError(f"group advantages need at least 2 returns, got {values.shape[0]}")
    if not has_spread(values):
        return np.zeros_like(values)
    centered: FloatArray = values - values.mean()
    if not normalize_std:
        return centered
    advantages: FloatArray = centered / (values.std(ddof=1) + epsilon)
    return advantages


def leave_one_out(returns: Sequence[float] | FloatArray) -> FloatArray:
    """RLOO: each return minus the mean of the others. Arguments and errors as `group_advantages`.

    Reference: equation 8 of arXiv 2402.14740.
    """
    deviations = group_advantages(returns, normalize_std=False)
    return deviations * (len(returns) / (len(returns) - 1))


def step_advantages(
    keys: Sequence[Hashable], returns: FloatArray, *, normalize_std: bool = True
) -> FloatArray:
    """GiGPO: the return from each step on, against the steps taken in the same state.

    Reference: equations 6 to 8 of arXiv 2505.10978.

    Args:
        keys: state in which each of S steps was taken, over all episodes of a group.
        returns: discounted return from each step on: (S,).
        normalize_std: as for `group_advantages`.

    Returns:
        The advantage of each step, 0 where no other was taken in that state: (S,).
    """
    steps: dict[Hashable, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        steps[key].append(index)
    advantages = np.zeros_like(returns)
    for same in steps.values():
        if len(same) > 1:
            advantages[same] = group_advantages(returns[same], normalize_std=normalize_std)
    return advantages


def gae(
    rewards: FloatArray,
    values: FloatArray,
    turn_index: NDArray[np.int64],
    *,
    final_value: float = 0.0,
    discount: float = 1.0,
    turn_discount: float = 1.0,
    trace: float = 1.0,
) -> FloatArray:
    """Generalized advantage estimation over the sampled tokens of an episode.

    ``delta_k = r_k + g_k V_{k+1} - V_k`` and ``A_k = delta_k + g_k * trace * A_{k+1}``, where V_k
    is the value before token k is sampled, so that the last token of a turn looks to the first of
    the next; g_k is `turn_discount` between these two, and `discount` elsewhere. With values of
    zero and a trace of 1 it is the discounted return.

    Reference: equation 16 of arXiv 1506.02438.

    Args:
        rewards: (n,).
        values: before each token: (n,).
        turn_index: turn of each token: (n,).
        final_value: value after the last token: 0 where the world ended.
        discount: from a token to the next one of its turn.
        turn_discount: from a turn to the next, and to `final_value`.
        trace: lambda.

    Returns:
        (n,).
    """
    discounts = np.where(np.diff(turn_index, append=-1) == 0, discount, turn_discount)
    deltas = rewards + discounts * np.append(values[1:], final_value) - values
    advantages: FloatArray = np.zeros_like(deltas)
    following = 0.0
    for k in reversed(range(len(deltas))):
        advantages[k] = following = deltas[k] + discounts[k] * trace * following
    return advantages


def moments(
    arrays: Sequence[FloatArray], total: Total, *, per_array: bool = False
) -> tuple[float, float]:
    """Mean and unbiased standard deviation over the arrays of all ranks.

    Args:
        arrays: those of this rank; may be none.
        total: sums over ranks; all ranks must call this function.
        per_array: let arrays weigh the same, however many numbers each has.

    Returns:
        Mean and standard deviation; 0 where there is no number, or no second one.
    """
    numbers = np.concatenate([np.zeros(0), *arrays])
    weights = np.concatenate(
        [np.zeros(0), *(np.full(len(a), 1 / len(a) if per_array else 1.0) for a in arrays)]
    )
    count, first = total(np.array([weights.sum(), weights @ numbers]))
    mean = first / max(count, 1.0)
    (second,) = total(np.array([weights @ (numbers - mean) ** 2]))
    return float(mean), float(np.sqrt(second / max(count - 1.0, 1.0)))


def whiten(
    arrays: Sequence[FloatArray], total: Total, *, per_array: bool = False
) -> list[FloatArray]:
    """Subtract the mean and divide by the standard deviation, over the arrays of all ranks.

    Numbers that are all equal become zeros. Arguments as for `moments`.
    """
    mean, std = moments(arrays, total, per_array=per_array)
    scale = 1 / std if std > _ROUNDING else 0.0
    return [(array - mean) * scale for array in arrays]
