"""The conformance kit: what every text environment of this package must keep, as plain functions.

Each check keeps one promise of the contract and raises a `ConformanceError` with a sentence if it
is broken. It needs no test framework:

>>> from agentgym_envs.testing import check_family
>>> check_family("AgentGym/BabyAI-v0", levels=["GoToRedBall"])

In pytest, one test a check:

>>> @pytest.mark.parametrize("check", CHECKS)
... def test_conforms(check):
...     check(functools.partial(gymnasium.make, "AgentGym/BabyAI-v0"))

Environments must be made by `gymnasium.make`, so that other processes can make them from their
spec. Capabilities that a family does not declare are checked to raise `Unsupported`.
"""

from __future__ import annotations

from agentgym_envs.testing.base import Check, ConformanceError, MakeEnv
from agentgym_envs.testing.contract import (
    check_arguments,
    check_capabilities,
    check_fresh_objects,
    check_gymnasium,
    check_horizon,
    check_info,
    check_observations,
    check_order,
    check_render,
    check_reset_errors,
    check_spec,
    check_tasks,
)
from agentgym_envs.testing.determinism import (
    check_drawn_tasks,
    check_fresh_instances,
    check_processes,
    check_silence,
    check_threads,
)
from agentgym_envs.testing.playing import check_admissible, check_oracle, check_rewards
from agentgym_envs.testing.state import (
    check_clone,
    check_save_load,
    check_state_key,
    check_state_refusals,
)
from agentgym_envs.testing.suite import (
    CHECKS,
    CheckResult,
    check_family,
    check_text_env,
    run_checks,
)
from agentgym_envs.testing.text import (
    HOSTILE_TEXTS,
    check_action_formats,
    check_hostile_text,
    check_instructions,
)
from agentgym_envs.testing.vectors import check_stock_vector, check_text_vector
from agentgym_envs.testing.wrapping import shipped_wrappers, wrapped

__all__ = [
    "CHECKS",
    "HOSTILE_TEXTS",
    "Check",
    "CheckResult",
    "ConformanceError",
    "MakeEnv",
    "check_action_formats",
    "check_admissible",
    "check_arguments",
    "check_capabilities",
    "check_clone",
    "check_drawn_tasks",
    "check_family",
    "check_fresh_instances",
    "check_fresh_objects",
    "check_gymnasium",
    "check_horizon",
    "check_hostile_text",
    "check_info",
    "check_instructions",
    "check_observations",
    "check_oracle",
    "check_order",
    "check_processes",
    "check_render",
    "check_reset_errors",
    "check_rewards",
    "check_save_load",
    "check_silence",
    "check_spec",
    "check_state_key",
    "check_state_refusals",
    "check_stock_vector",
    "check_tasks",
    "check_text_env",
    "check_text_vector",
    "check_threads",
    "run_checks",
    "shipped_wrappers",
    "wrapped",
]
