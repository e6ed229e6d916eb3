"""The arithmetic of crafting: does what was named make a recipe, and how could it be named.

A recipe takes exactly its ingredients, or those of several crafts at once; for a kind it takes its
members in any mixture.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from agentgym_envs.textcraft.recipes import Recipe, RecipeBook


def num_crafts(book: RecipeBook, recipe: Recipe, used: Mapping[str, int]) -> int:
    """How many crafts of `recipe` use up exactly `used`; 0 if no number of them does.

    Args:
        book: knows the members of kinds.
        recipe: what is crafted.
        used: amounts by item, each at least 1.
    """
    per_craft = sum(ingredient.count for ingredient in recipe.ingredients)
    crafts, rest = divmod(sum(used.values()), per_craft)
    return crafts if not rest and _is_shared_out(book, recipe, used, crafts) else 0


def _is_shared_out(book: RecipeBook, recipe: Recipe, used: Mapping[str, int], crafts: int) -> bool:
    """Whether `used` can be dealt out to the ingredients, item by item, where the sums agree.

    Items may fit several ingredients (a kind and one of its members), so this is a flow problem.
    By Hall's theorem it has a solution if for no group of ingredients too little is there that
    fits one of them.
    """
    for size in range(1, len(recipe.ingredients) + 1):
        for group in itertools.combinations(recipe.ingredients, size):
            fitting = {item for ingredient in group for item in book.members(ingredient.name)}
            there = sum(amount for item, amount in used.items() if item in fitting)
            if there < crafts * sum(ingredient.count for ingredient in group):
                return False
    return True


def choose(
    book: RecipeBook, recipe: Recipe, inventory: Mapping[str, int], *, mixed: bool = True
) -> dict[str, int] | None:
    """What to take from an inventory for one craft of a recipe, or None if there is too little.

    The ingredients with fewest members choose first, and of members the one most of which is
    there; so the same inventory always gives the same choice.

    Args:
        book: knows the members of kinds.
        recipe: what shall be crafted.
        inventory: amounts by item.
        mixed: whether one ingredient may be of several members of its kind.
    """
    left = dict(inventory)
    chosen: dict[str, int] = {}
    by_freedom = sorted(recipe.ingredients, key=lambda need: len(book.members(need.name)))
    for ingredient in by_freedom:
        missing = ingredient.count
        members = sorted(book.members(ingredient.name), key=lambda member: -left.get(member, 0))
        for item in members if mixed else members[:1]:
            taken = min(missing, left.get(item, 0))
            if taken:
                left[item] -= taken
                chosen[item] = chosen.get(item, 0) + taken
                missing -= taken
        if missing:
            return None
    return chosen
