import random

import pytest

from agentgym_envs.babyai.cells import (
    CLOSED_DOOR,
    CODE_OF,
    COLORS,
    EMPTY,
    KIND_OF_TYPE,
    LOCKED_DOOR,
    OPEN_DOOR,
    UNSEEN,
    WALL_CODE,
)
from agentgym_envs.babyai.compat import available_actions, description
from agentgym_envs.babyai.compat_scene import START, Scene, Ways
from agentgym_envs.babyai.paths import FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE

EAST, SOUTH, WEST, NORTH = range(4)
KINDS = {
    "K": KIND_OF_TYPE["key"],
    "O": KIND_OF_TYPE["ball"],
    "B": KIND_OF_TYPE["box"],
    "_": OPEN_DOOR,
    "D": CLOSED_DOOR,
    "L": LOCKED_DOOR,
}
INITIALS = {color[0]: color for color in COLORS if color != "grey"} | {"e": "grey"}


def code(token):
    plain = {"..": EMPTY, "##": WALL_CODE, "??": UNSEEN, "/\\": EMPTY}
    if token in plain:
        return plain[token]
    return CODE_OF[INITIALS[token[1]], KINDS[token[0]]]


def cells(drawing):
    """The codes of a view that is drawn as the agent sees it: the farthest row on top."""
    rows = [line.split() for line in drawing.strip().splitlines()]
    assert [len(row) for row in rows] == [7] * 7
    return bytes(code(token) for row in rows[::-1] for token in row)


def scene(drawing, carried="", heading=NORTH):
    return Scene(cells(drawing), code(carried) if carried else 0, heading)


ROOM = r"""
    ## ## ## ## ## ## ##
    .. .. .. .. .. .. ##
    .. .. .. .. .. Or ##
    .. Ke .. .. .. .. ##
    Or .. .. Bg .. .. ##
    .. .. .. .. .. Ke ##
    .. .. .. /\ Or .. ##
"""


def test_a_view_is_described_thing_by_thing_then_the_walls_then_what_is_carried():
    assert description(scene(ROOM)) == (
        "In front of you in this room, you can see several objects: "
        "There is a red ball 1 0 steps in front of you and 1 steps to your right.  "
        "There is a green box 1 right in front of you 2 steps away.  "
        "There is a grey key 1 1 steps in front of you and 2 steps to your right.  "
        "There is a grey key 2 3 steps in front of you and 2 steps to your left.  "
        "There is a red ball 2 2 steps in front of you and 3 steps to your left.  "
        "There is a red ball 3 4 steps in front of you and 2 steps to your right.  "
        "The room has walls around you. You are facing a box 2 steps away. "
        "You are not carrying anything."
    )


EQUALLY_FAR = r"""
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. Ob .. .. ..
    .. .. Ob .. Ob .. ..
    .. Ob .. .. .. Ob ..
    Ob .. .. /\ .. .. Ob
"""


def test_of_equally_near_things_the_farthest_ahead_then_the_leftmost_comes_first():
    places = [(thing.name, thing.place) for thing in scene(EQUALLY_FAR).things]
    straight_ahead, two_rows_ahead, one_row_ahead, beside = 24, (16, 18), (8, 12), (0, 6)
    expected = [straight_ahead, *two_rows_ahead, *one_row_ahead, *beside]
    assert places == [(f"blue ball {n}", place) for n, place in enumerate(expected, start=1)]


DOORS = r"""
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ## Dr ## Lr ## Dr ##
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    _r .. .. /\ .. .. Lb
"""


def test_a_door_is_named_and_counted_by_color_and_state():
    assert [thing.name for thing in scene(DOORS).things] == [
        "red locked door 1",
        "red open door 1",
        "blue locked door 1",
        "red closed door 1",
        "red closed door 2",
    ]


def test_where_nothing_is_in_view_that_is_said():
    nothing = "\n".join([" ".join(["??"] * 7)] * 6 + [r".. .. .. /\ .. .. .."])
    assert description(scene(nothing, carried="Kb")) == (
        "You cannot see any objects within sight.The room has walls around you. "
        "You are carrying a blue key."
    )


def test_walls_alone_are_objects_in_sight_that_are_not_listed():
    walls = "\n".join([" ".join(["##"] * 7)] * 6 + [r".. .. .. /\ .. .. .."])
    assert description(scene(walls)) == (
        "In front of you in this room, you can see several objects: "
        "The room has walls around you. You are facing a wall 1 steps away. "
        "You are not carrying anything."
    )


def test_actions_are_listed_in_the_order_of_agentgym():
    drawing = r"""
        ## ## ## ## ## ## ##
        ## .. .. .. .. .. ##
        ## .. .. .. .. .. ##
        ## .. .. .. .. .. ##
        _e .. Oy .. .. .. ##
        ## .. .. Dp .. .. ##
        ## .. .. /\ .. .. ##
    """
    assert available_actions(scene(drawing)) == [
        "turn left",
        "turn right",
        "move forward",
        "pickup yellow ball 1",
        "toggle and go through purple closed door 1",
        "toggle",
        "go through grey open door 1",
        "go to purple closed door 1",
        "go to yellow ball 1",
        "go to grey open door 1",
        "check available actions",
    ]
    assert available_actions(scene(drawing, carried="Be"))[2:5] == [
        "move forward",
        "drop",
        "toggle and go through purple closed door 1",
    ]


def in_front(token):
    """A small room with one thing in front of the agent."""
    walls = "## ## ## ## ## ## ##\n" * 5
    return f"{walls}## .. .. {token} .. .. ##\n## .. .. /\\ .. .. ##"


@pytest.mark.parametrize(
    ("token", "carried", "toggles"),
    [
        ("Dg", "", True),
        ("_g", "", True),
        ("Bg", "", True),
        ("Lg", "", False),
        ("Lg", "Kr", False),
        ("Lg", "Og", False),
        ("Lg", "Kg", True),
        ("Og", "", False),
        ("..", "", False),
        ("##", "", False),
    ],
)
def test_toggle_is_offered_at_doors_that_can_be_opened_or_closed_and_at_boxes(
    token, carried, toggles
):
    assert ("toggle" in scene(in_front(token), carried).options) == toggles


@pytest.mark.parametrize(
    ("token", "carried", "command", "refusal"),
    [
        ("##", "", "move forward", "There is a barrier in front of you, you can't move forward."),
        ("Bg", "", "move forward", "There is a barrier in front of you, you can't move forward."),
        ("..", "", "drop", "You cannot drop the object, as you are not carrying anything."),
        (
            "Og",
            "Kr",
            "drop",
            "You cannot drop the object, as there is already an object in front of you.",
        ),
        (
            "Dg",
            "",
            "go through green closed door 1",
            "You cannot go through green closed door 1, as it is closed. "
            "You should toggle it first.",
        ),
        (
            "Lg",
            "Og",
            "toggle and go through green locked door 1",
            "You cannot toggle and go through green locked door 1, as you are not carrying a key.",
        ),
        (
            "Lg",
            "Kr",
            "toggle and go through green locked door 1",
            "You cannot toggle and go through green locked door 1, as the color of the key you "
            "are carrying does not match the color of door.",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_for_the_reason_that_agentgym_gives(
    token, carried, command, refusal
):
    found = scene(in_front(token), carried)
    assert command not in found.options
    assert found.refusals[command] == refusal


BEHIND_BOXES = r"""
    ## ## ## ## ## ## ##
    .. .. ## Or ## .. Or
    .. .. .. Bg .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. /\ .. .. ..
"""


def test_things_without_a_way_to_them_keep_their_number_and_are_refused():
    found = scene(BEHIND_BOXES)
    assert [thing.name for thing in found.things] == ["green box 1", "red ball 1", "red ball 2"]
    for verb in ("go to", "pickup"):
        assert f"{verb} red ball 2" in found.options
        assert found.refusals[f"{verb} red ball 1"] == (
            f"You cannot {verb} red ball 1, as there is no path leading to it."
        )


def test_a_walk_ends_facing_the_thing_and_then_does_what_was_asked():
    found = scene(ROOM)
    right_ball = [RIGHT, PICK_UP]
    box = [FORWARD, PICK_UP]
    right_key = [FORWARD, RIGHT, FORWARD, PICK_UP]
    assert found.primitives("pickup red ball 1") == right_ball
    assert found.primitives("pickup green box 1") == box
    assert found.primitives("pickup grey key 1") == right_key
    assert found.primitives("go to grey key 1") == right_key[:-1]


def test_going_through_a_door_ends_in_the_doorway():
    found = scene(DOORS, carried="Kr")
    assert found.primitives("go through red open door 1") == [LEFT, FORWARD, FORWARD, FORWARD]
    assert found.primitives("toggle and go through red locked door 1") == [
        FORWARD,
        FORWARD,
        TOGGLE,
        FORWARD,
    ]


def test_to_go_where_one_is_needs_no_primitive():
    assert scene(in_front("Og")).primitives("go to green ball 1") == []


ONLY_FROM_BEHIND = r"""
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ## ## ## ## ## ## ##
    ?? Oy ## /\ ## ## ##
"""


@pytest.mark.parametrize(
    ("heading", "offered"), [(EAST, True), (SOUTH, True), (WEST, False), (NORTH, False)]
)
def test_the_search_reaches_behind_the_agent_only_when_it_looks_east_or_south(heading, offered):
    found = scene(ONLY_FROM_BEHIND, heading=heading)
    assert ("go to yellow ball 1" in found.options) == offered


def overwritten_walk(view, heading, goal):
    """A second search: a plain queue of states in which predecessors are overwritten while a
    state waits, and every copy of a waiting state is expanded again."""
    steps = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    rows = range(-1 if heading in (EAST, SOUTH) else 0, 7)
    columns = range(-3, 5 if heading in (SOUTH, WEST) else 4)

    def free(ahead, right):
        if ahead not in rows or right not in columns:
            return False
        if ahead < 0 or right > 3:
            return True
        return view[7 * ahead + right + 3] >> 3 not in (1, 5, 6, 7)

    start = (0, 0, 0)
    before, expanded, queue = {}, set(), [start]
    while queue:
        state = queue.pop(0)
        expanded.add(state)
        ahead, right, turn = state
        if (ahead + steps[turn][0], right + steps[turn][1]) == goal:
            walk = []
            while state != start:
                state, primitive = before[state]
                walk.insert(0, primitive)
            return walk
        front = (ahead + steps[turn][0], right + steps[turn][1], turn)
        left, turned_right = (ahead, right, (turn - 1) % 4), (ahead, right, (turn + 1) % 4)
        for found, primitive in ((front, FORWARD), (left, LEFT), (turned_right, RIGHT)):
            if found not in expanded and free(found[0], found[1]):
                before[found] = (state, primitive)
                queue.append(found)
    return None


@pytest.mark.parametrize("heading", range(4))
def test_walks_are_those_of_a_queue_that_overwrites_predecessors(heading):
    rng = random.Random(heading)
    num_walks = 0
    for _ in range(12):
        drawn = rng.choices(
            [EMPTY, UNSEEN, WALL_CODE, code("Kg"), code("Dr")], [70, 8, 8, 8, 6], k=49
        )
        drawn[3] = EMPTY
        view = bytes(drawn)
        ways = Ways(view, heading)
        for place in range(49):
            end = ways.facing(place)
            walk = None if end is None else ways.walk(end)
            assert walk == overwritten_walk(view, heading, (place // 7, place % 7 - 3))
            num_walks += walk is not None
    assert num_walks > 300
    assert ways.walk(START) == []
