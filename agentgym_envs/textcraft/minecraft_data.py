"""Recipe books from the PyPI package minecraft-data: the data set of the PrismarineJS project, MIT.

Our own table for 1.16.5 was made by this module, once (`build`); for other versions the package
must be installed: ``pip install "agentgym-suite[textcraft_versions]"``.

The data set writes a recipe that takes any planks eight times, once a wood. `KINDS` says which sets
of items are kinds; where the recipes of an item run through all members of a kind and differ in
nothing else, they are folded into one that takes the kind. Sets that are not listed stay apart:
white dye from bone meal or from a flower is two recipes in the game too.

Before 1.13 colors and woods are subtypes of one item, and the data set mixes them up (its white
wool is dyed orange and stays white). There an item and its subtypes are one: any wool is "wool".
Some items, such as the tools of 1.9, have no sound recipe there; they are in the book, but cannot
be had, so they are no goals.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from agentgym_envs.errors import UnknownName, Unsupported
from agentgym_envs.textcraft.recipes import Ingredient, Recipe, RecipeBook, uncraftable

PACKAGE = "minecraft-data"
EXTRA = "textcraft_versions"

_VERSION = re.compile(r"1\.([89]|[1-9][0-9])(\.[0-9]+)?")
"""Releases since 1.8: the data set gives 1.7 the recipes of 1.8, and has snapshots too."""

_WOODS = "oak|spruce|birch|jungle|acacia|dark oak|mangrove"
_STEMS = "crimson|warped"

KINDS: Mapping[str, str] = {
    "planks": ".+ planks",
    "wool": ".+ wool",
    "wooden slabs": f"({_WOODS}|{_STEMS}) slab",
    "logs": f"(stripped )?(({_WOODS}) (log|wood)|({_STEMS}) (stem|hyphae))",
    "overworld logs": f"(stripped )?({_WOODS}) (log|wood)",
    **{f"{wood} logs": f"(stripped )?{wood} (log|wood)" for wood in _WOODS.split("|")},
    **{f"{stem} stems": f"(stripped )?{stem} (stem|hyphae)" for stem in _STEMS.split("|")},
    "coal or charcoal": "coal|charcoal",
    "rough stone": "cobblestone|blackstone|cobbled deepslate",
    "sand or red sand": "sand|red sand",
    "soul sand or soul soil": "soul sand|soul soil",
    "any sandstone": "(chiseled |cut )?sandstone",
    "uncut sandstone": "(chiseled )?sandstone",
    "any red sandstone": "(chiseled |cut )?red sandstone",
    "uncut red sandstone": "(chiseled )?red sandstone",
    "any quartz block": "(chiseled )?quartz (block|pillar)",
    "any purpur block": "purpur (block|pillar)",
}
"""Kinds by name, as patterns of the names of their members: our words, plain English."""

FETCHED = frozenset(
    {
        # smelted from ore
        "iron ingot",
        "gold ingot",
        "copper ingot",
        # mined
        "coal",
        "diamond",
        "emerald",
        "lapis lazuli",
        "redstone",
        "raw iron",
        "raw gold",
        "raw copper",
        # from plants and animals
        "wheat",
        "dried kelp",
        "slime ball",
        "honey bottle",
    }
)
"""What players get outside the crafting table although recipes make it too: by unpacking a block
or by joining nuggets. Each can be fetched, so that no iron tool begins with nine nuggets an
ingot. Everything that no recipe makes can be fetched as well."""


def book_of_version(version: str) -> RecipeBook:
    """The recipes of a version of the game, from the installed package minecraft-data.

    Args:
        version: as the game's publisher writes it, ``"1.17.1"``.

    Raises:
        Unsupported: the package is not installed.
        UnknownName: the data set has no recipes of this version.
    """
    folders = _folders()
    if version not in folders:
        raise UnknownName("Minecraft version with recipes", version, folders)
    return RecipeBook(version, **folded(*_tables(folders[version])))


def known_versions() -> tuple[str, ...]:
    """The versions that `book_of_version` knows, oldest first.

    Raises:
        Unsupported: the package is not installed.
    """
    return tuple(_folders())


def folded(
    items: Iterable[Mapping[str, Any]], recipes: Mapping[str, Iterable[Mapping[str, Any]]]
) -> dict[str, Any]:
    """The recipes, kinds and base items of a table of the data set.

    Args:
        items: with ``id`` and ``name``; the first of an id counts.
        recipes: by the id of what they make; each with ``result``, and ``inShape`` or
            ``ingredients``.

    Returns:
        The arguments ``recipes``, ``kinds`` and ``base`` of `RecipeBook`.
    """
    names: dict[int, str] = {}
    for item in items:
        names.setdefault(item["id"], item["name"].replace("_", " "))
    book = set(_named(recipes, names))
    used = {ingredient.name for recipe in book for ingredient in recipe.ingredients}
    members = {
        kind: frozenset(name for name in used if re.fullmatch(pattern, name))
        for kind, pattern in KINDS.items()
        if kind not in used
    }
    for kind in sorted(members, key=lambda kind: -len(members[kind])):
        if len(members[kind]) > 1:
            book = _fold(book, kind, members[kind])
    needed = {ingredient.name for recipe in book for ingredient in recipe.ingredients}
    kinds = {kind: found for kind, found in members.items() if kind in needed}
    made = {recipe.output for recipe in book}
    return {"recipes": book, "kinds": kinds, "base": uncraftable(book, kinds) | (FETCHED & made)}


def _named(
    recipes: Mapping[str, Iterable[Mapping[str, Any]]], names: Mapping[int, str]
) -> Iterator[Recipe]:
    """The recipes as they stand, without those of things that have no name in this version."""
    for entry in itertools.chain.from_iterable(recipes.values()):
        shape = [cell for row in entry.get("inShape", ()) for cell in row]
        cells = [cell for cell in (*shape, *entry.get("ingredients", ())) if cell is not None]
        taken = Counter(cell["id"] if isinstance(cell, dict) else cell for cell in cells)
        made = entry["result"]
        if names.keys() >= {made["id"], *taken}:
            ingredients = tuple(Ingredient(names[id], count) for id, count in taken.items())
            yield Recipe(names[made["id"]], made["count"], ingredients)


def _fold(recipes: set[Recipe], kind: str, members: frozenset[str]) -> set[Recipe]:
    """`recipes`, with those that differ only in running through `members` made one."""
    variants: dict[Recipe, dict[str, Recipe]] = {}
    for recipe in recipes:
        for ingredient in recipe.ingredients:
            if ingredient.name in members:
                rest = [other for other in recipe.ingredients if other != ingredient]
                general = (*rest, Ingredient(kind, ingredient.count))
                one = Recipe(recipe.output, recipe.count, general)
                variants.setdefault(one, {})[ingredient.name] = recipe
    for one, by_member in variants.items():
        if by_member.keys() == members:
            recipes = recipes.difference(by_member.values()) | {one}
    return recipes


def _data() -> Traversable:
    try:
        package = resources.files("minecraft_data")
    except ModuleNotFoundError:
        raise Unsupported(
            f"recipes of other versions need the package {PACKAGE}; "
            f'pip install "agentgym-suite[{EXTRA}]"'
        ) from None
    return package / "data" / "data"


def _folders() -> dict[str, Mapping[str, str]]:
    """Where the tables of each version lie, for the versions that have recipes."""
    paths = json.loads((_data() / "dataPaths.json").read_text(encoding="utf-8"))["pc"]
    return {
        version: folders
        for version, folders in paths.items()
        if _VERSION.fullmatch(version) and "recipes" in folders
    }


def _tables(folders: Mapping[str, str]) -> tuple[list[Any], dict[str, Any]]:
    """Items, with blocks for the ids that have no item, and recipes."""
    items = [*_read(folders, "items"), *_read(folders, "blocks")]
    return items, _read(folders, "recipes")


def _read(folders: Mapping[str, str], table: str) -> Any:
    return json.loads((_data() / folders[table] / f"{table}.json").read_text(encoding="utf-8"))
