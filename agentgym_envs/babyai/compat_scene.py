"""`Scene`: what AgentGym makes of one view: names of things, ways to them, and what can be done.

A scene follows from what is seen, what is carried and the heading alone, so it is computed once
for each of these. Things are named by color, state and type and numbered anew in every scene,
nearest first; among equally near ones the farthest ahead comes first, then the leftmost.

The search for ways is AgentGym's, so that its trajectories can be played again: cells never seen
and doors in any state count as free, and the walk ends at the obstacle if they are not. It covers
the view and, by heading, one row behind the agent and one column to the right of the view. That
dependence on the heading is an accident of the original, kept because it decides what is offered.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from agentgym_envs.babyai.cells import (
    BOX,
    CLOSED_DOOR,
    COLORS,
    DOORS,
    EMPTY,
    FIRST_OBJECT,
    KEY,
    LABELS,
    LOCKED_DOOR,
    MOVABLE,
    OPEN_DOOR,
    UNSEEN,
    WALL,
)
from agentgym_envs.babyai.paths import DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from agentgym_envs.babyai.view import FRONT, HERE, SIZE, ahead_and_right

if TYPE_CHECKING:
    from agentgym_envs.babyai.world import BabyAIWorld


class Thing(NamedTuple):
    """One thing in view.

    Attributes:
        name: with its number: ``"red closed door 1"``.
        place: the cell of the view it is in.
        code: what it is, see `agentgym_envs.babyai.cells`.
    """

    name: str
    place: int
    code: int


class Option(NamedTuple):
    """How a command is carried out.

    Attributes:
        end: where the walk ends, as a state of `Ways`.
        then: primitives after the walk.
    """

    end: int
    then: tuple[int, ...]


class Scene:
    """Everything that AgentGym derives from a view.

    Args:
        cells: codes of the view.
        carried: code of what is carried, 0 for nothing.
        heading: 0 to 3 for east, south, west, north.

    Attributes:
        things: the things in view in the order of their description.
        carried: as given.
        barrier: the first wall or box straight ahead and its distance in steps, or None.
        any_seen: whether a thing or a wall is in view.
        options: the commands that are offered, in order.
        refusals: why others are not; commands in neither are not recognized.
    """

    def __init__(self, cells: bytes, carried: int, heading: int) -> None:
        self.things = _name_things(cells)
        self.carried = carried
        self.barrier = _barrier(cells)
        self.any_seen = bool(self.things) or any(code >> 3 == WALL for code in cells)
        self.options: dict[str, Option] = {}
        self.refusals: dict[str, str] = {}
        self._ways = Ways(cells, heading)
        self._offer("turn left", LEFT)
        self._offer("turn right", RIGHT)
        self._offer_forward()
        if not carried:
            for thing in self.things:
                if thing.code >> 3 in MOVABLE:
                    self._offer_walk("pickup", thing, self._ways.facing(thing.place), PICK_UP)
        self._offer_drop(cells[FRONT] >> 3)
        for thing in self.things:
            if thing.code >> 3 in DOORS:
                self._offer_door(thing)
            if thing.place == FRONT and self._can_toggle(thing.code):
                self._offer("toggle", TOGGLE)
        for thing in self.things:
            self._offer_walk("go to", thing, self._ways.facing(thing.place))

    def primitives(self, command: str) -> list[int]:
        """The primitives that carry out an offered command; none where nothing would change."""
        option = self.options[command]
        return [*self._ways.walk(option.end), *option.then]

    def _offer(self, command: str, *primitives: int) -> None:
        self.options[command] = Option(START, primitives)

    def _offer_walk(self, verb: str, thing: Thing, end: int | None, *then: int) -> None:
        command = f"{verb} {thing.name}"
        if end is None:
            self._refuse(command, "there is no path leading to it")
        else:
            self.options[command] = Option(end, then)

    def _refuse(self, command: str, reason: str) -> None:
        self.refusals[command] = f"You cannot {command}, as {reason}."

    def _offer_forward(self) -> None:
        if self.barrier and self.barrier[1] == 1:
            self.refusals["move forward"] = (
                "There is a barrier in front of you, you can't move forward."
            )
        else:
            self._offer("move forward", FORWARD)

    def _offer_drop(self, front: int) -> None:
        reason = "you are not carrying anything"
        if self.carried:
            reason = "there is already an object in front of you"
        if self.carried and front in (EMPTY, *DOORS):
            self._offer("drop", DROP)
        else:
            self.refusals["drop"] = f"You cannot drop the object, as {reason}."

    def _offer_door(self, door: Thing) -> None:
        through = f"toggle and go through {door.name}"
        kind, color = door.code >> 3, door.code & 7
        if kind == OPEN_DOOR:
            self._offer_walk("go through", door, self._ways.onto(door.place))
            return
        if kind == CLOSED_DOOR:
            reason = "it is closed. You should toggle it first"
            self._refuse(f"go through {door.name}", reason)
        elif self.carried >> 3 != KEY:
            self._refuse(through, "you are not carrying a key")
            return
        elif self.carried & 7 != color:
            reason = "the color of the key you are carrying does not match the color of door"
            self._refuse(through, reason)
            return
        end = self._ways.facing(door.place)
        self._offer_walk("toggle and go through", door, end, TOGGLE, FORWARD)

    def _can_toggle(self, code: int) -> bool:
        kind, color = code >> 3, code & 7
        return kind in (OPEN_DOOR, CLOSED_DOOR, BOX) or (
            kind == LOCKED_DOOR and self.carried == KEY << 3 | color
        )


def scene_of(world: BabyAIWorld) -> Scene:
    """The scene that the agent sees now."""
    return _scene(world.view().cells, world.carried, world.mirror.heading)


class Ways:
    """The ways from where the agent stands, in its own coordinates.

    A state is ``64 * turn + cell`` with `turn` 0 to 3 for ahead, right, back, left, and cells
    numbered ``8 * (ahead + 1) + right + 3``, `ahead` from -1 to 6 and `right` from -3 to 4.

    Args:
        cells: codes of the view.
        heading: 0 to 3 for east, south, west, north.
    """

    def __init__(self, cells: bytes, heading: int) -> None:
        self._blocked = _blocked(cells, heading)
        order = _search(self._blocked, _FORWARD_FIRST)
        self._rank = {state: rank for rank, state in enumerate(order)}

    def facing(self, place: int) -> int | None:
        """The state, next to a cell of the view and looking at it, that is reached first."""
        return self._first(_FACING[_WIDE[place]])

    def onto(self, place: int) -> int | None:
        """The state on a cell of the view that is reached first."""
        return self._first(tuple(_state(_WIDE[place], turn) for turn in range(4)))

    def walk(self, end: int) -> list[int]:
        """The primitives of a shortest way from `START` to a state."""
        # AgentGym's search overwrites the predecessor of a state until it is expanded, so of
        # equally short ways it walks the one found last.
        came_from = _search(self._blocked, _FORWARD_LAST)
        path = []
        while end != START:
            before = came_from[end]
            path.append(_primitive(before, end))
            end = before
        return path[::-1]

    def _first(self, states: tuple[int, ...]) -> int | None:
        reached = [state for state in states if state in self._rank]
        return min(reached, key=self._rank.__getitem__) if reached else None


def _name_things(cells: bytes) -> tuple[Thing, ...]:
    found = [index for index in _DESCRIBED if FIRST_OBJECT <= cells[index] < UNSEEN]
    counts: dict[str, int] = {}
    things = []
    for index in found:
        label = _label(cells[index])
        counts[label] = counts.get(label, 0) + 1
        things.append(Thing(f"{label} {counts[label]}", index, cells[index]))
    return tuple(things)


def _label(code: int) -> str:
    state = _DOOR_STATES.get(code >> 3)
    return f"{COLORS[code & 7]} {state} door" if state else LABELS[code]


def _barrier(cells: bytes) -> tuple[str, int] | None:
    for distance, code in enumerate(cells[FRONT::SIZE], start=1):
        if code >> 3 in (WALL, BOX):
            return ("wall" if code >> 3 == WALL else "box"), distance
    return None


def _blocked(cells: bytes, heading: int) -> bytes:
    """Flags of all cells of `Ways`: 1 where the search does not go."""
    flags = cells.translate(_OBSTACLES)
    behind, beside = (bytes([heading not in free]) for free in ((0, 1), (1, 2)))
    corner = bytes([heading != 1])
    rows = [flags[start : start + SIZE] + beside for start in range(0, len(flags), SIZE)]
    return behind * SIZE + corner + b"".join(rows)


def _search(blocked: bytes, following: tuple[tuple[int, ...], ...]) -> dict[int, int]:
    """The predecessor of each state that can be reached, in the order in which they are."""
    reached = bytearray(blocked * 4)
    reached[START] = 1
    came_from = {START: START}
    queue = [START]
    for state in queue:
        for found in following[state]:
            if not reached[found]:
                reached[found] = 1
                came_from[found] = state
                queue.append(found)
    return came_from


def _state(cell: int, turn: int) -> int:
    return _NUM_CELLS * (turn % 4) + cell


def _neighbor(cell: int, turn: int) -> int | None:
    row, column = divmod(cell, _SIDE)
    row += (1, 0, -1, 0)[turn % 4]
    column += (0, 1, 0, -1)[turn % 4]
    inside = 0 <= row < _SIDE and 0 <= column < _SIDE
    return _SIDE * row + column if inside else None


def _following(state: int) -> tuple[int, ...]:
    turn, cell = divmod(state, _NUM_CELLS)
    front = _neighbor(cell, turn)
    turned = (_state(cell, turn - 1), _state(cell, turn + 1))
    return turned if front is None else (_state(front, turn), *turned)


def _primitive(before: int, after: int) -> int:
    if (after - before) % _NUM_CELLS:
        return FORWARD
    return RIGHT if (after - before) % (4 * _NUM_CELLS) == _NUM_CELLS else LEFT


_scene = functools.lru_cache(maxsize=512)(Scene)

_DOOR_STATES = {OPEN_DOOR: "open", CLOSED_DOOR: "closed", LOCKED_DOOR: "locked"}
_OBSTACLES = bytes(code >> 3 in (WALL, *MOVABLE) for code in range(256))

_SIDE = SIZE + 1
_NUM_CELLS = _SIDE * _SIDE
_WIDE = tuple(
    _SIDE * (ahead + 1) + right + HERE for ahead, right in map(ahead_and_right, range(SIZE * SIZE))
)
"""The cells of the view as cells of `Ways`."""
START = _WIDE[HERE]
"""Where the agent stands and looks, as a state of `Ways`."""
_FORWARD_FIRST = tuple(_following(state) for state in range(4 * _NUM_CELLS))
_FORWARD_LAST = tuple(states[::-1] for states in _FORWARD_FIRST)
_FACING = tuple(
    tuple(
        _state(near, turn + 2) for turn in range(4) if (near := _neighbor(cell, turn)) is not None
    )
    for cell in range(_NUM_CELLS)
)


def _description_rank(index: int) -> tuple[int, int, int]:
    ahead, right = ahead_and_right(index)
    return ahead + abs(right), -ahead, right


_DESCRIBED = tuple(sorted(set(range(SIZE * SIZE)) - {HERE}, key=_description_rank))
"""The cells of the view but the agent's own, in the order in which things are described."""
