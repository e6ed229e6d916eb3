"""The oracle of BabyAI: it knows the whole grid, and solves a mission from any state.

It plays the mission to its end in the world itself, leg by leg, and then takes the world back to
where it was. So a plan is never given that would not work, and a command never that would be
refused. `strategy` says what to do next, `approach` with which commands, `routes` which way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_envs.babyai.approach import places
from agentgym_envs.babyai.strategy import Strategy
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import CommandError, NoPlan

if TYPE_CHECKING:
    from agentgym_envs.actions import Grammar
    from agentgym_envs.babyai.approach import Step
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
        self._command_at: dict[str, str] = {}

    def next_command(self) -> str:
        """The next command from the state as it is now.

        Raises:
            NoPlan: no way to the goal was found, or the episode is over.
        """
        state = self._env.world.state_key()
        if state not in self._command_at:
            self._command_at = plan(self._env.world, self._env.grammar)
        return self._command_at[state]


def plan(world: BabyAIWorld, grammar: Grammar) -> dict[str, str]:
    """The commands from the current state to success, by the key of the state each is given in.

    Args:
        world: is played in, and is as before when this returns.
        grammar: the commands that there are.

    Raises:
        NoPlan: none was found within `MAX_TURNS`.
    """
    if world.status is not EndReason.RUNNING:
        raise NoPlan("the episode is over")
    beginning = world.snapshot()
    command_at: dict[str, str] = {}
    strategy = Strategy(world, {verb.forms[0] for verb in grammar.verbs})
    try:
        while world.status is EndReason.RUNNING:
            for step in strategy.next_leg():
                state = world.state_key()
                if state in command_at or len(command_at) == MAX_TURNS:
                    raise NoPlan("the plan goes round in circles")
                command_at[state] = _do(world, grammar, step)
                if world.status is not EndReason.RUNNING:
                    break
        if world.status is EndReason.FAILURE:
            raise NoPlan("the plan breaks a rule of the mission")
    except CommandError as error:
        raise NoPlan(f"the plan holds a command that cannot be done: {error}") from error
    finally:
        world.restore(beginning)
    return command_at


def _do(world: BabyAIWorld, grammar: Grammar, step: Step) -> str:
    name = _name(world, step.cell) if step.cell else ""
    command = grammar.parse(step.form.format(target=name, door=name))
    command.verb.run(world, **command.arguments)
    return command.text


def _name(world: BabyAIWorld, cell: int) -> str:
    place = places(world.mirror.headings)[world.mirror.heading].get(cell - world.mirror.cell)
    name = next((sight.name for sight in world.view().sights if sight.place == place), None)
    if name is None:
        raise NoPlan("the plan names a thing that is not in view")
    return name
