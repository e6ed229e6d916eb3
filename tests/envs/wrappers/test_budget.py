import gymnasium
import pytest
from counting import CountingEnv, FaultyEnv

from agentgym_envs.errors import InvalidState, UnknownName, Unsupported
from agentgym_envs.policies import ScriptedPolicy, run_episode
from agentgym_envs.wrappers import TokenBudget, TurnBudget, WallClockBudget, tokens

NINE = {"task": "counting/train/9"}
RUNNING, CUT = (False, False), (False, True)


def play(env, replies):
    """(terminated, truncated, end reason) of every step."""
    entries = [env.step(reply) for reply in replies]
    return [(*entry[2:4], entry[4]["end_reason"]) for entry in entries]


# ---------------------------------------------------------------------------------------- turns


def test_a_turn_budget_lowers_the_horizon():
    env = TurnBudget(CountingEnv(), max_turns=2)
    env.reset(options=NINE)
    assert (env.horizon, env.unwrapped.horizon) == (2, 2)
    assert play(env, ["add 1"] * 2) == [(*RUNNING, ""), (*CUT, "horizon")]
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode ended"):
        env.step("add 1")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 4),
        ({"horizon": 9}, 4),
        ({"horizon": 3}, 3),
        ({"max_horizon": 9}, 4),
        ({"horizon": 9, "max_horizon": 2}, 2),
    ],
)
def test_the_lowest_limit_on_turns_holds(options, expected):
    env = TurnBudget(CountingEnv(), max_turns=4)
    given = dict(options)
    env.reset(options=options)
    assert env.horizon == expected
    assert options == given


def test_a_wrong_limit_is_refused_as_it_is_without_a_budget():
    env = TurnBudget(CountingEnv(), max_turns=4)
    with pytest.raises(ValueError, match="a horizon is a number of turns, at least 1; got 'x'"):
        env.reset(options={"max_horizon": "x"})
    with pytest.raises(ValueError, match="max_turns must be a whole number of at least 1, got 0"):
        TurnBudget(CountingEnv(), max_turns=0)


# --------------------------------------------------------------------------------------- tokens


def test_the_reply_that_uses_up_the_tokens_still_counts():
    env = TokenBudget(CountingEnv(info_keys=("admissible",)), max_tokens=5)
    env.reset(options=NINE)
    assert play(env, ["add 4", "add 4"]) == [(*RUNNING, "")] * 2
    observation, _, *flags, info = env.step("add 1")
    assert (env.spent, flags) == (6, list(CUT))
    assert observation == "You add 1. The counter shows 9."
    assert (info["end_reason"], info["score"], info["admissible"]) == ("budget", 0.5, [])
    assert (env.admissible(), env.unwrapped.admissible() == []) == ([], False)
    for _ in range(2):
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"TokenBudget ended the episode \(b"):
            env.step("done")
    env.reset(options=NINE)
    assert env.spent == 0
    assert play(env, ["add 9"]) == [(*RUNNING, "")]


@pytest.mark.parametrize("last_turn", [(*CUT, "budget"), (*RUNNING, "")])
def test_after_a_reset_that_fails_there_is_no_episode(last_turn):
    max_tokens = 2 if last_turn[1] else 9
    env = TokenBudget(TurnBudget(CountingEnv(), max_turns=9), max_tokens=max_tokens)
    for options in ({"max_horizon": 0}, {"max_horizon": True}, {"tsak": 3}):
        env.reset(options=NINE)
        assert play(env, ["add 4"]) == [last_turn]
        with pytest.raises((ValueError, UnknownName)):
            env.reset(options=options)
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step("add 4")


def test_a_budget_that_is_just_used_up_ends_the_episode():
    env = TokenBudget(CountingEnv(), max_tokens=4)
    env.reset(options=NINE)
    assert play(env, ["add 4", "add 4"]) == [(*RUNNING, ""), (*CUT, "budget")]


def test_the_end_of_the_world_is_no_end_of_the_budget():
    env = TokenBudget(CountingEnv(), max_tokens=3)
    env.reset(options=NINE)
    assert play(env, ["add 9", "done"]) == [(*RUNNING, ""), (True, False, "success")]
    env.reset(options=NINE | {"horizon": 1})
    assert play(env, ["add 9 9 9 9"]) == [(*CUT, "horizon")]


@pytest.mark.parametrize(
    ("count", "expected"),
    [("words", 3), ("characters", 9), ("bytes", 11), ("shaping:letters_a", 2)],
)
def test_tokens_are_what_the_count_says(count, expected):
    env = TokenBudget(CountingEnv(), max_tokens=100, count=count)
    env.reset(options=NINE)
    env.step("ab \u00e9\u00e9 xyza"[:9])
    assert env.spent == expected - (count == "shaping:letters_a")


def test_observations_count_where_asked_for():
    env = TokenBudget(CountingEnv(), max_tokens=18, observations=True)
    observation, _ = env.reset(options=NINE)
    assert env.spent == len(observation.split()) == 12
    assert play(env, ["done"]) == [(True, False, "failure")]
    assert env.spent == 12 + 1 + 7  # "You say that you are done. Wrong."
    tight = TokenBudget(CountingEnv(), max_tokens=1, observations=True)
    tight.reset(options=NINE)
    assert play(tight, ["add 1"]) == [(*CUT, "budget")]


def test_a_tokenizer_of_a_folder_counts_its_ids(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"add": 0, "1": 1, "?": 2}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        env = TokenBudget(CountingEnv(), max_tokens=100, tokenizer=str(path))
        env.reset(options=NINE)
        env.step("add-1, please")
        assert env.spent == 5
    with pytest.raises(ValueError, match="nothing is downloaded"):
        TokenBudget(CountingEnv(), max_tokens=1, tokenizer=str(tmp_path / "none"))


def test_a_tokenizer_neither_pads_nor_truncates_what_is_counted(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"add": 0, "?": 1}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=50, pad_token="?")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    env = TokenBudget(CountingEnv(), max_tokens=100, tokenizer=str(tmp_path))
    env.reset(options=NINE)
    env.step("add add add add add")
    assert env.spent == 5


def test_a_tokenizer_without_its_library_is_refused(tmp_path, monkeypatch):
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setattr(tokens.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unsupported, match="pip install tokenizers"):
        TokenBudget(CountingEnv(), max_tokens=1, tokenizer=str(tmp_path))


def test_a_fault_spends_nothing():
    env = TokenBudget(FaultyEnv(), max_tokens=10)
    env.reset(options=NINE)
    with pytest.raises(ZeroDivisionError):
        env.step("crash")
    with pytest.raises(TypeError, match="an action is a str"):
        env.step(None)
    assert env.spent == 0


def test_saved_states_and_clones_keep_what_was_spent():
    env = TokenBudget(CountingEnv(), max_tokens=5)
    env.reset(options=NINE)
    env.step("add 4")
    middle = env.save_state()
    play(env, ["add 4", "add 1"])
    end, twin = env.save_state(), env.clone()
    other = TokenBudget(CountingEnv(), max_tokens=5)
    other.load_state(middle)
    assert other.spent == 2
    assert play(other, ["add 4", "add 1"]) == [(*RUNNING, ""), (*CUT, "budget")]
    other.reset(options=NINE)
    other.load_state(end)
    for ended in (other, twin):
        assert ended.admissible() == []
        with pytest.raises(gymnasium.error.ResetNeeded):
            ended.step("done")
    other.load_state(middle)
    assert play(other, ["add 4"]) == [(*RUNNING, "")]
    with pytest.raises(InvalidState, match="TokenBudget with other arguments"):
        TokenBudget(CountingEnv(), max_tokens=6).load_state(middle)


def test_a_played_episode_says_that_the_budget_ended_it():
    episode = run_episode(
        TokenBudget(CountingEnv(), 3), ScriptedPolicy(["add 1"]), task=NINE["task"]
    )
    assert (episode.end_reason, episode.success, len(episode.turns)) == ("budget", False, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_tokens": 0}, ValueError, "max_tokens must be a whole number of at least 1, got 0"),
        ({"max_tokens": 2.5}, ValueError, r"got 2\.5"),
        ({"max_tokens": 9, "count": "word"}, UnknownName, "did you mean 'words'"),
        ({"max_tokens": 9, "count": "shaping:no"}, ValueError, "there is no 'no' in a module"),
        ({"max_tokens": 9, "count": "nowhere:f"}, ValueError, "there is no 'f' in a module 'now"),
        ({"max_tokens": 9, "count": "shaping:NUMBER"}, TypeError, "is no function but 3"),
        ({"max_tokens": 9, "count": len}, TypeError, "arguments of wrappers are JSON values"),
        ({"max_tokens": 9, "observations": 1}, TypeError, "observations must be True or False"),
        ({"max_tokens": 9, "tokenizer": 3}, TypeError, "path of a folder or file, got 3"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        TokenBudget(CountingEnv(), **arguments)


def test_a_count_that_is_no_number_of_tokens_is_refused():
    env = TokenBudget(CountingEnv(), max_tokens=9, count="shaping:half")
    env.reset()
    with pytest.raises(ValueError, match=r"what shaping:half returns must be a whole .* got 0\.5"):
        env.step("add 1")


# ----------------------------------------------------------------------------------------- time


class Clock:
    """Stands for `time`: it shows what it is set to."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("agentgym_envs.wrappers.budget.time", clock)
    return clock


def test_the_turn_in_which_time_is_up_is_the_last(clock):
    env = WallClockBudget(CountingEnv(), seconds=10)
    env.reset(options=NINE)
    clock.now += 9.5
    assert play(env, ["add 1"]) == [(*RUNNING, "")]
    clock.now += 0.5
    assert play(env, ["add 2"]) == [(*CUT, "budget")]
    assert env.spent_s == 10.0
    with pytest.raises(gymnasium.error.ResetNeeded, match="WallClockBudget ended the episode"):
        env.step("add 3")
    clock.now += 100
    env.reset(options=NINE)
    assert play(env, ["add 1"]) == [(*RUNNING, "")]


def test_a_loaded_state_goes_on_with_the_time_that_was_spent(clock):
    env = WallClockBudget(CountingEnv(), seconds=10)
    env.reset(options=NINE)
    clock.now += 6
    env.step("add 1")
    clock.now += 100
    state = env.save_state()
    assert env.save_state() == state
    clock.now += 100
    env.load_state(state)
    twin = env.clone()
    clock.now += 3
    assert play(env, ["add 1"]) == [(*RUNNING, "")]
    clock.now += 1
    assert play(env, ["add 1"]) == [(*CUT, "budget")]
    assert play(twin, ["add 1"]) == [(*CUT, "budget")]


def test_a_load_that_fails_does_not_stop_the_clock(clock):
    env = WallClockBudget(CountingEnv(), seconds=10)
    env.reset(options=NINE)
    clock.now += 9
    state = env.save_state()
    with pytest.raises(InvalidState):
        env.load_state(state[:-20])
    clock.now += 1
    assert play(env, ["add 1"]) == [(*CUT, "budget")]


def test_nothing_that_is_returned_tells_the_time():
    plain, timed = CountingEnv(), WallClockBudget(CountingEnv(), seconds=600.5)
    assert timed.reset(options=NINE) == plain.reset(options=NINE)
    assert timed.step("add 1") == plain.step("add 1")


@pytest.mark.parametrize("seconds", [0, -1.0, float("inf"), float("nan"), "10", None, True])
def test_wrong_seconds_are_refused(seconds):
    with pytest.raises((ValueError, TypeError), match="got"):
        WallClockBudget(CountingEnv(), seconds=seconds)
