"""The verbs of ScienceWorld: its action templates, and the answer to its questions.

A verb gives the line that the simulator reads; the first form of each is the one that the
simulator's own list of valid actions has. All other ways of writing that the simulator knows are
forms too, as far as they name the same action.
"""

from __future__ import annotations

from agentgym_envs.actions import Command, Verb, verb


@verb("open {thing}")
def open(world: object, thing: str) -> str:
    """Open a door or a container.

    Examples:
        open door to kitchen
        open freezer
    """
    return f"open {thing}"


@verb("close {thing}")
def close(world: object, thing: str) -> str:
    """Close a door or a container.

    Examples:
        close door to hallway
    """
    return f"close {thing}"


@verb(
    "go to {place}",
    "go through {place}",
    "go into {place}",
    "go {place}",
    "walk to {place}",
    "walk through {place}",
    "move to {place}",
    "move through {place}",
    "move into {place}",
)
def go_to(world: object, place: str) -> str:
    """Move to a neighboring room through an open door.

    Examples:
        go to kitchen
    """
    return f"go to {place}"


@verb("look around", "look")
def look_around(world: object) -> str:
    """Describe the room you are in. Takes no time.

    Examples:
        look around
    """
    return "look around"


@verb("look at {thing}", "look on {thing}", "examine {thing}")
def look_at(world: object, thing: str) -> str:
    """Describe a thing in detail.

    Examples:
        look at thermometer
    """
    return f"look at {thing}"


@verb("look in {container}")
def look_in(world: object, container: str) -> str:
    """Describe what is in a container.

    Examples:
        look in cupboard
    """
    return f"look in {container}"


@verb("activate {device}", "turn on {device}")
def activate(world: object, device: str) -> str:
    """Turn a device on.

    Examples:
        activate stove
    """
    return f"activate {device}"


@verb("deactivate {device}", "turn off {device}")
def deactivate(world: object, device: str) -> str:
    """Turn a device off.

    Examples:
        deactivate sink
    """
    return f"deactivate {device}"


@verb("use {tool} on {thing}", "use {tool} with {thing}")
def use(world: object, tool: str, thing: str) -> str:
    """Use a tool or an instrument on a thing.

    Examples:
        use thermometer on water
    """
    return f"use {tool} on {thing}"


@verb("read {text}")
def read(world: object, text: str) -> str:
    """Read a book, a recipe or a note.

    Examples:
        read recipe
    """
    return f"read {text}"


@verb("pick up {thing}", "get {thing}", "take {thing}")
def pick_up(world: object, thing: str) -> str:
    """Put a thing into your inventory.

    Examples:
        pick up thermometer
    """
    return f"pick up {thing}"


@verb("put down {thing}", "drop {thing}")
def put_down(world: object, thing: str) -> str:
    """Leave a thing of your inventory in this room.

    Examples:
        put down metal pot
    """
    return f"put down {thing}"


@verb(
    "move {thing} to {target}",
    "move {thing} in {target}",
    "move {thing} into {target}",
    "move {thing} on {target}",
    "put {thing} to {target}",
    "put {thing} in {target}",
    "put {thing} into {target}",
    "put {thing} on {target}",
)
def move(world: object, thing: str, target: str) -> str:
    """Put a thing into or onto another.

    Examples:
        move metal pot to stove
    """
    return f"move {thing} to {target}"


@verb(
    "pour {liquid} into {container}",
    "pour {liquid} in {container}",
    "pour {liquid} on {container}",
    "pour {liquid} to {container}",
)
def pour(world: object, liquid: str, container: str) -> str:
    """Pour a liquid, or what a container holds, into a container.

    Examples:
        pour cup containing red paint into bowl
    """
    return f"pour {liquid} into {container}"


@verb("dunk {container} into {liquid}", "dunk {container} in {liquid}")
def dunk(world: object, container: str, liquid: str) -> str:
    """Fill a container by dunking it into a liquid.

    Examples:
        dunk metal pot into water
    """
    return f"dunk {container} into {liquid}"


@verb("mix {container}", "stir {container}")
def mix(world: object, container: str) -> str:
    """Mix what a container holds, which may react.

    Examples:
        mix bowl
    """
    return f"mix {container}"


@verb("eat {food}", "consume {food}")
def eat(world: object, food: str) -> str:
    """Eat something.

    Examples:
        eat orange
    """
    return f"eat {food}"


@verb("flush {device}")
def flush(world: object, device: str) -> str:
    """Flush a toilet.

    Examples:
        flush toilet
    """
    return f"flush {device}"


@verb("connect {part} to {target}", "connect {part} in {target}", "connect {part} into {target}")
def connect(world: object, part: str, target: str) -> str:
    """Connect two electrical terminals.

    Examples:
        connect battery anode to red wire terminal 1
    """
    return f"connect {part} to {target}"


@verb("disconnect {part}")
def disconnect(world: object, part: str) -> str:
    """Take an electrical part out of its circuit.

    Examples:
        disconnect red wire
    """
    return f"disconnect {part}"


@verb("focus on {thing}", "focus {thing}")
def focus_on(world: object, thing: str) -> str:
    """Declare that a thing is the one that the task asks for. A wrong one may fail the task.

    Examples:
        focus on water
    """
    return f"focus on {thing}"


@verb("wait", "wait 10", "wait10")
def wait(world: object) -> str:
    """Let ten units of time pass.

    Examples:
        wait
    """
    return "wait"


@verb("wait1", "wait 1")
def wait_one(world: object) -> str:
    """Let one unit of time pass.

    Examples:
        wait1
    """
    return "wait1"


@verb("inventory")
def inventory(world: object) -> str:
    """See what you carry. Takes no time.

    Examples:
        inventory
    """
    return "inventory"


@verb("task")
def task(world: object) -> str:
    """Read the task again. Takes no time.

    Examples:
        task
    """
    return "task"


@verb("reset task")
def reset_task(world: object) -> str:
    """Forget the focus and the progress towards the goal; the world stays as it is.

    Examples:
        reset task
    """
    return "reset task"


@verb("teleport to {place}", "teleport into {place}", "teleport {place}")
def teleport_to(world: object, place: str) -> str:
    """Be in any room at once.

    Examples:
        teleport to kitchen
    """
    return f"teleport to {place}"


@verb("{number}", "choose {number}")
def choose(world: object, number: int) -> str:
    """Answer the question which of several actions you mean with its number.

    Examples:
        0
        choose 2
    """
    return str(number)


_ALWAYS = (
    go_to,
    open,
    close,
    look_around,
    look_at,
    look_in,
    activate,
    deactivate,
    use,
    read,
    pick_up,
    put_down,
    move,
    pour,
    dunk,
    mix,
    eat,
    flush,
    focus_on,
    wait,
    wait_one,
    inventory,
    task,
    reset_task,
    choose,
)
_ELECTRICAL = (connect, disconnect)

FREE_LINES = frozenset({"look around", "inventory", "task"})
"""Lines that change nothing and take no time."""

_JOINING = (" in ", " into ", " on ", " to ", " with ")


def lines_of(command: Command) -> list[str]:
    """How the simulator can be told a command, the canonical line first.

    Names of things may hold the words that join them: "pour cup in studio in cup in table" may be
    split in three ways, and which one is meant only the simulator knows. Where the reading of the
    grammar is not the one, the line with another joining word is as it was written.
    """
    canonical = str(command.verb.run(None, **command.arguments))
    things = [value for value in command.arguments.values() if isinstance(value, str)]
    if len(things) < 2 or not any(word in thing for word in _JOINING for thing in things):
        return [canonical]
    first_word = canonical.split(" ", 1)[0]
    lines = [form.format(**command.arguments) for form in command.verb.forms]
    same = [line for line in lines if line.split(" ", 1)[0] == first_word]
    return list(dict.fromkeys([canonical, *same]))


def verbs(simplifications: tuple[str, ...]) -> tuple[Verb, ...]:
    """The verbs of a world with these simplifications, by name or ``"easy"``."""
    found = list(_ALWAYS)
    if "noElectricalAction" not in simplifications:
        found += _ELECTRICAL
    if {"teleportAction", "easy"} & set(simplifications):
        found.append(teleport_to)
    return tuple(found)
