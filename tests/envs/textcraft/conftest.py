import json

import pytest

from agentgym_envs.textcraft.recipes import Ingredient, Recipe, RecipeBook, default_book

RECIPES = {
    ("oak planks", 4): {"oak log": 1},
    ("birch planks", 4): {"birch log": 1},
    ("stick", 4): {"planks": 2},
    ("chest", 1): {"planks": 8},
    ("torch", 4): {"stick": 1, "coal or charcoal": 1},
    ("iron ingot", 1): {"iron nugget": 9},
    ("iron nugget", 9): {"iron ingot": 1},
    ("iron pickaxe", 1): {"iron ingot": 3, "stick": 2},
    ("flint and steel", 1): {"iron ingot": 1, "flint": 1},
    ("nether bricks", 1): {"nether brick": 4},
    ("frame", 1): {"oak planks": 1, "planks": 4},
    ("fishing rod", 1): {"stick": 3, "string": 2},
}
KINDS = {"planks": ["oak planks", "birch planks"], "coal or charcoal": ["coal", "charcoal"]}
BASE = ["oak log", "birch log", "coal", "charcoal", "iron ingot", "flint", "nether brick", "string"]


@pytest.fixture(scope="session")
def small_book():
    """Twelve recipes by hand."""
    recipes = [
        Recipe(output, count, tuple(Ingredient(*pair) for pair in taken.items()))
        for (output, count), taken in RECIPES.items()
    ]
    return RecipeBook("by hand", recipes, kinds=KINDS, base=BASE)


def id_of(name):
    return "minecraft:" + name.replace(" ", "_")


def file_of(book, recipe):
    """A recipe as the game's files have it: planks are a group, other kinds lists."""

    def ingredient(name):
        if name == "planks":
            return {"tag": "minecraft:planks"}
        choices = [{"item": id_of(member)} for member in book.members(name)]
        return choices if len(choices) > 1 else choices[0]

    data = {"result": {"item": id_of(recipe.output), "count": recipe.count}}
    if recipe.output.endswith(" planks"):
        data["group"] = "planks"
    if sum(need.count for need in recipe.ingredients) > 4:
        symbols = dict(zip("abcdefghi", recipe.ingredients, strict=False))
        cells = "".join(symbol * need.count for symbol, need in symbols.items()).ljust(9)
        return data | {
            "type": "minecraft:crafting_shaped",
            "pattern": [cells[:3], cells[3:6], cells[6:]],
            "key": {symbol: ingredient(need.name) for symbol, need in symbols.items()},
        }
    return data | {
        "type": "crafting_shapeless",
        "ingredients": [
            ingredient(need.name) for need in recipe.ingredients for _ in range(need.count)
        ],
    }


def write_files(folder, book):
    """Write the recipes of a book as files of the game; smelting is among them."""
    folder.mkdir()
    for number, recipe in enumerate(book.recipes):
        name = f"{recipe.output.replace(' ', '_')}_{number}.json"
        (folder / name).write_text(json.dumps(file_of(book, recipe)))
    smelting = {"type": "minecraft:smelting", "ingredient": {"item": "x"}, "result": "y"}
    (folder / "glass.json").write_text(json.dumps(smelting))
    (folder / "README.txt").write_text("no recipe")
    return folder


@pytest.fixture(scope="session")
def small_folder(small_book, tmp_path_factory):
    """The small book as a folder of recipe files."""
    return write_files(tmp_path_factory.mktemp("small") / "recipes", small_book)


@pytest.fixture(scope="session")
def large_folder(tmp_path_factory):
    """The recipes of our own table as a folder of recipe files."""
    return write_files(tmp_path_factory.mktemp("large") / "recipes", default_book())
