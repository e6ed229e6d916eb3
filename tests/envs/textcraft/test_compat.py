"""What AgentGym's server says and does, worked out from its rules; facts of it are from a run."""

import re
from collections import Counter

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.errors import InvalidTask
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS
from agentgym_envs.textcraft.agentgym_book import agentgym_book_of_files, agentgym_book_of_table
from agentgym_envs.textcraft.recipe_files import Choice, FileIngredient, FileRecipe
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.trees import recipe_tree


def make(**kwargs):
    return gymnasium.make("AgentGym/TextCraft-v0", compat="agentgym", **kwargs).unwrapped


@pytest.fixture
def env():
    return make()


@pytest.fixture
def chest(env):
    """An environment with the goal chest."""
    env.reset(options={"task": env._dialect.tasks().of_goal("chest"), "horizon": 1_000})
    return env


def says(env, *commands):
    return [env.step(command)[0] for command in commands]


# --------------------------------------------------------------------------------------- texts


def test_the_first_observation_has_agentgyms_form(chest):
    text, _ = chest.reset(options={"task": chest.task})
    head, goal = text.split("\n\n")
    title, *lines = head.splitlines()
    assert title == "Crafting commands:"
    assert goal == "Goal: craft chest."
    assert "craft 1 chest using 8 planks" in lines
    assert "craft 4 oak planks using 1 oak logs" in lines
    assert len(lines) == len(recipe_tree(chest.world.book, "chest")) + 10
    form = r"craft \d+ [a-z ]+ using \d+ [a-z ]+(, \d+ [a-z ]+)*"
    assert all(re.fullmatch(form, line) for line in lines)


def test_an_episode_in_agentgyms_words(chest):
    assert says(
        chest,
        "inventory",
        "get 2 oak logs",
        "craft 4 oak planks using 1 oak logs",
        "inventory",
        "craft 4 oak planks using 1 oak logs",
        "inventory",
    ) == [
        "Inventory: You are not carrying anything.",
        "Got 2 oak logs",
        "Crafted 4 minecraft:oak_planks",
        "Inventory: [oak logs] (1) [oak planks] (4) ",
        "Crafted 4 minecraft:oak_planks",
        "Inventory: [oak planks] (8) ",
    ]
    observation, reward, terminated, _, info = chest.step("craft 1 chest using 8 oak planks")
    assert (observation, reward, terminated) == ("Crafted 1 minecraft:chest", 1.0, True)
    assert info["success"]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("get 1 oak planks", "Could not find oak planks"),
        ("get 1 planks", "Could not find planks"),
        ("get 1 no such thing", "Could not find no such thing"),
        ("get 0 oak logs", "Could not find oak logs"),
        ("get 4097 oak logs", "Could not find oak logs"),
        ("get -1 oak logs", "Could not execute get -1 oak logs"),
        ("get oak logs", "Could not execute get oak logs"),
        ("fly", "Could not execute fly"),
        ("inventory please", "Could not execute inventory please"),
        ("craft 1 chest", "Could not execute craft 1 chest"),
        ("craft 1 chest using planks", "Wrong item format: planks"),
        ("craft 1 chest using 8 planks", "Could not find enough items to craft minecraft:chest"),
        (
            "craft 1 dark oak sign using 1 stick",
            "Could not find enough items to craft minecraft:dark_oak_sign",
        ),
        ("craft 1 chest using 7 oak planks", "Could not find a valid recipe for minecraft:chest"),
        (
            "craft 1 chest using 4 oak planks, 4 birch planks",
            "Could not find a valid recipe for minecraft:chest",
        ),
        (
            "craft 1 chest using 4 oak planks, 4 oak planks",
            "Could not find a valid recipe for minecraft:chest",
        ),
        (
            "craft 1 chest using 16 oak planks",
            "Could not find a valid recipe for minecraft:chest",
        ),
        (
            "craft 1 nothing using 1 oak planks",
            "Could not find a valid recipe for minecraft:nothing",
        ),
        ("craft 1 chest using 0 oak planks", "Could not find a valid recipe for minecraft:chest"),
    ],
)
def test_what_cannot_be_done_is_answered_in_agentgyms_words(chest, command, answer):
    chest.world.inventory |= {"oak planks": 20, "birch planks": 4}
    before = dict(chest.world.inventory)
    observation, reward, *_, info = chest.step(command)
    assert (observation, reward, info["action_valid"]) == (answer, 0.0, False)
    assert chest.world.inventory == before


@pytest.mark.parametrize("said", ["99 chest", "chest", "0 chest", "1 Chest"])
def test_the_amount_that_is_said_of_the_output_is_not_looked_at(chest, said):
    chest.world.inventory["birch planks"] = 8
    observation, *_, info = chest.step(f"craft {said} using 8 birch planks")
    assert observation == "Crafted 1 minecraft:chest"
    assert info["success"]


def test_groups_that_nothing_makes_are_items_and_their_members_are_of_no_use(chest):
    assert says(chest, "get 1 oak log", "get 1 oak logs", "craft 4 oak planks using 1 oak log") == [
        "Got 1 oak log",
        "Got 1 oak logs",
        "Could not find a valid recipe for minecraft:oak_planks",
    ]


# --------------------------------------------------------------------------------------- goals


def test_our_table_gives_agentgyms_goals_at_its_depths():
    known = agentgym_book_of_table(default_book())
    depths = Counter(known.book.depth[goal] for goal in known.goals)
    assert depths == {1: 125, 2: 291, 3: 117, 4: 11}
    places = (0, 1, 2, 124, 125, 415, 416, 532, 533, 543)
    assert [known.goals[place] for place in places] == [
        *("acacia planks", "acacia wood", "beacon", "yellow dye", "acacia boat", "yellow wool"),
        *("activator rail", "yellow carpet", "cyan banner", "purple banner"),
    ]


def test_an_index_is_a_goal_in_order_of_depth_and_comes_round(env):
    goals = []
    for index in (0, 125, 416, 533, 544):
        env.reset(options={"task": index})
        goals.append((env.task.payload["rank"], env.world.book.depth[env.world.goal]))
    assert goals == [(0, 1), (125, 2), (416, 3), (533, 4), (0, 1)]
    with pytest.raises(InvalidTask, match="begin at 0, got -1"):
        env.reset(options={"task": -1})


def test_the_oracle_solves_goals_of_every_split_with_single_crafts():
    for split in SPLITS:
        env = make(split=split)
        for task in env.tasks.shuffle(0).head(12):
            episode = run_episode(env, task=task)
            assert episode.success
            assert len(episode.turns) == task.difficulty


def test_files_are_kept_by_agentgyms_rules():
    """Of a pair of recipes that undo one another the first file counts, and blocks are left out."""

    def file(output, count, **taken):
        parts = tuple(
            FileIngredient((Choice(f"minecraft:{name}", False),), number)
            for name, number in taken.items()
        )
        return FileRecipe(output, f"minecraft:{output}", count, parts)

    ingot, nugget = file("ingot", 1, nugget=9), file("nugget", 9, ingot=1)
    unpacked, block = file("ingot", 9, ingot_block=1), file("ingot_block", 1, ingot=9)
    known = agentgym_book_of_files((block, unpacked, ingot, nugget))
    assert known.goals == ("ingot", "ingot block")
    assert known.book.base == {"nugget"}
    known = agentgym_book_of_files((block, nugget, unpacked, ingot))
    assert known.goals == ("ingot block", "nugget")
    assert known.book.base == {"ingot"}


def test_of_alternatives_the_first_counts_and_lines_keep_the_order_of_the_file():
    coal = FileIngredient((Choice("minecraft:coal", False), Choice("minecraft:charcoal", False)), 1)
    stick = FileIngredient((Choice("minecraft:stick", False),), 1)
    known = agentgym_book_of_files((FileRecipe("torch", "minecraft:torch", 4, (stick, coal)),))
    assert list(known.lines.values()) == ["craft 4 torch using 1 stick, 1 coal"]
    assert known.book.base == {"stick", "coal"}


def test_a_folder_is_read_by_agentgyms_rules_and_plays_on_its_own(large_folder):
    env = make(recipes_dir=str(large_folder), split="test")
    episode = run_episode(env, task=env.tasks[0])
    assert episode.success
    assert episode.first_observation.endswith(f"Goal: {env.task.goal}.")
