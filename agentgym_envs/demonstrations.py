"""Demonstrations: solved episodes of an oracle that is, on purpose, imperfect.

A policy cloned from a perfect oracle has never seen a refusal, so it never learns what to say
after one and gives reinforcement learning nothing to choose from. `NoisyOracle` therefore
replaces some of the oracle's commands by random ones, refused ones included, and they are recorded
too; only solved episodes are kept. With `noise` 0 it is the oracle itself.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import Episode
from agentgym_envs.errors import EnvFault, InvalidTask, NoPlan, Unsupported
from agentgym_envs.policies import run_episode
from agentgym_envs.seeds import stable_seed
from agentgym_envs.tasks import Task, TaskSet

_logger = logging.getLogger(__name__)

_PATIENCE = 200
"""Attempts before too few solved ones are an error."""
_LEAST_SOLVED = 0.05
"""Share of attempts that must be solved."""


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
    env: TextEnv, tasks: TaskSet, num_episodes: int, *, noise: float, horizon: int, seed: int
) -> list[Episode]:
    """Solved episodes over `tasks`, in a shuffled order, again from the start if there are few.

    Args:
        env: an environment with an oracle.
        tasks: what to demonstrate on.
        num_episodes: how many.
        noise: as for `NoisyOracle`.
        horizon: most turns; longer episodes are thrown away.
        seed: of the order and the noise.

    Raises:
        Unsupported: the environment lacks an oracle, or, for noise, lists of commands.
        InvalidTask: there is no task.
        NoPlan: too few episodes are solved within the horizon.
        EnvFault: the world broke twice in an episode, or for good.
    """
    needed = {"oracle", "admissible"} if noise else {"oracle"}
    if lacking := ", ".join(sorted(needed - env.capabilities)):
        raise Unsupported(
            f"demonstrations cannot be made: {env.family} lacks {lacking}; set their noise to 0 if "
            "an oracle is left, else start from a trained model, without a warm-up"
        )
    if not len(tasks):
        raise InvalidTask("there is no task to demonstrate: the task set is empty")
    episodes: list[Episode] = []
    for number, task in enumerate(_endless(tasks, seed)):
        if len(episodes) == num_episodes:
            break
        if number > _PATIENCE and len(episodes) < number * _LEAST_SOLVED:
            raise NoPlan(
                f"only {len(episodes)} of {number} demonstrations were solved within {horizon} "
                "turns; raise their horizon or lower their noise"
            )
        key = stable_seed(seed, "demonstration", number, task.id)
        play = functools.partial(_play, env, task, noise=noise, horizon=horizon, key=key)
        # A random command may have put the goal out of reach: that is no demonstration.
        with contextlib.suppress(NoPlan):
            episode = _retried(play)
            if episode.success:
                episodes.append(episode)
    return episodes


def _play(env: TextEnv, task: Task, *, noise: float, horizon: int, key: int) -> Episode:
    policy = NoisyOracle(env, noise, np.random.default_rng(key))
    return run_episode(env, policy, task=task, seed=0, horizon=horizon)


def _retried(play: Callable[[], Episode]) -> Episode:
    """An episode that broke is played again, once, with the same random numbers."""
    try:
        return play()
    except EnvFault as fault:
        if not fault.retryable:
            raise
        _logger.warning("a demonstration is made again: %s", fault)
        return play()


def _endless(tasks: TaskSet, seed: int) -> Iterator[Task]:
    for epoch in itertools.count():
        yield from tasks.shuffle(stable_seed(seed, "epoch", epoch) % 2**32)


def transcripts(episodes: Iterable[Episode]) -> Iterator[str]:
    """All texts of the episodes, for training a tokenizer."""
    for episode in episodes:
        yield episode.first_observation
        for turn in episode.turns:
            yield turn.reply
            yield turn.observation
