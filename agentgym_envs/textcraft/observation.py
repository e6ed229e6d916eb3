"""How TextCraft looks in our own words: recipes, kinds, the goal, the inventory.

Everything is a function of task and state. Which recipes are mixed in and in which order all are
told is drawn by a generator of the task's own, so neither the seed of a reset nor what was played
before has a part in it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from agentgym_envs.textcraft.recipes import Recipe, RecipeBook
from agentgym_envs.textcraft.trees import distractors, recipe_tree
from agentgym_envs.textcraft.world import TextCraftWorld


def shown_recipes(
    book: RecipeBook, goal: str, *, seed: int, num_distractors: int
) -> tuple[Recipe, ...]:
    """The recipes of the goal's tree and some others, shuffled.

    Args:
        book: all recipes.
        goal: what shall be made.
        seed: draws the others and the order.
        num_distractors: how many others, if there are as many that take the same ingredients.
    """
    rng = random.Random(seed)
    others = _shuffled(distractors(book, goal), rng)[:num_distractors]
    return tuple(_shuffled((*recipe_tree(book, goal), *others), rng))


def _shuffled(recipes: Sequence[Recipe], rng: random.Random) -> list[Recipe]:
    """`recipes` in a random order; of the generator's methods only `random()` never changes."""
    return sorted(recipes, key=lambda _: rng.random())


def first_observation(world: TextCraftWorld, goal: str) -> str:
    """The goal, the recipes, and what their kinds stand for.

    Args:
        world: a new one.
        goal: in words, as the task states it.
    """
    lines = [f"Your goal: {goal}", "", "Recipes:", *map(recipe_line, world.shown)]
    kinds = kinds_of(world.book, world.shown)
    if kinds:
        lines += ["", "Kinds of items:", *(kind_line(world.book, kind) for kind in kinds)]
    return "\n".join(lines)


def recipe_line(recipe: Recipe) -> str:
    """A recipe as the command that does it once, with kinds by their names."""
    return f"craft {recipe.count} {recipe.output} using {ingredient_list(recipe)}"


def ingredient_list(recipe: Recipe, crafts: int = 1) -> str:
    """What some crafts take, ``"8 planks, 1 iron ingot"``."""
    return ", ".join(f"{crafts * need.count} {need.name}" for need in recipe.ingredients)


def amount_list(amounts: Iterable[tuple[str, int]]) -> str:
    """Amounts of items, ``"3 oak planks, 1 stick"``."""
    return ", ".join(f"{amount} {item}" for item, amount in amounts)


def kinds_of(book: RecipeBook, recipes: Iterable[Recipe]) -> list[str]:
    """The kinds that recipes take, sorted."""
    named = {need.name for recipe in recipes for need in recipe.ingredients}
    return sorted(named & book.kinds.keys())


def kind_line(book: RecipeBook, kind: str) -> str:
    """A kind and its members."""
    return f"{kind}: any of {', '.join(book.members(kind))}"


def recipes_note(book: RecipeBook, recipes: Sequence[Recipe]) -> str:
    """Recipes, and the kinds in them, for an answer in running text."""
    lines = "; ".join(map(recipe_line, recipes))
    kinds = "".join(f" ({kind_line(book, kind)})" for kind in kinds_of(book, recipes))
    return f"{'Recipe' if len(recipes) == 1 else 'Recipes'}: {lines}{kinds}."


def inventory_text(world: TextCraftWorld) -> str:
    """What is carried, sorted by name."""
    return f"You have {amount_list(sorted(world.inventory.items())) or 'nothing'}."


def picture(world: TextCraftWorld) -> str:
    """The whole world as text, for people."""
    held = [f"  {amount} {item}" for item, amount in sorted(world.inventory.items())]
    recipes = [f"  {recipe_line(recipe)}" for recipe in world.shown]
    kinds = [f"  {kind_line(world.book, kind)}" for kind in kinds_of(world.book, world.shown)]
    lines = [f"Goal: {world.goal}", "Inventory:", *(held or ["  nothing"]), "Recipes:", *recipes]
    return "\n".join([*lines, "Kinds of items:", *kinds] if kinds else lines)
