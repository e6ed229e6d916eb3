"""The conformance kit on Deep Search, on the package's corpus and on a small one."""

import functools

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.actions import ACTION_FORMATS
from agentgym_envs.testing import CHECKS, check_family, check_text_env, vectors

ID = "AgentGym/DeepSearch-v0"
QUICK = [check for check in CHECKS if not hasattr(vectors, check.__name__)]


def test_the_family_passes():
    check_text_env(functools.partial(gymnasium.make, ID))


def test_a_corpus_and_questions_of_ones_own_pass(small):
    check_text_env(functools.partial(gymnasium.make, ID, **small))


def test_agentgyms_texts_and_rules_pass(small):
    check_text_env(functools.partial(gymnasium.make, ID, compat="agentgym", **small), QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("action_format", ACTION_FORMATS)
def test_every_action_format_passes_bare_and_wrapped(small, action_format, strict):
    check_family(ID, action_format=action_format, strict=strict, **small)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"compat": "agentgym"},
        {"top_k": 1, "max_words": 5},
        {"match": "search_r1", "max_answers": 3},
        {"sets": "two-hops"},
    ],
    ids=str,
)
def test_variants_pass_bare_and_wrapped(small, arguments):
    check_family(ID, **small, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_the_packages_corpus_passes_bare_and_wrapped(compat):
    check_family(ID, compat=compat)
