"""What to do next for a mission: from its instructions, and what stands in the way, to commands.

It works backwards from the clause of the mission that is due: to pick up a thing one must get
next to it with free hands; what is in the way there must be opened or moved; a locked door needs
its key, which may be in a box. Nothing is remembered between calls, all is read off the world, so
it goes on from any state. Each call gives the commands of one leg, up to the next change of the
world.

Left out: search over orders of clearing and carrying. In very tight rooms a thing that was put
down may be in the way again; `oracle` notices plans that go round in circles.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentgym_envs.actions import Verb
from agentgym_envs.babyai.actions import (
    drop,
    go_to,
    open_target,
    pick_up,
    pick_up_front,
    put_next_to,
    toggle,
    toggle_and_go_through,
    toggle_target,
)
from agentgym_envs.babyai.approach import Finish, Glance, Step, about, approach, beside, facing
from agentgym_envs.babyai.cells import (
    BALL,
    BOX,
    EMPTY,
    KEY,
    LOCKED_DOOR,
    MOVABLE,
    OPEN_DOOR,
)
from agentgym_envs.babyai.mirror import nested_codes
from agentgym_envs.babyai.routes import Route, buries, cuts_off
from agentgym_envs.errors import NoPlan

if TYPE_CHECKING:
    from agentgym_envs.babyai.world import BabyAIWorld

GONE = "what the mission needs is gone"
OUT_OF_REACH = "what the mission needs cannot be reached"

_PRIMITIVE: dict[Verb, tuple[Step, ...]] = {
    go_to: (),
    pick_up: (Step(pick_up_front),),
    open_target: (Step(toggle),),
    toggle_target: (Step(toggle),),
    toggle_and_go_through: (Step(toggle),),
}
"""What does the same as a verb that walks, in front of its target."""

_REOPEN, _FETCH_KEY = 4, 20
"""What it costs to close and open a door again, and to fetch a key, in primitives."""
_NEAR = 24
"""How far a thing is carried to a good cell when there are bearable ones nearer."""
_SOMETHING = BALL << 3
_NOTHING_SHUT: frozenset[int] = frozenset()

Goals = Mapping[int, int]
"""Cells, with what it costs to make use of each, in primitives."""


class Strategy:
    """The next leg of the way to the goal of a world.

    Args:
        world: the world, as it is whenever `next_leg` is called.
        verbs: the commands that there are; primitives stand in for those that walk.
    """

    def __init__(self, world: BabyAIWorld, verbs: Collection[Verb]) -> None:
        self._world = world
        self._verbs = verbs
        self._ways: list[tuple[int, ...]] = []

    def next_leg(self) -> list[Step]:
        """The commands up to the next change of the world; at least one.

        Raises:
            NoPlan: what the mission needs is gone or cannot be reached.
        """
        self._ways = []  # all that are looked at for this leg, so that none gets blocked
        due = list(_due(self._world.minigrid.instrs))
        clause = min(due, key=self._distance) if len(due) > 1 else due[0]
        kind = type(clause).__name__
        if kind == "GoToInstr":
            return self._go_to(clause.desc.obj_set)
        if kind == "PickupInstr":
            return self._pick_up(clause.desc.obj_set, clause.strict)
        if kind == "OpenInstr":
            return self._open(clause.desc.obj_set)
        if kind == "PutNextInstr":
            return self._put_next(clause.desc_move.obj_set, clause.desc_fixed.obj_set)
        raise NoPlan(f"the oracle does not know what to do for {kind}")

    # ----------------------------------------------------------------------------- the clauses

    def _distance(self, clause: Any) -> int:
        """How far a clause is, to begin with the nearest."""
        moving = hasattr(clause, "desc_move")
        things = (clause.desc_move if moving else clause.desc).obj_set
        if moving and self._held in things:
            return -1  # or two things might be put down for one another for ever
        route = Route(self._world.mirror, self._cells_of(things), self._world.carried)
        return route.cost[route.path[0]] if route.path else sys.maxsize

    def _go_to(self, things: Collection[Any]) -> list[Step]:
        cells = self._cells_of(things)
        if not cells and self._held in things:
            return _checked(self._drop(lambda glance: True))  # and look at it
        return self._reach(cells, self._do(go_to, cells))

    def _pick_up(self, things: Collection[Any], is_strict: bool) -> list[Step]:
        goals = self._cells_of(things)
        if not goals and self._held in things:
            return self._put_down()  # only picking it up counts
        movable = [cell for cell in self._world.mirror.thing_at if self._kind(cell) in MOVABLE]
        return self._fetch(goals, frozenset(movable) if is_strict else _NOTHING_SHUT)

    def _open(self, doors: Collection[Any]) -> list[Step]:
        goals = {
            cell: _REOPEN if self._kind(cell) == OPEN_DOOR else _FETCH_KEY * self._needs_key(cell)
            for cell in self._cells_of(doors)
        }
        while True:
            door = self._route(goals).path[-1]
            if self._kind(door) == OPEN_DOOR:  # only opening it counts
                return self._reach({door: 0}, self._do(toggle_target, [door]))
            try:
                return self._unlock(door, open_target)
            except NoPlan:
                if len(goals) == 1:
                    raise
                del goals[door]

    def _put_next(self, things: Collection[Any], fixed: Collection[Any]) -> list[Step]:
        targets = self._cells_of(fixed)
        if not targets and self._held in fixed:
            return self._put_down()
        around = {cell + step for cell in targets for step in self._world.mirror.headings}
        free = {cell: 0 for cell in sorted(around) if self._kind(cell) == EMPTY}
        if not free:
            return self._fetch({cell: 0 for cell in sorted(around) if self._kind(cell) in MOVABLE})
        if self._held not in things:
            return self._clear(free) or self._fetch(self._cells_of(things))
        if put_next_to in self._verbs:
            return self._reach(free, beside(put_next_to, targets))
        return self._reach(free, facing([Step(drop)], lambda glance: glance.front in free))

    # ------------------------------------------------------------------------- what they come to

    def _fetch(self, goals: Goals, shut: frozenset[int] = _NOTHING_SHUT) -> list[Step]:
        """Pick up a thing in one of some cells.

        What is carried is put down late: it may be a key that is needed on the way.
        """
        finish = self._do(pick_up, goals) if self._held is None else None
        return self._reach(goals, finish, shut)

    def _reach(
        self, goals: Goals, finish: Finish | None, shut: frozenset[int] = _NOTHING_SHUT
    ) -> list[Step]:
        """Finish next to one of some cells, or remove what is first in the way there.

        Without anything to finish with, what is carried is put down when the way is free.
        """
        route = self._route(goals, shut)
        obstacle = route.obstacle()
        if obstacle is None:
            return self._approach(finish, route) if finish else self._put_down()
        if self._kind(obstacle) in MOVABLE:
            return self._fetch({obstacle: 0}, shut)
        try:
            return self._unlock(obstacle, toggle_and_go_through, shut)
        except NoPlan:  # the key is out of reach, but there may be a way round
            return self._reach(goals, finish, shut | {obstacle})

    def _unlock(self, door: int, verb: Verb, shut: frozenset[int] = _NOTHING_SHUT) -> list[Step]:
        """Do something to a closed or locked door."""
        if self._needs_key(door):
            return self._clear({door: 0}, shut) or self._fetch_key(door, shut | {door})
        return self._reach({door: 0}, self._do(verb, [door]), shut)

    def _fetch_key(self, door: int, shut: frozenset[int]) -> list[Step]:
        """Pick up the key of a door, or open the box that it is in."""
        code = self._key_of(door)
        if code in nested_codes(self._held):
            return self._put_down()
        thing_at = self._world.mirror.thing_at
        goals = {cell: 0 for cell in sorted(thing_at) if code in nested_codes(thing_at[cell])}
        nearest = self._route(goals, shut).path[-1]
        if self._kind(nearest) == BOX:
            return self._reach({nearest: 0}, self._do(open_target, [nearest]), shut)
        return self._fetch({nearest: 0}, shut)

    def _clear(self, goals: Goals, shut: frozenset[int] = _NOTHING_SHUT) -> list[Step]:
        """Make way for carrying something to one of some cells, while hands are free for that.

        Returns:
            No steps if there is nothing to do.
        """
        for cell in self._route(goals, shut, carried=_SOMETHING).path[1:-1]:
            if self._kind(cell) in MOVABLE:
                return self._fetch({cell: 0}, shut)
            if self._kind(cell) == LOCKED_DOOR:
                return self._unlock(cell, open_target, shut)
        return []

    def _put_down(self) -> list[Step]:
        """Drop what is carried off all ways, where it does the least harm."""
        mirror, start = self._world.mirror, self._world.mirror.cell

        def is_off_the_way(glance: Glance) -> bool:
            if glance.front == start:  # where all ways begin; free for use when all have gone on
                return all(glance.cell in way for way in self._ways)
            return not any(glance.front in way for way in self._ways)

        def is_bearable(glance: Glance) -> bool:
            return is_off_the_way(glance) and not cuts_off(mirror, glance.front)

        def is_good(glance: Glance) -> bool:
            return is_bearable(glance) and not buries(mirror, glance.front)

        return _checked(
            self._drop(is_good, _NEAR)
            or self._drop(is_bearable, _NEAR)
            or self._drop(is_good)
            or self._drop(is_off_the_way)
            or self._drop(lambda glance: True)
        )

    def _drop(
        self, accept: Callable[[Glance], bool], max_cost: int = sys.maxsize
    ) -> list[Step] | None:
        finish = facing(
            [Step(drop)], lambda glance: self._kind(glance.front) == EMPTY and accept(glance)
        )
        return approach(self._world.mirror, finish, verbs=(), max_cost=max_cost)

    # ----------------------------------------------------------------------------------- helpers

    @property
    def _held(self) -> Any:
        return self._world.minigrid.carrying

    def _kind(self, cell: int) -> int:
        return self._world.mirror.codes[cell] >> 3

    def _key_of(self, door: int) -> int:
        return KEY << 3 | self._world.mirror.codes[door] & 7

    def _needs_key(self, door: int) -> bool:
        return self._kind(door) == LOCKED_DOOR and self._world.carried != self._key_of(door)

    def _cells_of(self, things: Iterable[Any]) -> dict[int, int]:
        wanted = set(things)
        thing_at = self._world.mirror.thing_at
        return {cell: 0 for cell in sorted(thing_at) if thing_at[cell] in wanted}

    def _do(self, verb: Verb, cells: Collection[int]) -> Finish:
        """Finish with a command that walks to its target, or by facing it and a primitive."""
        if verb in self._verbs:
            return about(verb, cells)
        return facing(_PRIMITIVE[verb], lambda glance: glance.front in cells)

    def _route(
        self, goals: Goals, shut: frozenset[int] = _NOTHING_SHUT, carried: int | None = None
    ) -> Route:
        if not goals:
            raise NoPlan(GONE)
        held = self._world.carried if carried is None else carried
        route = Route(self._world.mirror, goals, held, shut)
        if not route.path:
            raise NoPlan(OUT_OF_REACH)
        self._ways.append(route.path)
        return route

    def _approach(self, finish: Finish, route: Route) -> list[Step]:
        return _checked(
            approach(self._world.mirror, finish, verbs=self._verbs, estimate=route.estimate)
        )


def _checked(steps: list[Step] | None) -> list[Step]:
    if not steps:
        raise NoPlan("there is no place from which the next command could be done")
    return steps


def _due(instruction: Any) -> Iterator[Any]:
    """The clauses that the mission asks for now."""
    kind = type(instruction).__name__
    if kind in ("BeforeInstr", "AfterInstr"):
        first, last = ("a", "b") if kind == "BeforeInstr" else ("b", "a")
        done = getattr(instruction, f"{first}_done") == "success"
        yield from _due(getattr(instruction, f"instr_{last if done else first}"))
    elif kind == "AndInstr":
        for part in ("a", "b"):
            if getattr(instruction, f"{part}_done") != "success":
                yield from _due(getattr(instruction, f"instr_{part}"))
    else:
        yield instruction
