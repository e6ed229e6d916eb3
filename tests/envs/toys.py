"""Small things that several test files need."""

import numpy as np

from agentgym_envs.actions import Grammar, verb
from agentgym_envs.tasks import Task

IN_PROCESS = ("inline", "threads")
"""Workers whose environments a test can look into."""
QUICK = (*IN_PROCESS, "forkserver")
"""All kinds of workers but the one that takes a second to start."""


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


@verb(
    "spin {side} {times} times because {why}",
    "spin {side}",
    "spin {side} because {why}",
    "spin {side} {times} times",
)
def spin(world, side: str, times: int = 1, why: str | None = None):
    """Turn round.

    Examples:
        spin left 2 times
        spin right
    """
    return side, times, why


GRAMMAR = Grammar([go_to, go_to_room, put, wait])
"""Of these, and without `spin`."""


def receive(env, count):
    """`count` results by index."""
    results = {}
    while len(results) < count:
        fresh = env.recv(timeout=10)
        assert fresh, "nothing came in ten seconds"
        results |= dict(fresh)
    return results


def assert_same(ours, stock):
    """Equal in value and kind, but for our key ``fault``."""
    *our_arrays, our_infos = ours
    *stock_arrays, stock_infos = stock
    for mine, other in zip(our_arrays, stock_arrays, strict=True):
        assert type(mine) is type(other)
        np.testing.assert_array_equal(mine, other)
        assert getattr(mine, "dtype", None) == getattr(other, "dtype", None)
    assert not any(our_infos["fault"])
    assert_same_infos(our_infos, stock_infos)


def assert_same_infos(ours, stock):
    assert set(ours) - {"fault", "_fault"} == set(stock)
    for key, expected in stock.items():
        if isinstance(expected, dict):
            assert_same_infos(ours[key], expected)
        else:
            assert ours[key].dtype == expected.dtype
            assert ours[key].tolist() == expected.tolist(), key
