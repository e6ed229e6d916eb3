"""The oracle of TextCraft: plays the shortest plan, and makes a new one when the world left it.

From the start of an episode the plan is the shortest there is; from a state in mid-episode it is
one that works (`planner`). Commands are canonical: ``get 3 oak log``, ``craft 4 oak planks using
1 oak log``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from agentgym_envs.textcraft.planner import Planner

_State = tuple[str, frozenset[tuple[str, int]]]


class _World(Protocol):
    """What the oracle looks at."""

    @property
    def goal(self) -> str: ...

    @property
    def inventory(self) -> Mapping[str, int]: ...


class _Env(Protocol):
    """Where the world is found; it may be another one after a reset."""

    @property
    def world(self) -> _World: ...


class TextCraftOracle:
    """Gives the commands of a plan for as long as the world follows it, then makes a new one.

    Args:
        env: the environment to play in.
        planner: with the recipes of that environment.
    """

    def __init__(self, env: _Env, planner: Planner) -> None:
        self._env = env
        self._planner = planner
        self._commands: dict[_State, str] = {}

    def next_command(self) -> str:
        """The next command from the state as it is now.

        Raises:
            NoPlan: the goal cannot be had, or is there already.
        """
        world = self._env.world
        state = _state(world.goal, world.inventory)
        if state not in self._commands:
            self._commands = self._plan(world.goal, world.inventory)
        return self._commands[state]

    def _plan(self, goal: str, inventory: Mapping[str, int]) -> dict[_State, str]:
        """The commands of a plan by the state that each is given in."""
        held = Counter(inventory)
        commands: dict[_State, str] = {}
        for step in self._planner.plan(goal, held):
            commands[_state(goal, held)] = step.text
            held[step.item] += step.amount
            held.subtract({entry.name: entry.count for entry in step.ingredients})
        return commands


def _state(goal: str, inventory: Mapping[str, int]) -> _State:
    return goal, frozenset((item, count) for item, count in inventory.items() if count)
