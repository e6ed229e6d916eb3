"""What a cell of the grid can hold, as one small integer.

A code is ``kind << 3 | color``, with doors of each state as kinds of their own, so a row of the
grid is a byte string and what matters about it (is it opaque, can one walk there) is one
`bytes.translate`. The codes enter the digests that certify tasks, so they never change.
"""

from __future__ import annotations

COLORS = ("red", "green", "blue", "purple", "yellow", "grey")

EMPTY, WALL, OPEN_DOOR, CLOSED_DOOR, LOCKED_DOOR, KEY, BALL, BOX = range(8)
"""The kinds of cells."""

DOORS = (OPEN_DOOR, CLOSED_DOOR, LOCKED_DOOR)
MOVABLE = (KEY, BALL, BOX)

WALL_CODE = WALL << 3
FIRST_OBJECT = OPEN_DOOR << 3
"""Codes from here to `UNSEEN` are things with a color."""
UNSEEN = 255

_NAMES = {KEY: "key", BALL: "ball", BOX: "box"} | dict.fromkeys(DOORS, "door")

LABELS = tuple(
    f"{COLORS[code & 7]} {_NAMES[code >> 3]}" if code >> 3 in _NAMES and code & 7 < 6 else ""
    for code in range(64)
)
"""Color and type by code, ``"red ball"``; empty for codes that are no thing."""

CODE_OF = {
    (color, kind): kind << 3 | number for number, color in enumerate(COLORS) for kind in _NAMES
}
"""The code of a thing by color and kind."""

KIND_OF_TYPE = {"key": KEY, "ball": BALL, "box": BOX}
"""The kind by minigrid's name of the type; doors depend on their state."""


def _table(kinds: tuple[int, ...], inside: int, outside: int) -> bytes:
    return bytes(inside if code >> 3 in kinds else outside for code in range(256))


OPAQUE_DIGITS = _table((WALL, CLOSED_DOOR, LOCKED_DOOR), ord("1"), ord("0"))
"""Translates codes to binary digits: 1 where one cannot see through."""
BLOCKED = _table((EMPTY, OPEN_DOOR), 0, 1)
"""Translates codes to flags: 1 where one cannot walk; unseen cells count as blocked."""
