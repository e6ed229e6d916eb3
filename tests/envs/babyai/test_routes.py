from types import SimpleNamespace

import pytest

from agentgym_envs.babyai.cells import (
    BALL,
    CLOSED_DOOR,
    EMPTY,
    KEY,
    LOCKED_DOOR,
    OPEN_DOOR,
    WALL_CODE,
)
from agentgym_envs.babyai.routes import Route, buries, cuts_off

CODES = {
    "#": WALL_CODE,
    ".": EMPTY,
    "@": EMPTY,
    "x": EMPTY,
    "/": OPEN_DOOR << 3,
    "D": CLOSED_DOOR << 3,
    "L": LOCKED_DOOR << 3,
    "o": BALL << 3,
}
RED_KEY = KEY << 3


def grid(*rows):
    """A grid with the agent at @; all doors and balls are red."""
    stride, text = len(rows[0]), "".join(rows)
    return SimpleNamespace(
        codes=bytes(CODES[symbol] for symbol in text),
        stride=stride,
        headings=(1, stride, -1, -stride),
        cell=text.find("@"),
        x=text.find("x"),
    )


def test_a_route_ends_at_its_goal_and_counts_steps():
    mirror = grid(
        "#######",
        "#@....#",
        "#.###.#",
        "#....x#",
        "#######",
    )
    route = Route(mirror, {mirror.x: 0})
    assert (route.path[0], route.path[-1], len(route.path)) == (mirror.cell, mirror.x, 7)
    assert route.cost[mirror.cell] == 6
    assert route.obstacle() is None
    assert route.estimate(mirror.x + 999) == 6


def test_a_closed_door_costs_one_more_and_is_the_obstacle():
    mirror = grid(
        "#####",
        "#@Dx#",
        "#####",
    )
    route = Route(mirror, {mirror.x: 0})
    assert route.cost[mirror.cell] == 3
    assert route.obstacle() == mirror.cell + 1


@pytest.mark.parametrize(("carried", "cost"), [(0, 21), (RED_KEY, 3), (RED_KEY + 1, 21)])
def test_a_locked_door_is_dear_without_its_key(carried, cost):
    mirror = grid(
        "#####",
        "#@Lx#",
        "#####",
    )
    assert Route(mirror, {mirror.x: 0}, carried).cost[mirror.cell] == cost


def test_a_thing_in_the_way_is_gone_round_if_that_is_not_far():
    near = grid(
        "#####",
        "#@ox#",
        "#...#",
        "#####",
    )
    assert Route(near, {near.x: 0}).obstacle() is None
    far = grid(
        "#######",
        "#@o..x#",
        "#.###.#",
        "#.....#",
        "#.###.#",
        "#######",
    )
    assert Route(far, {far.x: 0}).obstacle() is None
    shut = Route(far, {far.x: 0}, shut=frozenset({far.cell + far.stride}))
    assert shut.obstacle() == far.cell + 1


def test_the_goal_with_the_lowest_price_and_way_together_is_chosen():
    mirror = grid(
        "#######",
        "#o@..o#",
        "#######",
    )
    near, far = mirror.cell - 1, mirror.cell + 3
    assert Route(mirror, {near: 0, far: 0}).path[-1] == near
    assert Route(mirror, {near: 1, far: 0}).path[-1] == near
    assert Route(mirror, {near: 3, far: 0}).path[-1] == far


def test_there_is_no_route_through_walls_or_to_nothing():
    mirror = grid(
        "#####",
        "#@#x#",
        "#####",
    )
    assert Route(mirror, {mirror.x: 0}).path == ()
    assert Route(mirror, {}).path == ()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (("#####", "#...#", "#.x.#", "#...#", "#####"), False),
        (("#####", "#x..#", "#...#", "#...#", "#####"), False),
        (("#####", "#.x.#", "#####"), True),
        (("#####", "#x..#", "#####"), False),
        (("#####", "#...#", "Dx..#", "#...#", "#####"), True),
        (("#####", "#...#", "#x..#", "D...#", "#####"), False),
        (("#####", "#.o.#", "#.x.#", "#.o.#", "#####"), True),
    ],
)
def test_a_cell_between_parts_of_a_room_or_before_a_door_is_a_passage(rows, expected):
    mirror = grid(*rows)
    assert cuts_off(mirror, mirror.x) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (("####", "#ox#", "#..#", "####"), False),
        (("####", "#ox#", "#o.#", "####"), True),
        (("####", "#.x#", "#..#", "####"), False),
    ],
)
def test_a_thing_that_could_only_be_got_at_from_a_cell_would_be_buried(rows, expected):
    mirror = grid(*rows)
    assert buries(mirror, mirror.x) is expected
