"""The recipes as AgentGym's server knows them: what it keeps of the game's files, and the goals.

It reads the files one after the other, and what it keeps depends on the order, which here is that
of the sorted names. Of a list of alternatives only the first counts. Recipes that take nothing but
one "block" are left out, and so is a recipe whose output is needed, by those read before it, for
one of its ingredients. A group is a kind if a recipe makes one of its members; else its name is
an item, such as "oak logs", which can be fetched while the logs themselves are of no use. Whatever
no recipe makes can be fetched.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from agentgym_envs.textcraft.recipe_files import (
    Choice,
    FileIngredient,
    FileRecipe,
    id_of,
    label,
)
from agentgym_envs.textcraft.recipes import Ingredient, Recipe, RecipeBook

VERSION = "AgentGym, recipe files"
GROUPS = ("planks", "wool")
"""The kinds of our table that are kinds there too; `UNGROUPED` is in none of them."""

UNGROUPED = "white wool"

INSTEAD = {
    "any purpur block": "purpur block",
    "any quartz block": "chiseled quartz block",
    "any red sandstone": "red sandstone",
    "any sandstone": "sandstone",
    "coal or charcoal": "coal",
    "rough stone": "stone tool materials",
    "sand or red sand": "sand",
    "soul sand or soul soil": "soul fire base blocks",
    "uncut red sandstone": "red sandstone",
    "uncut sandstone": "sandstone",
}
"""What there stands for those of our kinds that have another name, or none."""


@dataclass(frozen=True)
class AgentGymBook:
    """AgentGym's recipes and goals.

    Attributes:
        book: the recipes.
        goals: what an index counts: the shallowest first, equally deep ones in the order in which
            the files were read.
        lines: each recipe as the policy is told it, with the ingredients in the file's order.
    """

    book: RecipeBook
    goals: tuple[str, ...]
    lines: Mapping[Recipe, str]


@dataclass
class _Entry:
    """A recipe that is kept; `takes` counts ids, those of `tags` are groups."""

    output: str
    count: int
    takes: Counter[str]
    tags: set[str]


@functools.lru_cache(maxsize=8)
def agentgym_book_of_files(files: tuple[FileRecipe, ...], version: str = VERSION) -> AgentGymBook:
    """What AgentGym makes of recipe files; made once.

    Args:
        files: in the order of reading.
        version: name of the book.

    Raises:
        ValueError: names collide.
    """
    entries = list(_kept(files))
    outputs = {entry.output for entry in entries}
    group_of = {file.output: file.group for file in files if _counts(file) and file.group}
    tags = {tag for entry in entries for tag in entry.tags}
    members = {tag: {item for item, group in group_of.items() if group == tag} for tag in tags}
    kinds = {tag: items for tag, items in members.items() if items & outputs}
    taken = {choice.id for choice in _first_choices(files) if not choice.is_tag}
    items = taken | {file.output for file in files} | (tags - kinds.keys())
    lines = {_recipe(entry): _line(entry) for entry in entries}
    book = RecipeBook(
        version,
        lines,
        kinds={label(kind): map(label, found) for kind, found in kinds.items()},
        base=map(label, items - outputs),
    )
    in_order = dict.fromkeys(label(entry.output) for entry in entries)
    goals = sorted((item for item in in_order if item in book.depth), key=book.depth.__getitem__)
    return AgentGymBook(book, tuple(goals), lines)


@functools.lru_cache(maxsize=8)
def agentgym_book_of_table(table: RecipeBook) -> AgentGymBook:
    """What AgentGym would make of the facts of one of our own books; made once."""
    return agentgym_book_of_files(tuple(_files_of_book(table)), f"AgentGym, {table.version}")


def _files_of_book(book: RecipeBook) -> Iterator[FileRecipe]:
    """The recipes of a book, nearly as the game's files would tell them, in sorted order."""
    for recipe in book.recipes:
        found = [kind for kind in GROUPS if recipe.output in book.kinds.get(kind, ())]
        groups = found if recipe.output != UNGROUPED else []
        yield FileRecipe(
            file=recipe.output,
            output=id_of(recipe.output),
            count=recipe.count,
            ingredients=tuple(_file_ingredient(book, need) for need in recipe.ingredients),
            group=id_of(groups[0]) if groups else "",
        )


def _file_ingredient(book: RecipeBook, need: Ingredient) -> FileIngredient:
    name = INSTEAD.get(need.name, need.name)
    return FileIngredient((Choice(id_of(name), name in book.kinds),), need.count)


def _kept(files: Iterable[FileRecipe]) -> Iterator[_Entry]:
    needed_for: dict[str, set[str]] = {}
    for file in files:
        if not _counts(file):
            continue
        takes: Counter[str] = Counter()
        for ingredient in file.ingredients:
            takes[ingredient.choices[0].id] += ingredient.count
        needed = needed_for.setdefault(file.output, set())
        if any(file.output in needed_for.get(name, ()) for name in takes):
            continue
        for name in takes:
            needed |= {name} | needed_for.get(name, set())
        tags = {choice.id for choice in _first_choices([file]) if choice.is_tag}
        yield _Entry(file.output, file.count, takes, tags)


def _counts(file: FileRecipe) -> bool:
    """Whether the recipe is no unpacking of one block."""
    return len(file.ingredients) > 1 or not _first_choices([file])[0].id.endswith("_block")


def _first_choices(files: Iterable[FileRecipe]) -> list[Choice]:
    return [ingredient.choices[0] for file in files for ingredient in file.ingredients]


def _recipe(entry: _Entry) -> Recipe:
    taken = tuple(Ingredient(label(name), count) for name, count in entry.takes.items())
    return Recipe(label(entry.output), entry.count, taken)


def _line(entry: _Entry) -> str:
    taken = ", ".join(f"{count} {label(name)}" for name, count in entry.takes.items())
    return f"craft {entry.count} {label(entry.output)} using {taken}"
