"""Many worlds of one process, stepped from one thread."""

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.actions import Grammar
from agentgym_envs.errors import EnvFault
from agentgym_envs.sciworld.actions import verbs
from agentgym_envs.sciworld.backend import Server, server
from agentgym_envs.sciworld.session import Session

ID = "AgentGym/SciWorld-v0"
TASKS = [f"sciworld/train/{name}/0" for name in ("boil", "melt", "find-plant", "grow-fruit")]
PLAN = [
    ("open door to kitchen", "wait", "dance", "focus on agent"),
    ("go to kitchen", "open door", "look around", "inventory"),
    ("pick up thermometer", "1", "wait1", "wait"),
]


@pytest.fixture
def messages(monkeypatch):
    """How many requests each message holds."""
    sent = []
    exchange = Server._exchange

    def counted(self, requests, deadline):
        sent.append(len(requests))
        return exchange(self, requests, deadline)

    monkeypatch.setattr(Server, "_exchange", counted)
    return sent


@pytest.fixture
def vector():
    env = gymnasium.make_vec(ID, num_envs=4)
    yield env
    env.close()


def test_a_step_of_all_environments_is_one_message_and_changes_nothing_else(make, vector, messages):
    alone = []
    for index, task in enumerate(TASKS):
        env = make()
        env.reset(options={"task": task})
        rows = [env.step(actions[index])[:4] for actions in PLAN[:1]]
        if index < 3:  # the fourth has failed
            rows += [env.step(actions[index])[:4] for actions in PLAN[1:]]
        alone.append(rows)
    vector.reset(options={"tasks": TASKS})
    messages.clear()
    observations, rewards, terminations, truncations, _ = vector.step(PLAN[0])
    assert messages == [3]  # one of the replies is no command
    together = list(zip(observations, rewards, terminations, truncations, strict=True))
    assert together == [rows[0] for rows in alone]
    for turn in (1, 2):
        messages.clear()
        vector.send([0, 1, 2], list(PLAN[turn][:3]))
        results = dict(vector.recv())
        assert messages == [3]
        for index, result in results.items():
            assert tuple(result)[:4] == alone[index][turn]


def test_what_was_begun_is_forgotten_by_a_reset(make):
    env, other = make(), make()
    for each in (env, other):
        each.reset(options={"task": TASKS[0]})
    env.begin_step("open door to kitchen")
    env.reset(options={"task": TASKS[0]})
    other.begin_step("wait1")
    other.step("wait1")
    assert env.step("go to kitchen")[0] == "The door is not open."


def test_another_step_than_the_one_that_was_begun_is_a_fault():
    world = Session()
    world.load("boil", 0, "")
    world.begin(Grammar(verbs(())).parse("wait"))
    with pytest.raises(EnvFault, match=r"\['step', 'wait'\] was begun .*, not \['look'\]"):
        world.text("look")
    with pytest.raises(EnvFault, match="was closed"):
        world.step("wait")


def test_requests_that_go_out_together_are_lost_together(make):
    env, other = make(), make()
    for each in (env, other):
        each.reset(options={"task": TASKS[0]})
        each.begin_step("wait1")
    server().close()
    for each in (env, other):
        with pytest.raises(EnvFault, match="the Java process of SciWorld has ended"):
            each.step("wait1")


def test_beginning_what_cannot_be_done_says_nothing_until_the_step(make):
    env = make()
    env.begin_step("wait")
    env.reset(options={"task": TASKS[0]})
    env.begin_step("dance")
    env.begin_step("3")
    assert "is not a command" in env.step("dance")[0]
    env.step("focus on agent")
    env.begin_step("wait")
