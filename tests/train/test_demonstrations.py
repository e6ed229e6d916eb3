"""Demonstrations by noisy oracles."""

import numpy as np
import pytest
from counting import CountingEnv

from agentgym_envs.errors import NoPlan
from agentgym_train.batching import sample_from_episode
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.demonstrations import (
    DemonstrationConfig,
    demonstrate,
    transcripts,
    with_tokens,
)


@pytest.fixture
def env():
    return CountingEnv(highest=12)


def test_without_noise_every_demonstration_is_the_oracles_own(env):
    config = DemonstrationConfig(episodes=8, noise=0.0)
    episodes = demonstrate(env, env.tasks, config, seed=1)
    assert len(episodes) == 8
    assert all(episode.success for episode in episodes)
    assert all(len(e.turns) == e.task.difficulty for e in episodes)
    assert sorted(e.task.id for e in episodes[:4]) == sorted(env.tasks.ids)


def test_noise_puts_refused_and_needless_commands_into_solved_episodes(env):
    config = DemonstrationConfig(episodes=60, noise=0.5, horizon=10)
    episodes = demonstrate(env, env.tasks, config, seed=1)
    assert all(episode.success for episode in episodes)
    turns = [turn for episode in episodes for turn in episode.turns]
    assert 0 < sum(not turn.action_valid for turn in turns) < len(turns) / 2
    assert np.mean([len(e.turns) > e.task.difficulty for e in episodes]) > 0.2


def test_demonstrations_depend_on_the_seed_alone(env):
    config = DemonstrationConfig(episodes=10, noise=0.4)

    def texts(seed):
        return list(transcripts(demonstrate(env, env.tasks, config, seed=seed)))

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_tokens_of_a_demonstration_decode_to_what_the_teacher_said(env):
    episode = demonstrate(env, env.tasks, DemonstrationConfig(episodes=1, noise=0.3), seed=3)[0]
    template = ChatTemplate(train_tokenizer(transcripts([episode]), 300))
    record = with_tokens(episode, template, "")
    for turn in record.turns:
        assert template.reply_text(turn.sampled_ids) == turn.reply
        assert turn.logprobs is None
    sample = sample_from_episode(record)
    assert sample.old_logprobs is None
    assert sample.num_sampled == sum(len(turn.sampled_ids) for turn in record.turns)
    assert episode.turns[0].sampled_ids is None  # the original is left alone


def test_a_horizon_that_is_too_short_is_said(env):
    with pytest.raises(ConfigError, match=r"0 of \d+ .* within 1 turns; raise"):
        demonstrate(env, env.tasks, DemonstrationConfig(episodes=3, horizon=1), seed=0)


def test_a_demonstration_that_the_oracle_cannot_finish_is_left_out(env, monkeypatch):
    solve = env._make_oracle()

    class Helpless:
        def start(self, instructions):
            pass

        def reply(self, observation, info):
            if env.task.payload["number"] == 6:
                raise NoPlan("the goal is out of reach")
            return solve.reply(observation, info)

    monkeypatch.setattr(env, "_make_oracle", Helpless)
    episodes = demonstrate(env, env.tasks, DemonstrationConfig(episodes=6, noise=0.0), seed=0)
    assert {episode.task.payload["number"] for episode in episodes} == {3, 9, 12}
