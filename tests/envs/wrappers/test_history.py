import gymnasium
import pytest
from counting import CountingEnv

from agentgym_envs.errors import InvalidState
from agentgym_envs.wrappers import History

NINE = {"task": "counting/train/9"}
FIRST = "Make the counter show 9, then say done.\nThe counter shows 0."


def make(**arguments) -> History:
    env = History(CountingEnv(), **arguments)
    env.reset(options=NINE)
    return env


def test_the_observation_holds_the_first_one_and_the_last_turns():
    env = History(CountingEnv(), turns=2)
    assert env.reset(options=NINE)[0] == FIRST
    assert env.step("add 1")[0] == (
        f"{FIRST}\n\n[Turn 1, your reply]\nadd 1\n\n"
        "[Turn 1, observation]\nYou add 1. The counter shows 1."
    )
    env.step("add 2")
    second = (
        "\n\n[Turn 2, your reply]\nadd 2\n\n[Turn 2, observation]\nYou add 2. The counter shows 3."
    )
    third = (
        "\n\n[Turn 3, your reply]\nadd 3\n\n[Turn 3, observation]\nYou add 3. The counter shows 6."
    )
    fourth = "\n\n[Turn 4, your reply]\ndone\n\n[Turn 4, observation]\nYou say that you are done."
    left_out = "\n\n[1 earlier turn is left out.]"
    assert env.step("add 3")[0] == FIRST + left_out + second + third
    observation, _, terminated, _, info = env.step("done")
    assert observation == f"{FIRST}\n\n[2 earlier turns are left out.]{third}{fourth} Wrong."
    assert terminated
    assert info["end_reason"] == "failure"


def test_a_reset_empties_the_history():
    env = make()
    env.step("add 1")
    assert env.reset(options=NINE)[0] == FIRST
    assert "add 1" not in env.step("add 2")[0]


def test_instructions_stay_where_they_were_put():
    env = History(CountingEnv(instructions_in_observation=True), turns=1)
    first, _ = env.reset(options=NINE)
    assert first == f"{env.unwrapped.instructions}\n\n{FIRST}"
    env.step("add 1")
    assert env.step("add 2")[0].startswith(f"{first}\n\n[1 earlier turn is left out.]\n\n[Turn 2,")
    assert env.instructions == env.unwrapped.instructions


def test_without_a_limit_all_turns_asked_for_are_there():
    env = make(turns=10)
    for _ in range(8):
        observation = env.step("add 1")[0]
    assert [f"[Turn {n}, your reply]" in observation for n in range(10)] == [False] + [True] * 8 + [
        False
    ]
    assert "left out" not in observation


@pytest.mark.parametrize("limit", range(180, 700, 7))
def test_the_oldest_turns_go_first_where_there_is_a_limit(limit):
    free, bounded = make(turns=10), make(turns=10, max_characters=limit)
    for number in range(1, 9):
        whole, text = free.step(f"add {number}")[0], bounded.step(f"add {number}")[0]
        assert len(text) <= limit
        assert text.startswith(FIRST)
        shown = [n for n in range(1, 10) if f"[Turn {n}, your reply]" in text]
        assert shown == list(range(number - len(shown) + 1, number + 1))
        assert whole.endswith(text.rpartition("left out.]")[2] if len(shown) < number else text)
        if len(shown) < number:  # one more would not have fitted
            previous = whole.index(f"\n\n[Turn {shown[0] - 1}, your reply]")
            assert len(FIRST) + len(whole) - previous + 40 > limit


def test_a_long_reply_is_cut_and_the_observation_is_not():
    env = make(turns=2, max_characters=400)
    env.step("add 1")
    observation = env.step("x" * 10_000)[0]
    assert 390 < len(observation) <= 400
    assert "x…\n\n[Turn 2, observation]\n" in observation
    assert observation.endswith("]\nThe command is 10000 characters long; 2000 are allowed.")


def test_what_just_fits_is_shown_whole():
    free = make(turns=3)
    lengths = [len(free.step(reply)[0]) for reply in ("add 1", "add 2", "add 3")]
    for turns, length in enumerate(lengths, start=1):
        bounded = make(turns=3, max_characters=length)
        tight = make(turns=3, max_characters=length - 1)
        for number in range(1, turns + 1):
            whole, cut = (env.step(f"add {number}")[0] for env in (bounded, tight))
        assert len(whole) == length
        assert "left out" not in whole
        assert "…" not in whole
        assert ("left out" in cut) == (turns > 1)
        assert ("…" in cut) == (turns == 1)


def test_first_and_newest_observation_stay_whole_under_any_limit():
    env = make(turns=3, max_characters=1)
    env.step("add 1")
    assert env.step("add 2")[0] == (
        f"{FIRST}\n\n[1 earlier turn is left out.]\n\n[Turn 2, your reply]\n…\n\n"
        "[Turn 2, observation]\nYou add 2. The counter shows 3."
    )


def test_observations_stay_in_their_space_whatever_is_replied():
    env = make(turns=3)
    for reply in ("x" * 3_000_000, "\ud800" * 10, "x" * 999_990):
        observation, *_ = env.step(reply)
        assert observation in env.observation_space
    assert len(env.save_state()) < 6_000_000


def test_saved_states_and_clones_keep_the_history():
    env = make(turns=2)
    env.step("add 1")
    env.step("add 2")
    state, twin = env.save_state(), env.clone()
    expected = env.step("add 3")
    assert "[Turn 2, your reply]\nadd 2" in expected[0]
    assert twin.step("add 3") == expected
    env.reset()
    env.load_state(state)
    assert env.step("add 3") == expected


def test_a_state_with_a_broken_history_is_refused():
    env = make()
    env.step("add 1")
    state = env.save_state()
    for broken in (state.replace(b'"add 1"', b"1"), state.replace(b"[[1,", b"[[0,")):
        assert broken != state
        with pytest.raises(InvalidState, match="not what History remembers"):
            env.load_state(broken)
        assert env.save_state() == state


@pytest.mark.parametrize(
    "arguments", [{"turns": 0}, {"turns": "2"}, {"turns": True}, {"max_characters": 0}]
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match="must be a whole number of at least 1, got"):
        History(gymnasium.make("Test/Counting-v0"), **arguments)
