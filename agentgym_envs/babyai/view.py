"""What the agent sees: a 7x7 square of cells ahead of it, minus what is hidden.

A `View` is egocentric. Its cells are numbered ``7 * ahead + right + 3``, with `ahead` 0..6 and
`right` -3..3; the agent stands on `HERE` and looks at `FRONT`. Which cells are hidden follows
minigrid's rule: sight spreads over a row from cell to cell through what is transparent, and from
each such cell to the three next ones of the row ahead. That rule depends only on the bits of a
row, so it is computed once for each pair of bit patterns.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from agentgym_envs.babyai.cells import FIRST_OBJECT, OPAQUE_DIGITS, UNSEEN

SIZE = 7
HERE = SIZE // 2
FRONT = SIZE + HERE
NUM_CELLS = SIZE * SIZE

_ALL_SEEN = (1 << SIZE) - 1
_AGENT_BIT = 1 << HERE
_UNSEEN_ROW = bytes([UNSEEN]) * SIZE


class Sight(NamedTuple):
    """One thing in view.

    Attributes:
        name: stable for the episode: ``"red ball 1"``.
        place: the cell of the view it is in.
        code: what it is, see `agentgym_envs.babyai.cells`.
    """

    name: str
    place: int
    code: int


class View(NamedTuple):
    """What is seen from one pose.

    Attributes:
        cells: codes of the 49 cells, `UNSEEN` where hidden.
        sights: the things in view, nearest first.
        carried: what the agent carries, or None; its place is `HERE`.
    """

    cells: bytes
    sights: tuple[Sight, ...]
    carried: Sight | None


@functools.cache
def offsets(steps: tuple[int, int, int, int]) -> tuple[tuple[int, ...], ...]:
    """For each heading, what to add to the agent's cell to get each cell of the view.

    Args:
        steps: what a step to the east, south, west and north adds to a cell.
    """
    return tuple(
        tuple(
            ahead * steps[heading] + right * steps[(heading + 1) % 4]
            for ahead in range(SIZE)
            for right in range(-HERE, HERE + 1)
        )
        for heading in range(4)
    )


def visible_cells(codes: bytes | bytearray, cell: int, ahead: int, right: int) -> bytes:
    """The codes of the view, with `UNSEEN` for what is hidden.

    Args:
        codes: the whole grid, with at least 6 cells of wall around it.
        cell: where the agent is.
        ahead: what a step forward adds to a cell.
        right: what a step to the right adds.
    """
    rows = []
    seen = _AGENT_BIT
    start = cell - HERE * right
    for _ in range(SIZE):
        row = codes[start : start + SIZE * right : right]
        seen, beyond = _spread(seen, int(row.translate(OPAQUE_DIGITS), 2))
        rows.append(row if seen == _ALL_SEEN else _hide(row, seen))
        if not beyond:
            break
        seen = beyond
        start += ahead
    return b"".join(rows).ljust(NUM_CELLS, _UNSEEN_ROW[:1])


def things_in(cells: bytes) -> list[int]:
    """The cells of a view that hold a thing, nearest first, then the most central, then left."""
    found = [index for index, code in enumerate(cells) if FIRST_OBJECT <= code < UNSEEN]
    found.sort(key=_RANK.__getitem__)
    return found


@functools.cache
def _spread(seen: int, opaque: int) -> tuple[int, int]:
    """The cells seen in a row and in the one ahead of it, as bits, leftmost highest.

    Args:
        seen: cells of the row that are seen from the row behind.
        opaque: cells of the row that hide what is behind them.
    """
    beyond = 0
    for cells, step in ((range(SIZE - 1, 0, -1), -1), (range(SIZE - 1), 1)):
        for bit in cells:
            if seen >> bit & 1 and not opaque >> bit & 1:
                seen |= 1 << bit + step
                beyond |= 1 << bit | 1 << bit + step
    return seen, beyond


def _hide(row: bytes | bytearray, seen: int) -> bytes:
    return (int.from_bytes(row, "big") | _hidden_bytes(seen)).to_bytes(SIZE, "big")


@functools.cache
def _hidden_bytes(seen: int) -> int:
    return sum(UNSEEN << 8 * bit for bit in range(SIZE) if not seen >> bit & 1)


def ahead_and_right(index: int) -> tuple[int, int]:
    """How many steps ahead of the agent, and to its right, a cell of the view is."""
    ahead, column = divmod(index, SIZE)
    return ahead, column - HERE


def _rank(index: int) -> int:
    ahead, right = ahead_and_right(index)
    return ((ahead + abs(right)) * SIZE + abs(right)) * 2 + (right > 0)


_RANK = tuple(_rank(index) for index in range(NUM_CELLS))
