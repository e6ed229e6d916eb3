"""Plans: what to fetch and what to craft, how much of it, in which order.

`ways` says which items a plan needs at least; here they get recipes, members for kinds, amounts
and an order. From an empty inventory the plan is the shortest there is: one command an item of the
smallest way. From any other inventory it is short: what is there is used where it goes, kinds are
filled up from several members, and a plan that counts on things in stock is compared with one that
makes everything new.

With ``single_crafts`` a command crafts once and takes one member of a kind, as in AgentGym's
original. Then more items may mean fewer commands; the plan is the shortest over all minimal ways,
with one recipe an item.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from agentgym_envs.errors import NoPlan
from agentgym_envs.textcraft.recipes import MAX_AMOUNT, Ingredient, Recipe, RecipeBook
from agentgym_envs.textcraft.ways import WayFinder

MAX_STEPS = 10_000
"""Most commands of a plan for any one item."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One command of a plan: fetch, or craft if there are ingredients.

    Attributes:
        item: what is fetched or made.
        amount: how many units.
        ingredients: the items that crafting uses up, with total amounts.
    """

    item: str
    amount: int
    ingredients: tuple[Ingredient, ...] = ()

    @property
    def text(self) -> str:
        """The step as a bare command."""
        if not self.ingredients:
            return f"get {self.amount} {self.item}"
        used = ", ".join(f"{entry.count} {entry.name}" for entry in self.ingredients)
        return f"craft {self.amount} {self.item} using {used}"


Plan = tuple[Step, ...]


class Planner:
    """Makes plans with the recipes of one book.

    Args:
        book: the recipes.
        single_crafts: let every command craft once, from one member of each kind.
    """

    def __init__(self, book: RecipeBook, *, single_crafts: bool = False) -> None:
        self._book = book
        self._single_crafts = single_crafts
        self._from_nothing = WayFinder(book)
        self._num_steps: dict[str, int] = {}

    def plan(self, goal: str, inventory: Mapping[str, int] | None = None) -> Plan:
        """The steps from `inventory` to one unit of `goal`.

        Args:
            goal: name of an item.
            inventory: units by item; None for an empty one.

        Raises:
            NoPlan: `goal` cannot be had, or is there already, or takes too many commands.
            UnknownName: there is no such item.
        """
        self._book.recipes_of(goal)
        stock = Counter({item: n for item, n in sorted((inventory or {}).items()) if n > 0})
        if stock[goal]:
            raise NoPlan(f"{goal} is in the inventory already")
        plans = [self._counting_on(frozenset(), goal, stock)]
        if stock:
            plans.append(self._counting_on(frozenset(stock), goal, stock))
        best = _shortest(plan for plan in plans if plan is not None)
        if best is None:
            raise NoPlan(f"{goal} can be neither fetched nor made with the recipes at hand")
        return best

    def num_steps(self, goal: str) -> int:
        """Length of the plan for `goal` from an empty inventory; counted once.

        Raises:
            NoPlan: `goal` cannot be had.
            UnknownName: there is no such item.
        """
        if goal not in self._num_steps:
            self._num_steps[goal] = len(self.plan(goal))
        return self._num_steps[goal]

    def _counting_on(
        self, free: frozenset[str], goal: str, stock: Mapping[str, int]
    ) -> Plan | None:
        """The best plan that takes `free` items from stock, fewer of them if they run out."""
        while True:
            finder = WayFinder(self._book, free) if free else self._from_nothing
            ways = finder.ways(goal)
            if not self._single_crafts:
                ways = tuple(way for way in ways if way.bit_count() == ways[0].bit_count())
            layouts = [
                _Layout(self._book, goal, finder.items(way), free, stock, self._single_crafts)
                for way in ways
            ]
            if not layouts:
                return None
            if whole := [layout for layout in layouts if not layout.short]:
                return _shortest(layout.steps() for layout in whole)
            free -= layouts[0].short


@functools.lru_cache(maxsize=8)
def planner_of(book: RecipeBook, *, single_crafts: bool = False) -> Planner:
    """The planner of a book; made once, for it remembers the ways that it has found."""
    return Planner(book, single_crafts=single_crafts)


class _Layout:
    """Recipes and amounts for the items of one way.

    Args:
        book: the recipes.
        goal: the item that one unit is wanted of.
        way: the items.
        free: items that the way expects in stock.
        stock: units by item.
        single_crafts: see `Planner`.

    Attributes:
        short: items of `free` whose stock does not last.
    """

    def __init__(
        self,
        book: RecipeBook,
        goal: str,
        way: Collection[str],
        free: Collection[str],
        stock: Mapping[str, int],
        single_crafts: bool,
    ) -> None:
        self._book = book
        self._single_crafts = single_crafts
        self._stock = Counter(stock)
        self._rank: dict[str, int] = {}
        self._recipe_of: dict[str, Recipe] = {}
        self._order(way, free)
        self._missing = Counter({goal: 1})
        self._num_crafts: dict[str, int] = {}
        self._used: dict[str, list[Counter[str]]] = {}
        for item in sorted(self._recipe_of, key=self._rank.__getitem__, reverse=True):
            if self._missing[item]:
                self._craft(item)
        self.short = frozenset(item for item in free if self._missing[item])

    def _order(self, way: Collection[str], free: Collection[str]) -> None:
        """Rank the items so that each comes after what it is made of, and choose the recipes."""
        given = {*free, *self._book.base.intersection(way)}
        for item in sorted(given, key=lambda item: (-self._stock[item], item)):
            self._rank[item] = len(self._rank)
        waiting = sorted(set(way).difference(self._rank))
        while waiting:
            ready = [(item, found) for item in waiting if (found := self._ready_recipe(item))]
            for item, recipe in ready:
                self._rank[item] = len(self._rank)
                self._recipe_of[item] = recipe
            waiting = [item for item in waiting if item not in self._rank]

    def _ready_recipe(self, item: str) -> Recipe | None:
        for recipe in self._book.recipes_of(item):
            slots = [self._book.members(ingredient.name) for ingredient in recipe.ingredients]
            if all(any(member in self._rank for member in slot) for slot in slots):
                return recipe
        return None

    def _craft(self, item: str) -> None:
        """Count what crafting the missing units of `item` uses up."""
        recipe = self._recipe_of[item]
        crafts = self._num_crafts[item] = -(-self._missing[item] // recipe.count)
        self._used[item] = []
        for ingredient in recipe.ingredients:
            used: Counter[str] = Counter()
            self._used[item].append(used)
            members = self._book.members(ingredient.name)
            chosen = min(members, key=lambda name: self._rank.get(name, len(self._rank)))
            fillers = [] if self._single_crafts else sorted(members, key=lambda m: -self._stock[m])
            rest = crafts * ingredient.count
            for member in dict.fromkeys([chosen, *fillers]):
                taken = min(rest, self._stock[member])
                self._stock[member] -= taken
                used[member] += taken
                rest -= taken
            used[chosen] += rest
            self._missing[chosen] += rest

    def steps(self) -> Plan:
        """The commands: first everything that is fetched, then the crafts from the bottom up."""
        fetched = [
            item for item in self._rank if self._missing[item] and item not in self._num_crafts
        ]
        steps = [
            Step(item, amount)
            for item in fetched
            for amount in _portions(self._missing[item], MAX_AMOUNT)
        ]
        for item in self._rank:
            if item in self._num_crafts:
                steps += self._crafts(item)
        return tuple(steps)

    def _crafts(self, item: str) -> Iterable[Step]:
        recipe, crafts = self._recipe_of[item], self._num_crafts[item]
        most = MAX_AMOUNT // max(recipe.count, *(entry.count for entry in recipe.ingredients))
        for portion in _portions(crafts, 1 if self._single_crafts else max(1, most)):
            taken: Counter[str] = Counter()
            for ingredient, left in zip(recipe.ingredients, self._used[item], strict=True):
                taken += _draw(left, portion * ingredient.count)
            ingredients = tuple(Ingredient(name, taken[name]) for name in sorted(taken))
            yield Step(item, portion * recipe.count, ingredients)


def _draw(left: Counter[str], amount: int) -> Counter[str]:
    """Take `amount` units out of `left`."""
    drawn: Counter[str] = Counter()
    for name in sorted(left):
        drawn[name] = min(left[name], amount - drawn.total())
    left -= drawn
    return +drawn


def _portions(amount: int, most: int) -> Sequence[int]:
    whole, rest = divmod(amount, most)
    if whole > MAX_STEPS:
        raise NoPlan(f"the plan is longer than {MAX_STEPS} commands")
    return [most] * whole + [rest] * (rest > 0)


def _shortest(plans: Iterable[Plan]) -> Plan | None:
    """The plan with the fewest commands; among equals, the one that fetches least."""
    return min(plans, key=lambda plan: (len(plan), _num_fetched(plan)), default=None)


def _num_fetched(plan: Plan) -> int:
    return sum(step.amount for step in plan if not step.ingredients)
