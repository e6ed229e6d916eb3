"""What a command asks for, in items and amounts: a function of the book and the words alone.

Mistakes are told in this order: names, amounts, the recipe. What is missing in the inventory comes
after all of them (`actions`), since an inventory is easier mended than a wrong recipe.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

from agentgym_envs.actions.grammar import MAX_DIGITS, shorten
from agentgym_envs.errors import CommandError
from agentgym_envs.textcraft.crafting import num_crafts
from agentgym_envs.textcraft.names import names_of
from agentgym_envs.textcraft.observation import amount_list, ingredient_list, recipes_note
from agentgym_envs.textcraft.recipes import MAX_AMOUNT, Recipe, RecipeBook

_AND = re.compile(r"(?:(?<!\d),|,(?!\d))(?:\s*and\b)?|\band\b(?=\s*[+-]?\d)", re.IGNORECASE)
"""What parts a list of ingredients; a comma between digits, as in 1,000, does not."""
_LEADING_NUMBER = re.compile(r"([+-]?\d[\d.,]*)x?\s+(.+)", re.IGNORECASE)


class Order(NamedTuple):
    """`amount` units of `item`."""

    item: str
    amount: int


class CraftOrder(NamedTuple):
    """`crafts` crafts of `recipe` from `used`, amounts by item."""

    recipe: Recipe
    crafts: int
    used: Mapping[str, int]

    @property
    def amount(self) -> int:
        """How many items they give."""
        return self.crafts * self.recipe.count


@functools.lru_cache(maxsize=4096)
def order(book: RecipeBook, text: str, amount: int | None) -> Order:
    """The item that `text` names, and how many of it: 1 if that is not said.

    Args:
        book: all names.
        text: may begin with the amount where `amount` is None.
        amount: as it was given apart from the text.

    Raises:
        CommandError: no item, or no amount.
    """
    said, name = _amount_and_name(text) if amount is None else (amount, text)
    return Order(_item(book, name), _checked(1 if said is None else said))


@functools.lru_cache(maxsize=4096)
def craft_order(book: RecipeBook, text: str, ingredients: str, amount: int | None) -> CraftOrder:
    """The crafts of what `text` names that take exactly `ingredients`.

    Args:
        book: all names and recipes.
        text: may begin with the amount where `amount` is None.
        ingredients: a list, ``"8 oak planks, 1 stick and 1 string"``.
        amount: how many items were said to be made, as it was given apart from the text.

    Raises:
        CommandError: unknown names, amounts out of bounds, or no recipe; the text says what would
            do.
    """
    said, name = _amount_and_name(text) if amount is None else (amount, text)
    item = _item(book, name)
    used = _ingredients(book, ingredients)
    wanted = None if said is None else _checked(said)
    recipes = book.recipes_of(item)
    if not recipes:
        raise CommandError(f"{item} cannot be crafted: get it.")
    counted = [CraftOrder(recipe, num_crafts(book, recipe, used), used) for recipe in recipes]
    possible = [crafts for crafts in counted if crafts.crafts]
    if not possible:
        raise CommandError(
            f"{item} is not made of exactly {amount_list(used.items())}. "
            f"{recipes_note(book, recipes)}"
        )
    for crafts in possible:
        if wanted in (None, crafts.amount):
            _checked(crafts.amount)
            return crafts
    raise CommandError(_wrong_amount(possible[0], wanted or 0))


def _wrong_amount(crafts: CraftOrder, wanted: int) -> str:
    recipe = crafts.recipe
    used = amount_list(crafts.used.items())
    says = f"{used} would give {crafts.amount} {recipe.output}, not {wanted}."
    number, rest = divmod(wanted, recipe.count)
    if rest:
        return f"{says} One craft gives {recipe.count}: the amount must be a multiple of it."
    return f"{says} For {wanted} {recipe.output} use {ingredient_list(recipe, number)}."


def _ingredients(book: RecipeBook, text: str) -> dict[str, int]:
    used: dict[str, int] = {}
    for part in _AND.split(text):
        if part.strip():
            item, amount = order(book, part.strip(), None)
            used[item] = _checked(used.get(item, 0) + amount)
    if not used:
        raise CommandError('Say what to use, for example "using 8 oak planks".')
    return used


def _item(book: RecipeBook, text: str) -> str:
    """The item that a text names; a kind is none."""
    name = names_of(book).find(text)
    if name in book.kinds:
        members = ", ".join(book.members(name))
        raise CommandError(f"{name} is a kind of item, not an item: name any of {members}.")
    return name


def _amount_and_name(text: str) -> tuple[int | None, str]:
    """The number at the beginning of a text, if there is one, and the rest."""
    match = _LEADING_NUMBER.fullmatch(text)
    if match is None:
        return None, text
    digits = match[1]
    if len(digits) > MAX_DIGITS or not digits.lstrip("+-").isdecimal():
        raise CommandError(_amount_refused(digits))
    return int(digits), match[2]


def _checked(amount: int) -> int:
    if not 1 <= amount <= MAX_AMOUNT:
        raise CommandError(_amount_refused(str(amount)))
    return amount


def _amount_refused(text: str) -> str:
    return f"An amount is a whole number from 1 to {MAX_AMOUNT}, not {shorten(text)}."
