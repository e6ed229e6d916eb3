"""AgentGym environments: text worlds for language agents as `gymnasium.Env`s.

>>> import gymnasium, agentgym_envs
>>> env = gymnasium.make("AgentGym/BabyAI-v0")

Importing registers the ids and does nothing else. Public names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agentgym_envs.registration import register_family, register_text_env

if TYPE_CHECKING:
    from agentgym_envs.core import TextEnv as TextEnv
    from agentgym_envs.episodes import EndReason as EndReason
    from agentgym_envs.episodes import Episode as Episode
    from agentgym_envs.episodes import Turn as Turn
    from agentgym_envs.episodes import read_episodes as read_episodes
    from agentgym_envs.episodes import write_episodes as write_episodes
    from agentgym_envs.policies import Policy as Policy
    from agentgym_envs.policies import run_episode as run_episode
    from agentgym_envs.tasks import Task as Task
    from agentgym_envs.tasks import TaskSet as TaskSet
    from agentgym_envs.vector import EnvPool as EnvPool
    from agentgym_envs.vector import TextVectorEnv as TextVectorEnv
    from agentgym_envs.wrappers import TextWrapper as TextWrapper

__version__ = "0.1.0"

_HOMES = {
    "EndReason": "episodes",
    "EnvPool": "vector",
    "Episode": "episodes",
    "Policy": "policies",
    "Task": "tasks",
    "TaskSet": "tasks",
    "TextEnv": "core",
    "TextVectorEnv": "vector",
    "TextWrapper": "wrappers",
    "Turn": "episodes",
    "read_episodes": "episodes",
    "run_episode": "policies",
    "write_episodes": "episodes",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605

register_family("BabyAI", "agentgym_envs.babyai.env")
register_family("DeepSearch", "agentgym_envs.deepsearch.env")
register_family("SciWorld", "agentgym_envs.sciworld.env")
register_family("TextCraft", "agentgym_envs.textcraft.env")
register_text_env("AgentGymMixture-v0", "agentgym_envs.mixture:MixtureEnv")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
