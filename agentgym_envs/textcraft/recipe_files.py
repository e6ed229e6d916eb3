"""A folder of the game's own recipe files, read in sorted order, whole or not at all.

The folder holds one JSON file a recipe, as the game's versions 1.13 to 1.20 have them. Shaped and
shapeless crafting recipes are read; files of other types (smelting, stonecutting, ...) and files
that are no ``.json`` are passed over. Only what a recipe takes and gives is kept, not its pattern.
A recipe fills a grid of nine cells, as in the game, and ids are written as there: what goes beyond
could not be said in a command, or would take forever to check.

The files name groups (tags) but do not list their members; AgentGym takes as members the outputs
whose file says ``"group"`` with the tag's name, and so does `FileRecipe.group` here. Lists of tags
beside the folder are not read: with them the same folder would mean other recipes than there.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_envs.errors import InvalidTask
from agentgym_envs.textcraft.recipes import MAX_AMOUNT

_NAMESPACE = "minecraft:"
_SHAPED = "minecraft:crafting_shaped"
_SHAPELESS = "minecraft:crafting_shapeless"
_MAX_CELLS = 9
_ID = re.compile(r"[a-z0-9_.-]{1,64}:[a-z0-9_./-]{1,64}")


@dataclass(frozen=True)
class Choice:
    """One alternative of an ingredient: an item, or any member of a tag; ids with namespace."""

    id: str
    is_tag: bool


@dataclass(frozen=True)
class FileIngredient:
    """`count` things, each of them any of `choices`, which are in the order of the file."""

    choices: tuple[Choice, ...]
    count: int


@dataclass(frozen=True)
class FileRecipe:
    """What one file says.

    Attributes:
        file: name of the file without its ending.
        output: id of what is made.
        count: how many a craft gives.
        ingredients: in the order of the file; equal ones are counted together.
        group: id of the group that the output belongs to, or "".
    """

    file: str
    output: str
    count: int
    ingredients: tuple[FileIngredient, ...]
    group: str = ""


def read_recipes(folder: str | Path) -> tuple[FileRecipe, ...]:
    """All crafting recipes of a folder, in the order of the sorted file names.

    A folder that has not changed is not read again.

    Raises:
        InvalidTask: the folder cannot be read or holds no crafting recipe, or a file is broken;
            the text names the file and what is wrong.
    """
    return _read(os.fspath(folder), _stamps(folder))


def label(id: str) -> str:
    """The plain English of an id, which is all that anybody types: ``"oak planks"``."""
    return id.removeprefix(_NAMESPACE).replace("_", " ")


def id_of(name: str) -> str:
    """The id of a plain name: the inverse of `label`."""
    return _NAMESPACE + name.replace(" ", "_")


def digest_of_recipes(recipes: tuple[FileRecipe, ...]) -> str:
    """SHA-256 over what the files say, as hex digits: equal recipes have equal digests."""
    return hashlib.sha256(repr(recipes).encode()).hexdigest()


def _stamps(folder: str | Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time of change and size of each file, sorted: the listing's own order is arbitrary."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(".json")]
            stats = [(entry.name, entry.stat()) for entry in files]
    except (OSError, ValueError) as error:
        raise InvalidTask(
            f"cannot read the recipe folder {str(folder)!r}: {error}; expected a folder of the "
            "game's recipe files, such as chest.json"
        ) from None
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))


@functools.lru_cache(maxsize=8)
def _read(folder: str, stamps: tuple[tuple[str, int, int], ...]) -> tuple[FileRecipe, ...]:
    found = (_read_file(Path(folder, name)) for name, *_ in stamps)
    recipes = tuple(recipe for recipe in found if recipe is not None)
    if not recipes:
        raise InvalidTask(
            f"the folder {folder!r} holds no crafting recipe: {len(stamps)} JSON files in it, none "
            f"of type {_SHAPED!r} or {_SHAPELESS!r}"
        )
    return recipes


def _read_file(path: Path) -> FileRecipe | None:
    """The recipe of a file, or None if it is of a type that is passed over."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
        return _recipe(path.stem, data)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTask(f"recipe file {str(path)!r}: {error}") from None


def _recipe(name: str, data: Any) -> FileRecipe | None:
    kind = _id(_field(_mapping(data, "a recipe"), "type"), "type")
    if kind not in (_SHAPED, _SHAPELESS):
        return None
    counts: Counter[tuple[Choice, ...]] = Counter()
    for choices in _shaped(data) if kind == _SHAPED else _shapeless(data):
        counts[choices] += 1
    if counts.total() > _MAX_CELLS:
        raise ValueError(f"a recipe takes at most {_MAX_CELLS} things, not {counts.total()}")
    result = data.get("result")
    if isinstance(result, str):
        result = {"item": result}
    count = _mapping(result, "result").get("count", 1)
    if type(count) is not int or not 1 <= count <= MAX_AMOUNT:
        raise ValueError(
            f"the count of result must be a number from 1 to {MAX_AMOUNT}, got {count!r:.80}"
        )
    return FileRecipe(
        file=name,
        output=_id(_field(result, "item"), "result"),
        count=count,
        ingredients=tuple(FileIngredient(choices, number) for choices, number in counts.items()),
        group=_id(data["group"], "group") if data.get("group") else "",
    )


def _shaped(data: dict[str, Any]) -> Iterator[tuple[Choice, ...]]:
    """The ingredients of all cells, key by key, as AgentGym counts them."""
    pattern = _field(data, "pattern")
    if not isinstance(pattern, list) or not all(isinstance(line, str) for line in pattern):
        raise ValueError(f"pattern must be a list of texts, got {pattern!r:.80}")
    cells = Counter("".join(pattern).replace(" ", ""))
    keys = _mapping(_field(data, "key"), "key")
    if not cells or set(cells) != set(keys):
        raise ValueError(f"key explains {sorted(keys)}, but the pattern uses {sorted(cells)}")
    for symbol, ingredient in keys.items():
        yield from [_choices(ingredient)] * cells[symbol]


def _shapeless(data: dict[str, Any]) -> Iterator[tuple[Choice, ...]]:
    ingredients = _field(data, "ingredients")
    if not isinstance(ingredients, list) or not ingredients:
        raise ValueError(f"ingredients must be a list that is not empty, got {ingredients!r:.80}")
    yield from map(_choices, ingredients)


def _choices(ingredient: Any) -> tuple[Choice, ...]:
    """An ingredient is a mapping, or a list of mappings of which any will do."""
    found = ingredient if isinstance(ingredient, list) else [ingredient]
    if not found:
        raise ValueError("an ingredient is an empty list")
    choices = []
    for entry in found:
        named = [key for key in ("item", "tag") if key in _mapping(entry, "an ingredient")]
        if len(named) != 1:
            raise ValueError(f"an ingredient must name one 'item' or 'tag', got {entry!r:.80}")
        choices.append(Choice(_id(entry[named[0]], named[0]), named[0] == "tag"))
    return tuple(choices)


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a JSON object, got {value!r:.80}")
    return value


def _field(data: dict[str, Any], name: str) -> Any:
    if name not in data:
        raise ValueError(f"{name!r} is missing; there are {sorted(data)}")
    return data[name]


def _id(value: Any, what: str) -> str:
    """An id with its namespace; the game's own is implied."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} must be a text that is not empty, got {value!r:.80}")
    id = value if ":" in value else _NAMESPACE + value
    if not _ID.fullmatch(id):
        raise ValueError(
            f"{what} must be a name like 'oak_planks' or 'minecraft:oak_planks', of small letters, "
            f"digits and any of _ . - /, got {value!r:.80}"
        )
    return id
