"""The recipe book that a folder of the game's recipe files makes, by our own rules.

Everything the files say counts: all alternatives of an ingredient, recipes that unpack blocks, and
both directions of recipes that undo one another. The files name groups but not their members, see
`recipe_files`; a group that no recipe makes a member of is an item that can be fetched under the
group's name. Besides what no recipe makes, what players dig up or smelt can be fetched, as in
our own table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from agentgym_envs.textcraft.minecraft_data import FETCHED
from agentgym_envs.textcraft.recipe_files import Choice, FileRecipe, label
from agentgym_envs.textcraft.recipes import Ingredient, Recipe, RecipeBook, uncraftable

VERSION = "recipe files"
"""The version of such books: where the folder lies is no part of their digest."""


@functools.lru_cache(maxsize=8)
def book_of_files(files: tuple[FileRecipe, ...]) -> RecipeBook:
    """The book of recipe files; made once.

    Args:
        files: in any order.

    Raises:
        ValueError: names collide.
    """
    names = _KindNames(files)
    recipes = {names.recipe(file) for file in files}
    base = uncraftable(recipes, names.kinds) | (FETCHED & {recipe.output for recipe in recipes})
    return RecipeBook(VERSION, recipes, kinds=names.kinds, base=base)


class _KindNames:
    """The kinds of some files; `kinds` grows as recipes are read."""

    def __init__(self, files: Sequence[FileRecipe]) -> None:
        self.kinds: dict[str, tuple[str, ...]] = {}
        self._members: dict[str, list[str]] = {}
        for file in files:
            if file.group:
                self._members.setdefault(file.group, []).append(label(file.output))
        self._items = {label(file.output) for file in files} | {
            label(choice.id)
            for file in files
            for ingredient in file.ingredients
            for choice in ingredient.choices
            if not choice.is_tag
        }

    def recipe(self, file: FileRecipe) -> Recipe:
        """The recipe of a file, with our names of kinds."""
        taken: dict[str, int] = {}
        for ingredient in file.ingredients:
            name = self._name(ingredient.choices)
            taken[name] = taken.get(name, 0) + ingredient.count
        ingredients = tuple(Ingredient(name, count) for name, count in taken.items())
        return Recipe(label(file.output), file.count, ingredients)

    def _name(self, choices: Iterable[Choice]) -> str:
        """The item that alternatives come down to, or the kind, which is noted."""
        names = [label(choice.id) for choice in choices]
        members = sorted({item for choice in choices for item in self._items_of(choice)})
        if len(members) == 1 and members[0] in names:
            return members[0]
        name = " or ".join(dict.fromkeys(names))
        name = f"any {name}" if name in self._items else name
        self.kinds[name] = tuple(members)
        return name

    def _items_of(self, choice: Choice) -> list[str]:
        found = self._members.get(choice.id, []) if choice.is_tag else []
        return found or [label(choice.id)]
