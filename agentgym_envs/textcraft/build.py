"""Make the package's recipe table: ``python -m agentgym_envs.textcraft.build``.

Run once a change of `minecraft_data`; it needs the package minecraft-data in the version that
`SOURCE` names. The table holds facts only, one recipe a line, and is the same byte for byte
wherever it is made; a test makes it again and compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentgym_envs.textcraft.minecraft_data import PACKAGE, book_of_version
from agentgym_envs.textcraft.recipes import RecipeBook

VERSION = "1.16.5"
SOURCE = f"{PACKAGE} 3.20.0 (PyPI), pc/1.16.2"
SOURCE_LICENSE = "MIT, see LICENSE-minecraft-data.txt"
FILE = Path(__file__).parent / "data" / "recipes.json"


def table(book: RecipeBook) -> str:
    """The text of the table of `book`: JSON with a line for each recipe, kind and base item."""
    head: dict[str, Any] = {
        "source": SOURCE,
        "source_license": SOURCE_LICENSE,
        "sha256": book.digest,
    }
    fields = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, value in book.to_json().items():
        fields.append(f"{json.dumps(key)}: {_lines(value)}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(value: Any) -> str:
    """`value` as JSON with one line an entry."""
    if isinstance(value, list):
        return "[\n " + ",\n ".join(map(json.dumps, value)) + "\n]"
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items()]
        return "{\n " + ",\n ".join(entries) + "\n}"
    return json.dumps(value)


def main() -> None:
    """Write the table."""
    FILE.write_text(table(book_of_version(VERSION)), encoding="utf-8")


if __name__ == "__main__":
    main()
