"""Cheapest ways over the whole grid: what the oracle knows and a policy does not.

A route is searched by cell, from the goals back to the agent. Doors and things in the way do not
end it, they have a price, roughly the primitives that opening, unlocking or moving them takes. So
one search says both how far it is and what must be done first.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator, Mapping

from agentgym_envs.babyai.cells import (
    BLOCKED,
    CLOSED_DOOR,
    EMPTY,
    KEY,
    LOCKED_DOOR,
    MOVABLE,
    OPEN_DOOR,
)
from agentgym_envs.babyai.mirror import Mirror

_WAYS = (EMPTY, OPEN_DOOR, CLOSED_DOOR, LOCKED_DOOR)
_NO_WAY = 0
_END = -1
_MOVE, _MOVE_HANDS_FULL, _FETCH_KEY = 8, 14, 20


class Route:
    """The cheapest way for the agent to get next to one of some cells.

    Args:
        mirror: the grid and the agent.
        goals: cells, with what it costs to make use of each.
        carried: code of what the agent carries, 0 for nothing.
        shut: cells that are no way, whatever they hold.

    Attributes:
        path: from the agent's cell to the goal, both included; empty if there is none.
        cost: by cell, up to the agent's own cost; where it is missing it is at least that.
    """

    def __init__(
        self,
        mirror: Mirror,
        goals: Mapping[int, int],
        carried: int = 0,
        shut: frozenset[int] = frozenset(),
    ) -> None:
        self._codes = mirror.codes
        self._toward: dict[int, int] = {}
        self.cost: dict[int, int] = {}
        self._search(mirror, goals, _prices(carried), shut)
        self.path = tuple(self._descend(mirror.cell))
        self._limit = self.cost.get(mirror.cell, 0)

    def obstacle(self) -> int | None:
        """The first cell on the way, the goal excepted, that cannot be walked on as it is."""
        between = self.path[1:-1]
        return next((cell for cell in between if BLOCKED[self._codes[cell]]), None)

    def estimate(self, cell: int) -> int:
        """About how many primitives it is from a cell to the goal."""
        return self.cost.get(cell, self._limit)

    def _search(
        self, mirror: Mirror, goals: Mapping[int, int], price: bytes, shut: frozenset[int]
    ) -> None:
        codes, cost, toward = self._codes, self.cost, self._toward
        queue = [(goals[cell], cell, _END) for cell in goals]
        heapq.heapify(queue)
        while queue:
            so_far, cell, following = heapq.heappop(queue)
            if cell in cost:
                continue
            cost[cell], toward[cell] = so_far, following
            if cell == mirror.cell:
                return
            entering = 1 if following == _END else price[codes[cell]]
            for ahead in mirror.headings:
                near = cell + ahead
                if near not in cost and price[codes[near]] and near not in shut:
                    heapq.heappush(queue, (so_far + entering, near, cell))

    def _descend(self, start: int) -> Iterator[int]:
        cell = start if start in self._toward else _END
        while cell != _END:
            yield cell
            cell = self._toward[cell]


@functools.cache
def _prices(carried: int) -> bytes:
    """What it costs to enter a cell, by its code."""
    return bytes(_price(code, carried) for code in range(256))


def _price(code: int, carried: int) -> int:
    kind, color = code >> 3, code & 7
    if kind in (EMPTY, OPEN_DOOR):
        return 1
    if kind == CLOSED_DOOR or (kind == LOCKED_DOOR and carried == KEY << 3 | color):
        return 2
    if kind == LOCKED_DOOR:
        return _FETCH_KEY
    if kind in MOVABLE:
        return _MOVE_HANDS_FULL if carried else _MOVE
    return _NO_WAY


def cuts_off(mirror: Mirror, cell: int) -> bool:
    """Whether a thing dropped on a free cell could cut off a door or a part of a room.

    It cannot if the cells beside it that one can walk on are connected around it.
    """
    north, east = -mirror.stride, 1
    ring = (north, north + east, east, east - north, -north, -north - east, -east, north - east)
    ways = [mirror.codes[cell + step] >> 3 in _WAYS for step in ring]
    pieces = sum(ways[k] and not (ways[k - 1] and ways[k - 2]) for k in range(0, 8, 2))
    return pieces > 1


def buries(mirror: Mirror, cell: int) -> bool:
    """Whether a thing next to a free cell can be got at from that cell only."""
    return any(
        mirror.codes[cell + step] >> 3 in MOVABLE
        and all(
            BLOCKED[mirror.codes[cell + step + more]] for more in mirror.headings if more != -step
        )
        for step in mirror.headings
    )
