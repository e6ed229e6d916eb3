"""Small things that several test files need: tasks and a grammar of a family that does nothing."""

from agentgym_envs.actions import Grammar, verb
from agentgym_envs.tasks import Task


def make_task(number: int, **changes) -> Task:
    fields = {
        "family": "toy",
        "id": f"toy/train/{number}",
        "split": "train",
        "goal": f"reach {number}",
        "category": "odd" if number % 2 else "even",
        "seed": number,
        "horizon": 5,
        "payload": {"numbers": [number]},
    }
    return Task(**fields | changes)


@verb("go to {target}", "walk to {target}")
def go_to(world, target: str):
    """Walk to a thing.

    It must be in
    view.

    Examples:
        go to red ball 1
        walk to door 2
    """


@verb("go to room {number}")
def go_to_room(world, number: int):
    """Walk to a room.

    Examples:
        go to room 3
    """


@verb("put {thing} next to {place}")
def put(world, thing: str, place: str):
    """Put one thing next to another.

    Examples:
        put key next to door
    """


@verb("wait")
def wait(world):
    """Do nothing.

    Examples:
        wait
    """


GRAMMAR = Grammar([go_to, go_to_room, put, wait])
