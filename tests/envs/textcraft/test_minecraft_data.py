import math
import re
import sys

import pytest

from agentgym_envs.errors import UnknownName, Unsupported
from agentgym_envs.textcraft import build
from agentgym_envs.textcraft.minecraft_data import (
    FETCHED,
    KINDS,
    book_of_version,
    folded,
    known_versions,
)
from agentgym_envs.textcraft.recipes import Ingredient, Recipe, RecipeBook, default_book

NAMES = ("oak_planks", "birch_planks", "stick", "bamboo", "coal", "charcoal", "torch", "coal_block")
OAK, BIRCH, STICK, BAMBOO, COAL, CHARCOAL, TORCH, COAL_BLOCK = range(8)


def book(*entries, names=NAMES):
    """The book of a table of the data set: entries are (what is made, how many, what it takes)."""
    items = [{"id": number, "name": name} for number, name in enumerate(names)]
    recipes = {}
    for made, count, *cells in entries:
        result = {"id": made, "count": count}
        recipes.setdefault(str(made), []).append({"ingredients": cells, "result": result})
    return RecipeBook("by hand", **folded(items, recipes))


def made(output, count, *taken):
    return Recipe(output, count, tuple(Ingredient(name, n) for n, name in taken))


# ---------------------------------------------------------------------------------------- folding


def test_recipes_that_run_through_a_kind_become_one():
    found = book((STICK, 4, OAK, OAK), (STICK, 4, BIRCH, BIRCH), (STICK, 1, BAMBOO, BAMBOO))
    assert found.recipes == (made("stick", 1, (2, "bamboo")), made("stick", 4, (2, "planks")))
    assert found.kinds == {"planks": ("birch planks", "oak planks")}


def test_recipes_with_two_kinds_become_one():
    found = book(
        *((TORCH, 4, wood, fuel) for wood in (OAK, BIRCH) for fuel in (COAL, CHARCOAL)),
    )
    assert found.recipes == (made("torch", 4, (1, "coal or charcoal"), (1, "planks")),)


def test_recipes_that_leave_out_a_member_stay_apart():
    found = book((STICK, 4, OAK, OAK), (TORCH, 4, BIRCH, COAL), (TORCH, 4, OAK, COAL))
    assert made("stick", 4, (2, "oak planks")) in found.recipes
    assert made("torch", 4, (1, "coal"), (1, "planks")) in found.recipes


def test_recipes_with_other_counts_or_yields_stay_apart():
    found = book((STICK, 4, OAK, OAK), (STICK, 4, BIRCH), (TORCH, 1, OAK), (TORCH, 2, BIRCH))
    assert len(found.recipes) == 4
    assert found.kinds == {}


def test_sets_that_are_no_kind_stay_apart():
    found = book((STICK, 1, BAMBOO), (STICK, 1, COAL))
    assert len(found.recipes) == 2


def test_a_kind_that_has_the_name_of_an_item_is_none():
    found = book((2, 1, 0), (2, 1, 1), names=("planks", "oak planks", "stick"))
    assert {entry.ingredients[0].name for entry in found.recipes} == {"planks", "oak planks"}


def test_shapes_are_counted_and_subtypes_are_their_item():
    items = [{"id": 1, "name": "stone"}, {"id": 2, "name": "slab"}, {"id": 2, "name": "other"}]
    shape = [[{"id": 1, "metadata": 3}, None], [1, 1]]
    table = {"2": [{"inShape": shape, "result": {"id": 2, "count": 6, "metadata": 1}}]}
    assert folded(items, table)["recipes"] == {made("slab", 6, (3, "stone"))}


def test_recipes_with_things_that_have_no_name_are_left_out():
    assert book((STICK, 4, 99), (99, 1, OAK), (TORCH, 1, COAL)).items == ("coal", "torch")


def test_what_no_recipe_makes_is_fetched_and_so_is_what_is_declared():
    found = book((COAL_BLOCK, 1, *[COAL] * 9), (COAL, 9, COAL_BLOCK), (TORCH, 4, COAL, STICK))
    assert found.base == {"coal", "stick"}
    assert found.goals == ("coal block", "torch")


# ------------------------------------------------------------------------------------ the package


@pytest.fixture
def package():
    return pytest.importorskip("minecraft_data", reason="the extra textcraft_versions is missing")


@pytest.mark.usefixtures("package")
def test_our_table_can_be_made_again_byte_for_byte():
    assert build.table(book_of_version(build.VERSION)) == build.FILE.read_text(encoding="utf-8")


@pytest.mark.usefixtures("package")
def test_the_release_that_our_table_is_of_has_one_table_since_1_16_2():
    assert book_of_version("1.16.2").recipes == default_book().recipes


def test_unfolded_again_our_recipes_are_the_1198_of_the_data_set():
    found = default_book()
    variants = (
        math.prod(len(found.members(entry.name)) for entry in recipe.ingredients)
        for recipe in found.recipes
    )
    assert sum(variants) == 1198


def test_the_members_of_our_kinds_are_those_of_their_patterns():
    found = default_book()
    for kind, members in found.kinds.items():
        assert len(members) > 1
        assert all(re.fullmatch(KINDS[kind], member) for member in members)


def test_the_declared_items_are_those_that_only_unpacking_makes():
    """Each would be out of reach, or nine nuggets, if it could not be fetched."""
    found = default_book()
    declared = FETCHED & {recipe.output for recipe in found.recipes}
    assert len(declared) == 11
    for item in declared:
        for recipe in found.recipes_of(item):
            sources = {entry.name for entry in recipe.ingredients} - {"glass bottle"}
            (source,) = sources
            assert any(
                entry.name == item
                for unpacked in found.recipes_of(source)
                for entry in unpacked.ingredients
            )


@pytest.mark.usefixtures("package")
def test_all_versions_since_1_8_have_a_book():
    versions = known_versions()
    assert len(versions) == 35
    assert (versions[0], versions[-1]) == ("1.8", "1.19.2")
    for version in versions:
        found = book_of_version(version)
        assert found.version == version
        assert len(found.goals) > 180
        if int(version.split(".")[1]) >= 13:
            assert set(found.depth) == set(found.items)


@pytest.mark.usefixtures("package")
def test_facts_of_other_versions():
    wool = made("wool", 1, (4, "string"))
    assert wool in book_of_version("1.8").recipes_of("wool")
    assert book_of_version("1.17.1").depth["copper ingot"] == 0
    assert len(book_of_version("1.17").recipes) == 726
    assert len(book_of_version("1.19").members("planks")) == 9
    assert book_of_version("1.19").recipes == book_of_version("1.19.2").recipes


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("version", ["1.20", "1.7", "16w20a", "", "1.16.55", "../1.16"])
def test_an_unknown_version_is_answered_with_known_ones(version):
    with pytest.raises(UnknownName, match="unknown Minecraft version with recipes"):
        book_of_version(version)
    with pytest.raises(UnknownName, match=r"did you mean '1\.16\.5'"):
        book_of_version("1.16.55")


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "minecraft_data", None)
    with pytest.raises(Unsupported, match=r'pip install "agentgym-suite\[textcraft_versions\]"'):
        book_of_version("1.17")
    with pytest.raises(Unsupported, match="minecraft-data"):
        known_versions()
