"""RLOO: the return of an episode minus the mean return of the others of its task.

Every sampled token of an episode gets the episode's advantage.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_train.algorithms.advantages import Total, leave_one_out
from agentgym_train.algorithms.groups import compare
from agentgym_train.algorithms.policy_gradient import PolicyGradient
from agentgym_train.batching import Sample


class RLOO(PolicyGradient[None]):
    """REINFORCE with a leave-one-out baseline.

    Reference: arXiv 2402.14740, section 2.3.
    """

    name = "rloo"
    settings = type(None)

    def credit(self, samples: Sequence[Sample], total: Total) -> list[Sample]:
        advantages = compare(samples, leave_one_out)
        return [sample.with_advantages(a) for sample, a in zip(samples, advantages, strict=True)]
