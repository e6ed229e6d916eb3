"""Text as a picture: lines of a fixed-width font on a dark ground, with Pillow's built-in font.

The font is Pillow's own bitmap (Courier, 6x11 pixels, Latin-1), so nothing is looked for or
downloaded and every machine draws the same pixels. What it cannot show becomes ``¿``.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import textwrap
from collections.abc import Sequence

import numpy as np

from agentgym_envs.errors import Unsupported

Color = tuple[int, int, int]

GROUND: Color = (24, 26, 31)
UNKNOWN = "\u00bf"
MORE = "..."

CELL = (6, 12)
"""Width and height of a character in pixels, with a pixel between lines."""

_LOOKALIKES = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2026": "...",
        "\u2192": "->",
        "\u00a0": " ",
        "\r": "",
    }
)


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of text and its color, red, green and blue in 0..255."""

    text: str
    color: Color


def require_pillow() -> None:
    """Refuse to go on without Pillow.

    Raises:
        Unsupported: it is not installed.
    """
    if importlib.util.find_spec("PIL") is None:
        raise Unsupported('pictures of text need Pillow: pip install "agentgym-suite[render]"')


def drawable(text: str) -> str:
    """`text` in characters that the font has, and line feeds."""
    plain = text.translate(_LOOKALIKES).expandtabs(4)
    return "".join(char if char == "\n" or _has_glyph(char) else UNKNOWN for char in plain)


def _has_glyph(char: str) -> bool:
    return " " <= char <= "~" or "\u00a1" <= char <= "\u00ff"


def wrap(text: str, columns: int, rows: int) -> list[str]:
    """`text` in lines of at most `columns` characters; at most `rows`, the last one `MORE` if cut.

    Lines are broken at blanks where there are any. Blanks inside a line stay: tables and maps are
    shown as they are.
    """
    visible = drawable(text[: columns * rows + 1])
    lines: list[str] = []
    for line in visible.split("\n")[: rows + 1]:
        lines += textwrap.wrap(line, columns, replace_whitespace=False) or [""]
    if len(lines) > rows or len(text) > columns * rows:
        return [*lines[: rows - 1], MORE[:columns]]
    return lines


def draw(lines: Sequence[Line], columns: int, rows: int, scale: int) -> np.ndarray:
    """The picture of lines of text.

    Args:
        lines: at most `rows` lines of at most `columns` drawable characters.
        columns: width in characters.
        rows: height in lines.
        scale: pixels of the picture a pixel of the font.

    Returns:
        uint8 (12 * (rows + 1) * scale, 6 * (columns + 2) * scale, 3), an even number of pixels in
        both directions, as video formats want it.
    """
    from PIL import Image, ImageDraw, ImageFont

    width, height = CELL
    image = Image.new("RGB", ((columns + 2) * width, (rows + 1) * height), GROUND)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default_imagefont()
    for row, line in enumerate(lines):
        pen.text((width, row * height + height // 2), line.text, fill=line.color, font=font)
    return np.asarray(image).repeat(scale, axis=0).repeat(scale, axis=1)
