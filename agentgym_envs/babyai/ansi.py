"""The whole world as text, for people; policies never see it."""

from __future__ import annotations

from agentgym_envs.babyai.cells import FIRST_OBJECT, UNSEEN, WALL_CODE
from agentgym_envs.babyai.view import offsets
from agentgym_envs.babyai.world import BabyAIWorld

_KINDS = " #_DLKOB"
_COLORS = "rgbpye"
_ARROWS = ">v<^"
_LEGEND = (
    "K key, O ball, B box, _ open door, D closed door, L locked door; "
    "r red, g green, b blue, p purple, y yellow, e grey; a dot marks what the agent sees"
)


def picture(world: BabyAIWorld) -> str:
    """The grid, three characters a cell: kind, color, and a dot where the agent sees it."""
    mirror = world.mirror
    offset = offsets(mirror.headings)[mirror.heading]
    in_view = {
        mirror.cell + offset[index]
        for index, code in enumerate(world.view().cells)
        if code != UNSEEN
    }
    lines = []
    for row in mirror.rows():
        cells = (
            _symbol(mirror.codes[cell]) + ("." if cell in in_view else " ")
            if cell != mirror.cell
            else f"{_ARROWS[mirror.heading]} ."
            for cell in row
        )
        lines.append("".join(cells).rstrip())
    carried = world.view().carried
    lines += [f"Goal: {world.mission}", f"Carried: {carried.name if carried else 'nothing'}"]
    return "\n".join([*lines, _LEGEND])


def _symbol(code: int) -> str:
    if code == WALL_CODE:
        return "##"
    return _KINDS[code >> 3] + (_COLORS[code & 7] if code >= FIRST_OBJECT else " ")
