"""Aggregation: what the loss of an optimizer batch is a mean over.

Weights and normalizer come from counts of the whole optimizer batch (all micro-batches, all ranks),
so gradients add up to the same whatever the split. A mean of micro-batch means would not: 10 tokens
of loss 1 and 1,000 of loss 0 give 0.5 instead of 0.0099.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from agentgym_train.algorithms.settings import Aggregation
from agentgym_train.batching import Sample


def weigh(
    samples: Sequence[Sample], aggregation: Aggregation = "token", constant: int = 0
) -> tuple[list[Sample], int]:
    """The samples of an optimizer batch with the weights of their tokens, and the normalizer.

    With n tokens in sample i, N in the batch, B samples and K groups of N_g tokens, a token weighs

    - ``token``: 1, normalizer N;
    - ``sequence``: 1 / n, normalizer B;
    - ``group``: 1 / N_g, normalizer K;
    - ``constant``: 1, normalizer B times the constant.

    The normalizer is this rank's; the sum over ranks is what to divide by. All samples of a group
    are on one rank.
    """
    if aggregation == "token":
        return list(samples), sum(sample.num_sampled for sample in samples)
    if aggregation == "constant":
        return list(samples), len(samples) * constant
    sizes: Counter[int] = Counter()
    units = [sample.group if aggregation == "group" else i for i, sample in enumerate(samples)]
    for unit, sample in zip(units, samples, strict=True):
        sizes[unit] += sample.num_sampled
    weighed = [
        dataclasses.replace(sample, weight=1 / sizes[unit])
        for unit, sample in zip(units, samples, strict=True)
    ]
    return weighed, len(sizes)
