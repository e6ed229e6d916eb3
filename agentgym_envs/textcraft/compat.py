"""`compat="agentgym"`: AgentGym's TextCraft (arXiv 2406.04151): texts, commands, rules and goals.

Everything is that of its server at commit 3ef9235, with the recipe files read in sorted order;
there the order is that of the directory, so an index stands for another goal on another machine.
With ``recipes_dir``, the files that it was given, recipes and goals are the same ones; without, our
table stands for them, which has the same facts but not all of its names (`agentgym_book`).

Kept although they may surprise: one command is one craft. The amount that is said of the output
is not looked at. Members of a kind cannot be mixed. Groups that no recipe makes are items ("oak
logs"). An item that a recipe makes cannot be got. The inventory is listed in the order in which
things came.

Where the original is at fault it is not followed:

- A task fixes the list of recipes and their order; there, they also depend on Python's hash seed
  and on the state of the global generator of random numbers. The recipes that are mixed in are
  drawn evenly from the same ones.
- Only whole commands count, in upper or lower case. There, "inventory" may be followed by anything
  and "Get 1 string" is not understood.
- Nothing is got by "get 0": there, a line with the amount 0 comes into the inventory. More than
  `MAX_AMOUNT` is refused too.
- An ingredient that is named twice must be there twice.
- "Could not find a valid recipe for" is followed by the item; there, by the text of an internal
  object, and where a kind is named "Could not find enough items to craft" is followed by "None".
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator

from agentgym_envs.actions import Command, Grammar, verb
from agentgym_envs.actions.grammar import shorten
from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.errors import CommandError, InvalidTask
from agentgym_envs.textcraft.agentgym_book import (
    AgentGymBook,
    agentgym_book_of_files,
    agentgym_book_of_table,
)
from agentgym_envs.textcraft.crafting import choose
from agentgym_envs.textcraft.dialect import Dialect, book_of_folder, own_book
from agentgym_envs.textcraft.families import split_of
from agentgym_envs.textcraft.planner import planner_of
from agentgym_envs.textcraft.recipe_files import id_of
from agentgym_envs.textcraft.recipes import MAX_AMOUNT, Recipe
from agentgym_envs.textcraft.tasks import BookTasks, Goal
from agentgym_envs.textcraft.world import TextCraftWorld

_AMOUNT = re.compile(r"([0-9]{1,18}) (.+)")

_STATED_GOAL = re.compile(r"Goal: craft ([^.]+)\.")

Used = list[tuple[str, int]]
"""Items with amounts, in the order in which they were named."""


class _AgentGymGrammar(Grammar):
    """Answers what is no command in AgentGym's words."""

    def parse(self, text: str, *, strict: bool = False) -> Command:
        try:
            return super().parse(text, strict=strict)
        except CommandError:
            raise CommandError(f"Could not execute {shorten(text)}") from None


def agentgym_dialect(recipes_dir: str | None, minecraft_version: str | None) -> Dialect:
    """The dialect of AgentGym.

    Args:
        recipes_dir: see `own_book`.
        minecraft_version: see `own_book`.
    """
    known = agentgym_book(recipes_dir, minecraft_version)
    planner = planner_of(known.book, single_crafts=True)

    def first(world: TextCraftWorld, goal: str) -> str:
        lines = "\n".join(known.lines[recipe] for recipe in world.shown)
        return f"Crafting commands:\n{lines}\n\nGoal: {goal}."

    @functools.cache
    def tasks() -> BookTasks:
        goals = [Goal(item, known.book.depth[item], split_of(item)) for item in known.goals]
        return BookTasks(known.book, goals, planner.num_steps)

    return Dialect(
        book=known.book,
        grammar=_AgentGymGrammar(VERBS),
        prompt="prompt_agentgym.md",
        first=first,
        admissible=admissible,
        tasks=tasks,
        planner=lambda: planner,
        goal_of_index=functools.partial(goal_of_index, known),
    )


def agentgym_book(recipes_dir: str | None, minecraft_version: str | None) -> AgentGymBook:
    """AgentGym's view of the recipes that an environment's arguments ask for.

    Args:
        recipes_dir: see `own_book`.
        minecraft_version: see `own_book`.
    """
    if recipes_dir is None:
        return agentgym_book_of_table(own_book(None, minecraft_version))
    return book_of_folder(recipes_dir, agentgym_book_of_files)


def goal_of_index(known: AgentGymBook, index: int) -> str:
    """The goal that AgentGym gives for a ``data_idx``.

    Raises:
        InvalidTask: the index is negative.
    """
    if index < 0:
        raise InvalidTask(f"AgentGym's task indices begin at 0, got {index}")
    return known.goals[index % len(known.goals)]


def goal_of_item(item: AgentGymItem) -> str | None:
    """The goal that the text of an item states, or None if it states none.

    AgentGym's published trajectories hold the first observation; files of one's own may have a
    key ``goal``. A goal is trusted more than a number, which meant another goal on the machine
    where it was made.

    Raises:
        InvalidTask: the key ``goal`` holds no text.
    """
    goal = item.entry.get("goal")
    if goal is not None:
        if not isinstance(goal, str):
            raise InvalidTask(f"{item.id!r}: its goal must be a text, got {goal!r:.80}")
        return goal.strip().removeprefix("craft ").removesuffix(".")
    stated = _STATED_GOAL.search(json.dumps(item.entry, ensure_ascii=False))
    return stated[1] if stated else None


@verb("get {amount} {item}")
def get(world: TextCraftWorld, item: str, amount: int) -> str:
    """Get some of an item that is not crafted. Always give the amount.

    Examples:
        get 1 lapis lazuli
    """
    if amount < 0:
        raise CommandError(f"Could not execute get {amount} {shorten(item)}")
    if item.lower() not in world.book.base or not 1 <= amount <= MAX_AMOUNT:
        raise CommandError(f"Could not find {shorten(item)}")
    world.add(item.lower(), amount)
    return f"Got {amount} {item}"


@verb("craft {target} using {ingredients}")
def craft(world: TextCraftWorld, target: str, ingredients: str) -> str:
    """Craft the target by one of the crafting commands, once. Always give the amounts.

    Examples:
        craft 1 blue dye using 1 lapis lazuli
        craft 1 golden carrot using 8 gold nugget, 1 carrot
    """
    match = _AMOUNT.fullmatch(target)
    item = (match[2] if match else target).lower()
    used = [_ingredient(part.strip()) for part in ingredients.split(",")]
    total: dict[str, int] = {}
    for name, amount in used:
        total[name] = total.get(name, 0) + amount
    if any(world.inventory.get(name, 0) < max(1, amount) for name, amount in total.items()):
        raise CommandError(f"Could not find enough items to craft {id_of(shorten(item))}")
    recipe = _recipe(world, item, used)
    if recipe is None:
        raise CommandError(f"Could not find a valid recipe for {id_of(shorten(item))}")
    world.remove(total)
    world.add(item, recipe.count)
    return f"Crafted {recipe.count} {id_of(item)}"


@verb("inventory")
def inventory(world: TextCraftWorld) -> str:
    """Look up what you carry.

    Examples:
        inventory
    """
    if not world.inventory:
        return "Inventory: You are not carrying anything."
    return "Inventory: " + "".join(f"[{item}] ({n}) " for item, n in world.inventory.items())


VERBS = (get, craft, inventory)


def admissible(world: TextCraftWorld) -> list[str]:
    """Commands that would be done now, those that the told recipes suggest."""
    return list(dict.fromkeys([*_possible_crafts(world), *_possible_gets(world), "inventory"]))


def _possible_gets(world: TextCraftWorld) -> Iterator[str]:
    wanted = {
        (need.name, need.count)
        for recipe in world.shown
        for need in recipe.ingredients
        if need.name in world.book.base
    }
    for item, count in sorted(wanted):
        yield f"get {count} {item}"


def _possible_crafts(world: TextCraftWorld) -> Iterator[str]:
    for recipe in sorted(world.shown):
        chosen = choose(world.book, recipe, world.inventory, mixed=False)
        if chosen is not None:
            parts = ", ".join(f"{amount} {item}" for item, amount in sorted(chosen.items()))
            yield f"craft {recipe.count} {recipe.output} using {parts}"


def _ingredient(part: str) -> tuple[str, int]:
    match = _AMOUNT.fullmatch(part)
    if match is None:
        raise CommandError(f"Wrong item format: {shorten(part)}")
    return match[2].lower(), int(match[1])


def _recipe(world: TextCraftWorld, item: str, used: Used) -> Recipe | None:
    """The recipe of `item` that takes exactly `used`, one entry an ingredient."""
    if item not in world.book.depth:
        return None
    recipes = world.book.recipes_of(item)
    return next((recipe for recipe in recipes if _fits(world, recipe, used)), None)


def _fits(world: TextCraftWorld, recipe: Recipe, used: Used) -> bool:
    rest = list(used)
    for need in recipe.ingredients:
        fitting = [entry for entry in rest if entry[0] in world.book.members(need.name)]
        if not fitting or fitting[0][1] != need.count:
            return False
        rest.remove(fitting[0])
    return not rest
