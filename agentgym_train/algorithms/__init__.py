"""Algorithms: which episodes take part, their advantages, and which loss. One file each.

`advantages` and `losses` are pure functions; `base` is the seam to the learner. `algorithm` finds
an algorithm by name and imports only its file.
"""

from __future__ import annotations

import importlib
from typing import Any

from agentgym_envs.errors import UnknownName
from agentgym_train.algorithms.base import Algorithm

_ALGORITHMS = {
    "grpo": "agentgym_train.algorithms.grpo:GRPO",
    "sft": "agentgym_train.algorithms.sft:SFT",
}

ALGORITHMS = tuple(_ALGORITHMS)
"""Names of the algorithms."""


def algorithm(name: str, config: Any = None, *, seed: int = 0) -> Algorithm:
    """The algorithm called `name`.

    Args:
        name: one of `ALGORITHMS`.
        config: the algorithm's own settings; None for the defaults.
        seed: of whatever is random in it.

    Raises:
        UnknownName: there is none.
    """
    if name not in _ALGORITHMS:
        raise UnknownName("algorithm", name, _ALGORITHMS)
    module, _, attribute = _ALGORITHMS[name].partition(":")
    found: Algorithm = getattr(importlib.import_module(module), attribute)(config, seed=seed)
    return found


__all__ = ["ALGORITHMS", "Algorithm", "algorithm"]
