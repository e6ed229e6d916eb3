"""The conformance kit on TextCraft, on its own recipes and on others."""

import functools

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.testing import CHECKS, check_family, check_text_env, vectors

ID = "AgentGym/TextCraft-v0"
QUICK = [check for check in CHECKS if not hasattr(vectors, check.__name__)]


def test_the_family_passes():
    check_text_env(functools.partial(gymnasium.make, ID))


def test_agentgyms_texts_and_rules_pass_with_a_folder_of_recipes(large_folder):
    arguments = {"compat": "agentgym", "recipes_dir": str(large_folder)}
    check_text_env(functools.partial(gymnasium.make, ID, **arguments), QUICK)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"compat": "agentgym"},
        {"action_format": "react", "strict": True},
        {"partial_credit": True, "num_distractors": 0},
    ],
    ids=str,
)
def test_variants_pass_bare_and_wrapped(arguments):
    check_family(ID, **arguments)


@pytest.mark.slow
def test_a_folder_of_recipes_passes_bare_and_wrapped(large_folder):
    check_family(ID, recipes_dir=str(large_folder))
