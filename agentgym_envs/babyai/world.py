"""`BabyAIWorld`: one level of minigrid, built from a level name and a seed, and stepped.

minigrid generates the levels, moves the agent and judges the mission, so worlds and outcomes are
those of stock minigrid. Its observations are left out: they are nine tenths of a step, and what
is seen is derived from a mirror of the grid in bytes at a tenth of that cost. minigrid's own step
limit ends nothing; the horizon of the environment does.

A state has two saved forms. `snapshot` is for searching: it holds references and takes
microseconds, and only the world that made it can take it back. `to_json` is for files and other
processes: the level is generated again, then what has changed is overwritten.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agentgym_envs.babyai.cells import LABELS
from agentgym_envs.babyai.fields import Fields
from agentgym_envs.babyai.generation import generate, make_level
from agentgym_envs.babyai.mirror import Mirror, code_of, nested_codes
from agentgym_envs.babyai.paths import FORWARD, Paths
from agentgym_envs.babyai.view import HERE, Sight, View, offsets, things_in, visible_cells
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidState

_CARRIED, _GONE = -1, -2


class Snapshot(NamedTuple):
    """A world at one moment, in memory."""

    build: object
    values: list[Any]
    grid: list[Any]
    codes: bytes
    thing_at: dict[int, Any]
    names: dict[Any, str]
    pose: tuple[int, int]
    status: EndReason
    caches: tuple[View | None, Paths | None]


class BabyAIWorld:
    """The world of one episode. Call `reset` before anything else.

    Attributes:
        level: name of the level.
        seed: what it was generated from.
        mission: the goal, verbatim.
        status: `RUNNING`, `SUCCESS` or `FAILURE`.
        layout: `digest` of the world at the start.
        max_steps: minigrid's own limit in primitives.
        minigrid: the environment of minigrid. Who steps it directly leaves the world behind.
        mirror: its grid and pose as integers.
    """

    def __init__(self) -> None:
        self._levels: dict[str, Any] = {}
        self._build: object = None
        self._view: View | None = None
        self._paths: Paths | None = None
        self.level = ""
        self.seed = -1

    def reset(self, level: str, seed: int) -> None:
        """Build the world of `level` and `seed`, unless it stands there untouched.

        Raises:
            UnknownName: no such level.
            EnvFault: minigrid could not generate the level.
        """
        if self._build and (level, seed) == (self.level, self.seed) and not self._touched():
            return
        self._build = None
        if level not in self._levels:
            self._levels[level] = make_level(level)
        self.minigrid = self._levels[level]
        generate(self.minigrid, seed)
        self.level, self.seed = level, seed
        self.mission = str(self.minigrid.mission)
        self.max_steps = int(self.minigrid.max_steps)
        self.status = EndReason.RUNNING
        self.mirror = Mirror(self.minigrid)
        self._things = self._enumerate()
        self._fields_or_none: Fields | None = None
        self._names: dict[Any, str] = {}
        self._forget()
        self.layout = self.digest()
        self._build = object()

    # ----------------------------------------------------------------------------- what is so

    @property
    def num_steps(self) -> int:
        """Primitives since the start."""
        return int(self.minigrid.step_count)

    @property
    def carried(self) -> int:
        """The code of what the agent carries, 0 for nothing."""
        return code_of(self.minigrid.carrying)

    @property
    def front(self) -> int:
        """The code of the cell that the agent looks at."""
        return self.mirror.codes[self.mirror.front]

    def view(self) -> View:
        """What the agent sees. Things seen for the first time get their names now."""
        if self._view is None:
            mirror, name = self.mirror, self._name
            ahead = mirror.headings[mirror.heading]
            right = mirror.headings[(mirror.heading + 1) % 4]
            cells = visible_cells(mirror.codes, mirror.cell, ahead, right)
            held = self.minigrid.carrying
            carried = None if held is None else Sight(name(held), HERE, code_of(held))
            offset = offsets(mirror.headings)[mirror.heading]
            sights = [
                Sight(name(mirror.thing_at[mirror.cell + offset[index]]), index, cells[index])
                for index in things_in(cells)
            ]
            self._view = View(cells, tuple(sights), carried)
        return self._view

    def paths(self) -> Paths:
        """The ways through what the agent sees."""
        if self._paths is None:
            self._paths = Paths(self.view().cells)
        return self._paths

    def digest(self) -> str:
        """SHA-256 of the layout as hex digits: grid, contents of boxes, what is carried, pose."""
        mirror = self.mirror
        layout = [
            mirror.stride,
            mirror.cell,
            mirror.heading,
            nested_codes(self.minigrid.carrying),
            mirror.full_boxes(),
        ]
        return hashlib.sha256(json.dumps(layout).encode() + bytes(mirror.codes)).hexdigest()

    def state_key(self) -> str:
        """A hash of everything that decides what happens next; equal states have equal keys.

        Steps taken are left out. So are the names of things that are the only ones of their
        label: they are the same whenever the thing is first seen.
        """
        self.view()  # what is in view has its name
        where = dict.fromkeys(self._things, _GONE)
        where |= {thing: cell for cell, thing in self.mirror.thing_at.items()}
        if self.minigrid.carrying is not None:
            where[self.minigrid.carrying] = _CARRIED
        num_alike = Counter(LABELS[code_of(thing)] for thing in self._things)
        names = sorted(
            (name, where[thing])
            for thing, name in self._names.items()
            if num_alike[LABELS[code_of(thing)]] > 1
        )
        state = [self.digest(), self.mission, self._fields.mission_state(where), names]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32]

    # ------------------------------------------------------------------------------ what is done

    def step(self, primitive: int) -> bool:
        """Do one of minigrid's primitives.

        Args:
            primitive: 0 to 5: turn left, turn right, forward, pick up, drop, toggle.

        Returns:
            Whether it changed pose or grid and the mission goes on.
        """
        mirror = self.mirror
        front = mirror.front
        pose = (mirror.cell, mirror.heading)
        _, success, ended, _, _ = self.minigrid.step(primitive)
        self._forget()
        if ended:
            self.status = EndReason.SUCCESS if success else EndReason.FAILURE
        if primitive > FORWARD:
            return mirror.read_cell(front) and not ended
        mirror.read_pose()
        return pose != (mirror.cell, mirror.heading) and not ended

    def follow(self, primitives: Iterable[int]) -> bool:
        """Do primitives until one changes nothing or the mission is decided.

        Returns:
            Whether all were done and the mission goes on.
        """
        return all(self.step(primitive) for primitive in primitives)

    # ------------------------------------------------------------------------------ saved states

    def snapshot(self) -> Snapshot:
        """The state in memory, for `restore` of this world before its next `reset`."""
        mirror = self.mirror
        return Snapshot(
            self._build,
            self._fields.values(),
            self.minigrid.grid.grid.copy(),
            bytes(mirror.codes),
            mirror.thing_at.copy(),
            self._names.copy(),
            (mirror.cell, mirror.heading),
            self.status,
            (self._view, self._paths),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, which can be used again.

        Raises:
            InvalidState: another world made it, or this one before its last `reset`.
        """
        if snapshot.build is not self._build:
            raise InvalidState("the snapshot is of another world; use to_json() and load_json()")
        mirror = self.mirror
        self._fields.restore(snapshot.values)
        self.minigrid.grid.grid[:] = snapshot.grid
        mirror.codes[:] = snapshot.codes
        mirror.thing_at = snapshot.thing_at.copy()
        mirror.cell, mirror.heading = snapshot.pose
        self._names = snapshot.names.copy()
        self.status = snapshot.status
        self._view, self._paths = snapshot.caches

    def to_json(self) -> dict[str, Any]:
        """The state as JSON values, for `load_json` of any world in any process."""
        number_of = {thing: number for number, thing in enumerate(self._things)}
        return {
            "level": self.level,
            "seed": self.seed,
            "layout": self.layout,
            "fields": self._fields.to_json(number_of),
            "thing_at": sorted([cell, number_of[it]] for cell, it in self.mirror.thing_at.items()),
            "names": [[number_of[thing], name] for thing, name in self._names.items()],
            "status": str(self.status),
        }

    def load_json(self, state: Mapping[str, Any]) -> None:
        """Become the world that `to_json` described.

        Raises:
            InvalidState: not such a state, or this version of minigrid builds another level. The
                world then needs a `reset`.
        """
        try:
            self.reset(state["level"], state["seed"])
            if state["layout"] != self.layout:
                raise InvalidState(
                    f"the state was saved with another version of minigrid: this one builds "
                    f"another world for {self.level} of seed {self.seed}"
                )
            self._fields.load_json(state["fields"], self._things)
            self.mirror.put({cell: self._things[number] for cell, number in state["thing_at"]})
            self.mirror.read_pose()
            self._names = {self._things[number]: name for number, name in state["names"]}
            self.status = EndReason(state["status"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            self._build = None
            if isinstance(error, InvalidState):
                raise
            raise InvalidState(f"not the state of a BabyAI world: {error!r}") from error
        self._forget()

    # ----------------------------------------------------------------------------------- inside

    @property
    def _fields(self) -> Fields:
        if self._fields_or_none is None:  # most episodes are never saved
            self._fields_or_none = Fields(self.minigrid, self._things)
        return self._fields_or_none

    def _touched(self) -> bool:
        return bool(self.num_steps or self._names)

    def _forget(self) -> None:
        self._view = self._paths = None

    def _name(self, thing: Any) -> str:
        name = self._names.get(thing)
        if name is None:
            label = LABELS[code_of(thing)]
            number = 1 + sum(known.startswith(label) for known in self._names.values())
            name = self._names[thing] = f"{label} {number}"
        return name

    def _enumerate(self) -> list[Any]:
        """Everything that exists in the level, in an order that only level and seed decide."""
        things = list(self.mirror.thing_at.values())
        if self.minigrid.carrying is not None:
            things.append(self.minigrid.carrying)
        for thing in things:  # grows while it is read: boxes hold things
            if thing.contains is not None:
                things.append(thing.contains)
        return things
