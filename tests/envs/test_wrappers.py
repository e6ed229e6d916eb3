import gymnasium
import pytest
from counting import CountingEnv
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.errors import InvalidState
from agentgym_envs.wrappers import TextWrapper

NINE = "counting/train/9"


class Shout(TextWrapper):
    """Ends every observation with so many exclamation marks; counts its steps."""

    def __init__(self, env, marks: int = 1):
        super().__init__(env, marks=marks)
        self.marks = marks
        self.count = 0

    def step(self, action):
        self.count += 1
        observation, *rest = self.env.step(action)
        return f"{observation}{'!' * self.marks}{self.count}", *rest

    def _save_own(self):
        return {"count": self.count}

    def _load_own(self, own):
        self.count = own["count"]


@pytest.fixture
def env() -> Shout:
    env = Shout(TextWrapper(CountingEnv(action_format="react")), marks=2)
    env.reset(seed=1, options={"task": NINE})
    return env


def test_a_wrapper_keeps_the_whole_contract(env):
    bare = env.unwrapped
    names = ("capabilities", "split", "tasks", "task", "horizon", "action_format", "grammar")
    for name in (*names, "instructions"):
        assert getattr(env, name) == getattr(bare, name)
    assert env.render_command("add 1", "hm") == bare.render_command("add 1", "hm")
    assert env.admissible() == bare.admissible()
    assert env.state_key() == bare.state_key()
    assert env.oracle().reply("", {}) == bare.render_command("add 9")


def test_a_wrapper_takes_text_environments_only():
    with pytest.raises(TypeError, match="put Gymnasium's own wrappers outside"):
        TextWrapper(gymnasium.wrappers.TimeLimit(CountingEnv(), 3))
    with pytest.raises(TypeError, match="got CartPole"):
        TextWrapper(gymnasium.make("CartPole-v1").unwrapped)


def test_saved_states_hold_the_wrappers_own_state(env):
    env.step("Action: roll")
    state = env.save_state()
    rest = [env.step("Action: roll") for _ in range(3)]
    assert rest[0][0].endswith("!!2")
    other = Shout(TextWrapper(CountingEnv(action_format="react")), marks=2)
    other.load_state(state)
    assert [other.step("Action: roll") for _ in range(3)] == rest


def test_a_clone_has_the_same_wrappers_in_the_same_state(env):
    env.step("Action: roll")
    twin = env.clone()
    assert isinstance(twin.env, TextWrapper)
    expected = env.clone().step("Action: roll")
    assert twin.step("Action: roll") == expected
    assert (twin.count, env.count) == (2, 1)


def test_a_state_of_other_wrappers_is_refused(env):
    for other in (env.env, env.unwrapped):
        with pytest.raises(InvalidState):
            env.load_state(other.save_state())
        with pytest.raises(InvalidState):
            other.load_state(env.save_state())
    not_base85 = b'{"wrapper": "Shout", "own": null, "inner": "\xc3\xbc"}'
    for data in (b"", b"[]", b"[" * 100_000, b'{"wrapper": "Shout"}', not_base85):
        with pytest.raises(InvalidState):
            env.load_state(data)


def test_a_spec_with_wrappers_survives_json():
    env = Shout(gymnasium.make("Test/Counting-v0"), marks=3)
    made = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert type(made).__name__ == "Shout"
    made.reset(options={"task": NINE})
    assert made.step("add 1")[0].endswith("!!!1")
