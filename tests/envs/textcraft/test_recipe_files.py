import json
import os
import re

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.errors import InvalidTask
from agentgym_envs.textcraft.file_book import book_of_files
from agentgym_envs.textcraft.recipe_files import (
    Choice,
    FileIngredient,
    FileRecipe,
    digest_of_recipes,
    read_recipes,
)
from agentgym_envs.textcraft.recipes import Ingredient, Recipe, default_book

CHEST = {
    "type": "minecraft:crafting_shaped",
    "pattern": ["###", "# #", "###"],
    "key": {"#": {"tag": "minecraft:planks"}},
    "result": {"item": "minecraft:chest"},
}
TORCH = {
    "type": "minecraft:crafting_shaped",
    "pattern": ["X", "#"],
    "key": {
        "#": {"item": "minecraft:stick"},
        "X": [{"item": "minecraft:coal"}, {"item": "minecraft:charcoal"}],
    },
    "result": {"item": "minecraft:torch", "count": 4},
}
PLANKS = {
    "type": "minecraft:crafting_shapeless",
    "group": "planks",
    "ingredients": [{"tag": "minecraft:oak_logs"}],
    "result": {"item": "minecraft:oak_planks", "count": 4},
}
STICK = {
    "type": "minecraft:crafting_shapeless",
    "ingredients": [{"tag": "minecraft:planks"}, {"tag": "minecraft:planks"}],
    "result": {"item": "minecraft:stick", "count": 4},
}
GOOD = {"chest": CHEST, "torch": TORCH, "oak_planks": PLANKS, "stick": STICK}


def write(folder, **files):
    for name, data in files.items():
        text = data if isinstance(data, str) else json.dumps(data)
        (folder / f"{name}.json").write_text(text)
    return folder


def test_what_a_file_says_is_read(tmp_path):
    chest, oak_planks, stick, torch = read_recipes(write(tmp_path, **GOOD))
    tag = Choice("minecraft:planks", True)
    assert chest == FileRecipe("chest", "minecraft:chest", 1, (FileIngredient((tag,), 8),))
    assert stick == FileRecipe("stick", "minecraft:stick", 4, (FileIngredient((tag,), 2),))
    assert oak_planks.group == "minecraft:planks"
    assert torch.count == 4
    assert torch.ingredients == (
        FileIngredient((Choice("minecraft:stick", False),), 1),
        FileIngredient((Choice("minecraft:coal", False), Choice("minecraft:charcoal", False)), 1),
    )


def test_files_are_read_in_sorted_order_whatever_the_order_of_the_directory(tmp_path, monkeypatch):
    write(tmp_path, **GOOD)
    expected = read_recipes(tmp_path)
    assert [recipe.file for recipe in expected] == ["chest", "oak_planks", "stick", "torch"]
    scandir = os.scandir

    class Backwards:
        def __init__(self, folder):
            with scandir(folder) as entries:
                self.entries = sorted(entries, key=lambda entry: entry.name, reverse=True)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(os, "scandir", Backwards)
    assert read_recipes(tmp_path) == expected


def test_other_files_and_other_types_of_recipes_are_passed_over(tmp_path):
    write(tmp_path, **GOOD, glass={"type": "minecraft:smelting", "ingredient": 5, "result": []})
    (tmp_path / "notes.txt").write_text("{")
    (tmp_path / "more").mkdir()
    assert len(read_recipes(tmp_path)) == 4


def test_a_changed_file_is_read_again(tmp_path):
    write(tmp_path, **GOOD)
    before = read_recipes(tmp_path)
    assert read_recipes(tmp_path) is before
    write(tmp_path, stick=STICK | {"result": {"item": "minecraft:stick", "count": 400}})
    after = read_recipes(tmp_path)
    assert [recipe.count for recipe in after] == [1, 4, 400, 4]
    assert digest_of_recipes(after) != digest_of_recipes(before)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("{", "Expecting property name"),
        ("", "Expecting value"),
        ("[" * 100_000, "recursion"),
        ("[]", "a recipe must be a JSON object, got []"),
        ({"result": "x"}, "'type' is missing; there are ['result']"),
        (CHEST | {"type": 3}, "type must be a text"),
        (CHEST | {"pattern": "###"}, "pattern must be a list of texts, got '###'"),
        (CHEST | {"pattern": ["#x"]}, "key explains ['#'], but the pattern uses ['#', 'x']"),
        (CHEST | {"pattern": [" "]}, "key explains ['#'], but the pattern uses []"),
        (CHEST | {"key": []}, "key must be a JSON object, got []"),
        (CHEST | {"key": {"#": {}}}, "an ingredient must name one 'item' or 'tag', got {}"),
        (CHEST | {"key": {"#": []}}, "an ingredient is an empty list"),
        (CHEST | {"key": {"#": {"item": ""}}}, "item must be a text that is not empty, got ''"),
        (CHEST | {"result": None}, "result must be a JSON object, got None"),
        (CHEST | {"result": {"id": "chest"}}, "'item' is missing; there are ['id']"),
        (CHEST | {"result": {"item": "chest", "count": 0}}, "a number from 1 to 4096, got 0"),
        (CHEST | {"result": {"item": "chest", "count": "2"}}, "a number from 1 to 4096, got '2'"),
        (CHEST | {"result": {"item": "chest", "count": 4097}}, "a number from 1 to 4096, got 4097"),
        (CHEST | {"result": {"item": "chest", "count": True}}, "4096, got True"),
        (CHEST | {"pattern": ["#####", "#####"]}, "a recipe takes at most 9 things, not 10"),
        (STICK | {"ingredients": [{"item": c} for c in "abcdefghij"]}, "at most 9 things, not 10"),
        (STICK | {"result": "Stick"}, "result must be a name like 'oak_planks'"),
        (STICK | {"result": "a,b"}, "got 'a,b'"),
        (STICK | {"result": "a b"}, "got 'a b'"),
        (STICK | {"result": "minecraft:"}, "got 'minecraft:'"),
        (STICK | {"result": "a" * 65}, "result must be a name like"),
        (STICK | {"ingredients": [{"item": "a\nb"}]}, "item must be a name like"),
        (STICK | {"ingredients": [{"tag": "\ud800"}]}, "tag must be a name like"),
        (STICK | {"group": "n\u00e4he"}, "group must be a name like"),
        (STICK | {"ingredients": []}, "ingredients must be a list that is not empty, got []"),
        (STICK | {"ingredients": ["#planks"]}, "an ingredient must be a JSON object"),
    ],
)
def test_a_broken_file_is_named_and_nothing_is_loaded(tmp_path, broken, message):
    write(tmp_path, **GOOD, zz_last=broken)
    with pytest.raises(InvalidTask, match=re.escape(message)) as error:
        read_recipes(tmp_path)
    assert "zz_last.json" in str(error.value)
    with pytest.raises(InvalidTask, match="zz_last"):
        gymnasium.make("AgentGym/TextCraft-v0", recipes_dir=str(tmp_path))


def test_a_folder_without_recipes_is_refused(tmp_path):
    with pytest.raises(InvalidTask, match="holds no crafting recipe: 0 JSON files"):
        read_recipes(tmp_path)
    with pytest.raises(InvalidTask, match=r"cannot read the recipe folder .*nowhere"):
        read_recipes(tmp_path / "nowhere")
    with pytest.raises(InvalidTask, match=r"cannot read the recipe folder .*null byte"):
        read_recipes(f"{tmp_path}\0")


def test_files_give_the_same_book_as_the_recipes_that_they_were_written_from(
    small_book, small_folder, large_folder
):
    again = book_of_files(read_recipes(small_folder))
    assert {**again.kinds} == {
        "planks": ("birch planks", "oak planks"),
        "charcoal or coal": ("charcoal", "coal"),
    }
    assert again.base == small_book.base
    assert again.depth == small_book.depth
    large = book_of_files(read_recipes(large_folder))
    assert large.base == default_book().base
    assert large.depth == default_book().depth
    assert len(large.recipes) == len(default_book().recipes)


def test_a_group_without_members_is_an_item_that_can_be_fetched(tmp_path):
    book = book_of_files(read_recipes(write(tmp_path, **GOOD)))
    assert book.recipes_of("oak planks") == (Recipe("oak planks", 4, (Ingredient("oak logs", 1),)),)
    assert {*book.base} == {"oak logs", "coal", "charcoal"}
    assert {**book.kinds} == {"planks": ("oak planks",), "coal or charcoal": ("charcoal", "coal")}


def test_a_kind_with_the_name_of_an_item_gets_another_name(tmp_path):
    group = {"tag": "minecraft:stick"}
    recipes = {
        "stick": STICK | {"group": "stick"},
        "cane": STICK | {"result": {"item": "minecraft:cane"}, "group": "stick"},
        "fire": STICK | {"ingredients": [group], "result": {"item": "minecraft:fire"}},
        "oak_planks": PLANKS,
    }
    book = book_of_files(read_recipes(write(tmp_path, **recipes)))
    assert book.kinds["any stick"] == ("cane", "stick")
    assert book.recipes_of("fire")[0].ingredients == (Ingredient("any stick", 1),)


def test_recipes_that_make_no_book_are_refused(tmp_path):
    names = {"item": "minecraft:planks"}
    odd = STICK | {"ingredients": [names], "result": {"item": "minecraft:any_planks"}}
    write(tmp_path, **GOOD, odd=odd)
    with pytest.raises(InvalidTask, match=r"no recipe book can be made of.*any planks"):
        gymnasium.make("AgentGym/TextCraft-v0", recipes_dir=str(tmp_path))
