"""Policies over text, and `run_episode`, which plays one policy in one environment.

`agentgym_envs.policies.endpoint` asks a language model behind an OpenAI-compatible endpoint.
"""

from agentgym_envs.policies.playing import (
    begin_record,
    package_versions,
    play_on,
    record_turn,
    run_episode,
)
from agentgym_envs.policies.simple import (
    HumanPolicy,
    PlannedPolicy,
    Policy,
    RandomPolicy,
    ScriptedPolicy,
)

__all__ = [
    "HumanPolicy",
    "PlannedPolicy",
    "Policy",
    "RandomPolicy",
    "ScriptedPolicy",
    "begin_record",
    "package_versions",
    "play_on",
    "record_turn",
    "run_episode",
]
