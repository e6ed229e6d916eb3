import itertools

import pytest

from agentgym_envs.actions import Grammar
from agentgym_envs.errors import CommandError
from agentgym_envs.textcraft.actions import VERBS, admissible
from agentgym_envs.textcraft.crafting import choose, num_crafts
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.world import TextCraftWorld

GRAMMAR = Grammar(VERBS)


def do(world, text):
    command = GRAMMAR.parse(text)
    return command.verb.run(world, **command.arguments)


@pytest.fixture
def world(small_book):
    return TextCraftWorld(small_book, "chest", shown=small_book.recipes)


@pytest.fixture
def rich(world):
    """A world in which there is some of everything that matters here."""
    world.inventory = {"oak log": 9, "oak planks": 20, "birch planks": 6, "stick": 8, "coal": 2}
    return world


def refusal(world, text):
    before = dict(world.inventory)
    with pytest.raises(CommandError) as caught:
        do(world, text)
    assert world.inventory == before
    return str(caught.value)


# ---------------------------------------------------------------------------------------- get


@pytest.mark.parametrize(
    ("text", "item", "amount"),
    [
        ("get 3 oak log", "oak log", 3),
        ("get oak log", "oak log", 1),
        ("GET 3 Oak Log", "oak log", 3),
        ("get 3 oak_log", "oak log", 3),
        ("get 3 minecraft:oak_log", "oak log", 3),
        ("get 3 oak logs", "oak log", 3),
        ("get an iron ingot", "iron ingot", 1),
        ("get 2x flint", "flint", 2),
        ("fetch 2 strings.", "string", 2),
        ("get +2 flint", "flint", 2),
        ("get 4096 flint", "flint", 4096),
        ("get 4 nether brick", "nether brick", 4),
    ],
)
def test_get_takes_what_cannot_be_mistaken(world, text, item, amount):
    assert do(world, text) == f"You got {amount} {item} and have {amount} now."
    assert world.inventory == {item: amount}


def test_get_adds_to_what_is_there(world):
    do(world, "get 3 flint")
    assert do(world, "get 2 flint") == "You got 2 flint and have 5 now."


@pytest.mark.parametrize(
    "amount", ["0", "-1", "-0", "4097", "9" * 12, "9" * 18, "9" * 19, "9" * 99]
)
@pytest.mark.parametrize(
    "form", ["get {} flint", "craft {} chest using 8 oak planks", "craft chest using {} oak planks"]
)
def test_amounts_of_zero_negative_or_huge_are_refused(rich, form, amount):
    text = refusal(rich, form.format(amount))
    shown = str(int(amount)) if len(amount) <= 18 else amount
    assert text.startswith(f"An amount is a whole number from 1 to 4096, not {shown[:80]}")


@pytest.mark.parametrize("amount", ["1.5", "1,000", "3."])
def test_an_amount_is_a_whole_number(world, amount):
    assert f"not {amount}." in refusal(world, f"get {amount} flint")
    assert f"not {amount}." in refusal(world, f"craft torch using 1 stick, {amount} coal")
    assert f"not {amount}." in refusal(world, f"craft {amount} torch using 1 stick, 1 coal")


def test_an_unknown_item_is_answered_by_near_names(world):
    assert refusal(world, "get 1 oka log") == (
        'There is no item called "oka log". Did you mean oak log?'
    )
    assert "oak planks" in refusal(world, "craft 4 oak plonks using 1 oak log")
    assert refusal(world, "get 1 qqqqqq") == 'There is no item called "qqqqqq".'


def test_endings_are_not_forgiven_where_two_items_differ_in_nothing_else(world):
    do(world, "get 4 nether brick")
    assert "crafted" in refusal(world, "get 4 nether bricks")


def test_what_has_to_be_crafted_cannot_be_got(world):
    assert refusal(world, "get 8 oak planks") == (
        "You cannot get oak planks: it has to be crafted. "
        "Recipe: craft 4 oak planks using 1 oak log."
    )
    assert refusal(world, "get sticks") == (
        "You cannot get stick: it has to be crafted. Recipe: craft 4 stick using 2 planks "
        "(planks: any of birch planks, oak planks)."
    )


def test_what_can_be_fetched_and_made_can_be_got(world):
    do(world, "get 3 iron ingot")
    assert do(world, "craft 18 iron nugget using 2 iron ingot").startswith("You crafted 18")
    assert do(world, "craft iron ingot using 9 iron nuggets").startswith("You crafted 1 iron ingot")
    assert world.inventory == {"iron ingot": 2, "iron nugget": 9}


@pytest.mark.parametrize(
    "text",
    ["get 8 planks", "craft 1 chest using 8 planks", "craft 4 planks using 1 oak log"],
)
def test_a_kind_is_answered_by_its_members(rich, text):
    assert refusal(rich, text) == (
        "planks is a kind of item, not an item: name any of birch planks, oak planks."
    )


# -------------------------------------------------------------------------------------- craft


@pytest.mark.parametrize(
    ("text", "item", "made", "used"),
    [
        ("craft 4 oak planks using 1 oak log", "oak planks", 4, {"oak log": 1}),
        ("craft oak planks using 1 oak log", "oak planks", 4, {"oak log": 1}),
        ("craft oak planks using oak log", "oak planks", 4, {"oak log": 1}),
        ("craft 8 oak planks from 2 oak logs", "oak planks", 8, {"oak log": 2}),
        ("craft an oak plank with an oak log", "oak planks", 4, {"oak log": 1}),
        ("Craft 1 Chest Using 8 Oak Planks", "chest", 1, {"oak planks": 8}),
        (
            "craft 1 chest using 2 oak planks, 6 birch planks",
            "chest",
            1,
            {"oak planks": 2, "birch planks": 6},
        ),
        (
            "craft 3 chest using 18 oak planks and 6 birch planks",
            "chest",
            3,
            {"oak planks": 18, "birch planks": 6},
        ),
        ("craft 1 chest using 4 oak planks, 4 oak planks", "chest", 1, {"oak planks": 8}),
        (
            "craft 4 torch using 1 stick, and 1 coal",
            "torch",
            4,
            {"stick": 1, "coal": 1},
        ),
        ("craft torches using 2 coal and 2 sticks", "torch", 8, {"stick": 2, "coal": 2}),
        ("craft 4 stick using 1 oak planks, 1 birch planks", "stick", 4, None),
        ("craft 4x stick using 1x oak planks,1x birch planks", "stick", 4, None),
    ],
)
def test_craft_uses_exactly_what_is_named(rich, text, item, made, used):
    before = dict(rich.inventory)
    total = before.get(item, 0) + made
    done = " That was the goal." if item == "chest" else ""
    assert do(rich, text) == f"You crafted {made} {item} and have {total} now.{done}"
    for part, amount in (used or {}).items():
        assert rich.inventory.get(part, 0) == before[part] - amount


def test_an_item_whose_name_holds_and_is_one_item(world):
    do(world, "get 2 iron ingot")
    do(world, "get 1 flint")
    assert "flint and steel" in do(world, "craft flint and steel using 1 flint and 1 iron ingot")


def test_a_member_may_serve_a_kind_and_itself(rich):
    # A frame takes 1 oak planks and 4 planks: of 3 oak and 2 birch one oak is the oak one.
    do(rich, "craft frame using 3 oak planks, 2 birch planks")
    assert "made of exactly 5 birch planks" in refusal(rich, "craft frame using 5 birch planks")


def test_nothing_is_left_of_what_is_used_up(rich):
    do(rich, "craft 1 chest using 6 birch planks, 2 oak planks")
    assert "birch planks" not in rich.inventory
    assert "birch planks" not in do(rich, "inventory")


def test_the_amount_must_be_what_the_crafts_give(rich):
    assert refusal(rich, "craft 99 chest using 8 oak planks") == (
        "8 oak planks would give 1 chest, not 99. For 99 chest use 792 planks."
    )
    assert refusal(rich, "craft 3 oak planks using 1 oak log") == (
        "1 oak log would give 4 oak planks, not 3. "
        "One craft gives 4: the amount must be a multiple of it."
    )


def test_more_than_may_be_named_cannot_be_made(rich):
    rich.inventory["oak log"] = 4096
    assert "from 1 to 4096, not 16384" in refusal(rich, "craft oak planks using 4096 oak log")


@pytest.mark.parametrize(
    "used",
    ["7 oak planks", "8 oak log", "8 oak planks, 1 stick", "9 oak planks", "4 oak planks, 4 stick"],
)
def test_wrong_ingredients_are_answered_by_the_recipes(rich, used):
    assert refusal(rich, f"craft 1 chest using {used}") == (
        f"chest is not made of exactly {used}. "
        "Recipe: craft 1 chest using 8 planks (planks: any of birch planks, oak planks)."
    )


def test_what_is_missing_is_named(world):
    do(world, "get 1 oak log")
    do(world, "craft oak planks using oak log")
    assert refusal(world, "craft 1 chest using 6 oak planks, 2 birch planks") == (
        "You do not have all of that: 2 oak planks, 2 birch planks missing. You have 4 oak planks."
    )


def test_what_cannot_be_crafted_says_so(world):
    assert refusal(world, "craft 1 flint using 1 string") == "flint cannot be crafted: get it."


def test_an_empty_list_of_ingredients_is_refused(rich):
    assert "Say what to use" in refusal(rich, "craft chest using ,")


def test_commands_are_matched_whole(world):
    for text in ("inventory get 1 flint", "please get 1 flint", "get", "craft 1 chest", "using"):
        with pytest.raises(CommandError, match="is not a command"):
            GRAMMAR.parse(text)


# ---------------------------------------------------------------------------------- inventory


def test_the_inventory_is_sorted_and_in_plain_english(rich):
    assert do(rich, "inventory") == (
        "You have 6 birch planks, 2 coal, 9 oak log, 20 oak planks, 8 stick."
    )


def test_an_empty_inventory_is_nothing(world):
    assert do(world, "inventory") == "You have nothing."


# --------------------------------------------------------------------------------- admissible


def test_admissible_commands_are_all_done_and_stay_as_they_are_written(rich):
    commands = admissible(rich)
    assert len(commands) == len(set(commands))
    assert GRAMMAR.parse(commands[0]).verb.name == "craft"
    for command in commands:
        assert GRAMMAR.parse(command).text == command
        twin = TextCraftWorld(rich.book, rich.goal)
        twin.inventory = dict(rich.inventory)
        do(twin, command)


def test_admissible_crafts_mix_members_where_one_does_not_last(rich):
    rich.inventory = {"oak planks": 3, "birch planks": 5}
    assert "craft 1 chest using 5 birch planks, 3 oak planks" in admissible(rich)
    assert "craft 1 frame using 4 birch planks, 1 oak planks" in admissible(rich)


# ------------------------------------------------------------------------------------ matching


def deals(book, recipe, used):
    """Whether single units can be dealt out to the slots of a recipe, by trying all ways."""
    units = [item for item, amount in used.items() for _ in range(amount)]
    slots = [need.name for need in recipe.ingredients for _ in range(need.count)]
    return len(units) == len(slots) and any(
        all(item in book.members(slot) for item, slot in zip(order, slots, strict=True))
        for order in set(itertools.permutations(units))
    )


def test_matching_agrees_with_trying_all_ways(small_book):
    frame = next(recipe for recipe in small_book.recipes if recipe.output == "frame")
    for oak, birch, stick in itertools.product(range(7), range(7), range(2)):
        used = {"oak planks": oak, "birch planks": birch, "stick": stick}
        used = {item: amount for item, amount in used.items() if amount}
        if 1 <= sum(used.values()) <= 7:
            assert bool(num_crafts(small_book, frame, used)) == deals(small_book, frame, used), used


def test_what_is_chosen_for_any_recipe_of_the_game_makes_it_once():
    book = default_book()
    plenty = dict.fromkeys(book.items, 100)
    for recipe in book.recipes:
        for mixed in (False, True):
            chosen = choose(book, recipe, plenty, mixed=mixed)
            assert num_crafts(book, recipe, chosen) == 1, recipe
            doubled = {item: 2 * amount for item, amount in chosen.items()}
            assert num_crafts(book, recipe, doubled) == 2
