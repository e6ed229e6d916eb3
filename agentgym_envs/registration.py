"""Ids in Gymnasium's own registry.

Every id is registered so that `gymnasium.make` returns the bare `TextEnv`: Gymnasium's default
wrappers forward no attributes, and `TextEnv` enforces order and horizon itself. Entry points are
strings, so importing the package imports no family.
"""

from __future__ import annotations

import gymnasium

NAMESPACE = "AgentGym"


def register_family(name: str, module: str) -> None:
    """Register ``AgentGym/<name>-v0``. Doing so twice changes nothing.

    Args:
        name: the family's public name, ``"BabyAI"``.
        module: the module that holds ``<name>Env`` and its ``make_vector``.
    """
    env_id = f"{NAMESPACE}/{name}-v0"
    if env_id in gymnasium.registry:
        return
    gymnasium.register(
        env_id,
        entry_point=f"{module}:{name}Env",
        vector_entry_point=f"{module}:make_vector",
        order_enforce=False,
        disable_env_checker=True,
    )


def registered_ids() -> list[str]:
    """All ids of this package, sorted."""
    return sorted(env_id for env_id in gymnasium.registry if env_id.startswith(f"{NAMESPACE}/"))
