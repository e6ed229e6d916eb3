"""`compat="agentgym"`: the observations and actions of AgentGym's BabyAI (arXiv 2406.04151).

Observation texts, the line of available actions, the numbers of things, the messages for errors
and the task indices (level ``index % 40 + 1``, seed ``index // 40``) are those of its server at
commit 3ef9235, checked against it. Kept although they may surprise: "move forward" is offered at
a ball, key or closed door and "drop" at a door, where they change nothing; going through a door
ends in the doorway; numbers are counted anew in every observation.

Where the original is at fault it is not followed:

- Reward is 1 once, at success; success and failure end the episode and the horizon truncates
  it. There, a late success is no end, failure never is, and replies after it are paid again.
- The goal is verbatim. There, "then" and "after you" are replaced by "and", which hides the
  order in which clauses have to be done.
- "toggle" is offered at boxes and open doors too. There only at closed ones, so a key in a box
  and a door to be opened again are out of reach.
- A number means the same thing in the description and in the commands. There, commands skip
  things that cannot be reached when they count.
- A walk stops when the mission is decided, or where a primitive changes neither grid nor pose.
  There, it runs on past a success, and a step that leaves the view as it was ends it.
- "pick up" and "pickup" are the same, and only a whole command asks for the available actions,
  not any text with "check" in it. Replies that hold no action are answered by the action format.
- The message for a door without a path to it names the door; there it shows an internal table.
- A failed mission is not said to be completed, and at the start of level 23 the thing that is
  carried is not shown where it lay before.
- Level 4 is ``BabyAI-GoToObjS6-v1``: the ``v0`` named there does not exist in minigrid 3.
  Ordered missions of level 16 can be won, see `generation`.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from agentgym_envs.actions import verb
from agentgym_envs.babyai.cells import LABELS
from agentgym_envs.babyai.compat_scene import Scene, Thing, scene_of
from agentgym_envs.babyai.dialect import Dialect, Oracle
from agentgym_envs.babyai.levels import AGENTGYM
from agentgym_envs.babyai.view import ahead_and_right
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import CommandError, FormatError, InvalidTask

if TYPE_CHECKING:
    from agentgym_envs.babyai.env import BabyAIEnv
    from agentgym_envs.babyai.world import BabyAIWorld

CHECK = "check available actions"
TURNS_FACTOR = 2
"""A plan takes 1.4 times the turns of our own verbs, and up to three times in single tasks."""

NO_CHANGE = "No change in state."
NOT_RECOGNIZED = "The action is not recognized. Please check valid actions."

_ENDS = {
    EndReason.SUCCESS: "\n The task is completed.",
    EndReason.FAILURE: "\n The task has failed.",
}


class _Refusal(CommandError):
    """A command of AgentGym that cannot be done; the text is AgentGym's."""


def agentgym_dialect() -> Dialect:
    """The dialect of AgentGym."""
    return Dialect(
        verbs=VERBS,
        rules=_rules,
        first=lambda world: f"Your goal: {world.mission}\n{_observe(world, '')}",
        observe=_observe,
        refuse=_refuse,
        admissible=lambda world: available_actions(scene_of(world)),
        oracle=_oracle,
        turns_factor=TURNS_FACTOR,
        world_of_index=world_of_index,
    )


def world_of_index(index: int) -> tuple[str, int]:
    """Level and world seed of AgentGym's task `index`.

    Raises:
        InvalidTask: the index is negative.
    """
    if index < 0:
        raise InvalidTask(f"AgentGym's task indices begin at 0, got {index}")
    seed, level = divmod(index, len(AGENTGYM))
    return AGENTGYM[level], seed


def available_actions(scene: Scene) -> list[str]:
    """The commands that AgentGym lists, in its order."""
    return [*scene.options, CHECK]


def description(scene: Scene) -> str:
    """AgentGym's description of a scene."""
    if scene.any_seen:
        things = "".join(f"There is a {_sight(thing)} " for thing in scene.things)
        seen = f"In front of you in this room, you can see several objects: {things}"
    else:
        seen = "You cannot see any objects within sight."
    walls = "The room has walls around you. "
    if scene.barrier:
        name, distance = scene.barrier
        walls += f"You are facing a {name} {distance} steps away. "
    if scene.carried:
        return f"{seen}{walls}You are carrying a {LABELS[scene.carried]}."
    return f"{seen}{walls}You are not carrying anything."


def _sight(thing: Thing) -> str:
    ahead, right = ahead_and_right(thing.place)
    if right == 0:
        return f"{thing.name} right in front of you {ahead} steps away. "
    side = "right" if right > 0 else "left"
    return f"{thing.name} {ahead} steps in front of you and {abs(right)} steps to your {side}. "


def _observe(world: BabyAIWorld, note: str) -> str:
    scene = scene_of(world)
    text = note or description(scene) + _ENDS.get(world.status, "")
    listed = ", ".join(f'"{command}"' for command in available_actions(scene))
    return f"{text}\nAvailable actions: [{listed}]"


def _refuse(world: BabyAIWorld, error: CommandError) -> str:
    own = isinstance(error, (_Refusal, FormatError))
    return _observe(world, str(error) if own else NOT_RECOGNIZED)


def _oracle(env: BabyAIEnv) -> Oracle:
    from agentgym_envs.babyai.compat_oracle import AgentGymOracle

    return AgentGymOracle(env)


def _rules() -> str:
    prompt = resources.files("agentgym_envs.babyai").joinpath("prompt_agentgym.md")
    return prompt.read_text("utf-8")


def _do(world: BabyAIWorld, command: str) -> str:
    scene = scene_of(world)
    if command not in scene.options:
        raise _Refusal(scene.refusals.get(command, NOT_RECOGNIZED))
    primitives = scene.primitives(command)
    if not primitives:
        return NO_CHANGE
    world.follow(primitives)
    return ""


def _walk(world: BabyAIWorld, verb_name: str, target: str) -> str:
    return _do(world, f"{verb_name} {target.lower()}")


@verb("turn left")
def turn_left(world: BabyAIWorld) -> str:
    """Turn to your left where you stand.

    Examples:
        turn left
    """
    return _do(world, "turn left")


@verb("turn right")
def turn_right(world: BabyAIWorld) -> str:
    """Turn to your right where you stand.

    Examples:
        turn right
    """
    return _do(world, "turn right")


@verb("move forward")
def move_forward(world: BabyAIWorld) -> str:
    """Take one step ahead, if nothing is in the way.

    Examples:
        move forward
    """
    return _do(world, "move forward")


@verb("go to {target}")
def go_to(world: BabyAIWorld, target: str) -> str:
    """Walk to a thing in view until you stand in front of it and face it.

    Examples:
        go to red ball 1
        go to green closed door 1
    """
    return _walk(world, "go to", target)


@verb("pickup {target}", "pick up {target}")
def pickup(world: BabyAIWorld, target: str) -> str:
    """Walk to a ball, box or key in view and pick it up, if you carry nothing.

    Examples:
        pickup grey key 1
        pick up blue box 2
    """
    return _walk(world, "pickup", target)


@verb("drop")
def drop(world: BabyAIWorld) -> str:
    """Put what you carry onto the cell in front of you, if it is free.

    Examples:
        drop
    """
    return _do(world, "drop")


@verb("toggle")
def toggle(world: BabyAIWorld) -> str:
    """Open or close the door right in front of you, or open the box, which leaves its contents.

    Examples:
        toggle
    """
    return _do(world, "toggle")


@verb("go through {target}")
def go_through(world: BabyAIWorld, target: str) -> str:
    """Walk into the doorway of an open door in view.

    Examples:
        go through yellow open door 1
    """
    return _walk(world, "go through", target)


@verb("toggle and go through {target}")
def toggle_and_go_through(world: BabyAIWorld, target: str) -> str:
    """Walk to a closed or locked door, open it, step into it. A locked one needs its color of key.

    Examples:
        toggle and go through yellow closed door 1
        toggle and go through red locked door 1
    """
    return _walk(world, "toggle and go through", target)


@verb(CHECK, "check valid actions", "check")
def check_available_actions(world: BabyAIWorld) -> str:
    """Read the list of available actions once more.

    Examples:
        check available actions
    """
    return f"You can take the following actions: {', '.join(available_actions(scene_of(world)))}"


VERBS = (
    turn_left,
    turn_right,
    move_forward,
    go_to,
    pickup,
    drop,
    toggle,
    go_through,
    toggle_and_go_through,
    check_available_actions,
)
