"""Demonstrations by noisy oracles."""

import itertools

import numpy as np
import pytest
from counting import CountingEnv

from agentgym_envs.demonstrations import demonstrate, transcripts
from agentgym_envs.errors import EnvFault, InvalidTask, NoPlan


@pytest.fixture
def env():
    return CountingEnv(highest=12)


def test_without_noise_every_demonstration_is_the_oracles_own(env):
    episodes = demonstrate(env, env.tasks, 8, noise=0.0, horizon=10, seed=1)
    assert len(episodes) == 8
    assert all(episode.success for episode in episodes)
    assert all(len(e.turns) == e.task.difficulty for e in episodes)
    assert sorted(e.task.id for e in episodes[:4]) == sorted(env.tasks.ids)


def test_noise_puts_refused_and_needless_commands_into_solved_episodes(env):
    episodes = demonstrate(env, env.tasks, 60, noise=0.5, horizon=10, seed=1)
    assert all(episode.success for episode in episodes)
    turns = [turn for episode in episodes for turn in episode.turns]
    assert 0 < sum(not turn.action_valid for turn in turns) < len(turns) / 2
    assert np.mean([len(e.turns) > e.task.difficulty for e in episodes]) > 0.2


def test_demonstrations_depend_on_the_seed_alone(env):
    def texts(seed):
        episodes = demonstrate(env, env.tasks, 10, noise=0.4, horizon=10, seed=seed)
        return list(transcripts(episodes))

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_a_horizon_that_is_too_short_is_said(env):
    with pytest.raises(NoPlan, match=r"only 0 of 201 .* within 1 turns; raise"):
        demonstrate(env, env.tasks, 3, noise=0.4, horizon=1, seed=0)


def test_a_demonstration_that_broke_is_made_again_once_with_the_same_noise(env, monkeypatch):
    def texts():
        return list(transcripts(demonstrate(env, env.tasks, 9, noise=0.4, horizon=10, seed=1)))

    expected, execute = texts(), env._execute

    def break_at(*numbers, retryable=True):
        calls = itertools.count()

        def broken(command):
            if next(calls) in numbers:
                raise EnvFault("the line is dead", retryable=retryable)
            return execute(command)

        monkeypatch.setattr(env, "_execute", broken)

    break_at(0, 6, 13)
    assert texts() == expected
    break_at(0, 1)
    with pytest.raises(EnvFault, match="the line is dead"):
        texts()
    break_at(6, retryable=False)
    with pytest.raises(EnvFault, match="the line is dead"):
        texts()


def test_an_empty_task_set_is_refused(env):
    with pytest.raises(InvalidTask, match="the task set is empty"):
        demonstrate(env, env.tasks.head(0), 3, noise=0.4, horizon=5, seed=0)


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
    episodes = demonstrate(env, env.tasks, 6, noise=0.0, horizon=10, seed=0)
    assert {episode.task.payload["number"] for episode in episodes} == {3, 9, 12}
