import itertools
import json
import pickle
import subprocess
import sys
from importlib import resources

import pytest

from agentgym_envs.errors import UnknownName
from agentgym_envs.textcraft.recipes import (
    Ingredient,
    Recipe,
    RecipeBook,
    default_book,
    uncraftable,
)


def recipe(output, count, **taken):
    ingredients = (Ingredient(name.replace("_", " "), n) for name, n in taken.items())
    return Recipe(output, count, tuple(ingredients))


PLANKS = recipe("oak planks", 4, oak_log=1)
STICK = recipe("stick", 4, planks=2)
INGOT = recipe("ingot", 1, nugget=9)
NUGGET = recipe("nugget", 9, ingot=1)
AXE = recipe("axe", 1, stick=2, ingot=3)
KINDS = {"planks": ["oak planks", "birch planks"]}


def book(recipes=(PLANKS, STICK, INGOT, NUGGET, AXE), kinds=KINDS, base=None):
    base = ["oak log", "birch planks", "ingot"] if base is None else base
    return RecipeBook("by hand", recipes, kinds=kinds, base=base)


def test_depth_is_one_more_than_the_deepest_ingredient_of_the_shallowest_recipe():
    assert dict(book().depth) == {
        "birch planks": 0,
        "ingot": 0,
        "oak log": 0,
        "nugget": 1,
        "oak planks": 1,
        "stick": 1,  # of birch planks, which are fetched
        "axe": 2,
    }


def test_a_kind_is_as_deep_as_its_shallowest_member():
    birch = recipe("birch planks", 4, birch_log=1)
    deeper = book(base=["oak log", "birch log", "ingot"], recipes=[birch, PLANKS, STICK, AXE])
    assert (deeper.depth["stick"], deeper.depth["axe"]) == (2, 3)


def test_reversible_recipes_are_both_kept_and_the_base_decides_where_they_begin():
    from_ingots = book(recipes=[INGOT, NUGGET], kinds={}, base=["ingot"])
    from_nuggets = book(recipes=[INGOT, NUGGET], kinds={}, base=["nugget"])
    assert from_ingots.recipes == from_nuggets.recipes == (INGOT, NUGGET)
    assert dict(from_ingots.depth) == {"ingot": 0, "nugget": 1}
    assert dict(from_nuggets.depth) == {"nugget": 0, "ingot": 1}


def test_what_needs_only_itself_cannot_be_had_and_is_no_goal():
    found = book(recipes=[INGOT, NUGGET, AXE, PLANKS, STICK], base=["oak log", "birch planks"])
    assert found.goals == ("oak planks", "stick")
    assert {"ingot", "nugget", "axe"} <= set(found.items)


def test_goals_are_in_the_order_of_depth_and_name():
    assert book().goals == ("nugget", "oak planks", "stick", "axe")


def test_the_order_of_reading_changes_nothing():
    for recipes in itertools.permutations([PLANKS, STICK, INGOT, NUGGET, AXE]):
        again = book(recipes=recipes, kinds={"planks": ["birch planks", "oak planks"]})
        assert again.to_json() == book().to_json()
        assert again.goals == book().goals


def test_books_with_the_same_content_are_equal_and_have_the_same_digest():
    assert book() == book()
    assert hash(book()) == hash(book())
    assert book() != book(base=["oak log", "birch planks", "nugget"])
    assert book().digest != book(base=["oak log", "birch planks", "nugget"]).digest


def test_a_book_survives_json_and_pickle():
    for copy in (
        RecipeBook.from_json(json.loads(json.dumps(book().to_json()))),
        pickle.loads(pickle.dumps(book())),
    ):
        assert copy == book()
        assert copy.depth == book().depth


def test_ingredients_are_sorted_so_that_equal_recipes_are_equal():
    assert recipe("axe", 1, ingot=3, stick=2) == AXE
    assert [entry.name for entry in AXE.ingredients] == ["ingot", "stick"]
    assert len(book(recipes=[AXE, AXE, PLANKS, STICK]).recipes) == 3


def test_members_of_an_item_and_of_a_kind():
    assert book().members("planks") == ("birch planks", "oak planks")
    assert book().members("stick") == ("stick",)
    assert book().recipes_of("ingot") == (INGOT,)
    assert book().recipes_of("oak log") == ()


def test_an_unknown_name_is_answered_with_near_ones():
    with pytest.raises(UnknownName, match=r"unknown item 'stik'; did you mean 'stick'"):
        book().recipes_of("stik")
    with pytest.raises(UnknownName, match="unknown item 'planks'"):
        book().recipes_of("planks")
    with pytest.raises(UnknownName, match=r"unknown item or kind 'plank'; did you mean 'planks'"):
        book().members("plank")


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2"])
def test_counts_are_whole_numbers_of_at_least_one(count):
    with pytest.raises(ValueError, match=r"'axe': the count of 'ingot' must be .* at least 1, got"):
        Recipe("axe", 1, (Ingredient("ingot", count),))
    with pytest.raises(ValueError, match=r"the count of 'axe' must be a whole number"):
        Recipe("axe", count, (Ingredient("ingot", 1),))


def test_a_recipe_has_ingredients_and_names_each_once():
    with pytest.raises(ValueError, match="the recipe of 'axe' has no ingredients"):
        Recipe("axe", 1, ())
    with pytest.raises(ValueError, match="the recipe of 'axe' names an ingredient twice"):
        Recipe("axe", 1, (Ingredient("ingot", 1), Ingredient("ingot", 2)))


def test_every_ingredient_and_member_must_be_made_or_fetched():
    with pytest.raises(UnknownName, match="unknown ingredient of 'axe' 'ingot'"):
        book(recipes=[AXE, STICK, PLANKS], base=["oak log", "birch planks"])
    with pytest.raises(UnknownName, match=r"unknown member of the kind 'planks' 'birch planks'"):
        book(recipes=[STICK, PLANKS], base=["oak log"])


def test_a_kind_has_members_and_a_name_of_its_own():
    with pytest.raises(ValueError, match="'stick' is the name of an item and of a kind"):
        book(kinds=KINDS | {"stick": ["ingot"]})
    with pytest.raises(ValueError, match="the kind 'wool' has no members"):
        book(kinds=KINDS | {"wool": []})


@pytest.mark.parametrize(
    "data", [{}, {"version": "x", "base": [], "kinds": {}, "recipes": [["axe", 1]]}, [], None]
)
def test_what_is_no_book_is_refused(data):
    with pytest.raises(ValueError, match=r"not a recipe book|not enough values"):
        RecipeBook.from_json(data)


def test_uncraftable_are_the_items_that_no_recipe_makes():
    assert uncraftable([PLANKS, STICK, AXE], KINDS) == {"oak log", "birch planks", "ingot"}
    assert uncraftable([INGOT, NUGGET], {}) == frozenset()


# ----------------------------------------------------------------------------------- our own book


def test_our_book_has_the_stated_size_and_every_item_can_be_had():
    found = default_book()
    assert found.version == "1.16.5"
    assert len(found.recipes) == 634
    assert len({entry.output for entry in found.recipes}) == 562
    assert len(found.goals) == 551
    assert set(found.depth) == set(found.items)


def test_the_depths_of_our_goals():
    depths = [default_book().depth[goal] for goal in default_book().goals]
    assert {depth: depths.count(depth) for depth in depths} == {1: 144, 2: 280, 3: 116, 4: 11}


def test_the_table_states_its_own_digest():
    path = resources.files("agentgym_envs.textcraft") / "data" / "recipes.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    assert table["sha256"] == default_book().digest


def test_some_facts_of_the_game():
    found = default_book()
    assert found.recipes_of("stick") == (
        recipe("stick", 1, bamboo=2),
        recipe("stick", 4, planks=2),
    )
    assert found.recipes_of("iron pickaxe") == (recipe("iron pickaxe", 1, iron_ingot=3, stick=2),)
    assert recipe("torch", 4, stick=1, coal_or_charcoal=1) in found.recipes_of("torch")
    assert found.depth["iron ingot"] == 0
    assert found.depth["iron nugget"] == 1
    assert len(found.members("planks")) == 8
    assert len(found.members("logs")) == 32


def test_no_two_ingredients_of_a_recipe_share_a_member():
    found = default_book()
    for entry in found.recipes:
        members = [m for part in entry.ingredients for m in found.members(part.name)]
        assert len(members) == len(set(members)), entry


def test_hash_seeds_change_nothing():
    code = (
        "from agentgym_envs.textcraft.recipes import default_book as b;"
        "import hashlib; print(b().digest, hashlib.sha256(repr("
        "(b().goals, b().items, list(b().depth.items()), list(b().kinds.items()))"
        ").encode()).hexdigest())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(printed) == 1
