"""`Dialect`: how an environment talks and what its rules are, chosen once when it is made.

The world is the same in every dialect. Ours is here; `compat` has AgentGym's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentgym_envs.actions import Command, Grammar
from agentgym_envs.errors import CommandError
from agentgym_envs.sciworld.actions import verbs
from agentgym_envs.sciworld.experiments import NAMES
from agentgym_envs.sciworld.observation import answer, explained, first_observation, on_one_line
from agentgym_envs.sciworld.session import StepResult


@dataclass(frozen=True)
class Dialect:
    """One way of talking about a world.

    Attributes:
        grammar: the verbs under some simplifications.
        goal: the task in words, given the simulator's; the first observation begins with it.
        first: the first observation, given `goal` and the room in the simulator's words.
        answer: the observation after a line that was understood.
        refuse: the observation after a reply that was none, or that holds no command.
        fail: the observation that ends the episode, given what the simulator says, and why.
        is_official: whether lines go to the official interface as they are, see `Session.say`.
        max_moves: units of time after which the task has failed; None for no limit.
        experiments: those whose tasks there are.
        variation_of_index: experiment and variation of a task index; None if an index counts the
            task set.
    """

    grammar: Callable[[tuple[str, ...]], Grammar]
    goal: Callable[[str], str]
    first: Callable[[str, str], str]
    answer: Callable[[StepResult], str]
    refuse: Callable[[CommandError], str]
    fail: Callable[[str, str], str]
    is_official: bool = False
    max_moves: int | None = None
    experiments: Sequence[str] = NAMES
    variation_of_index: Callable[[int], tuple[str, int]] | None = None


def own_dialect() -> Dialect:
    """The dialect of this package."""
    return Dialect(
        grammar=lambda simplifications: Grammar(verbs(simplifications)),
        goal=on_one_line,
        first=first_observation,
        answer=answer,
        refuse=str,
        fail=explained,
    )


def reason_of_failure(command: Command) -> str:
    """Why the task has failed with `command`, in words."""
    if command.verb.name == "focus_on":
        return (
            f"The task has failed: you focused on {command.arguments['thing']}, which is not what "
            "the task asks you to focus on now."
        )
    return (
        f'The task has failed with "{command.text}": it led to a result that the task counts as '
        "a wrong answer."
    )
