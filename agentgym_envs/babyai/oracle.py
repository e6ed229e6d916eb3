"""The oracle of BabyAI: it knows the whole grid, and solves a mission from any state.

It plays the mission to its end in the world itself, leg by leg, and then takes the world back to
where it was. So it never gives a plan that does not work, nor a command that would be refused.
`strategy` says what to do next, `routes` which way, `approach` with which commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_envs.babyai.approach import Step, places
from agentgym_envs.babyai.strategy import Strategy
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import CommandError, NoPlan

if TYPE_CHECKING:
    from agentgym_envs.actions import Command, Grammar
    from agentgym_envs.babyai.env import BabyAIEnv
    from agentgym_envs.babyai.world import BabyAIWorld

MAX_TURNS = 400
"""Longest plan, in commands."""


class BabyAIOracle:
    """Gives the commands of a plan for as long as the world follows it, then makes a new one.

    Args:
        env: the environment to play in.
    """

    def __init__(self, env: BabyAIEnv) -> None:
        self._env = env
        self._plan: dict[str, str] = {}

    def next_command(self) -> str:
        """The next command from the state as it is now.

        Raises:
            NoPlan: no way to the goal was found, or the episode is over.
        """
        state = self._env.world.state_key()
        if state not in self._plan:
            self._plan = plan(self._env.world, self._env.grammar)
        return self._plan[state]


def plan(world: BabyAIWorld, grammar: Grammar) -> dict[str, str]:
    """The commands from the current state to success, by the key of the state each is given in.

    Args:
        world: is played in, and is as before when this returns.
        grammar: our own verbs of either action mode.

    Raises:
        NoPlan: the mission is over, cannot be accomplished any more, or no way was found.
    """
    if world.status is not EndReason.RUNNING:
        raise NoPlan("the episode is over")
    beginning = world.snapshot()
    try:
        return _play(world, grammar)
    except CommandError as error:
        raise NoPlan(f"the plan holds a command that cannot be done: {error}") from error
    finally:
        world.restore(beginning)


def _play(world: BabyAIWorld, grammar: Grammar) -> dict[str, str]:
    strategy = Strategy(world, grammar.verbs)
    commands: dict[str, str] = {}
    leg: list[Step] = []
    while world.status is EndReason.RUNNING:
        leg = leg or strategy.next_leg()
        state = world.state_key()
        if state in commands:
            raise NoPlan("the plan goes round in circles")
        if len(commands) == MAX_TURNS:
            raise NoPlan(f"the plan is longer than {MAX_TURNS} commands")
        command = _command(world, grammar, leg.pop(0))
        command.verb.run(world, **command.arguments)
        commands[state] = command.text
    if world.status is not EndReason.SUCCESS:
        raise NoPlan("the plan breaks a rule of the mission")
    return commands


def _command(world: BabyAIWorld, grammar: Grammar, step: Step) -> Command:
    if step.cell is None:
        return grammar.command(step.verb.name)
    name = _name(world, step.cell)
    return grammar.command(step.verb.name, **{it.name: name for it in step.verb.parameters})


def _name(world: BabyAIWorld, cell: int) -> str:
    mirror = world.mirror
    place = places(mirror.headings)[mirror.heading].get(cell - mirror.cell)
    for sight in world.view().sights:
        if sight.place == place:
            return sight.name
    raise NoPlan("the plan names a thing that is not in view")
