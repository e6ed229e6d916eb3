"""Demonstrations as token records, and their settings."""

import pytest
from counting import CountingEnv

from agentgym_envs.demonstrations import demonstrate, transcripts
from agentgym_train.batching import sample_from_episode
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.demonstrations import DemonstrationConfig, with_tokens


def test_tokens_of_a_demonstration_decode_to_what_the_teacher_said():
    env = CountingEnv(highest=12)
    episode = demonstrate(env, env.tasks, 1, noise=0.3, horizon=10, seed=3)[0]
    template = ChatTemplate(train_tokenizer(transcripts([episode]), 300))
    record = with_tokens(episode, template, "")
    for turn in record.turns:
        assert template.reply_text(turn.sampled_ids) == turn.reply
        assert turn.logprobs is None
    sample = sample_from_episode(record)
    assert sample.old_logprobs is None
    assert sample.num_sampled == sum(len(turn.sampled_ids) for turn in record.turns)
    assert episode.turns[0].sampled_ids is None  # the original is left alone


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "demonstrations.episodes.* 0"),
        ({"horizon": 0}, "demonstrations.horizon.* 0"),
        ({"noise": 1.0}, r"demonstrations.noise must be in \[0, 1\), got 1.0"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        DemonstrationConfig(**settings)
