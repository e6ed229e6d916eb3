"""Episodes as arrays: what is sampled, where rewards sit, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from agentgym_envs.episodes import EndReason, Episode, Turn
from agentgym_envs.errors import InvalidRecord
from agentgym_envs.sequences import TokenSequence, token_sequence
from agentgym_envs.tasks import Task


@pytest.fixture
def make_episode():
    """Builds an episode from context ids, sampled ids and reward of each turn."""

    def make(turns, *, logprobs=None, task_id="t/0", member=0):
        return Episode(
            task=Task("test", task_id, "train", "goal", "any", seed=None, horizon=20),
            seed=0,
            horizon=20,
            instructions="",
            first_observation="",
            member=member,
            end_reason=EndReason.HORIZON,
            turns=[
                Turn(
                    reply="",
                    observation="",
                    reward=reward,
                    score=0.0,
                    action_valid=True,
                    context_ids=list(context),
                    sampled_ids=list(sampled),
                    logprobs=list(logprobs[index]) if logprobs else [-1.0] * len(sampled),
                )
                for index, (context, sampled, reward) in enumerate(turns)
            ],
        )

    return make


def test_a_sequence_holds_all_tokens_and_numbers_for_sampled_ones_only(make_episode):
    episode = make_episode(
        [([5, 6], [7], 0.0), ([8], [9, 10], 1.0)], logprobs=[[-0.5], [-0.25, -2.0]], member=3
    )
    found = token_sequence(episode)
    assert found.token_ids.tolist() == [5, 6, 7, 8, 9, 10]
    assert found.sampled_mask.tolist() == [False, False, True, False, True, True]
    assert found.old_logprobs.tolist() == [-0.5, -0.25, -2.0]
    assert found.turn_index.tolist() == [0, 1, 1]
    assert found.rewards.tolist() == [0.0, 0.0, 1.0]
    assert (found.num_tokens, found.num_sampled) == (6, 3)
    assert found.origin == "episode of task 't/0', member 3"


def test_the_end_token_added_after_a_cut_turn_is_not_a_sampled_one(make_episode):
    end_of_turn = 2
    episode = make_episode([([5], [7, 8], 0.0), ([end_of_turn, 6], [9, end_of_turn], 1.0)])
    episode.turns[0].finish_reason = "length"
    found = token_sequence(episode)
    assert found.token_ids[found.sampled_mask].tolist() == [7, 8, 9, end_of_turn]


def test_the_final_observation_stands_behind_if_asked_for(make_episode):
    episode = make_episode([([5, 6], [7], 0.0), ([8], [9], 1.0)])
    with pytest.raises(InvalidRecord, match="its final observation was not recorded"):
        token_sequence(episode, with_tail=True)
    episode.tail_ids = [11, 12]
    found = token_sequence(episode, with_tail=True)
    assert found.token_ids.tolist() == [5, 6, 7, 8, 9, 11, 12]
    assert found.sampled_mask.tolist() == [False, False, True, False, True, False, False]
    assert found.turn_index.tolist() == [0, 1]
    assert token_sequence(episode).num_tokens == 5


def test_state_keys_are_kept_if_every_turn_has_one(make_episode):
    episode = make_episode([([5], [7], 0.0), ([8], [9], 1.0)])
    assert token_sequence(episode).state_keys == ()
    episode.turns[0].state_key = "a"
    assert token_sequence(episode).state_keys == ()
    episode.turns[1].state_key = "b"
    assert token_sequence(episode).state_keys == ("a", "b")


def test_a_teachers_episode_has_no_log_probabilities(make_episode):
    episode = make_episode([([5], [7], 0.0), ([8], [9], 1.0)])
    for turn in episode.turns:
        turn.logprobs = None
    assert token_sequence(episode).old_logprobs is None


def test_the_temperature_is_that_of_all_turns(make_episode):
    episode = make_episode([([5], [7], 0.0), ([8], [9], 1.0)])
    assert token_sequence(episode).temperature == 1.0  # a record that does not say
    for turn in episode.turns:
        turn.temperature = 0.5
    assert token_sequence(episode).temperature == 0.5
    episode.turns[1].temperature = 2.0
    with pytest.raises(InvalidRecord, match=r"temperatures \[0.5, 2.0\]; one expected"):
        token_sequence(episode)


def test_tokens_that_were_not_drawn_have_no_log_probability(make_episode):
    episode = make_episode([([5], [7], 0.0)])
    episode.turns[0].temperature = 0.0
    found = token_sequence(episode)
    assert (found.old_logprobs, found.temperature) == (None, 1.0)


def test_a_turn_without_sampled_tokens_needs_no_log_probability(make_episode):
    episode = make_episode([([5], [7], 0.0), ([8], [], 0.0), ([8], [9], 0.0)])
    episode.turns[1].logprobs = None
    assert token_sequence(episode).old_logprobs.tolist() == [-1.0, -1.0]


def broken(change):
    return pytest.param(change, id=change.__name__)


def one_logprob_too_many(episode):
    episode.turns[1].logprobs.append(-1.0)
    return "turn 1 has 2 sampled tokens but 3 log-probabilities"


def logprobs_of_one_turn_missing(episode):
    episode.turns[1].logprobs = None
    return "1 of 2 turns have log-probabilities"


def no_token_ids(episode):
    episode.turns[0].sampled_ids = None
    return "turn 0 has no token ids"


def nothing_sampled(episode):
    for turn in episode.turns:
        turn.sampled_ids = turn.logprobs = []
    return "no token was sampled"


def no_prompt(episode):
    episode.turns[0].context_ids = []
    return "the first token is a sampled one"


@pytest.mark.parametrize(
    "change",
    [
        broken(one_logprob_too_many),
        broken(logprobs_of_one_turn_missing),
        broken(no_token_ids),
        broken(nothing_sampled),
        broken(no_prompt),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(make_episode, change):
    episode = make_episode([([5], [7], 0.0), ([8], [9, 10], 1.0)], task_id="t/7", member=3)
    message = change(episode)
    with pytest.raises(InvalidRecord, match=f"episode of task 't/7', member 3: {message}"):
        token_sequence(episode)


@pytest.mark.parametrize("reward", [float("nan"), float("-inf")])
def test_a_reward_that_is_no_number_is_refused_by_task_and_turn(make_episode, reward):
    episode = make_episode([([5], [7], 0.0), ([8], [9], reward)], task_id="t/7", member=3)
    message = f"task 't/7', member 3: turn 1 has the reward {reward}; an environment must give"
    with pytest.raises(InvalidRecord, match=message):
        token_sequence(episode)


def test_arrays_of_another_length_are_refused(make_episode):
    found = token_sequence(make_episode([([5], [7], 0.0)]))
    for name in ("turn_index", "rewards", "old_logprobs"):
        with pytest.raises(InvalidRecord, match=rf"{name} must have one .* 1 sampled .* \(2,\)"):
            dataclasses.replace(found, **{name: np.zeros(2)})
    with pytest.raises(InvalidRecord, match="2 tokens need a mask of that length, got 1"):
        TokenSequence(
            token_ids=np.arange(2),
            sampled_mask=np.array([False]),
            turn_index=np.zeros(0),
            rewards=np.zeros(0),
        )


def test_a_reward_sits_on_the_last_sampled_token_of_its_turn(make_episode):
    episode = make_episode([([5], [1, 2], 0.25), ([6], [3], 0.5), ([7], [4, 5, 6], 1.0)])
    assert episode.token_rewards == [0.0, 0.25, 0.5, 0.0, 0.0, 1.0]


def test_the_reward_of_a_turn_without_sampled_tokens_goes_to_the_most_recent_one(make_episode):
    episode = make_episode([([5], [], 2.0), ([6], [1, 2], 0.25), ([7], [], 0.5), ([8], [3], 0.0)])
    assert episode.token_rewards == [0.0, 2.75, 0.0]


def test_token_rewards_add_up_to_the_return(make_episode):
    rng = np.random.default_rng(1)
    for _ in range(50):
        turns = [
            # exact in binary, so sums are exact
            ([1], [2] * int(rng.integers(3)), int(rng.integers(-64, 64)) / 64)
            for _ in range(rng.integers(1, 6))
        ]
        episode = make_episode([*turns, ([1], [2], 0.5)])
        assert sum(episode.token_rewards) == episode.return_
        assert len(episode.token_rewards) == sum(len(sampled) for _, sampled, _ in turns) + 1


def test_a_return_of_zero_gives_rewards_of_zero(make_episode):
    assert make_episode([([5], [1, 2], 0.0)]).token_rewards == [0.0, 0.0]


def test_without_sampled_tokens_there_is_no_place_for_a_reward(make_episode):
    assert make_episode([([5], [], 1.0)]).token_rewards == []
