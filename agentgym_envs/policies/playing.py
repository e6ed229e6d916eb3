"""`run_episode`, which plays one policy in one environment, and the record of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, SupportsFloat

import gymnasium

from agentgym_envs.actions import action_format
from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason, Episode, Turn
from agentgym_envs.errors import PolicyStopped
from agentgym_envs.policies.simple import Policy
from agentgym_envs.spaces import to_utf8
from agentgym_envs.tasks import Task


def run_episode(
    env: gymnasium.Env[str, str],
    policy: Policy | None = None,
    *,
    task: Task | str | int | None = None,
    seed: int | None = None,
    horizon: int | None = None,
) -> Episode:
    """Play one episode in a `TextEnv` or a wrapper around one.

    Args:
        env: the environment.
        policy: who plays; None for the environment's own oracle.
        task: which task; None lets the environment draw one.
        seed: seed of the reset.
        horizon: most turns; None takes the environment's choice.

    Returns:
        The record, with an end reason of the environment, `HORIZON` where an outer wrapper
        truncated, or the reason of a policy that stopped.

    Raises:
        TypeError: `env` is not built on a `TextEnv`.
        NoPlan: the oracle plays and finds no way.
        EnvFault: the world broke.
        PolicyFault: the policy could not be asked.
    """
    if not isinstance(env.unwrapped, TextEnv):
        raise TypeError(f"run_episode plays a TextEnv or a wrapper around one, got {env}")
    options = {"task": task, "horizon": horizon}
    observation, info = env.reset(
        seed=seed, options={key: value for key, value in options.items() if value is not None}
    )
    episode = begin_record(env, observation, seed)
    player: Policy = env.get_wrapper_attr("oracle")() if policy is None else policy
    play_on(env, player, episode, info)
    return episode


def play_on(
    env: gymnasium.Env[str, str], policy: Policy, episode: Episode, info: Mapping[str, Any]
) -> None:
    """Play an episode that has just begun to its end; whatever is raised, its turns stay.

    Args:
        env: the environment, after the reset that `begin_record` recorded.
        policy: who plays.
        episode: the record, which grows.
        info: what the reset returned beside the observation.
    """
    policy.start(episode.instructions)
    observation = episode.first_observation
    while not episode.end_reason:
        try:
            reply = policy.reply(observation, info)
        except PolicyStopped as stop:
            episode.end_reason = EndReason(stop.reason)
            return
        outcome = env.step(reply)
        record_turn(episode, reply, outcome)
        observation, *_, info = outcome


def begin_record(env: gymnasium.Env[str, str], observation: str, seed: int | None) -> Episode:
    """The record of an episode of `env`, a `TextEnv` or a wrapper, that has just been reset."""
    told = env.get_wrapper_attr  # what the outermost wrapper says that has something to say
    return Episode(
        task=told("task"),
        seed=seed,
        horizon=told("horizon"),
        instructions=told("instructions"),
        first_observation=observation,
        env_id=env.spec.id if env.spec else "",
        action_format=told("action_format"),
        versions=package_versions(),
    )


def record_turn(
    episode: Episode,
    reply: str,
    outcome: tuple[str, SupportsFloat, bool, bool, Mapping[str, Any]],
) -> None:
    """Add to the record what `step` returned for `reply`; an end without a reason is `HORIZON`."""
    observation, reward, terminated, truncated, info = outcome
    reply = to_utf8(reply)
    answer = action_format(episode.action_format).answer_to(reply)
    episode.turns.append(
        Turn(
            reply=reply,
            observation=observation,
            reward=float(reward),
            score=info["score"],
            action_valid=info["action_valid"],
            role=answer.role,
            call_id=answer.call_id,
        )
    )
    if terminated or truncated:
        episode.end_reason = EndReason(info["end_reason"] or EndReason.HORIZON)
        episode.success = info["success"]


def package_versions() -> dict[str, str]:
    """Versions of the installed packages that shape a transcript."""
    names = ("agentgym-suite", "gymnasium", "minigrid", "numpy", "scienceworld")
    return {name: found for name in names if (found := _version(name))}


@functools.cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
