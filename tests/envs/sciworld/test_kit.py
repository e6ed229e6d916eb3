"""The conformance kit on SciWorld; the checks that start many Java processes are slow."""

import functools

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.testing import CHECKS, check_family, check_text_env

ID = "AgentGym/SciWorld-v0"
QUICK = {
    "check_gymnasium",
    "check_horizon",
    "check_order",
    "check_reset_errors",
    "check_arguments",
    "check_capabilities",
    "check_state_refusals",
    "check_clone",
    "check_instructions",
    "check_render",
}


def test_the_family_passes_what_needs_no_other_process():
    checks = [check for check in CHECKS if check.__name__ in QUICK]
    assert len(checks) == len(QUICK)
    check_text_env(functools.partial(gymnasium.make, ID), checks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [{}, {"simplifications": ["easy"]}, {"action_format": "react"}, {"compat": "agentgym"}],
    ids=str,
)
def test_variants_pass_bare_and_wrapped(arguments):
    check_family(ID, **arguments)
