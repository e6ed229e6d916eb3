"""Shortest ways through the cells in view, in primitives.

One breadth-first search over (cell, heading) answers for every target. It runs in the agent's
own coordinates, so what follows what is a constant table. Only cells that are seen are walked
on: a cell never seen counts as blocked, and nothing is remembered from earlier turns, so where a
command leads depends on the world alone. Who finds no way turns or moves, and sees more.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentgym_envs.babyai.cells import BLOCKED
from agentgym_envs.babyai.view import HERE, NUM_CELLS, SIZE

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)
"""minigrid's primitives by number."""

_STEPS = (SIZE, 1, -SIZE, -1)
"""What a step ahead, right, back and left adds to a cell of the view."""


class Paths:
    """The ways from where the agent stands.

    Args:
        cells: codes of the view.
    """

    def __init__(self, cells: bytes) -> None:
        blocked = cells.translate(BLOCKED)
        reached = bytearray(blocked * 4)
        reached[HERE] = 1
        came_from = [HERE] * (4 * NUM_CELLS)
        queue = [HERE]
        add = queue.append
        for state in queue:  # a list that grows while it is read is the queue of the search
            for following in _FOLLOWING[state]:
                if not reached[following]:
                    reached[following] = 1
                    came_from[following] = state
                    add(following)
        self._came_from = came_from
        self._order = {state: number for number, state in enumerate(queue)}

    def facing(self, cells: Iterable[int]) -> list[int] | None:
        """The primitives of a shortest way to look, from next to it, at one of some cells.

        Returns:
            The way, empty if the agent is there already, or None if there is none.
        """
        ends = [state for cell in cells for state in _FACING[cell] if state in self._order]
        if not ends:
            return None
        state = min(ends, key=self._order.__getitem__)
        path = []
        while state != HERE:
            before = self._came_from[state]
            path.append(_primitive(before, state))
            state = before
        path.reverse()
        return path


def neighbors(cell: int) -> list[int]:
    """The cells of the view that share a side with `cell`: ahead, right, behind, left."""
    return [found for heading in range(4) if (found := _neighbor(cell, heading)) is not None]


def _neighbor(cell: int, heading: int) -> int | None:
    found = cell + _STEPS[heading]
    same_row = found // SIZE == cell // SIZE
    inside = 0 <= found < NUM_CELLS and (same_row or heading in (0, 2))
    return found if inside else None


def _state(cell: int, heading: int) -> int:
    """A state is ``49 * heading + cell``: blocked cells are then four copies of one row."""
    return NUM_CELLS * (heading % 4) + cell


def _following(state: int) -> tuple[int, ...]:
    heading, cell = divmod(state, NUM_CELLS)
    front = _neighbor(cell, heading)
    turned = (_state(cell, heading - 1), _state(cell, heading + 1))
    return turned if front is None else (_state(front, heading), *turned)


def _primitive(before: int, after: int) -> int:
    if after % NUM_CELLS != before % NUM_CELLS:
        return FORWARD
    return RIGHT if (after - before) % (4 * NUM_CELLS) == NUM_CELLS else LEFT


_FOLLOWING = tuple(_following(state) for state in range(4 * NUM_CELLS))
_FACING = tuple(
    tuple(
        _state(near, heading + 2)
        for heading in range(4)
        if (near := _neighbor(cell, heading)) is not None
    )
    for cell in range(NUM_CELLS)
)
