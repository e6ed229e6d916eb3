"""`Fields`: everything in minigrid's objects that a step can change, except the grid itself.

Saving a state is reading these fields, restoring it is setting them. They are pose, carried
thing, steps, the state of doors, the places of things, and how far the mission has come. Which
things a mission refers to never changes after the start, so generating the level restores it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentgym_envs.babyai.generation import clauses

_AGENT = ("agent_pos", "agent_dir", "carrying", "step_count")
_DONE = ("a_done", "b_done")
_PROGRESS = (*_DONE, "preCarrying")
_DESCRIPTIONS = ("desc", "desc_move", "desc_fixed")
_POSITIONS = ("agent_pos", "cur_pos")
_THINGS = ("carrying", "preCarrying")
_PLACES = "obj_poss"


class Fields:
    """The fields of one world, in an order that only its level and seed decide.

    Args:
        level: the minigrid environment, just reset.
        things: every object in it that is no wall, boxes' contents included.
    """

    def __init__(self, level: Any, things: Sequence[Any]) -> None:
        self._descriptions = list(_descriptions(level.instrs))
        self._progress = [
            (clause, name)
            for clause in clauses(level.instrs)
            for name in _PROGRESS
            if hasattr(clause, name)
        ] + [(desc, _PLACES) for desc in self._descriptions]
        self._all = [(level, name) for name in _AGENT] + self._progress
        for thing in things:
            changing = ("is_open", "is_locked") if thing.type == "door" else ("cur_pos",)
            self._all += [(thing, name) for name in changing]

    def __len__(self) -> int:
        return len(self._all)

    def values(self) -> list[Any]:
        """The values as they are in minigrid."""
        return [getattr(holder, name) for holder, name in self._all]

    def restore(self, values: Sequence[Any]) -> None:
        """Set what `values` gave."""
        for (holder, name), value in zip(self._all, values, strict=True):
            setattr(holder, name, value)

    def to_json(self, number_of: Mapping[Any, int]) -> list[Any]:
        """The values as JSON, things as their numbers."""
        return [_encode(holder, name, number_of) for holder, name in self._all]

    def load_json(self, values: Sequence[Any], things: Sequence[Any]) -> None:
        """Set what `to_json` gave, where `things[n]` had number n."""
        for (holder, name), value in zip(self._all, values, strict=True):
            setattr(holder, name, _decode(name, value, things))

    def mission_state(self, number_of: Mapping[Any, int]) -> list[Any]:
        """How far the mission has come and what it refers to, as JSON, things as numbers."""
        progress = [
            getattr(clause, name) == "success"  # the other values all mean: not yet
            if name in _DONE
            else _encode(clause, name, number_of)
            for clause, name in self._progress
        ]
        referents = [  # "a grey object" also refers to the walls, which have no numbers
            sorted(number_of[thing] for thing in description.obj_set if thing in number_of)
            for description in self._descriptions
        ]
        return [progress, referents]


def _descriptions(instruction: Any) -> Iterator[Any]:
    for clause in clauses(instruction):
        for name in _DESCRIPTIONS:
            if hasattr(clause, name):
                yield getattr(clause, name)


def _encode(holder: Any, name: str, number_of: Mapping[Any, int]) -> Any:
    value = getattr(holder, name)
    if value is None or isinstance(value, (bool, str)):
        return value
    if name in _POSITIONS:
        return [int(part) for part in value]
    if name in _THINGS:
        return number_of[value]
    if name == _PLACES:
        return [[int(x), int(y)] for x, y in value]
    return int(value)


def _decode(name: str, value: Any, things: Sequence[Any]) -> Any:
    if value is None:
        return None
    if name in _POSITIONS:
        return (int(value[0]), int(value[1]))
    if name in _THINGS:
        return things[value]
    if name == _PLACES:
        return [(int(x), int(y)) for x, y in value]
    return value
