"""Algorithms: which episodes take part, their advantages, and which loss. One file each.

`advantages`, `terms`, `weights` and `losses` are pure functions, `settings` is what all have in
common, `groups` says which episodes count, and `base` is the seam to the learner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_envs.errors import UnknownName
from agentgym_train.algorithms.base import Algorithm
from agentgym_train.algorithms.dpo import DPO
from agentgym_train.algorithms.evolve import Evolve
from agentgym_train.algorithms.gigpo import GiGPO
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.algorithms.ppo import PPO
from agentgym_train.algorithms.reinforce_pp import ReinforcePP
from agentgym_train.algorithms.rloo import RLOO
from agentgym_train.algorithms.sft import SFT

ALGORITHMS: Mapping[str, type[Algorithm]] = {
    kind.name: kind for kind in (GRPO, RLOO, ReinforcePP, PPO, GiGPO, SFT, DPO, Evolve)
}
"""The algorithms by name."""


def algorithm(name: str, config: Any = None, **shared: Any) -> Algorithm:
    """The algorithm called `name`.

    Args:
        name: one of `ALGORITHMS`.
        config: the algorithm's own settings; None for the defaults.
        shared: `loss`, `credit` and `seed`, as for `base.BaseAlgorithm`.

    Raises:
        UnknownName: there is none.
    """
    if name not in ALGORITHMS:
        raise UnknownName("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name](config, **shared)


__all__ = ["ALGORITHMS", "Algorithm", "algorithm"]
