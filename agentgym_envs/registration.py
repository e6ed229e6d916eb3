"""Ids in Gymnasium's own registry.

Every id is registered so that `gymnasium.make` returns the bare `TextEnv`: Gymnasium's default
wrappers forward no attributes, and `TextEnv` enforces order and horizon itself. Entry points are
strings, so importing the package imports no family.
"""

from __future__ import annotations

import importlib
import re

import gymnasium

NAMESPACE = "AgentGym"


def register_family(name: str, module: str) -> None:
    """Register ``AgentGym/<name>-v0``. Doing so twice changes nothing.

    Args:
        name: the family's public name, ``"BabyAI"``.
        module: the module that holds ``<name>Env`` and its ``make_vector``.
    """
    register_text_env(f"{NAMESPACE}/{name}-v0", f"{module}:{name}Env")


def register_text_env(env_id: str, entry_point: str) -> None:
    """Register an environment whose module holds its ``make_vector``, unless it is there already.

    Args:
        env_id: the id.
        entry_point: ``"module:class"``.
    """
    if env_id in gymnasium.registry:
        return
    gymnasium.register(
        env_id,
        entry_point=entry_point,
        vector_entry_point=f"{entry_point.partition(':')[0]}:make_vector",
        order_enforce=False,
        disable_env_checker=True,
    )


def registered_ids() -> list[str]:
    """The ids of all families of this package, sorted."""
    return sorted(env_id for env_id in gymnasium.registry if env_id.startswith(f"{NAMESPACE}/"))


def require_id(env_id: str) -> None:
    """See that an id is registered, once the module in front of its colon is imported.

    Raises:
        UnknownName: it is not; suggested are the ids of this package and of that module.
        ImportError: there is no such module.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    if name not in gymnasium.registry:
        from agentgym_envs.errors import UnknownName  # not needed to import the package

        raise UnknownName("environment", name, [*registered_ids(), *_ids_of(module)])


def _ids_of(module: str) -> list[str]:
    """The ids whose environments are in the package of `module`."""
    package = module.partition(".")[0]
    home_of = {
        env_id: getattr(spec.entry_point, "__module__", None) or str(spec.entry_point)
        for env_id, spec in gymnasium.registry.items()
        if not env_id.startswith(f"{NAMESPACE}/")
    }
    return sorted(
        env_id for env_id, home in home_of.items() if re.split("[.:]", home)[0] == package
    )
