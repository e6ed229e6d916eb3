from collections import Counter

import pytest

from agentgym_envs.tasks import SPLITS
from agentgym_envs.textcraft.families import CATEGORIES, category_of, family_of, split_of
from agentgym_envs.textcraft.recipes import default_book

COLORS = ("white", "light blue", "light gray", "red", "black", "cyan")
WOODS = ("oak", "dark oak", "crimson", "birch")


@pytest.mark.parametrize(
    ("family", "items"),
    [
        ("bed", [f"{color} bed" for color in COLORS]),
        ("dye", [f"{color} dye" for color in COLORS]),
        ("glass pane", ["glass pane", *(f"{color} stained glass pane" for color in COLORS)]),
        ("stained glass", [f"{color} stained glass" for color in COLORS]),
        ("stairs", ["oak stairs", "polished andesite stairs", "stone brick stairs"]),
        ("fence gate", [f"{wood} fence gate" for wood in WOODS]),
        ("fence", ["nether brick fence", *(f"{wood} fence" for wood in WOODS)]),
        ("trapdoor", ["iron trapdoor", *(f"{wood} trapdoor" for wood in WOODS)]),
        ("wood", ["oak wood", "crimson hyphae", "stripped warped hyphae"]),
        ("pickaxe", ["wooden pickaxe", "iron pickaxe", "diamond pickaxe"]),
        ("axe", ["wooden axe", "golden axe"]),
        ("pressure plate", ["stone pressure plate", "heavy weighted pressure plate"]),
        ("torch", ["torch", "soul torch", "redstone torch"]),
        ("chiseled", ["chiseled sandstone", "chiseled nether bricks", "chiseled quartz block"]),
        ("polished", ["polished granite", "polished basalt"]),
        ("sandstone", ["sandstone", "red sandstone"]),
        ("shulker box", ["shulker box", "blue shulker box"]),
        ("armor stand", ["armor stand"]),
        ("beetroot soup", ["beetroot soup"]),
    ],
)
def test_families_are_named_by_their_forms(family, items):
    assert {item: family_of(item) for item in items} == dict.fromkeys(items, family)


def test_our_book_has_139_families():
    families = Counter(map(family_of, default_book().goals))
    assert len(families) == 139
    assert families.most_common(3) == [("slab", 39), ("stairs", 36), ("block", 20)]


def test_a_family_is_in_one_split():
    pairs = {(family_of(goal), split_of(goal)) for goal in default_book().goals}
    assert len(pairs) == 139


@pytest.mark.parametrize("variants", [COLORS, WOODS])
def test_no_goal_is_another_one_of_another_split_in_other_colors_or_woods(variants):
    splits = {goal: split_of(goal) for goal in default_book().goals}
    for goal, split in splits.items():
        for variant in variants:
            if goal.startswith(f"{variant} "):
                rest = goal.removeprefix(variant)
                others = [splits.get(other + rest) for other in variants]
                assert set(others) <= {split, None}, goal


def test_two_goals_of_test_take_just_what_a_goal_of_train_takes():
    book = default_book()
    goals = {}
    for goal in book.goals:
        for recipe in book.recipes_of(goal):
            goals.setdefault(recipe.ingredients, set()).add(goal)
    shared = [found for found in goals.values() if {"train", "test"} <= set(map(split_of, found))]
    assert sorted(map(sorted, shared)) == [
        ["iron boots", "iron trapdoor"],
        ["leather horse armor", "leather leggings"],
    ]


def test_splits_have_their_shares_of_families_and_goals():
    splits = Counter(map(split_of, default_book().goals))
    assert splits == {"train": 403, "dev": 50, "test": 98}
    families = {family_of(goal): split_of(goal) for goal in default_book().goals}
    assert Counter(families.values()) == {"train": 98, "dev": 14, "test": 27}


def test_every_category_is_in_every_split():
    found = default_book()
    goals = Counter((split_of(goal), category_of(found.depth[goal])) for goal in found.goals)
    assert set(goals) == {(split, category) for split in SPLITS for category in CATEGORIES}
    assert [goals["test", category] for category in CATEGORIES] == [15, 41, 38, 4]
    assert [goals["dev", category] for category in CATEGORIES] == [9, 33, 7, 1]


def test_families_that_our_book_does_not_have_get_their_shares_by_hash():
    splits = Counter(split_of(f"gadget {number}") for number in range(2000))
    assert 1330 < splits["train"] < 1470
    assert 150 < splits["dev"] < 250
    assert 340 < splits["test"] < 460
    assert split_of("pale oak stairs") == split_of("oak stairs") == "train"
    assert split_of("shiny bed") == split_of("red bed")


def test_categories_end_with_depth_four():
    assert [category_of(depth) for depth in (1, 2, 3, 4, 5, 9)] == [*CATEGORIES, *["depth 4+"] * 2]
