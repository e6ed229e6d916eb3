"""Ways: the smallest sets of items that lead to an item.

A way to an item is a set of items, itself included, in which everything that cannot be fetched is
made by some recipe from other items of the set, without going round in circles. Fetching an item
and crafting an item take one command each, whatever the amount, so the smallest way is the
shortest plan, and finding it is a shortest-path problem in an AND-OR graph where shared
ingredients count once. In general that is NP-hard; here it is solved exactly by keeping, for each
item, all ways that contain no other way, until none changes. The game's recipes give 1,224 at
most; past `MAX_WAYS` only the smallest are kept, and then a shorter plan may be missed.

A way is an `int`, one bit an item: unions and subset tests are single operations. What is being
worked out is kept apart until it is final, so threads may share a `WayFinder`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from agentgym_envs.textcraft.recipes import Recipe, RecipeBook

Way = int

_Ways = Mapping[str, tuple[Way, ...]]

MAX_WAYS = 2_000
"""Most ways to an item that are kept."""


class WayFinder:
    """All minimal ways to the items of a book.

    Args:
        book: the recipes.
        free: items that need no command, because they are there already.
    """

    def __init__(self, book: RecipeBook, free: Collection[str] = ()) -> None:
        self._book = book
        self._bit_of = {item: 1 << index for index, item in enumerate(book.items)}
        self._ways: dict[str, tuple[Way, ...]] = dict.fromkeys(free, (0,))
        for item in book.base.difference(free):
            self._ways[item] = (self._bit_of[item],)
        self._settled = set(self._ways)

    def ways(self, item: str) -> tuple[Way, ...]:
        """The minimal ways to `item`, smallest first; none if it cannot be had."""
        if item not in self._settled:
            self._settle(item)
        return self._ways.get(item, ())

    def items(self, way: Way) -> frozenset[str]:
        """The items of a way."""
        return frozenset(item for item, bit in self._bit_of.items() if way & bit)

    def _settle(self, goal: str) -> None:
        """Find the ways to `goal` and to all that may go into it."""
        users = self._users(goal)
        known = dict(self._ways)
        waiting = dict.fromkeys(sorted(users, key=lambda item: self._book.depth.get(item, 0)))
        while waiting:
            item = next(iter(waiting))
            del waiting[item]
            found = self._through_recipes(item, known)
            if found != known.get(item, ()):
                known[item] = found
                waiting |= dict.fromkeys(users[item])
        self._ways |= {item: known[item] for item in users if item in known}
        self._settled |= users.keys()

    def _users(self, goal: str) -> dict[str, list[str]]:
        """The items not settled that may go into `goal`, each with those it goes into."""
        users: dict[str, list[str]] = {goal: []}
        open_items = [goal]
        while open_items:
            item = open_items.pop()
            for part in self._parts(item):
                if part not in self._settled:
                    if part not in users:
                        users[part] = []
                        open_items.append(part)
                    users[part].append(item)
        return users

    def _parts(self, item: str) -> list[str]:
        return sorted(
            {
                member
                for recipe in self._book.recipes_of(item)
                for ingredient in recipe.ingredients
                for member in self._book.members(ingredient.name)
            }
        )

    def _through_recipes(self, item: str, known: _Ways) -> tuple[Way, ...]:
        bit = self._bit_of[item]
        ways: list[Way] = []
        for recipe in self._book.recipes_of(item):
            ways += (way | bit for way in self._through(recipe, known))
        return minimal(ways)

    def _through(self, recipe: Recipe, known: _Ways) -> Sequence[Way]:
        """The minimal ways to all ingredients of `recipe` that do not lead through its output."""
        bit = self._bit_of[recipe.output]
        together: Sequence[Way] = (0,)
        for ingredient in recipe.ingredients:
            members = self._book.members(ingredient.name)
            slot = minimal(
                way for member in members for way in known.get(member, ()) if not way & bit
            )
            together = minimal(way | other for way in together for other in slot)
        return together


def minimal(ways: Iterable[Way]) -> tuple[Way, ...]:
    """The ways that contain no other, smallest first, equal sizes in the order of their bits.

    No more than `MAX_WAYS` of them.
    """
    kept: list[Way] = []
    for way in sorted(set(ways), key=lambda way: (way.bit_count(), way)):
        if not any(way & smaller == smaller for smaller in kept):
            kept.append(way)
            if len(kept) == MAX_WAYS:
                break
    return tuple(kept)
