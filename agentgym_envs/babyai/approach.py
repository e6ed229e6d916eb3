"""From where the agent is to a place from which something can be done, in few commands.

The search runs over poses and looks from each as the agent would: commands reach only what is in
view. Nothing in the world changes on the way, so poses are all there is to a state. It is
best-first with an estimate that is not a lower bound, so its answers are short, not shortest.
"""

from __future__ import annotations

import functools
import heapq
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from agentgym_envs.babyai import actions
from agentgym_envs.babyai.cells import BLOCKED, EMPTY, OPEN_DOOR, UNSEEN
from agentgym_envs.babyai.mirror import Mirror
from agentgym_envs.babyai.paths import FORWARD, LEFT, RIGHT, Paths, neighbors
from agentgym_envs.babyai.view import HERE, offsets, things_in, visible_cells

TURN_LEFT, TURN_RIGHT = actions.turn_left.forms[0], actions.turn_right.forms[0]
MOVE_FORWARD = actions.move_forward.forms[0]
GO_TO, GO_THROUGH = actions.go_to.forms[0], actions.go_through.forms[0]

_MOVE_COST, _WALK_COST = 4, 5
"""In primitives, as estimates are. Turning on the spot is preferred to walking somewhere."""


class Step(NamedTuple):
    """A command about the thing in a cell, or about nothing; `ARRIVED` is none at all."""

    form: str
    cell: int = 0


ARRIVED = Step("")


class Glance:
    """What the agent would see from a pose, worked out when asked for."""

    def __init__(self, mirror: Mirror, cell: int, heading: int) -> None:
        self._mirror = mirror
        self.cell = cell
        self.heading = heading
        self.front = cell + mirror.headings[heading]
        self._cells: bytes | None = None
        self._paths: Paths | None = None

    @property
    def cells(self) -> bytes:
        """Codes of the view."""
        if self._cells is None:
            steps = self._mirror.headings
            ahead, right = steps[self.heading], steps[(self.heading + 1) % 4]
            self._cells = visible_cells(self._mirror.codes, self.cell, ahead, right)
        return self._cells

    @property
    def paths(self) -> Paths:
        """The ways through the view."""
        if self._paths is None:
            self._paths = Paths(self.cells)
        return self._paths

    @property
    def front_code(self) -> int:
        """What is in front."""
        return self._mirror.codes[self.front]

    def place(self, cell: int) -> int | None:
        """The cell of the view in which a cell of the grid is seen."""
        place = places(self._mirror.headings)[self.heading].get(cell - self.cell)
        return None if place is None or self.cells[place] == UNSEEN else place

    def after(self, primitives: Sequence[int]) -> tuple[int, int]:
        """Cell and heading after some turns and steps, which end where they cannot go on."""
        cell, heading = self.cell, self.heading
        for primitive in primitives:
            if primitive != FORWARD:
                heading = (heading + (1 if primitive == RIGHT else -1)) % 4
            elif BLOCKED[self._mirror.codes[cell + self._mirror.headings[heading]]]:
                break
            else:
                cell += self._mirror.headings[heading]
        return cell, heading


Finish = Callable[[Glance], Step | None]
"""The command that does what the agent has come for, if it can be given from there."""


def about(form: str, cells: Collection[int]) -> Finish:
    """Finish with a command that walks to the thing in one of some cells."""

    def finish(glance: Glance) -> Step | None:
        if form == GO_TO and glance.front in cells:
            return ARRIVED
        for cell in cells:
            place = glance.place(cell)
            if place not in (None, HERE) and glance.paths.facing([place]) is not None:
                return Step(form, cell)
        return None

    return finish


def beside(form: str, cells: Collection[int]) -> Finish:
    """Finish with a command that walks to a free cell next to the thing in one of some cells."""

    def finish(glance: Glance) -> Step | None:
        for cell in cells:
            place = glance.place(cell)
            if place is None:
                continue
            free = [near for near in neighbors(place) if glance.cells[near] == EMPTY]
            if free and glance.paths.facing(free) is not None:
                return Step(form, cell)
        return None

    return finish


def facing(form: str, accept: Callable[[Glance], bool]) -> Finish:
    """Finish with a command about the cell in front of the agent, from accepted poses."""

    def finish(glance: Glance) -> Step | None:
        return Step(form) if accept(glance) else None

    return finish


def approach(
    mirror: Mirror,
    finish: Finish,
    *,
    forms: Collection[str],
    estimate: Callable[[int], int] = lambda cell: 0,
    max_cost: int = sys.maxsize,
) -> list[Step] | None:
    """The commands from where the agent is up to and including what `finish` gives.

    Args:
        mirror: the grid and the agent.
        finish: what to do, and from where it can be done.
        forms: the commands that there are.
        estimate: about how many primitives it is to there from a cell.
        max_cost: how far to look, in primitives.

    Returns:
        At least one step, or None if no pose will do.
    """
    start = (mirror.cell, mirror.heading)
    here = Glance(mirror, *start)
    last = finish(here)
    if last and last != ARRIVED:  # who is there already must come again for it to count
        return [last]
    before: dict[tuple[int, int], tuple[tuple[int, int], Step]] = {}
    cost = {start: 0}
    queue = [(0, 0, here)]
    done = set()
    number = 0
    while queue:
        _, _, here = heapq.heappop(queue)
        pose = (here.cell, here.heading)
        if pose in done:
            continue
        done.add(pose)
        for step, price, following in _moves(here, forms):
            there = Glance(mirror, *following)
            last = finish(there)
            if last:
                steps = [*_back(before, start, pose), step, last]
                return steps if last != ARRIVED else steps[:-1]
            so_far = cost[pose] + price
            if so_far < min(cost.get(following, max_cost), max_cost):
                cost[following] = so_far
                before[following] = (pose, step)
                number += 1
                heapq.heappush(queue, (so_far + estimate(there.cell), number, there))
    return None


def _moves(here: Glance, forms: Collection[str]) -> Iterator[tuple[Step, int, tuple[int, int]]]:
    """The commands that move the agent, what they cost, and cell and heading after them."""
    yield Step(TURN_LEFT), _MOVE_COST, here.after([LEFT])
    yield Step(TURN_RIGHT), _MOVE_COST, here.after([RIGHT])
    if not BLOCKED[here.front_code]:
        yield Step(MOVE_FORWARD), _MOVE_COST, here.after([FORWARD])
    if GO_TO not in forms:
        return
    offset = offsets(here._mirror.headings)[here.heading]
    for place in things_in(here.cells):
        path = here.paths.facing([place])
        if path is None or place == HERE:
            continue
        cell = here.cell + offset[place]
        if path:
            yield Step(GO_TO, cell), _WALK_COST, here.after(path)
        if here.cells[place] >> 3 == OPEN_DOOR:
            yield Step(GO_THROUGH, cell), _WALK_COST, here.after([*path, FORWARD, FORWARD])


def _back(
    before: dict[tuple[int, int], tuple[tuple[int, int], Step]],
    start: tuple[int, int],
    pose: tuple[int, int],
) -> list[Step]:
    steps = []
    while pose != start:
        pose, step = before[pose]
        steps.append(step)
    return steps[::-1]


@functools.cache
def places(headings: tuple[int, int, int, int]) -> tuple[dict[int, int], ...]:
    """For each heading, the cell of the view by what is to be added to the agent's cell."""
    return tuple(
        {offset: place for place, offset in enumerate(one_heading)}
        for one_heading in offsets(headings)
    )
