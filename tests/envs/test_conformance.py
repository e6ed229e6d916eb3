"""The conformance kit passes what keeps the contract, and finds every promise that is broken."""

import functools
import re

import broken
import gymnasium
import pytest
from counting import CountingEnv
from gymnasium.envs.registration import EnvSpec

from agentgym_envs import testing
from agentgym_envs.testing import CHECKS, ConformanceError, check_family, check_text_env, child
from agentgym_envs.testing.text import hostile_replies

BROKEN = [
    value
    for value in vars(broken).values()
    if isinstance(value, type) and value.__module__ == "broken"
]


def test_a_family_that_keeps_the_contract_passes_bare_and_wrapped():
    check_family("Test/Counting-v0")


def test_a_family_without_capabilities_passes():
    check_text_env(functools.partial(gymnasium.make, "Test/Bare-v0"))


def test_a_family_that_leaves_rendering_to_its_base_renders():
    spec = EnvSpec(
        "Test/Plain-v0",
        entry_point="counting:PlainEnv",
        order_enforce=False,
        disable_env_checker=True,
    )
    check_text_env(functools.partial(gymnasium.make, spec), [testing.check_render])


def test_a_family_that_states_its_goals_itself_passes():
    checks = [testing.check_observations, testing.check_save_load, testing.check_clone]
    check_text_env(functools.partial(gymnasium.make, "Test/Coy-v0"), checks)


def test_another_action_format_passes():
    make = functools.partial(gymnasium.make, "Test/Counting-v0", action_format="react", strict=True)
    quick = [check for check in CHECKS if check is not testing.check_stock_vector]
    check_text_env(make, quick)


@pytest.mark.parametrize("env_class", BROKEN, ids=lambda env_class: env_class.__name__)
def test_a_broken_promise_is_found(env_class, monkeypatch):
    if env_class is broken.Hangs:
        monkeypatch.setattr(child, "_TIMEOUT_S", 4.0)
    name, _, message = env_class.__doc__.partition(": ")
    check = getattr(testing, name)
    promise = check.__doc__.splitlines()[0]
    with pytest.raises(ConformanceError, match=re.escape(message)) as error:
        check(functools.partial(gymnasium.make, broken.spec_of(env_class)))
    assert str(error.value).startswith(promise)


def test_every_check_has_a_broken_example():
    names = {env_class.__doc__.partition(": ")[0] for env_class in BROKEN}
    assert names == {check.__name__ for check in CHECKS}


def test_every_check_is_exported():
    for check in CHECKS:
        assert getattr(testing, check.__name__) is check
        assert check.__name__ in testing.__all__


def test_all_broken_promises_are_listed_together():
    def make(**kwargs):
        return gymnasium.make(broken.spec_of(broken.GivesUp), **kwargs)

    with pytest.raises(ConformanceError) as error:
        check_text_env(make, (testing.check_oracle, testing.check_horizon, testing.check_spec))
    assert str(error.value).startswith("1 checks failed.\ncheck_oracle: ")
    results = list(testing.run_checks(make, (testing.check_oracle, testing.check_horizon)))
    assert [bool(result.error) for result in results] == [True, False]
    assert results[1].promise.startswith("The horizon truncates exactly")


def test_what_is_no_text_environment_is_refused():
    with pytest.raises(ConformanceError, match="not built on a TextEnv"):
        testing.check_horizon(lambda **kwargs: gymnasium.make("CartPole-v1"))


def test_an_environment_without_spec_cannot_be_made_in_another_process():
    with pytest.raises(ConformanceError, match=r"There is no spec; make it with gymnasium\.make"):
        testing.check_spec(CountingEnv)
    with pytest.raises(ConformanceError, match=r"only make what gymnasium\.make has made"):
        testing.check_processes(CountingEnv)


def test_hostile_replies_reach_the_command_of_every_format():
    replies = hostile_replies(CountingEnv(action_format="react"))
    assert any(reply.endswith("Action:\n{x}") for reply in replies)
    assert "" in replies
    assert max(map(len, replies)) > 100_000
    planes = {ord(character) >> 16 for reply in replies for character in set(reply[:1000])}
    assert planes == set(range(17))
