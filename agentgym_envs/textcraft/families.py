"""Families of goals, categories, and which split a family is in.

A test split must not be the train split in other colors. So goals that differ in color, wood,
stone, metal or another material are one family, and a family is in one split as a whole: all
stairs, all beds, all pickaxes. Families are named by their forms (`FORMS`); what has no form is
a family of its own, together with its versions in other colors and woods.

Which split a family is in does not depend on the book that is played, so no one trains with one
version's recipes on what another version tests. The families of our own book are dealt out in
turns of ten, within each stratum: the families whose deepest goal is of one category, those with
most goals first and equal ones by a hash of the name. So every split gets its share of families,
and about its share of goals, at every depth. Axes, which take what pickaxes take, tool by tool,
then go where those are. Families that our book does not have go by a hash.

The other rule, `variant_split_of`, is easier, for models too small to copy names that they have
never seen: every family is in train, but for some of its goals. Such a goal is a new pair of known
words, a thing and a color or material that train has too, each with others; and no other goal is
made of it, or train would make it on the way.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Mapping

from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.trees import recipe_tree

CATEGORIES = ("depth 1", "depth 2", "depth 3", "depth 4+")
"""Groups in which results are reported, shallowest first."""

FORMS = (
    *("stairs", "slab", "wall", "fence", "fence gate", "door", "trapdoor", "button"),
    *("pressure plate", "sign", "boat", "planks", "wood", "bricks", "block", "pillar"),
    *("bed", "banner", "banner pattern", "carpet", "wool", "dye", "candle"),
    *("concrete powder", "terracotta", "stained glass", "glass pane"),
    *("pickaxe", "axe", "shovel", "hoe", "sword"),
    *("helmet", "chestplate", "leggings", "boots", "horse armor"),
    *("nugget", "ingot", "seeds", "ice", "stew", "arrow", "on a stick"),
    *("torch", "lantern", "campfire", "rail", "minecart"),
    *("table", "chest", "furnace", "piston", "prismarine"),
)
"""Last words of names that make a family, whatever stands before them."""

_LONGEST_FORMS_FIRST = sorted(FORMS, key=lambda form: -len(form))
_COLORS = (
    "white|orange|magenta|light blue|yellow|lime|pink|gray|light gray|cyan|purple|blue|brown|"
    "green|red|black"
)
_WOODS = "oak|spruce|birch|jungle|acacia|dark oak|mangrove|crimson|warped"
_VARIANT = re.compile(rf"\b(?:{_COLORS}|{_WOODS}) ")
_TREATED = re.compile(r"(cut|mossy|polished) .+")
_TURN = ("train", "train", "test", "dev", "train", "train", "train", "test", "train", "train")
"""How ten families in a row are dealt out."""
_TOGETHER = {"axe": "pickaxe"}
"""Families that are in the split of another one, for they have the same recipes."""

HOLDOUTS = ("families", "variants")
"""What dev and test may hold that train does not."""
_SMALLEST_FAMILY = 4
"""Goals of a family of which some are held out as variants: a third, rounded down, at most."""
_LEAST_USES = 3
"""Goals of train in which a word of a held-out variant stands, at least."""


def family_of(item: str) -> str:
    """The family of a goal: ``"stairs"`` for ``"oak stairs"`` and ``"granite stairs"``."""
    if item.startswith("chiseled "):
        return "chiseled"
    name = item.replace("hyphae", "wood")
    for form in _LONGEST_FORMS_FIRST:
        if name == form or name.endswith(f" {form}"):
            return form
    treated = _TREATED.fullmatch(name)
    return treated[1] if treated else _VARIANT.sub("", name)


def category_of(depth: int) -> str:
    """The category of goals of a depth, which is at least 1."""
    return CATEGORIES[min(depth, len(CATEGORIES)) - 1]


def split_of(item: str) -> str:
    """The split of a goal of any book."""
    family = family_of(item)
    return _splits_of_our_families().get(family) or _TURN[int(_hash(family), 16) % len(_TURN)]


def variant_split_of(item: str) -> str:
    """The split of a goal of any book where variants are held out; only our book's goals are."""
    return _splits_of_our_variants().get(item, "train")


@functools.cache
def _our_families() -> Mapping[str, list[str]]:
    """The goals of our book by family."""
    goals_of: dict[str, list[str]] = {}
    for goal in default_book().goals:
        goals_of.setdefault(family_of(goal), []).append(goal)
    return goals_of


@functools.cache
def _splits_of_our_variants() -> Mapping[str, str]:
    """The goals that are held out, in turn for test and for dev."""
    book = default_book()
    trees = {goal: recipe_tree(book, goal) for goal in book.goals}
    parts = {recipe.output for goal in trees for recipe in trees[goal] if recipe.output != goal}
    uses = Counter(word for goal in book.goals for word in goal.split())
    turns = itertools.cycle(("test", "dev"))
    splits: dict[str, str] = {}
    for family, goals in _our_families().items():
        room = len(goals) // 3 if len(goals) >= _SMALLEST_FAMILY else 0
        for goal in sorted({*goals} - parts - {family}, key=_hash):
            words = goal.split()
            if room and all(uses[word] > _LEAST_USES for word in words):
                splits[goal] = next(turns)
                uses.subtract(words)
                room -= 1
    return splits


@functools.cache
def _splits_of_our_families() -> Mapping[str, str]:
    book, goals_of = default_book(), _our_families()
    strata: dict[str, list[str]] = {category: [] for category in CATEGORIES}
    for family, goals in goals_of.items():
        strata[category_of(max(book.depth[goal] for goal in goals))].append(family)
    splits: dict[str, str] = {}
    for families in strata.values():
        families.sort(key=lambda family: (-len(goals_of[family]), _hash(family)))
        for turn, family in enumerate(families):
            splits[family] = _TURN[turn % len(_TURN)]
    return splits | {family: splits[other] for family, other in _TOGETHER.items()}


def _hash(name: str) -> str:
    return hashlib.sha256(f"textcraft family {name}".encode()).hexdigest()
