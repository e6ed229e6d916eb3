"""Saving, loading and cloning."""

import json

import gymnasium
import pytest
from counting import CountingEnv

from agentgym_envs.errors import InvalidState

NINE = "counting/train/9"


@pytest.fixture
def env() -> CountingEnv:
    env = CountingEnv()
    env.reset(options={"task": NINE})
    return env


def play(env, replies):
    return [env.step(reply) for reply in replies]


def test_a_loaded_state_continues_identically(env):
    env.reset(seed=5, options={"task": "counting/train/12"})
    play(env, ["roll", "what?", "put a next to b"])
    state = env.save_state()
    rest = play(env, ["roll", "roll", "take away 1", "done"])
    other = CountingEnv()
    other.load_state(state)
    assert other.task == env.task
    assert play(other, ["roll", "roll", "take away 1", "done"]) == rest
    other.load_state(state)
    env.load_state(state)
    assert other.reset() == env.reset()  # the random state came along


def test_a_state_belongs_to_the_arguments_of_every_class_that_has_some():
    class Rounder(CountingEnv):
        def __init__(self, *, base: int = 10, **kwargs):
            super().__init__(**kwargs)

    env = Rounder()
    env.reset(options={"task": NINE})
    state = env.save_state()
    Rounder(highest=12, base=10).load_state(state)  # the defaults, written out
    for other in (Rounder(base=9), Rounder(highest=15)):
        with pytest.raises(InvalidState):
            other.load_state(state)


def test_saving_changes_nothing(env):
    env.reset(seed=5, options={"task": NINE})
    other = CountingEnv()
    other.reset(seed=5, options={"task": NINE})
    env.save_state()
    assert play(env, ["roll", "roll"]) == play(other, ["roll", "roll"])


def test_an_ended_episode_is_loaded_as_ended(env):
    env.step("done")
    other = CountingEnv()
    other.load_state(env.save_state())
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"ended \(failure\)"):
        other.step("add 1")


def test_a_clone_goes_its_own_way(env):
    env.reset(seed=5, options={"task": NINE})
    env.step("add 1")
    twin = env.clone()
    assert twin.state_key() == env.state_key()
    assert play(twin, ["roll", "put a next to b"]) == play(env.clone(), ["roll", "put a next to b"])
    assert env.world.value == 1
    assert env.world.labels == {}


def test_a_clone_keeps_arguments_and_spec():
    env = gymnasium.make("Test/Counting-v0", highest=30, action_format="react", tasks=[NINE])
    env.reset()
    twin = env.clone()
    assert twin.spec == env.spec
    assert (twin.highest, twin.action_format, twin.tasks.ids) == (30, "react", (NINE,))


def test_nothing_is_saved_before_reset():
    with pytest.raises(gymnasium.error.ResetNeeded):
        CountingEnv().save_state()


def test_a_state_is_plain_json(env):
    assert json.loads(env.save_state())["origin"]["family"] == "counting"


def test_arguments_that_the_state_holds_may_differ(env):
    state = env.save_state()
    CountingEnv(split="test", horizon=3, render_mode="ansi", tasks=[]).load_state(state)


@pytest.mark.parametrize(
    "kwargs", [{"highest": 30}, {"action_format": "react"}, {"strict": True}, {"reward": "double"}]
)
def test_a_state_of_other_arguments_is_refused(env, kwargs):
    with pytest.raises(InvalidState, match="saved by another environment"):
        CountingEnv(**kwargs).load_state(env.save_state())
    spelled_out = CountingEnv(highest=12, reward="default")
    spelled_out.load_state(env.save_state())


def test_a_state_of_another_family_or_version_is_refused(env):
    class Newer(CountingEnv):
        version = "2"

    class Other(CountingEnv):
        family = "other"

    for other in (Newer(), Other()):
        with pytest.raises(InvalidState, match="saved by another environment"):
            other.load_state(env.save_state())


def changed(state: bytes, **changes) -> bytes:
    return json.dumps(json.loads(state) | changes).encode()


def test_what_is_no_state_is_refused_and_changes_nothing(env):
    state = env.save_state()
    env.reset(seed=3, options={"task": "counting/train/6"})
    env.step("add 2")
    before = env.save_state()
    broken = [
        b"",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        state[:-9],
        changed(state, task={}),
        changed(state, task=3),
        changed(state, turn="many"),
        changed(state, score=None),
        changed(state, score=float("nan")),
        changed(state, score=1.5),
        changed(state, end_reason="bored"),
        changed(state, generator={}),
        changed(state, generator={"bit_generator": "PCG64", "state": {"state": -1, "inc": 3}}),
        changed(state, world=None),
        changed(state, world=[9, "many", {}, False]),
        None,
    ]
    for data in broken:
        with pytest.raises(InvalidState):
            env.load_state(data)
        assert env.save_state() == before
