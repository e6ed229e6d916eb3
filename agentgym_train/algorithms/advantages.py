"""Advantages, as pure functions of numbers.

Statistics run over episodes, never over tokens or turns: otherwise long episodes, which usually
fail, would set the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-8
"""Returns that differ by less are the same number, summed in another order."""


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
    (G-1)/G of RLOO's, which compares with the mean of the others. A group without spread gets
    zeros.

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
