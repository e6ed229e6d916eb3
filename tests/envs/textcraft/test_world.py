import json

import pytest

from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.reward import score
from agentgym_envs.textcraft.trees import Need, distractors, needs, recipe_tree
from agentgym_envs.textcraft.world import TextCraftWorld


def pickaxe(book, *, partial_credit=True):
    return TextCraftWorld(
        book, "iron pickaxe", needs=needs(book, "iron pickaxe") if partial_credit else ()
    )


def names(recipes):
    return [recipe.output for recipe in recipes]


# -------------------------------------------------------------------------------------- trees


def test_a_tree_holds_the_recipes_down_to_what_can_be_fetched(small_book):
    assert names(recipe_tree(small_book, "chest")) == ["birch planks", "chest", "oak planks"]
    assert names(recipe_tree(small_book, "torch")) == [
        "birch planks",
        "oak planks",
        "stick",
        "torch",
    ]


def test_a_tree_ends_at_what_can_be_fetched_although_it_can_be_made(small_book):
    # Iron ingots are made of nuggets too, and nuggets of ingots.
    assert names(recipe_tree(small_book, "flint and steel")) == ["flint and steel"]
    assert names(recipe_tree(small_book, "iron nugget")) == ["iron nugget"]


def test_a_tree_does_not_follow_members_of_kinds_that_can_be_fetched():
    book = default_book()
    assert {"oak log", "oak wood"} <= set(book.members("oak logs"))
    assert "oak wood" not in names(recipe_tree(book, "chest"))
    assert len(recipe_tree(book, "chest")) == 1 + len(book.members("planks"))


def test_distractors_take_what_the_tree_takes_and_are_not_in_it(small_book):
    # A chest takes planks, and planks take logs.
    assert names(distractors(small_book, "chest")) == ["frame", "stick"]
    for goal in small_book.goals:
        assert not set(distractors(small_book, goal)) & set(recipe_tree(small_book, goal))


def test_needs_are_what_has_to_be_crafted_with_amounts_rounded_up_to_yields(small_book):
    # 3 sticks are one craft of 4, which takes 2 planks.
    assert needs(small_book, "fishing rod") == (
        Need("planks", 2),
        Need("stick", 3),
        Need("fishing rod", 1),
    )
    # A frame takes an oak planks and 4 planks.
    assert needs(small_book, "frame") == (
        Need("oak planks", 1),
        Need("planks", 4),
        Need("frame", 1),
    )


def test_every_goal_is_among_its_own_needs_which_are_all_made_by_its_tree():
    book = default_book()
    for goal in book.goals:
        *_, last = needs(book, goal)
        assert last == Need(goal, 1)
        made = set(names(recipe_tree(book, goal)))
        for need in needs(book, goal):
            assert made & set(book.members(need.name)), (goal, need)


# -------------------------------------------------------------------------------------- score


def test_without_partial_credit_only_the_goal_counts(small_book):
    world = pickaxe(small_book, partial_credit=False)
    world.add("stick", 4)
    assert score(world) == 0.0
    world.add("iron pickaxe", 1)
    assert score(world) == 1.0


def test_partial_credit_is_the_share_of_needs_that_were_met(small_book):
    # Needs: planks 2, stick 2, iron pickaxe 1.
    world = pickaxe(small_book)
    world.add("iron ingot", 3)
    assert score(world) == 0.0
    world.add("oak planks", 1)
    assert score(world) == 0.0
    world.add("birch planks", 1)
    assert score(world) == pytest.approx(1 / 3)
    world.add("stick", 4)
    assert score(world) == pytest.approx(2 / 3)
    world.add("iron pickaxe", 1)
    assert score(world) == 1.0


def test_using_things_up_takes_no_credit_back(small_book):
    world = pickaxe(small_book)
    world.add("oak planks", 4)
    world.remove({"oak planks": 4})
    assert world.inventory == {}
    assert score(world) == pytest.approx(1 / 3)


def test_the_goal_alone_is_full_credit(small_book):
    world = pickaxe(small_book)
    world.add("iron pickaxe", 1)
    assert score(world) == 1.0


# -------------------------------------------------------------------------------------- state


def test_a_world_survives_json(small_book):
    world = pickaxe(small_book)
    world.add("oak planks", 4)
    world.add("flint", 1)
    world.remove({"oak planks": 1})
    twin = pickaxe(small_book)
    twin.load_json(json.loads(json.dumps(world.to_json())))
    assert list(twin.inventory.items()) == [("oak planks", 3), ("flint", 1)]
    assert twin.state_key() == world.state_key()
    assert score(twin) == score(world)


@pytest.mark.parametrize(
    "change",
    [
        {"inventory": [["oak planks", 0]]},
        {"inventory": [["oak planks", -1]]},
        {"inventory": [["oak planks", 1.5]]},
        {"inventory": [["oak planks", True]]},
        {"inventory": [["no such item", 1]]},
        {"inventory": [["planks", 1]]},
        {"inventory": "oak planks"},
        {"inventory": None},
        {"progress": [0, 0]},
        {"progress": [0, 0, 2]},
        {"progress": [0, 0, -1]},
        {"progress": [0, 0, "1"]},
    ],
)
def test_a_state_that_cannot_be_is_refused_and_changes_nothing(small_book, change):
    world = pickaxe(small_book)
    world.add("flint", 2)
    state = world.to_json()
    with pytest.raises((ValueError, TypeError)):
        world.load_json(state | change)
    assert world.to_json() == state


def test_the_state_key_depends_on_goal_amounts_and_progress_alone(small_book):
    first, second = pickaxe(small_book), pickaxe(small_book)
    first.add("flint", 1)
    first.add("string", 2)
    second.add("string", 2)
    second.add("flint", 1)
    assert first.state_key() == second.state_key()
    second.add("flint", 1)
    assert first.state_key() != second.state_key()
    second.remove({"flint": 1})
    assert first.state_key() == second.state_key()
    second.add("stick", 2)
    second.remove({"stick": 2})
    assert first.inventory == second.inventory
    assert first.state_key() != second.state_key()  # its score will be another one
    assert (
        TextCraftWorld(small_book, "chest").state_key()
        != TextCraftWorld(small_book, "torch").state_key()
    )


def test_without_partial_credit_the_past_is_no_part_of_the_state(small_book):
    first, second = (pickaxe(small_book, partial_credit=False) for _ in range(2))
    second.add("stick", 2)
    second.remove({"stick": 2})
    assert first.state_key() == second.state_key()
