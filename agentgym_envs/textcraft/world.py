"""`TextCraftWorld`: what has been fetched and made so far, on the way to one goal.

The rules, which command may do what, are in `actions` and `compat`; this is only the state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.textcraft.recipes import Recipe, RecipeBook
from agentgym_envs.textcraft.trees import Need


class TextCraftWorld:
    """An inventory, a goal and the book in which both are written.

    Args:
        book: all recipes.
        goal: an item of the book.
        shown: the recipes that the policy is told, in that order.
        needs: what the progress is counted in, see `trees.needs`; empty if nobody asks for it.

    Attributes:
        inventory: amounts by item, each at least 1, in the order in which they came.
        progress: for each need how much of it was had so far, no more than is needed.
    """

    def __init__(
        self,
        book: RecipeBook,
        goal: str,
        *,
        shown: Sequence[Recipe] = (),
        needs: Sequence[Need] = (),
    ) -> None:
        self.book = book
        self.goal = goal
        self.shown = tuple(shown)
        self.needs = tuple(needs)
        self.inventory: dict[str, int] = {}
        self.progress = [0] * len(self.needs)

    @property
    def is_done(self) -> bool:
        """Whether the goal is in the inventory."""
        return self.goal in self.inventory

    def add(self, item: str, amount: int) -> int:
        """Put `amount` of `item` into the inventory; how many there are then."""
        total = self.inventory.get(item, 0) + amount
        self.inventory[item] = total
        for index, need in enumerate(self.needs):
            if item in self.book.members(need.name):
                self.progress[index] = min(need.amount, self.progress[index] + amount)
        return total

    def remove(self, used: Mapping[str, int]) -> None:
        """Take amounts out of the inventory, which holds them."""
        for item, amount in used.items():
            self.inventory[item] -= amount
            if not self.inventory[item]:
                del self.inventory[item]

    def state_key(self) -> str:
        """A hash of goal, inventory and progress, as hex digits; the order of items is no part."""
        state = [self.goal, sorted(self.inventory.items()), self.progress]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """What changes in an episode, as JSON values."""
        return {
            "inventory": [[item, amount] for item, amount in self.inventory.items()],
            "progress": list(self.progress),
        }

    def load_json(self, state: Mapping[str, Any]) -> None:
        """Take over what `to_json` gave.

        Raises:
            ValueError, KeyError, TypeError: it gave nothing like this for such a world.
        """
        inventory = {item: _amount(amount, 1) for item, amount in state["inventory"]}
        unknown = sorted(set(inventory) - set(self.book.items))
        if unknown:
            raise ValueError(f"the inventory holds items that are not in the book: {unknown[:5]}")
        progress = [_amount(amount, 0) for amount in state["progress"]]
        if [min(*pair) for pair in zip(progress, self._amounts(), strict=True)] != progress:
            raise ValueError(f"the progress {progress} is more than is needed {self._amounts()}")
        self.inventory, self.progress = inventory, progress

    def _amounts(self) -> list[int]:
        return [need.amount for need in self.needs]


def _amount(value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"an amount is a whole number of at least {least}, got {value!r}")
    return value
