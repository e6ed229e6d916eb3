"""What belongs to a goal: its tree of recipes, recipes to mix in, and what has to be made.

All of it is a function of book and goal, in a fixed order, and computed once for each.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from agentgym_envs.textcraft.recipes import Recipe, RecipeBook


@functools.lru_cache(maxsize=4096)
def recipe_tree(book: RecipeBook, goal: str) -> tuple[Recipe, ...]:
    """All recipes by which the goal and what it takes can be made, in the book's order.

    What can be fetched is a leaf: items for which there are recipes too, and kinds of which some
    members can be fetched, so that nobody is told how to make oak wood where an oak log will do.
    """
    seen, waiting = {goal}, [goal]
    while waiting:
        for recipe in _ways(book, waiting.pop()):
            parts = [item for need in recipe.ingredients for item in _branches(book, need.name)]
            waiting += dict.fromkeys(item for item in parts if item not in seen)
            seen.update(parts)
    return tuple(recipe for item in sorted(seen) for recipe in _ways(book, item))


def _branches(book: RecipeBook, name: str) -> tuple[str, ...]:
    """The items to follow from an ingredient."""
    members = book.members(name)
    return () if any(item in book.base for item in members) else members


def _ways(book: RecipeBook, item: str) -> tuple[Recipe, ...]:
    return () if item in book.base else book.recipes_of(item)


@functools.lru_cache(maxsize=4096)
def distractors(book: RecipeBook, goal: str) -> tuple[Recipe, ...]:
    """The recipes outside the tree that take something that a recipe of the tree takes."""
    tree = recipe_tree(book, goal)
    made = {recipe.output for recipe in tree}
    taken = {need.name for recipe in tree for need in recipe.ingredients}
    users = _users(book)
    rows = sorted({row for name in taken for row in users[name]})
    return tuple(book.recipes[row] for row in rows if book.recipes[row].output not in made)


@functools.lru_cache(maxsize=8)
def _users(book: RecipeBook) -> dict[str, list[int]]:
    """Places in `book.recipes` of the recipes that take an item or kind, by its name."""
    users: dict[str, list[int]] = {}
    for row, recipe in enumerate(book.recipes):
        for need in recipe.ingredients:
            users.setdefault(need.name, []).append(row)
    return users


@dataclass(frozen=True)
class Need:
    """`amount` of an item, or of the members of a kind together."""

    name: str
    amount: int


@functools.lru_cache(maxsize=4096)
def needs(book: RecipeBook, goal: str) -> tuple[Need, ...]:
    """What has to be crafted for one goal along its shallowest recipes, the goal last.

    Of several recipes the one with the shallowest ingredients counts, then the first of the book;
    a kind is made as its shallowest member is. Crafts are whole, so amounts are rounded up to
    yields: an iron pickaxe needs 2 sticks, so 4 bamboo in two crafts. What is fetched is left out.
    """
    amounts = {goal: 1}
    order = _shallowest_first(book, goal)
    for name in reversed(order):
        recipe = _first_way(book, name)
        if recipe is None:
            continue
        crafts = -(-amounts[name] // recipe.count)
        for need in recipe.ingredients:
            amounts[need.name] = amounts.get(need.name, 0) + crafts * need.count
    made = [name for name in order if _first_way(book, name)]
    return tuple(Need(name, amounts[name]) for name in made)


def _shallowest_first(book: RecipeBook, goal: str) -> list[str]:
    """All that goes into a goal along `_first_way`, each behind what it is made of."""
    seen, waiting = {goal}, [goal]
    while waiting:
        recipe = _first_way(book, waiting.pop())
        new = [need.name for need in recipe.ingredients if need.name not in seen] if recipe else []
        seen.update(new)
        waiting += new
    return sorted(seen, key=lambda name: (_depth(book, name), name))


def _first_way(book: RecipeBook, name: str) -> Recipe | None:
    """How an item or kind is made, or None if it is fetched."""
    item = min(book.members(name), key=lambda member: _depth(book, member))
    return min(_ways(book, item), key=lambda recipe: _deepest(book, recipe), default=None)


def _deepest(book: RecipeBook, recipe: Recipe) -> int:
    return max(_depth(book, need.name) for need in recipe.ingredients)


def _depth(book: RecipeBook, name: str) -> int:
    """Depth of an item or kind; deeper than all others if it cannot be had."""
    return min(book.depth.get(member, len(book.items)) for member in book.members(name))
