"""An episode over a search service that breaks: a fault, no reward, and nothing has happened."""

import dataclasses

import pytest
from search_doubles import Service, break_off, drip, hang_up, sleep

from agentgym_envs.deepsearch.retrievers import open_retriever
from agentgym_envs.errors import EnvFault
from agentgym_envs.policies import run_episode
from agentgym_envs.vector import TextVectorEnv

TASK = "deepsearch/train/two-hops/0"
LIMITS = {"timeout_s": 60.0, "attempt_timeout_s": 0.3, "attempts": 50, "pause_s": 0.001}
FAULTS = {
    "slow": sleep,
    "dripping": drip,
    "hanging up": hang_up,
    "breaking off": break_off,
    "503": 503,
    "a page": "<html>It works!</html>",
    "no result": '{"error": "index not loaded"}',
    "too few lists": '{"result": []}',
}


@pytest.fixture
def service(small):
    """A service that searches the small corpus."""
    engine = open_retriever(small["retriever"])

    def answer(body):
        (hits,) = engine.search(body["queries"], body["topk"])
        return {
            "result": [
                [{"document": dataclasses.asdict(hit.passage), "score": hit.score} for hit in hits]
            ],
            "digest": engine.digest,
        }

    with Service(answer, version={"digest": engine.digest}).running() as running:
        yield running


def arguments_for(service, **limits):
    """Of an environment; searches are not remembered, so that each one is asked."""
    limits = LIMITS | {"max_queries": 1, "failures": 10_000} | limits
    return {"retriever": {"name": "http", "url": service.url, "limits": limits, "cache": 0}}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_search_that_fails_changes_nothing_and_the_episode_goes_on(make, service, fault):
    env = make(**arguments_for(service, attempts=5))
    env.reset(options={"task": TASK, "horizon": 20})
    service.faults = [fault, ...]
    before = env.world.to_json()
    with pytest.raises(EnvFault):
        env.step("<search>capital of Avelonia</search>")
    assert env.world.to_json() == before
    service.faults = []
    observation, reward, *_ = env.step("<search>capital of Avelonia</search>")
    assert "Tirmouth" in observation
    assert reward == 0.0


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_oracle_over_a_service_with_hiccups_is_paid_as_always(make, service, fault):
    env = make(**arguments_for(service))
    service.faults = [fault, None, fault, fault]
    episode = run_episode(env, task=TASK)
    assert episode.success
    assert [turn.reward for turn in episode.turns] == [0.0, 0.0, 1.0]


def test_in_a_vector_it_is_a_fault_of_one_episode_without_reward(small, service):
    arguments = small | arguments_for(service, attempts=1)
    envs = TextVectorEnv("AgentGym/DeepSearch-v0", 2, workers="inline", **arguments)
    try:
        envs.reset(seed=[0, 1], options={"tasks": [TASK, TASK]})
        service.faults = [503]
        _, rewards, terminated, truncated, infos = envs.step(
            ["<search>capital of Avelonia</search>"] * 2
        )
        assert list(rewards) == [0.0, 0.0]
        assert list(terminated) == [False, False]
        assert sorted(truncated) == [False, True]
        assert sum(bool(fault) for fault in infos["fault"]) == 1
    finally:
        envs.close()
