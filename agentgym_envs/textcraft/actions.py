"""Our verbs and their rules, and the commands that would be done now.

A verb returns what happened, in one sentence, or raises `CommandError` with what stands in the way
and what would do; then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.actions import verb
from agentgym_envs.errors import CommandError
from agentgym_envs.textcraft.crafting import choose
from agentgym_envs.textcraft.observation import amount_list, inventory_text, recipes_note
from agentgym_envs.textcraft.orders import craft_order, order
from agentgym_envs.textcraft.world import TextCraftWorld


@verb("get {amount} {item}", "get {item}", "fetch {amount} {item}", "fetch {item}")
def get(world: TextCraftWorld, item: str, amount: int | None = None) -> str:
    """Fetch some of an item that need not be crafted; 1 if you give no amount.

    Examples:
        get 3 oak log
        get iron ingot
    """
    book = world.book
    name, number = order(book, item, amount)
    if name not in book.base:
        raise CommandError(
            f"You cannot get {name}: it has to be crafted. "
            f"{recipes_note(book, book.recipes_of(name))}"
        )
    return f"You got {number} {name} and have {world.add(name, number)} now."


@verb(
    "craft {amount} {item} using {ingredients}",
    "craft {item} using {ingredients}",
    "craft {amount} {item} from {ingredients}",
    "craft {item} from {ingredients}",
    "craft {amount} {item} with {ingredients}",
    "craft {item} with {ingredients}",
)
def craft(world: TextCraftWorld, item: str, ingredients: str, amount: int | None = None) -> str:
    """Craft an item from exactly the ingredients of one of its recipes, or from those of several
    crafts at once. You may leave out the amount; if you give it, it is how many the crafts make.

    Examples:
        craft 4 oak planks using 1 oak log
        craft 1 chest using 5 oak planks, 3 birch planks
        craft stick using 4 oak planks
    """
    asked = craft_order(world.book, item, ingredients, amount)
    have = world.inventory
    missing = [
        (part, n - have.get(part, 0)) for part, n in asked.used.items() if n > have.get(part, 0)
    ]
    if missing:
        raise CommandError(
            f"You do not have all of that: {amount_list(missing)} missing. {inventory_text(world)}"
        )
    world.remove(asked.used)
    name = asked.recipe.output
    total = world.add(name, asked.amount)
    done = " That was the goal." if world.is_done else ""
    return f"You crafted {asked.amount} {name} and have {total} now.{done}"


@verb("inventory", "check inventory")
def inventory(world: TextCraftWorld) -> str:
    """See what you have.

    Examples:
        inventory
    """
    return inventory_text(world)


VERBS = (get, craft, inventory)


def admissible(world: TextCraftWorld) -> list[str]:
    """Commands that would be done now: those that the told recipes suggest.

    Crafts with what is in the inventory, one at a time, and gets of what the recipes take, in the
    amounts in which they take it. Others are done too, there are more than anyone could list.
    """
    commands = [*_possible_crafts(world), *_possible_gets(world), "inventory"]
    return list(dict.fromkeys(commands))


def _possible_crafts(world: TextCraftWorld) -> Iterator[str]:
    for recipe in sorted(world.shown):
        chosen = choose(world.book, recipe, world.inventory)
        if chosen is not None:
            parts = amount_list(sorted(chosen.items()))
            yield f"craft {recipe.count} {recipe.output} using {parts}"


def _possible_gets(world: TextCraftWorld) -> Iterator[str]:
    wanted = {
        (item, need.count)
        for recipe in world.shown
        for need in recipe.ingredients
        for item in world.book.members(need.name)
        if item in world.book.base
    }
    for item, count in sorted(wanted):
        yield f"get {count} {item}"
