"""What to do next for a mission: from its instructions, and what stands in the way, to commands.

Works backwards from the clause of the mission that is due: to pick up a thing one must get next
to it with free hands; what is in the way there must be opened or moved; a locked door needs its
key, which may be in a box. Nothing is remembered between calls, all is read off the world, so it
goes on from any state. Each call gives the commands of one leg, up to the next change of the
world.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentgym_envs.babyai import actions
from agentgym_envs.babyai.approach import (
    ARRIVED,
    Finish,
    Glance,
    Step,
    about,
    approach,
    beside,
    facing,
)
from agentgym_envs.babyai.cells import (
    BALL,
    BOX,
    CLOSED_DOOR,
    COLORS,
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

_GO_TO = (actions.go_to.forms[0], ARRIVED.form)
_PICK_UP = (actions.pick_up.forms[0], actions.pick_up_front.forms[0])
_OPEN = (actions.open_target.forms[0], actions.toggle.forms[0])
_CLOSE = (actions.toggle_target.forms[0], actions.toggle.forms[0])
_GO_IN = (actions.toggle_and_go_through.forms[0], actions.toggle.forms[0])
_PUT_NEXT = actions.put_next_to.forms[0]
_DROP = actions.drop.forms[0]

_REOPEN, _UNLOCK = 4, 20
"""What it costs to close and open a door again, and to fetch a key, in primitives."""

_NEAR = 24
"""How far something is carried to put it down in a good place rather than a bearable one."""

_SOMETHING = BALL << 3

Goals = Mapping[int, int]
"""Cells, with what it costs to make use of each, in primitives."""


class Strategy:
    """The next leg of the way to the goal of a world.

    Args:
        world: the world, as it is whenever `next_leg` is called.
        forms: the commands that there are; primitives stand in for those that walk.
    """

    def __init__(self, world: BabyAIWorld, forms: Collection[str]) -> None:
        self._world = world
        self._forms = forms
        self._ways: list[tuple[int, ...]] = []

    def next_leg(self) -> list[Step]:
        """The commands up to the next change of the world; at least one.

        Raises:
            NoPlan: what the mission needs is gone or cannot be reached.
        """
        self._ways = []  # all ways that are looked at for this leg, so as not to block them
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
            return -1  # else two things might be put down for one another for ever
        route = Route(self._world.mirror, self._cells_of(things), self._world.carried)
        return route.cost[route.path[0]] if route.path else sys.maxsize

    def _go_to(self, things: Collection[Any]) -> list[Step]:
        cells = self._cells_of(things)
        if not cells and self._held in things:
            return self._checked(self._drop(lambda at: True))  # and look at it
        return self._reach(cells, self._do(_GO_TO, cells))

    def _pick_up(self, things: Collection[Any], is_strict: bool) -> list[Step]:
        goals = self._cells_of(things)
        if not goals and self._held in things:
            return self._put_down()  # only picking it up counts
        others = [cell for cell in self._world.mirror.thing_at if self._kind(cell) in MOVABLE]
        return self._fetch(goals, frozenset(others) if is_strict else frozenset())

    def _open(self, doors: Collection[Any]) -> list[Step]:
        extra = {OPEN_DOOR: _REOPEN, CLOSED_DOOR: 0, LOCKED_DOOR: _UNLOCK}
        goals = {cell: extra[self._kind(cell)] for cell in self._cells_of(doors)}
        while True:
            door = self._route(goals).path[-1]
            if self._kind(door) == OPEN_DOOR:  # only opening it counts
                return self._reach({door: 0}, self._do(_CLOSE, [door]))
            try:
                return self._unlock(door, _OPEN)
            except NoPlan:
                if len(goals) == 1:
                    raise
                del goals[door]

    def _put_next(self, things: Collection[Any], fixed: Collection[Any]) -> list[Step]:
        targets = self._cells_of(fixed)
        if not targets and self._held in fixed:
            return self._put_down()
        around = {cell + ahead for cell in targets for ahead in self._world.mirror.headings}
        free = {cell: 0 for cell in sorted(around) if self._is_free(cell)}
        if not free:
            return self._fetch(
                {cell: 0 for cell in sorted(around) if self._kind(cell) in MOVABLE}
            )
        if self._held not in things:
            return self._clear(free) or self._fetch(self._cells_of(things))
        if _PUT_NEXT in self._forms:
            return self._reach(free, beside(_PUT_NEXT, targets))
        return self._reach(free, facing(_DROP, lambda at: at.front in free))

    # ------------------------------------------------------------------------- what they come to

    def _fetch(self, goals: Goals, shut: frozenset[int] = frozenset()) -> list[Step]:
        """Pick up a thing in one of some cells.

        Other things are put down late: they may be keys that are needed on the way.
        """
        return self._reach(goals, None if self._held else self._do(_PICK_UP, goals), shut)

    def _reach(
        self, goals: Goals, finish: Finish | None, shut: frozenset[int] = frozenset()
    ) -> list[Step]:
        """Do something next to one of some cells, or remove what is first in the way there.

        Without something to do, what is carried is put down once nothing is in the way.
        """
        route = self._route(goals, shut)
        obstacle = route.obstacle()
        if obstacle is None:
            return self._approach(finish, route) if finish else self._put_down()
        if self._kind(obstacle) in MOVABLE:
            return self._fetch({obstacle: 0}, shut)
        try:
            return self._unlock(obstacle, _GO_IN, shut)
        except NoPlan:  # its key is out of reach, but there may be a way round
            return self._reach(goals, finish, shut | {obstacle})

    def _unlock(
        self, door: int, command: tuple[str, str], shut: frozenset[int] = frozenset()
    ) -> list[Step]:
        """Do something to a closed or locked door."""
        color = self._world.mirror.codes[door] & 7
        if self._kind(door) == LOCKED_DOOR and self._world.carried != KEY << 3 | color:
            return self._clear({door: 0}, shut) or self._fetch_key(color, shut | {door})
        return self._reach({door: 0}, self._do(command, [door]), shut)

    def _fetch_key(self, color: int, shut: frozenset[int]) -> list[Step]:
        """Pick up a key, or open the box that it is in."""
        code = KEY << 3 | color
        if code in nested_codes(self._held):
            return self._put_down()
        goals = {
            cell: 0
            for cell, thing in self._world.mirror.thing_at.items()
            if code in nested_codes(thing)
        }
        nearest = self._route(goals, shut).path[-1]
        if self._kind(nearest) == BOX:
            return self._reach({nearest: 0}, self._do(_OPEN, [nearest]), shut)
        return self._fetch({nearest: 0}, shut)

    def _clear(self, goals: Goals, shut: frozenset[int] = frozenset()) -> list[Step]:
        """Make a way for carrying something to one of some cells, while hands are free for that.

        Returns:
            No steps if there is nothing to do.
        """
        for cell in self._route(goals, shut, carried=_SOMETHING).path[1:-1]:
            if self._kind(cell) in MOVABLE:
                return self._fetch({cell: 0}, shut)
            if self._kind(cell) == LOCKED_DOOR:
                return self._unlock(cell, _OPEN, shut)
        return []

    def _put_down(self) -> list[Step]:
        """Drop what is carried off all ways, where it does the least harm."""
        mirror, start = self._world.mirror, self._world.mirror.cell

        def is_off_the_way(glance: Glance) -> bool:
            # All ways begin where the agent is now, which is free for use if all have gone on.
            if glance.front == start:
                return all(glance.cell in way for way in self._ways)
            return not any(glance.front in way for way in self._ways)

        def is_harmless(glance: Glance) -> bool:
            return is_kind(glance) and not buries(mirror, glance.front)

        def is_kind(glance: Glance) -> bool:
            return is_off_the_way(glance) and not cuts_off(mirror, glance.front)

        return self._checked(
            self._drop(is_harmless, _NEAR)
            or self._drop(is_kind, _NEAR)
            or self._drop(is_harmless)
            or self._drop(is_off_the_way)
            or self._drop(lambda at: True)
        )

    def _drop(
        self, accept: Callable[[Glance], bool], max_cost: int = sys.maxsize
    ) -> list[Step] | None:
        finish = facing(_DROP, lambda at: at.front_code == EMPTY and accept(at))
        return approach(self._world.mirror, finish, forms=(), max_cost=max_cost)

    # ----------------------------------------------------------------------------------- helpers

    @property
    def _held(self) -> Any:
        return self._world.minigrid.carrying

    def _kind(self, cell: int) -> int:
        return self._world.mirror.codes[cell] >> 3

    def _is_free(self, cell: int) -> bool:
        return self._kind(cell) == EMPTY

    def _cells_of(self, things: Iterable[Any]) -> dict[int, int]:
        wanted = set(things)
        thing_at = self._world.mirror.thing_at
        return {cell: 0 for cell in sorted(thing_at) if thing_at[cell] in wanted}

    def _do(self, command: tuple[str, str], cells: Collection[int]) -> Finish:
        """Finish with a command that walks to its target, or by facing it and a primitive."""
        form, primitive = command
        if form in self._forms:
            return about(form, cells)
        return facing(primitive, lambda at: at.front in cells)

    def _route(
        self, goals: Goals, shut: frozenset[int] = frozenset(), carried: int | None = None
    ) -> Route:
        if carried is None:
            carried = self._world.carried
        route = Route(self._world.mirror, goals, carried, shut)
        if not goals:
            raise NoPlan("what the mission needs is gone")
        if not route.path:
            raise NoPlan("what the mission needs cannot be reached")
        self._ways.append(route.path)
        return route

    def _approach(self, finish: Finish, route: Route) -> list[Step]:
        steps = approach(
            self._world.mirror, finish, forms=self._forms, estimate=route.estimate
        )
        return self._checked(steps)

    def _checked(self, steps: list[Step] | None) -> list[Step]:
        if steps is None:
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
