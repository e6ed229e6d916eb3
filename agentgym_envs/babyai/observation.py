"""Observations: what is in view, in words. Pure functions of a goal, a `View` and a status.

Two styles: ``text`` in full short sentences, and ``compact`` for small models and long episodes,
which writes ``f3 l2`` for three steps ahead and two to the left, sets words apart by blanks, and
keeps only the first sentence of a message. Both name things the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agentgym_envs.arguments import one_of
from agentgym_envs.babyai.cells import CLOSED_DOOR, LOCKED_DOOR, OPEN_DOOR, WALL_CODE
from agentgym_envs.babyai.view import HERE, NUM_CELLS, SIZE, View, ahead_and_right
from agentgym_envs.episodes import EndReason


class ObservationStyle(NamedTuple):
    """One way of putting things.

    Attributes:
        goal: the mission as the first observation states it.
        scene: what is in view, and whether the mission is over.
        message: what is said about a command, cut or kept whole.
    """

    goal: Callable[[str], str]
    scene: Callable[[View, EndReason], str]
    message: Callable[[str], str]


def observation_style(name: str) -> ObservationStyle:
    """The style called `name`.

    Raises:
        UnknownName: there is none.
    """
    return _STYLES[one_of("obs_style", name, _STYLES)]


def text_scene(view: View, status: EndReason) -> str:
    """The view in full sentences."""
    sentences = [
        f"You see {name}{_TEXT_STATES[code >> 3]}{_TEXT_PLACES[index]}."
        for name, index, code in view.sights
    ] or ["You see no object."]
    walls = [f"a wall {_steps(steps)} {side}" for side, steps in walls_around(view.cells)]
    if walls:
        sentences.append(f"There is {' and '.join(walls)}.")
    sentences.append(f"You carry {view.carried.name}." if view.carried else "You carry nothing.")
    if status in _TEXT_ENDS:
        sentences.insert(0, _TEXT_ENDS[status])
    return " ".join(sentences)


def compact_scene(view: View, status: EndReason) -> str:
    """The view in as few words as tell it apart: ``red ball 1 f3 l2 , grey key 1 f1 . wall f4``."""
    sights = [
        f"{name}{_COMPACT_STATES[code >> 3]}{_COMPACT_PLACES[index]}"
        for name, index, code in view.sights
    ]
    parts = [" , ".join(sights) or "nothing"]
    distance = wall_ahead(view.cells)
    if distance:
        parts.append(f"wall f{distance}")
    if view.carried:
        parts.append(f"carry {view.carried.name}")
    if status:
        parts.insert(0, str(status))
    return " . ".join(parts)


def wall_ahead(cells: bytes) -> int:
    """Steps to the wall straight ahead, 0 if none is in view."""
    return max(0, cells[HERE::SIZE].find(WALL_CODE))


def walls_around(cells: bytes) -> list[tuple[str, int]]:
    """Steps to the walls in view straight ahead and on both sides, with the direction."""
    distances = [
        ("ahead", wall_ahead(cells)),
        ("to the left", 1 + cells[HERE - 1 :: -1].find(WALL_CODE)),
        ("to the right", 1 + cells[HERE + 1 : SIZE].find(WALL_CODE)),
    ]
    return [(side, steps) for side, steps in distances if steps]


def _first_sentence(message: str) -> str:
    head, dot, _ = message.partition(". ")
    return head + dot.strip()


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _text_place(index: int) -> str:
    ahead, right = ahead_and_right(index)
    parts = [f"{_steps(ahead)} ahead"] if ahead else []
    if right:
        parts.append(f"{_steps(abs(right))} to the {'right' if right > 0 else 'left'}")
    return ", " + (" and ".join(parts) or "where you stand")


def _compact_place(index: int) -> str:
    ahead, right = ahead_and_right(index)
    parts = [f" f{ahead}"] if ahead else []
    if right:
        parts.append(f" r{right}" if right > 0 else f" l{-right}")
    return "".join(parts) or " here"


_DOOR_STATES = {OPEN_DOOR: "open", CLOSED_DOOR: "closed", LOCKED_DOOR: "locked"}
_TEXT_STATES = tuple(f" ({_DOOR_STATES[k]})" if k in _DOOR_STATES else "" for k in range(8))
_COMPACT_STATES = tuple(f" {_DOOR_STATES[k]}" if k in _DOOR_STATES else "" for k in range(8))
_TEXT_PLACES = tuple(_text_place(index) for index in range(NUM_CELLS))
_COMPACT_PLACES = tuple(_compact_place(index) for index in range(NUM_CELLS))
_TEXT_ENDS = {
    EndReason.SUCCESS: "You have reached your goal.",
    EndReason.FAILURE: "You can no longer reach your goal.",
}
_STYLES = {
    "text": ObservationStyle(lambda goal: f"Your goal: {goal}\n", text_scene, str),
    "compact": ObservationStyle(lambda goal: f"goal : {goal} . ", compact_scene, _first_sentence),
}
