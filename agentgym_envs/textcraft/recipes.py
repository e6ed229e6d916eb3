"""Recipes: which items there are, what each is made of, and how deep in the tree it stands.

A `RecipeBook` is immutable and knows facts only. Two decisions are made here:

- Which items may be fetched (`RecipeBook.base`) is an argument, not something that falls out of
  the order in which recipes are read. Recipes that undo one another (an ingot gives nuggets, and
  nuggets give the ingot) are all kept; cycles do no harm, because depth is a least fixpoint from
  the base: 0 for a base item, else one more than the deepest ingredient of the shallowest recipe,
  where a kind is as shallow as its shallowest member.
- An ingredient is an item or a *kind*: a named set of items that the recipe takes in any mixture,
  ``"planks"``. Names of items and kinds are plain English and never collide.

Left out: patterns on the crafting grid. Commands name amounts, not places.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any

from agentgym_envs.errors import UnknownName

MAX_AMOUNT = 4096
"""Most units of an item in one command."""


@dataclasses.dataclass(frozen=True, order=True)
class Ingredient:
    """`count` units of the item or kind called `name`."""

    name: str
    count: int


@dataclasses.dataclass(frozen=True, order=True)
class Recipe:
    """One way to make an item.

    Attributes:
        output: the item.
        count: units that one batch makes, the yield.
        ingredients: what one batch takes, sorted by name; no name twice.

    Raises:
        ValueError: a count is not a whole number of at least 1, there are no ingredients, or one
            is named twice.
    """

    output: str
    count: int
    ingredients: tuple[Ingredient, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ingredients", tuple(sorted(self.ingredients)))
        names = [ingredient.name for ingredient in self.ingredients]
        if not names:
            raise ValueError(f"the recipe of {self.output!r} has no ingredients")
        if len(set(names)) < len(names):
            raise ValueError(f"the recipe of {self.output!r} names an ingredient twice: {names}")
        for name, count in [(self.output, self.count), *map(dataclasses.astuple, self.ingredients)]:
            if type(count) is not int or count < 1:
                raise ValueError(
                    f"the recipe of {self.output!r}: the count of {name!r} must be a whole "
                    f"number of at least 1, got {count!r}"
                )


class RecipeBook:
    """All recipes of one version of the game, checked and indexed.

    Items are those that can be fetched and those that a recipe makes; there are no others. Books
    with the same content are equal.

    Args:
        version: what the recipes are of, ``"1.16.5"``.
        recipes: in any order; equal ones count once.
        kinds: members by the name of the kind.
        base: items that can be fetched. `uncraftable` gives the fewest that make sense.

    Attributes:
        version: as given.
        items: all items, sorted.
        kinds: members by kind, both sorted.
        recipes: sorted by output, yield and ingredients.
        base: items that can be fetched.
        depth: fixpoint level by item, 0 for the base. Items that cannot be had at all are missing.
        goals: items with a depth of at least 1, in the order (depth, name).

    Raises:
        UnknownName: an ingredient or a member that is neither made nor fetched.
        ValueError: a kind without members or with an item's name.
    """

    def __init__(
        self,
        version: str,
        recipes: Iterable[Recipe],
        *,
        kinds: Mapping[str, Iterable[str]],
        base: Iterable[str],
    ) -> None:
        self.version = version
        self.recipes = tuple(sorted(set(recipes)))
        self.kinds: Mapping[str, tuple[str, ...]] = MappingProxyType(
            {kind: tuple(sorted(set(kinds[kind]))) for kind in sorted(kinds)}
        )
        self.base = frozenset(base)
        by_output: dict[str, list[Recipe]] = {}
        for recipe in self.recipes:
            by_output.setdefault(recipe.output, []).append(recipe)
        self._recipes_of = {item: tuple(found) for item, found in by_output.items()}
        self.items = tuple(sorted(self.base | by_output.keys()))
        self._members = {item: (item,) for item in self.items} | dict(self.kinds)
        self._check()
        self.depth: Mapping[str, int] = MappingProxyType(self._levels())
        ranked = sorted((level, item) for item, level in self.depth.items() if level > 0)
        self.goals = tuple(item for _, item in ranked)

    def _check(self) -> None:
        known = set(self.items)
        for kind, members in self.kinds.items():
            if kind in known:
                raise ValueError(f"{kind!r} is the name of an item and of a kind; rename the kind")
            if not members:
                raise ValueError(f"the kind {kind!r} has no members")
            for member in members:
                if member not in known:
                    raise UnknownName(f"member of the kind {kind!r}", member, self.items)
        for recipe in self.recipes:
            for ingredient in recipe.ingredients:
                if ingredient.name not in self._members:
                    what = f"ingredient of {recipe.output!r}"
                    raise UnknownName(what, ingredient.name, sorted(self._members))

    def _levels(self) -> dict[str, int]:
        """Depth by item: level n holds what the items of lower levels make, and they do not."""
        depth = dict.fromkeys(sorted(self.base), 0)
        level = 0
        waiting = [recipe for recipe in self.recipes if recipe.output not in depth]
        while waiting:
            level += 1
            made = sorted({r.output for r in waiting if self._is_ready(r, depth)})
            if not made:
                break
            depth |= dict.fromkeys(made, level)
            waiting = [recipe for recipe in waiting if recipe.output not in depth]
        return depth

    def _is_ready(self, recipe: Recipe, depth: Mapping[str, int]) -> bool:
        return all(
            any(member in depth for member in self._members[ingredient.name])
            for ingredient in recipe.ingredients
        )

    def recipes_of(self, item: str) -> tuple[Recipe, ...]:
        """The recipes that make `item`, in the order of `recipes`; none for what is only fetched.

        Raises:
            UnknownName: there is no such item.
        """
        if item not in self._members or item in self.kinds:
            raise UnknownName("item", item, self.items)
        return self._recipes_of.get(item, ())

    def members(self, name: str) -> tuple[str, ...]:
        """The items that stand for `name`: those of a kind, sorted, or the item itself.

        Raises:
            UnknownName: neither an item nor a kind.
        """
        if name not in self._members:
            raise UnknownName("item or kind", name, sorted(self._members))
        return self._members[name]

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, as hex digits: equal books have equal digests."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The book as JSON values: ``version``, ``base``, ``kinds`` and ``recipes``.

        A recipe is ``[output, yield, {ingredient: count, …}]``.
        """
        return {
            "version": self.version,
            "base": sorted(self.base),
            "kinds": {kind: list(members) for kind, members in self.kinds.items()},
            "recipes": [
                [recipe.output, recipe.count, {i.name: i.count for i in recipe.ingredients}]
                for recipe in self.recipes
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RecipeBook:
        """The book that `to_json` described; other keys are ignored.

        Raises:
            ValueError: a key is missing, or a value is of a wrong kind.
        """
        try:
            recipes = [
                Recipe(output, count, tuple(Ingredient(*pair) for pair in ingredients.items()))
                for output, count, ingredients in data["recipes"]
            ]
            return cls(data["version"], recipes, kinds=data["kinds"], base=data["base"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                "not a recipe book: expected version, base, kinds and recipes "
                f"[output, yield, {{ingredient: count}}]; {error!r}"
            ) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecipeBook) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return RecipeBook.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return f"RecipeBook({self.version!r}, {len(self.recipes)} recipes)"


def uncraftable(recipes: Iterable[Recipe], kinds: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """The items that `recipes` need or `kinds` hold, and that no recipe makes."""
    recipes = list(recipes)
    needed = {ingredient.name for recipe in recipes for ingredient in recipe.ingredients}
    members = {member for kind in kinds.values() for member in kind}
    return frozenset((needed - set(kinds)) | members) - {recipe.output for recipe in recipes}


@functools.cache
def default_book() -> RecipeBook:
    """The recipes of version 1.16.5, from the package's own table."""
    path = resources.files("agentgym_envs.textcraft") / "data" / "recipes.json"
    return RecipeBook.from_json(json.loads(path.read_text(encoding="utf-8")))
