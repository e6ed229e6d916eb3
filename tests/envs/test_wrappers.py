import gymnasium
import pytest
from counting import BareEnv, CountingEnv
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidState, UnknownName, Unsupported
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
    names = ("capabilities", "split", "tasks", "task", "goal", "horizon", "action_format")
    for name in (*names, "grammar", "instructions"):
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
    no_reason = b'{"wrapper": "Shout", "arguments": "", "end_reason": "bored", "own": null}\n'
    for data in (b"", b"[]", b"[" * 100_000, b'{"wrapper": "Shout"}', no_reason, "text", None):
        with pytest.raises(InvalidState):
            env.load_state(data)


def test_a_spec_with_wrappers_survives_json():
    env = Shout(gymnasium.make("Test/Counting-v0"), marks=3)
    made = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert type(made).__name__ == "Shout"
    made.reset(options={"task": NINE})
    assert made.step("add 1")[0].endswith("!!!1")


class Fussy(Shout):
    """Finds out halfway through that it cannot read its own state."""

    def _load_own(self, own):
        self.count = own["count"] + 100
        if own["count"] == 2:
            raise self.error


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("no"), InvalidState("no")])
@pytest.mark.parametrize("depth", [0, 1])
def test_a_wrapper_that_cannot_load_leaves_all_as_it_was(error, depth):
    Fussy.error = error
    env = Fussy(Shout(CountingEnv())) if depth == 0 else Shout(Fussy(CountingEnv()))
    env.reset(options={"task": NINE})
    for _ in range(2):
        env.step("add 1")
    state = env.save_state()
    env.reset(seed=5)
    env.step("add 2")
    before = env.save_state()
    with pytest.raises(InvalidState, match="no"):
        env.load_state(state)
    assert env.save_state() == before


def test_a_world_that_cannot_load_leaves_the_wrappers_as_they_were(env):
    env.step("Action: add 1")
    state = env.save_state()
    env.step("Action: add 1")
    before = env.save_state()
    for broken in (state[:-10], state.replace(b'"world":[9', b'"world":[9,9')):
        assert broken != state
        with pytest.raises(InvalidState):
            env.load_state(broken)
        assert env.save_state() == before


def test_a_state_of_other_arguments_is_refused(env):
    with pytest.raises(InvalidState, match="saved by a Shout with other arguments"):
        Shout(TextWrapper(CountingEnv(action_format="react")), marks=3).load_state(env.save_state())


def test_a_state_grows_by_a_line_a_wrapper():
    env = CountingEnv()
    env.reset()
    bare = len(env.save_state())
    for _ in range(10):
        env = TextWrapper(env)
    assert len(env.save_state()) < bare + 10 * 120


class Veto(TextWrapper):
    """Ends the episode at the word `stop`."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if "stop" in action:
            self._end(info, EndReason.STOPPED)
            truncated = True
        return observation, reward, terminated, truncated, info


def test_a_wrapper_may_end_an_episode_and_then_nothing_is_played():
    env = TextWrapper(Veto(CountingEnv(info_keys=("admissible",))))
    env.reset(options={"task": NINE})
    *_, truncated, info = env.step("stop")
    assert (truncated, info["end_reason"], info["admissible"]) == (True, "stopped", [])
    state, twin = env.save_state(), env.clone()
    with pytest.raises(UnknownName):
        env.reset(options={"task": "nowhere"})
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("add 1")
    env.reset()
    assert env.step("add 1")[-1]["end_reason"] == ""
    env.load_state(state)
    for ended in (env, twin):
        assert ended.admissible() == []
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"Veto ended the episode \(stopped"):
            ended.step("add 1")


@pytest.mark.parametrize("value", [len, {1, 2}, (1, 2), float("nan"), CountingEnv(), {1: 2}])
def test_arguments_that_json_would_lose_are_refused(value):
    with pytest.raises(
        TypeError, match=r"arguments of wrappers are JSON values.* Shout got marks="
    ):
        Shout(CountingEnv(), marks=value)


def test_a_family_without_states_says_so_through_a_wrapper():
    env = TextWrapper(BareEnv())
    env.reset()
    for call in (env.save_state, env.clone, lambda: env.load_state(b"{}")):
        with pytest.raises(Unsupported, match="clone"):
            call()
