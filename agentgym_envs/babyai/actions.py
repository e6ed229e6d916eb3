"""The verbs of BabyAI. Each is a function of the world: calling it is doing it.

High-level verbs walk: they follow a shortest way through the cells in view, one primitive after
the other, and stop where the mission is decided or something is in the way. Their targets are
things in view, by the names that the observations use. Everything is checked before the first
primitive, so a command that is refused has changed nothing. A verb returns what happened on the
way, "" if all went as it says.

"Put next to" is no primitive of minigrid and is here because choosing the cell to drop on is
geometry that the text does not show well; it walks and drops like the others. Left out: walking
to things remembered from earlier views (`paths` says why).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_envs.actions import Verb, verb
from agentgym_envs.actions.grammar import shorten
from agentgym_envs.babyai.cells import (
    BOX,
    COLORS,
    DOORS,
    EMPTY,
    KEY,
    LOCKED_DOOR,
    MOVABLE,
    OPEN_DOOR,
)
from agentgym_envs.babyai.paths import DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE, neighbors
from agentgym_envs.babyai.view import FRONT, HERE, Sight
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import CommandError

if TYPE_CHECKING:
    from agentgym_envs.babyai.world import BabyAIWorld


@verb("turn left", "left")
def turn_left(world: BabyAIWorld) -> str:
    """Turn to your left where you stand.

    Examples:
        turn left
    """
    world.step(LEFT)
    return ""


@verb("turn right", "right")
def turn_right(world: BabyAIWorld) -> str:
    """Turn to your right where you stand.

    Examples:
        turn right
    """
    world.step(RIGHT)
    return ""


@verb("move forward", "go forward", "forward")
def move_forward(world: BabyAIWorld) -> str:
    """Take one step ahead.

    Examples:
        move forward
    """
    if world.front >> 3 not in (EMPTY, OPEN_DOOR):
        raise CommandError(f"You cannot move forward: {_obstacle(world)} is in the way.")
    world.step(FORWARD)
    return ""


@verb("go to {target}", "walk to {target}")
def go_to(world: BabyAIWorld, target: str) -> str:
    """Walk to something in view until you stand in front of it and face it.

    Examples:
        go to red ball 1
        go to green door 1
    """
    sight = _in_view(world, target)
    path = _path_to(world, sight)
    if not path:
        raise CommandError(f"You already stand in front of {sight.name}.")
    world.follow(path)
    return ""


@verb("pick up {target}", "pickup {target}", "take {target}")
def pick_up(world: BabyAIWorld, target: str) -> str:
    """Walk to a ball, box or key in view and pick it up. You can carry one thing.

    Examples:
        pick up grey key 1
    """
    sight = _in_view(world, target)
    _check_hands_free(world)
    if sight.code >> 3 in DOORS:
        raise CommandError("A door cannot be picked up.")
    world.follow([*_path_to(world, sight), PICK_UP])
    return ""


@verb("drop", "drop it", "put down")
def drop(world: BabyAIWorld) -> str:
    """Put what you carry onto the free cell in front of you.

    Examples:
        drop
    """
    _check_hands_full(world)
    if world.front != EMPTY:
        raise CommandError(f"You cannot drop anything here: {_obstacle(world)} is in the way.")
    world.step(DROP)
    return ""


@verb("put next to {target}", "drop next to {target}")
def put_next_to(world: BabyAIWorld, target: str) -> str:
    """Walk to something in view and drop what you carry beside it.

    Examples:
        put next to blue box 1
    """
    sight = _in_view(world, target)
    _check_hands_full(world)
    path = world.paths().facing(_free_beside(world, sight))
    if path is None:
        raise CommandError(f"You see no free cell next to {sight.name} that you can get to.")
    world.follow([*path, DROP])
    return ""


@verb("toggle")
def toggle(world: BabyAIWorld) -> str:
    """Open or close the door in front of you, or open the box, which leaves what is inside.

    Examples:
        toggle
    """
    sight = _in_front(world)
    if sight is None or sight.code >> 3 not in (*DOORS, BOX):
        raise CommandError("There is no door or box in front of you.")
    _check_key(world, sight)
    world.step(TOGGLE)
    return ""


@verb("toggle {target}")
def toggle_target(world: BabyAIWorld, target: str) -> str:
    """Walk to a door or box in view and toggle it. A locked door needs a key of its color.

    Examples:
        toggle red door 1
        toggle purple box 1
    """
    sight = _door_or_box(world, target)
    _check_key(world, sight)
    world.follow([*_path_to(world, sight), TOGGLE])
    return ""


@verb("open {target}", "unlock {target}")
def open_target(world: BabyAIWorld, target: str) -> str:
    """Walk to a closed door or a box in view and open it. A locked door needs its key.

    Examples:
        open blue door 1
    """
    sight = _door_or_box(world, target)
    if sight.code >> 3 == OPEN_DOOR:
        raise CommandError(f"There is nothing to open: {sight.name} is open already.")
    _check_key(world, sight)
    world.follow([*_path_to(world, sight), TOGGLE])
    return ""


@verb("go through {door}", "walk through {door}")
def go_through(world: BabyAIWorld, door: str) -> str:
    """Walk through an open door in view to the cell behind it.

    Examples:
        go through yellow door 1
    """
    sight = _door(world, door)
    if sight.code >> 3 != OPEN_DOOR:
        raise CommandError(f"You cannot go through {sight.name} before you open it.")
    return _pass(world, sight, [*_path_to(world, sight), FORWARD, FORWARD])


@verb("toggle and go through {door}", "open and go through {door}")
def toggle_and_go_through(world: BabyAIWorld, door: str) -> str:
    """Walk to a closed door in view, open it and walk through it. A locked door needs its key.

    Examples:
        toggle and go through yellow door 1
    """
    sight = _door(world, door)
    if sight.code >> 3 == OPEN_DOOR:
        raise CommandError(f"There is nothing to open: go through {sight.name} as it is.")
    _check_key(world, sight)
    return _pass(world, sight, [*_path_to(world, sight), TOGGLE, FORWARD, FORWARD])


@verb("pick up", "pickup")
def pick_up_front(world: BabyAIWorld) -> str:
    """Pick up the ball, box or key in front of you. You can carry one thing.

    Examples:
        pick up
    """
    _check_hands_free(world)
    if world.front >> 3 not in MOVABLE:
        raise CommandError("There is nothing in front of you that can be picked up.")
    world.step(PICK_UP)
    return ""


HIGH_LEVEL = (
    go_to,
    pick_up,
    put_next_to,
    drop,
    open_target,
    toggle_target,
    toggle,
    go_through,
    toggle_and_go_through,
    turn_left,
    turn_right,
    move_forward,
)
LOW_LEVEL = (turn_left, turn_right, move_forward, pick_up_front, drop, toggle)

ACTION_MODES: dict[str, tuple[Verb, ...]] = {"high": HIGH_LEVEL, "low": LOW_LEVEL}
"""The verbs by action mode."""


def admissible(world: BabyAIWorld, action_mode: str) -> list[str]:
    """Every command that would change something now, in canonical form, in a fixed order.

    An effect that several commands have is listed once where they differ in wording only.
    """
    if world.status is not EndReason.RUNNING:
        return []
    front = world.front
    commands = ["turn left", "turn right"]
    if front >> 3 in (EMPTY, OPEN_DOOR):
        commands.append("move forward")
    if world.carried and front == EMPTY:
        commands.append("drop")
    if _can_toggle(world, front):
        commands.append("toggle")
    if action_mode == "low":
        if not world.carried and front >> 3 in MOVABLE:
            commands.append("pick up")
        return commands
    for sight in world.view().sights:
        commands += _commands_for(world, sight)
    return commands


def _commands_for(world: BabyAIWorld, sight: Sight) -> list[str]:
    name, kind = sight.name, sight.code >> 3
    commands = []
    path = world.paths().facing([sight.place])
    if path:
        commands.append(f"go to {name}")
    if path is not None:
        if kind in MOVABLE and not world.carried:
            commands.append(f"pick up {name}")
        if _can_toggle(world, sight.code):
            commands.append(f"toggle {name}" if kind == OPEN_DOOR else f"open {name}")
            if kind in DOORS and sight.place != HERE:
                through = "go through" if kind == OPEN_DOOR else "toggle and go through"
                commands.append(f"{through} {name}")
    if world.carried and world.paths().facing(_free_beside(world, sight)) is not None:
        commands.append(f"put next to {name}")
    return commands


def _in_view(world: BabyAIWorld, target: str) -> Sight:
    """The thing in view that `target` names; its number may be left out if it is the only one."""
    wanted = " ".join(target.casefold().split()).removeprefix("the ")
    view = world.view()
    found = [sight for sight in view.sights if sight.name == wanted] or [
        sight for sight in view.sights if sight.name.rpartition(" ")[0] == wanted
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(sight.name for sight in found)
        raise CommandError(f"There are {len(found)} of them in view. Say {names}.")
    if view.carried and view.carried.name == wanted:
        raise CommandError(f"You carry {wanted}.")
    names = ", ".join(sight.name for sight in view.sights) or "nothing"
    raise CommandError(f"There is no {shorten(wanted)} in view. In view: {names}.")


def _door(world: BabyAIWorld, name: str) -> Sight:
    sight = _in_view(world, name)
    if sight.code >> 3 not in DOORS:
        raise CommandError(f"You cannot go through {sight.name}: it is no door.")
    if sight.place == HERE:
        raise CommandError(f"You stand in {sight.name}. Move forward to leave it.")
    return sight


def _door_or_box(world: BabyAIWorld, name: str) -> Sight:
    sight = _in_view(world, name)
    if sight.code >> 3 not in (*DOORS, BOX):
        raise CommandError(f"You cannot open {sight.name}: it is no door and no box.")
    return sight


def _path_to(world: BabyAIWorld, sight: Sight) -> list[int]:
    path = world.paths().facing([sight.place])
    if path is None:
        raise CommandError(f"You see no free way to {sight.name}. Turn or move to see more.")
    return path


def _pass(world: BabyAIWorld, door: Sight, path: list[int]) -> str:
    done = world.follow(path)
    if done or world.status is not EndReason.RUNNING:
        return ""
    return f"You stop in {door.name}: {_obstacle(world)} is in the way."


def _free_beside(world: BabyAIWorld, sight: Sight) -> list[int]:
    cells = world.view().cells
    return [cell for cell in neighbors(sight.place) if cells[cell] == EMPTY]


def _in_front(world: BabyAIWorld) -> Sight | None:
    return next((sight for sight in world.view().sights if sight.place == FRONT), None)


def _obstacle(world: BabyAIWorld) -> str:
    sight = _in_front(world)
    return sight.name if sight else "a wall"


def _check_hands_free(world: BabyAIWorld) -> None:
    carried = world.view().carried
    if carried:
        raise CommandError(f"You already carry {carried.name}. Drop it first.")


def _check_hands_full(world: BabyAIWorld) -> None:
    if not world.carried:
        raise CommandError("You carry nothing.")


def _check_key(world: BabyAIWorld, sight: Sight) -> None:
    if not _can_toggle(world, sight.code):
        color = COLORS[sight.code & 7]
        raise CommandError(f"You need to carry a {color} key: {sight.name} is locked.")


def _can_toggle(world: BabyAIWorld, code: int) -> bool:
    kind, color = code >> 3, code & 7
    if kind == LOCKED_DOOR:
        return world.carried == KEY << 3 | color
    return kind in (*DOORS, BOX)
