"""Goals, texts and candidates as arrays."""

import functools
import hashlib
import os
import subprocess
import sys
from math import sqrt

import gymnasium
import numpy as np
import pytest
from counting import CountingEnv, CoyEnv
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidState
from agentgym_envs.wrappers import (
    ByteIds,
    CandidateActions,
    CandidateFeatures,
    HashedText,
    History,
    TokenIds,
)
from agentgym_envs.wrappers.candidate_features import NUM_FEATURES
from agentgym_envs.wrappers.features import PADDING, SEPARATOR
from agentgym_envs.wrappers.hashing import words

NINE = "counting/train/9"
GOAL = "Make the counter show 9, then say done."
WRAPPERS = [
    functools.partial(HashedText, dimension=np.int64(32)),
    functools.partial(HashedText, dimension=8, ngrams=3, normalize=False),
    functools.partial(TokenIds, length=24, vocabulary_size=50),
    functools.partial(ByteIds, length=100),
    CandidateFeatures,
]


def candidates(k=8):
    return CandidateActions(gymnasium.make("Test/Counting-v0"), k, "listed")


def place_and_sign(ngram, dimension):
    number = int.from_bytes(hashlib.blake2b(ngram.encode(), digest_size=8).digest(), "little")
    return (number // 2) % dimension, 1 if number % 2 else -1


def test_words_are_folded_and_punctuation_is_left_out():
    assert words("Go to RED ball_1, straße 22!") == ["go", "to", "red", "ball_1", "strasse", "22"]


def test_hashed_texts_are_signed_sums_of_words_and_pairs():
    env = HashedText(CountingEnv(), dimension=64, normalize=False)
    expected = np.zeros(128, dtype=np.float32)
    for ngram in ("red", "red", "ball", "red ball", "ball red"):
        place, sign = place_and_sign(ngram, 64)
        expected[64 + place] += sign
    place, sign = place_and_sign("go", 64)
    expected[place] += sign
    np.testing.assert_array_equal(env.encode("Go!", "red ball, red"), expected)


def test_both_halves_of_a_hashed_text_are_normalized():
    env = HashedText(CountingEnv(), dimension=512)
    observation = env.encode("one word after another", "red " * 50)
    assert observation.dtype == np.float32
    halves = observation.reshape(2, 512)
    np.testing.assert_allclose(np.linalg.norm(halves, axis=1), 1, rtol=1e-6)
    # 50 times "red" and 49 times "red red" in places of their own
    values = sorted(abs(value) for value in halves[1] if value)
    np.testing.assert_allclose(values, [49 / sqrt(4901), 50 / sqrt(4901)], rtol=1e-6)
    assert not env.encode("", "?!").any()


def test_order_counts_as_far_as_ngrams_reach():
    bags = HashedText(CountingEnv(), ngrams=1)
    pairs = HashedText(CountingEnv(), ngrams=2)
    texts = ("red ball blue box", "blue ball red box")
    assert (bags.encode("", texts[0]) == bags.encode("", texts[1])).all()
    assert (pairs.encode("", texts[0]) != pairs.encode("", texts[1])).any()


def test_token_ids_are_goal_separator_text_and_padding():
    env = TokenIds(CountingEnv(), length=8, vocabulary_size=1000)
    ids = {word: 2 + hash_of(word) % 998 for word in ("go", "red", "ball")}
    assert env.observation_space == gymnasium.spaces.Box(0, 999, (8,), np.int64)
    assert env.encode("Go red!", "ball, go").tolist() == [
        *(ids["go"], ids["red"], SEPARATOR),
        *(ids["ball"], ids["go"], PADDING, PADDING, PADDING),
    ]
    shortest = TokenIds(CountingEnv(), vocabulary_size=3)
    assert set(shortest.encode("a b", "c d").tolist()) == {0, 1, 2}


def hash_of(word):
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def test_what_is_too_long_loses_the_beginning_of_the_text_and_the_end_of_the_goal():
    env = ByteIds(CountingEnv(), length=6)
    assert decoded(env.encode("ab", "123")) == "ab|123"
    assert decoded(env.encode("ab", "12345")) == "ab|345"
    assert decoded(env.encode("abcde", "12345")) == "abcde|"
    assert decoded(env.encode("abcdef", "12345")) == "abcdef"
    assert decoded(env.encode("abcdefgh", "12345")) == "abcdef"
    assert decoded(env.encode("", "1")) == "|1"


def test_bytes_can_be_read_again():
    env = ByteIds(CountingEnv())
    assert decoded(env.encode("café", "☃ 😀")) == "café|☃ 😀"


def decoded(ids):
    marked = [ord("|") if id == SEPARATOR else id - 2 for id in ids.tolist() if id != PADDING]
    return bytes(marked).decode()


def test_candidate_features_are_cosines_and_shares_worked_by_hand():
    env = CandidateFeatures(candidates(k=7))
    env.reset(options={"task": NINE})
    # Terms of "add 9": add, 9, add 9. Of the goal: 8 words that differ, 7 pairs; it shares "9".
    rows = env.encode(GOAL, "Add what you like. To show 9, add 9.").reshape(-1, NUM_FEATURES)
    assert [bool(row[0]) for row in rows] == [True] * 5 + [False] * 2
    assert not rows[5:].any()
    add_nine = rows[env.slot_of("add 9")]
    # The second sentence: to, show, 9 (twice), add; to show, show 9, 9 add, add 9. With the goal
    # it shares show, 9 (twice) and "show 9"; with the command add, 9 (twice) and "add 9".
    line = sqrt(4 + 3 + 4)
    tied = (4 / (line * sqrt(15))) * (4 / (line * sqrt(3)))
    np.testing.assert_allclose(add_nine, [1, 1 / sqrt(15 * 3), 1, tied], rtol=1e-6)
    # "done" is in the goal and nowhere in the text, "roll" nowhere.
    np.testing.assert_allclose(rows[env.slot_of("done")], [1, 1 / sqrt(15), 0, 0], rtol=1e-6)
    np.testing.assert_allclose(rows[env.slot_of("roll")], [1, 0, 0, 0])


def test_lines_and_sentences_tie_commands_to_the_goal():
    env = CandidateFeatures(candidates(k=5))
    env.reset(options={"task": NINE})
    for text in ("show 9\nadd 2", "show 9. add 2", "show 9! add 2"):
        apart = env.encode(GOAL, text).reshape(-1, NUM_FEATURES)[env.slot_of("add 2")]
        assert apart[3] == 0
    together = env.encode(GOAL, "show 9, add 2").reshape(-1, NUM_FEATURES)[env.slot_of("add 2")]
    np.testing.assert_allclose(together[3], 9 / (7 * sqrt(15 * 3)), rtol=1e-6)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_observation_holds_the_goal_and_the_newest_text(wrapper):
    env = wrapper(candidates())
    observation, _ = env.reset(seed=1, options={"task": NINE})
    np.testing.assert_array_equal(observation, env.encode(GOAL, f"{GOAL}\nThe counter shows 0."))
    observation, *_ = env.step(0)
    np.testing.assert_array_equal(observation, env.encode(GOAL, "You add 1. The counter shows 1."))
    other, *_ = env.reset(seed=1, options={"task": "counting/train/12"})
    assert (other != env.encode(GOAL, f"{GOAL}\nThe counter shows 0.")).any()


def test_the_goal_is_as_the_world_states_it():
    env = TokenIds(History(CoyEnv()), length=24)
    observation, _ = env.reset(options={"task": NINE})
    assert env.task.goal == "number 9"
    assert env.goal == "Count to 9."
    stated = "Count to 9.\nThe counter shows 0."
    np.testing.assert_array_equal(observation, env.encode("Count to 9.", stated))
    following, *_ = env.step("add 9")
    assert (following[:4] == observation[:4]).all()


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_they_pass_the_check_of_gymnasium(wrapper):
    check_env(wrapper(candidates()), skip_render_check=True)


@settings(deadline=None, derandomize=True, database=None, max_examples=50)
@given(goal=st.text(), text=st.text())
def test_every_text_has_an_observation_in_the_space(goal, text):
    env = candidates()
    env.reset(options={"task": NINE})
    for wrapper in WRAPPERS:
        features = wrapper(env)
        observation = features.encode(goal, text)
        assert features.observation_space.contains(observation)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_masks_and_the_extra_calls_stay_reachable(wrapper):
    env = wrapper(candidates())
    env.reset(options={"task": NINE})
    assert env.action_masks().tolist() == [True] * 5 + [False] * 3
    assert env.candidates[env.slot_of("roll")] == "roll"
    assert env.task.id == NINE
    assert env.admissible() == env.unwrapped.admissible()
    assert RecordEpisodeStatistics(env).get_wrapper_attr("action_masks")().sum() == 5


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_states_and_clones_go_on_alike(wrapper):
    env = wrapper(candidates())
    env.reset(seed=2, options={"task": NINE})
    state, twin = env.save_state(), env.clone()
    other = wrapper(candidates())
    other.load_state(state)
    for slot in (3, 0, 3):
        expected, *_ = env.step(slot)
        for played in (other, twin):
            np.testing.assert_array_equal(played.step(slot)[0], expected)
    with pytest.raises(InvalidState, match="this is 'CandidateActions'"):
        env.env.load_state(state)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_specs_survive_json_and_vectors_of_gymnasium_take_them(wrapper):
    env = wrapper(candidates())
    make = functools.partial(gymnasium.make, EnvSpec.from_json(env.spec.to_json()))
    assert type(make()) is type(env)
    transcripts = []
    for make_vector in (SyncVectorEnv, functools.partial(AsyncVectorEnv, context="spawn")):
        envs = make_vector([make] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
        first, _ = envs.reset(seed=5)
        second, *_, infos = envs.step(np.array([4, 0]))
        transcripts.append((first, second, infos["action_mask"]))
        envs.close()
    for one, other in zip(*transcripts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_arrays_do_not_depend_on_the_hash_seed():
    code = """
import numpy as np
from counting import CountingEnv
from agentgym_envs.wrappers import CandidateActions, HashedText, TokenIds
env = CandidateActions(CountingEnv(), 64)
for wrap in (HashedText, TokenIds):
    observation, _ = wrap(env).reset(seed=0)
    print(np.flatnonzero(observation).tolist(), env.candidates, observation.sum())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.path.dirname(__file__)},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


def test_the_history_of_a_wrapper_inside_is_read():
    env = TokenIds(CandidateActions(History(CountingEnv()), 8, "listed"), length=64)
    env.reset(options={"task": NINE})
    observation, *_ = env.step(3)
    assert 2 + hash_of("roll") % 4094 in observation


def test_texts_may_stay_the_actions():
    env = HashedText(CountingEnv())
    env.reset(options={"task": NINE})
    *_, info = env.step("add 9")
    assert info["action_valid"]
    with pytest.raises(AttributeError, match="action_masks"):
        env.action_masks()


def test_what_they_cannot_wrap_is_refused():
    with pytest.raises(TypeError, match="TokenIds reads texts, but the observations"):
        TokenIds(HashedText(CountingEnv()))
    with pytest.raises(TypeError, match="put Gymnasium's own wrappers outside"):
        HashedText(RecordEpisodeStatistics(CountingEnv()))
    with pytest.raises(TypeError, match="CandidateFeatures wraps CandidateActions, got Counting"):
        CandidateFeatures(CountingEnv())


@pytest.mark.parametrize(
    ("wrapper", "arguments", "message"),
    [
        (HashedText, {"dimension": 0}, "dimension must be a whole number of at least 1, got 0"),
        (HashedText, {"ngrams": 1.5}, r"ngrams must be a whole number of at least 1, got 1\.5"),
        (TokenIds, {"length": -1}, "length must be a whole number of at least 1, got -1"),
        (TokenIds, {"vocabulary_size": 2}, "vocabulary_size must .* at least 3, got 2"),
        (ByteIds, {"length": 0}, "length must be a whole number of at least 1, got 0"),
    ],
)
def test_numbers_out_of_range_are_named(wrapper, arguments, message):
    with pytest.raises(ValueError, match=message):
        wrapper(CountingEnv(), **arguments)
