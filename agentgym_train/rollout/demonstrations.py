"""Demonstrations: oracle episodes, on purpose imperfect, as token records for cloning.

A policy cloned from a perfect oracle has never seen a refusal, so it never learns what to say
after one and gives reinforcement learning nothing to choose from. `NoisyOracle` therefore
replaces some of the oracle's commands by random ones, refused ones included, and they are cloned
too; only solved episodes are kept. With `noise` 0 it is the oracle itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import Episode
from agentgym_envs.errors import NoPlan
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import Task, TaskSet
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.collector import stable_seed


@dataclasses.dataclass(frozen=True)
class DemonstrationConfig:
    """Which demonstrations are made."""

    episodes: int = 2000
    """How many solved episodes."""
    noise: float = 0.4
    """Probability that a random command replaces the oracle's."""
    horizon: int = 10
    """Most turns of a demonstration; longer ones are thrown away."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"demonstrations.episodes must be at least 1, got {self.episodes}")
        if not 0 <= self.noise < 1:
            raise ConfigError(f"demonstrations.noise must be in [0, 1), got {self.noise}")
        if self.horizon < 1:
            raise ConfigError(f"demonstrations.horizon must be at least 1, got {self.horizon}")


class NoisyOracle:
    """The oracle of `env`, interrupted by random commands.

    A random command is one that the world would carry out now or one of the grammar's examples,
    which often name things that are not there.

    Args:
        env: the environment being played; it must have an oracle and list admissible commands.
        noise: probability of a random command.
        rng: where the random choices come from.
    """

    def __init__(self, env: TextEnv, noise: float, rng: np.random.Generator) -> None:
        self._env = env
        self._noise = noise
        self._rng = rng

    def start(self, instructions: str) -> None:
        self._oracle = self._env.oracle()
        self._oracle.start(instructions)

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        if self._rng.random() < self._noise:
            commands = [*self._env.admissible(), *self._env.grammar.examples]
            return self._env.render_command(commands[int(self._rng.integers(len(commands)))])
        return self._oracle.reply(observation, info)


def demonstrate(
    env: TextEnv, tasks: TaskSet, config: DemonstrationConfig, *, seed: int
) -> list[Episode]:
    """Solved episodes over `tasks`, in a shuffled order, again from the start if there are few.

    Args:
        env: an environment with an oracle.
        tasks: what to demonstrate on.
        config: how many and how noisy.
        seed: of the order and the noise.

    Raises:
        ConfigError: too few episodes are solved within the horizon.
    """
    episodes: list[Episode] = []
    for number, task in enumerate(_endless(tasks, seed)):
        if len(episodes) == config.episodes:
            return episodes
        rng = np.random.default_rng(stable_seed(seed, "demonstration", number, task.id))
        policy = NoisyOracle(env, config.noise, rng)
        # A random command may have put the goal out of reach: that is no demonstration.
        with contextlib.suppress(NoPlan):
            episode = run_episode(env, policy, task=task, seed=0, horizon=config.horizon)
            if episode.success:
                episodes.append(episode)
        if number >= 200 and len(episodes) < number * 0.05:
            raise ConfigError(
                f"only {len(episodes)} of {number + 1} demonstrations were solved within "
                f"{config.horizon} turns; raise demonstrations.horizon or lower the noise"
            )
    raise AssertionError("the order of tasks is endless")


def _endless(tasks: TaskSet, seed: int) -> Iterator[Task]:
    if len(tasks) == 0:
        raise ConfigError("there is no task to demonstrate: the task set is empty")
    for epoch in itertools.count():
        yield from tasks.shuffle(stable_seed(seed, "epoch", epoch) % 2**32)


def with_tokens(episode: Episode, template: ChatTemplate, instructions: str) -> Episode:
    """A copy of `episode` whose turns carry the tokens a policy would have had to sample.

    Args:
        episode: a record without tokens.
        template: turns text into tokens.
        instructions: the system message, or "" for none.
    """
    turns = []
    context_ids = template.open(instructions, episode.first_observation)
    for turn in episode.turns:
        turns.append(
            dataclasses.replace(
                turn,
                context_ids=context_ids,
                sampled_ids=template.encode_reply(turn.reply),
                finish_reason="stop",
            )
        )
        context_ids = template.extend(turn.observation, closed=True)
    return dataclasses.replace(episode, turns=turns)


def transcripts(episodes: Sequence[Episode]) -> Iterator[str]:
    """All texts of the episodes, for training a tokenizer."""
    for episode in episodes:
        yield episode.first_observation
        for turn in episode.turns:
            yield turn.reply
            yield turn.observation
