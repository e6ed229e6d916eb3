"""`Dialect`: how an environment talks, chosen once when it is made.

The world is the same in every dialect. What differs is which verbs there are, how a state is put
into words, and what an index of a task means. Ours is here; a dialect that reproduces another
system is a module with a function that returns one of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from agentgym_envs.actions import Verb
from agentgym_envs.arguments import one_of
from agentgym_envs.babyai.actions import ACTION_MODES, admissible
from agentgym_envs.babyai.observation import observation_style
from agentgym_envs.babyai.world import BabyAIWorld
from agentgym_envs.errors import CommandError

if TYPE_CHECKING:
    from agentgym_envs.babyai.env import BabyAIEnv


_LOW_LEVEL_FACTOR = 7
"""Primitives that one high-level command may take."""


class Oracle(Protocol):
    """Something that knows what to do next."""

    def next_command(self) -> str:
        """The next command from the state as it is now."""
        ...


@dataclass(frozen=True)
class Dialect:
    """One way of talking about a world.

    Attributes:
        verbs: in the order in which the instructions list them.
        rules: the rules of the world, which the action format follows with the verbs.
        first: the observation of a new world, with its goal.
        observe: the observation after a command, given what the verb returned.
        refuse: the observation after a command that was not done.
        admissible: all commands that would be done now, in canonical form.
        oracle: makes what solves the current task of an environment in these verbs.
        turns_factor: how many times the turns of the certified ones this dialect may need.
        world_of_index: level and seed of a task index; None if an index counts the task set.
    """

    verbs: tuple[Verb, ...]
    rules: Callable[[], str]
    first: Callable[[BabyAIWorld], str]
    observe: Callable[[BabyAIWorld, str], str]
    refuse: Callable[[BabyAIWorld, CommandError], str]
    admissible: Callable[[BabyAIWorld], list[str]]
    oracle: Callable[[BabyAIEnv], Oracle]
    turns_factor: int = 1
    world_of_index: Callable[[int], tuple[str, int]] | None = None


def own_dialect(action_mode: str, obs_style: str) -> Dialect:
    """The dialect of this package.

    Args:
        action_mode: ``"high"`` or ``"low"``.
        obs_style: ``"text"`` or ``"compact"``.

    Raises:
        UnknownName: another mode or style.
    """
    verbs = ACTION_MODES[one_of("action_mode", action_mode, ACTION_MODES)]
    style = observation_style(obs_style)

    def scene(world: BabyAIWorld) -> str:
        return style.scene(world.view(), world.status)

    def observe(world: BabyAIWorld, note: str) -> str:
        return f"{style.message(note)} {scene(world)}" if note else scene(world)

    return Dialect(
        verbs=verbs,
        rules=lambda: _rules(obs_style),
        first=lambda world: style.goal(world.mission) + scene(world),
        observe=observe,
        refuse=lambda world, error: style.message(str(error)),
        admissible=lambda world: admissible(world, action_mode),
        oracle=_own_oracle,
        turns_factor=_LOW_LEVEL_FACTOR if action_mode == "low" else 1,
    )


def _own_oracle(env: BabyAIEnv) -> Oracle:
    from agentgym_envs.babyai.oracle import BabyAIOracle

    return BabyAIOracle(env)


@functools.cache
def _rules(section: str) -> str:
    """What ``prompt.md`` says before its sections, and then in one of them."""
    text = resources.files("agentgym_envs.babyai").joinpath("prompt.md").read_text("utf-8")
    head, *sections = text.split("\n## ")
    bodies = dict(part.split("\n", 1) for part in sections)
    return f"{head.strip()}\n\n{bodies[section].strip()}"
