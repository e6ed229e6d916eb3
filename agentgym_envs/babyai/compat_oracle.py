"""`AgentGymOracle`: the oracle of `compat="agentgym"`.

AgentGym's walks take other ways than ours and may end early, so a plan in our commands cannot be
put into its words. Instead the plan is made in primitives, each of which is an action there too,
and at each turn the world itself is asked which action gets farthest along the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_envs.actions import Grammar
from agentgym_envs.babyai.actions import LOW_LEVEL
from agentgym_envs.babyai.compat_scene import scene_of
from agentgym_envs.babyai.oracle import plan
from agentgym_envs.babyai.paths import DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import NoPlan

if TYPE_CHECKING:
    from agentgym_envs.babyai.env import BabyAIEnv
    from agentgym_envs.babyai.world import BabyAIWorld

_PLAN_GRAMMAR = Grammar(LOW_LEVEL)
_PRIMITIVES = {
    "turn left": LEFT,
    "turn right": RIGHT,
    "move forward": FORWARD,
    "pick up": PICK_UP,
    "drop": DROP,
    "toggle": TOGGLE,
}


class AgentGymOracle:
    """Gives the actions of a plan for as long as the rest of it wins, then makes a new one.

    Args:
        env: the environment to play in.
    """

    def __init__(self, env: BabyAIEnv) -> None:
        self._env = env
        self._rest: list[int] = []

    def next_command(self) -> str:
        """The next command from the state as it is now.

        Raises:
            NoPlan: no way to the goal was found, or the episode is over.
        """
        if not self._wins(self._rest):
            commands = plan(self._env.world, _PLAN_GRAMMAR).values()
            self._rest = [_PRIMITIVES[command] for command in commands]
        for num_done, command, primitives in self._shortcuts():
            rest = self._rest[num_done:]
            if self._wins(primitives, rest):
                self._rest = rest
                return command
        raise NoPlan("no available action leads along the plan")

    def _shortcuts(self) -> list[tuple[int, str, list[int]]]:
        """Commands that end in a state of the plan, and their own primitives.

        Each comes with the number of primitives of the plan that are done then, greatest first.
        A state may occur in the plan more than once, so a command may too.
        """
        world = self._env.world
        numbers = self._numbers_by_state()
        beginning = world.snapshot()
        scene = scene_of(world)
        found = []
        for command in scene.options:
            primitives = scene.primitives(command)
            world.follow(primitives)
            found += [(number, command, primitives) for number in numbers.get(_state(world), ())]
            world.restore(beginning)
        return sorted(found, key=lambda shortcut: -shortcut[0])

    def _numbers_by_state(self) -> dict[str, list[int]]:
        world = self._env.world
        beginning = world.snapshot()
        numbers: dict[str, list[int]] = {}
        for number, primitive in enumerate(self._rest, start=1):
            world.step(primitive)
            numbers.setdefault(_state(world), []).append(number)
        world.restore(beginning)
        return numbers

    def _wins(self, *walks: list[int]) -> bool:
        world = self._env.world
        beginning = world.snapshot()
        for walk in walks:
            if not world.status:
                world.follow(walk)
        won = not beginning.status and world.status is EndReason.SUCCESS
        world.restore(beginning)
        return won


def _state(world: BabyAIWorld) -> str:
    """What the world looks like; the mission's progress is left to `AgentGymOracle._wins`."""
    return str(world.status) or world.digest()
