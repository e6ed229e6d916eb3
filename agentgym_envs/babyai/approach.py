"""From where the agent is to where something can be done, in few commands.

The search runs over poses and looks from each as the agent would there: commands reach only what
is in view. Nothing in the world changes on the way, so poses are all there is to a state. It is
best-first with an estimate that is no lower bound, and it stops at the first pose that will do:
what it finds is short, not shortest, and takes a millisecond.
"""

from __future__ import annotations

import functools
import heapq
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from agentgym_envs.actions import Verb
from agentgym_envs.babyai.actions import go_through, go_to, move_forward, turn_left, turn_right
from agentgym_envs.babyai.cells import BLOCKED, EMPTY, OPEN_DOOR, UNSEEN
from agentgym_envs.babyai.mirror import Mirror
from agentgym_envs.babyai.paths import FORWARD, LEFT, RIGHT, Paths, neighbors
from agentgym_envs.babyai.view import HERE, offsets, things_in, visible_cells

_MOVE_COST, _WALK_COST = 4, 5
"""Of one command, in primitives, as estimates are. To look around comes before walking away."""

Pose = tuple[int, int]
"""Cell and heading."""


class Step(NamedTuple):
    """A command, and the cell of the thing that it names, if it names one."""

    verb: Verb
    cell: int | None = None


class Glance:
    """What the agent would see from a pose, worked out when asked for.

    Attributes:
        mirror: the grid.
        cell: where the agent would be.
        heading: where it would look.
        front: the cell that it would look at.
    """

    def __init__(self, mirror: Mirror, cell: int, heading: int) -> None:
        self.mirror = mirror
        self.cell = cell
        self.heading = heading
        self.front = cell + mirror.headings[heading]
        self._cells: bytes | None = None
        self._paths: Paths | None = None

    @property
    def cells(self) -> bytes:
        """Codes of the view."""
        if self._cells is None:
            steps = self.mirror.headings
            ahead, right = steps[self.heading], steps[(self.heading + 1) % 4]
            self._cells = visible_cells(self.mirror.codes, self.cell, ahead, right)
        return self._cells

    @property
    def paths(self) -> Paths:
        """The ways through the view."""
        if self._paths is None:
            self._paths = Paths(self.cells)
        return self._paths

    def place(self, cell: int) -> int | None:
        """Where a cell of the grid is in the view, None if it is not seen."""
        place = places(self.mirror.headings)[self.heading].get(cell - self.cell)
        return None if place is None or self.cells[place] == UNSEEN else place

    def after(self, primitives: Sequence[int]) -> Pose:
        """The pose after turns and steps, which end where something is in the way."""
        cell, heading = self.cell, self.heading
        for primitive in primitives:
            if primitive != FORWARD:
                heading = (heading + (1 if primitive == RIGHT else -1)) % 4
                continue
            front = cell + self.mirror.headings[heading]
            if BLOCKED[self.mirror.codes[front]]:
                break
            cell = front
        return cell, heading


Finish = Callable[[Glance], list[Step] | None]
"""What is still to be done at a pose; no step if being there is all, None if it will not do."""


def about(verb: Verb, cells: Collection[int]) -> Finish:
    """Finish with a command that walks to the thing in one of some cells."""

    def finish(glance: Glance) -> list[Step] | None:
        if verb is go_to and glance.front in cells:
            return []
        for cell in cells:
            place = glance.place(cell)
            if place not in (None, HERE) and glance.paths.facing([place]) is not None:
                return [Step(verb, cell)]
        return None

    return finish


def beside(verb: Verb, cells: Collection[int]) -> Finish:
    """Finish with a command that walks to a free cell next to the thing in one of some cells."""

    def finish(glance: Glance) -> list[Step] | None:
        for cell in cells:
            place = glance.place(cell)
            if place is None:
                continue
            free = [near for near in neighbors(place) if glance.cells[near] == EMPTY]
            if glance.paths.facing(free) is not None:
                return [Step(verb, cell)]
        return None

    return finish


def facing(steps: Sequence[Step], accept: Callable[[Glance], bool]) -> Finish:
    """Finish with some steps at every pose that is accepted."""
    return lambda glance: list(steps) if accept(glance) else None


def approach(
    mirror: Mirror,
    finish: Finish,
    *,
    verbs: Collection[Verb],
    estimate: Callable[[int], int] = lambda cell: 0,
    max_cost: int = sys.maxsize,
) -> list[Step] | None:
    """The commands from where the agent is up to and including what `finish` asks for.

    Args:
        mirror: the grid and the agent.
        finish: what to do, and where.
        verbs: the commands that there are.
        estimate: about how many primitives it is to there from a cell.
        max_cost: how far to look, in primitives.

    Returns:
        At least one step, or None if no pose will do.
    """
    start = (mirror.cell, mirror.heading)
    here = Glance(mirror, *start)
    last = finish(here)
    if last:  # who is there already must come again for it to count
        return last
    cost = {start: 0}
    before: dict[Pose, tuple[Pose, Step]] = {}
    queue = [(0, 0, here)]
    number = 0  # of the entry: breaks ties, first come first served
    done = set()
    while queue:
        *_, here = heapq.heappop(queue)
        pose = (here.cell, here.heading)
        if pose in done:
            continue
        done.add(pose)
        for step, price, following in _moves(here, verbs):
            there = Glance(mirror, *following)
            last = finish(there)
            if last is not None:
                return [*_way_to(pose, before), step, *last]
            so_far = cost[pose] + price
            if so_far < min(cost.get(following, max_cost), max_cost):
                cost[following] = so_far
                before[following] = (pose, step)
                number += 1
                heapq.heappush(queue, (so_far + estimate(there.cell), number, there))
    return None


def _moves(here: Glance, verbs: Collection[Verb]) -> Iterator[tuple[Step, int, Pose]]:
    """The commands that move the agent, what they cost, and the pose after them."""
    yield Step(turn_left), _MOVE_COST, here.after([LEFT])
    yield Step(turn_right), _MOVE_COST, here.after([RIGHT])
    if not BLOCKED[here.mirror.codes[here.front]]:
        yield Step(move_forward), _MOVE_COST, here.after([FORWARD])
    if go_to not in verbs:
        return
    offset = offsets(here.mirror.headings)[here.heading]
    for place in things_in(here.cells):
        path = here.paths.facing([place])
        if path is None or place == HERE:
            continue
        cell = here.cell + offset[place]
        if path:
            yield Step(go_to, cell), _WALK_COST, here.after(path)
        if here.cells[place] >> 3 == OPEN_DOOR:
            yield Step(go_through, cell), _WALK_COST, here.after([*path, FORWARD, FORWARD])


def _way_to(pose: Pose, before: dict[Pose, tuple[Pose, Step]]) -> list[Step]:
    steps = []
    while pose in before:
        pose, step = before[pose]
        steps.append(step)
    return steps[::-1]


@functools.cache
def places(headings: tuple[int, int, int, int]) -> tuple[dict[int, int], ...]:
    """For each heading, the cell of the view by what it differs from the agent's cell."""
    return tuple(
        {offset: place for place, offset in enumerate(of_heading)}
        for of_heading in offsets(headings)
    )
