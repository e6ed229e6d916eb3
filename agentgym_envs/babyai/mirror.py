"""`Mirror`: minigrid's grid and the agent's pose as bytes and plain integers.

minigrid keeps a grid of objects and poses of numpy integers, which are slow to look at. The
mirror is made once for each world; a step changes at most the cell in front of the agent, so
keeping it true costs next to nothing.
"""

from __future__ import annotations

from typing import Any

from agentgym_envs.babyai.cells import (
    CLOSED_DOOR,
    CODE_OF,
    EMPTY,
    KIND_OF_TYPE,
    LOCKED_DOOR,
    OPEN_DOOR,
    WALL_CODE,
)

_MARGIN = 6
"""Cells of wall around the grid, so that a view never leaves it."""


class Mirror:
    """What is where in a minigrid environment.

    Cells are numbered over the grid with its margin, as ``y * stride + x``.

    Args:
        level: the environment.

    Attributes:
        stride: cells in a row.
        headings: what a step to the east, south, west and north adds to a cell.
        codes: the codes of all cells.
        thing_at: minigrid's object in each cell that holds more than a wall.
        cell: where the agent is.
        heading: where it looks, as an index into `headings`.
    """

    def __init__(self, level: Any) -> None:
        self._level = level
        self._width = int(level.width)
        self.stride = self._width + 2 * _MARGIN
        self.headings = (1, self.stride, -1, -self.stride)
        self.read_grid()
        self.read_pose()

    def read_grid(self) -> None:
        """Take the whole grid over from minigrid."""
        grid, width = self._level.grid.grid, self._width
        layout = bytes(
            [
                EMPTY if thing is None else WALL_CODE if thing.type == "wall" else code_of(thing)
                for thing in grid
            ]
        )
        corner = _MARGIN * (self.stride + 1)
        side, edge = (bytes([WALL_CODE]) * count for count in (2 * _MARGIN, corner))
        rows = [layout[start : start + width] for start in range(0, len(layout), width)]
        self.codes = bytearray(edge + side.join(rows) + edge)
        self.thing_at = {
            corner + index // width * self.stride + index % width: grid[index]
            for index, code in enumerate(layout)
            if code > WALL_CODE
        }

    def read_pose(self) -> None:
        """Take the agent's pose over from minigrid."""
        x, y = self._level.agent_pos
        self.cell = (int(y) + _MARGIN) * self.stride + int(x) + _MARGIN
        self.heading = int(self._level.agent_dir)

    def read_cell(self, cell: int) -> bool:
        """Take one cell over from minigrid; return whether it has changed."""
        thing = self._level.grid.grid[self._index(cell)]
        code = code_of(thing)
        if code == self.codes[cell]:
            return False
        self.codes[cell] = code
        if thing is None:
            del self.thing_at[cell]
        else:
            self.thing_at[cell] = thing
        return True

    def put(self, thing_at: dict[int, Any]) -> None:
        """Make these the things of minigrid's grid."""
        for cell in {*self.thing_at, *thing_at}:
            self._level.grid.grid[self._index(cell)] = thing_at.get(cell)
        self.read_grid()

    @property
    def front(self) -> int:
        """The cell that the agent looks at."""
        return self.cell + self.headings[self.heading]

    def position(self, cell: int) -> tuple[int, int]:
        """The x and y of a cell in minigrid's grid."""
        y, x = divmod(cell, self.stride)
        return x - _MARGIN, y - _MARGIN

    def rows(self) -> list[range]:
        """The cells of minigrid's grid, row by row."""
        corner = _MARGIN * (self.stride + 1)
        starts = (corner + y * self.stride for y in range(self._level.height))
        return [range(start, start + self._width) for start in starts]

    def full_boxes(self) -> list[tuple[int, list[int]]]:
        """The boxes of the grid that hold something: their cells and codes from outside in."""
        return [
            (cell, nested_codes(thing))
            for cell, thing in sorted(self.thing_at.items(), key=lambda item: item[0])
            if thing.contains is not None
        ]

    def _index(self, cell: int) -> int:
        x, y = self.position(cell)
        return y * self._width + x


def code_of(thing: Any) -> int:
    """The code of what a cell of minigrid's grid holds."""
    if thing is None:
        return EMPTY
    kind = KIND_OF_TYPE.get(thing.type)
    if kind is None:
        if thing.type == "wall":
            return WALL_CODE
        kind = OPEN_DOOR if thing.is_open else LOCKED_DOOR if thing.is_locked else CLOSED_DOOR
    return CODE_OF[thing.color, kind]


def nested_codes(thing: Any) -> list[int]:
    """The codes of a thing, of what is inside it, and so on; empty for None."""
    return [] if thing is None else [code_of(thing), *nested_codes(thing.contains)]
