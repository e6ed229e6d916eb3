import json
import pickle
import subprocess
import sys

import pytest

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.tasks import SPLITS
from agentgym_envs.textcraft.families import category_of, family_of, split_of
from agentgym_envs.textcraft.planner import Planner
from agentgym_envs.textcraft.recipes import Ingredient, Recipe, RecipeBook, default_book
from agentgym_envs.textcraft.tasks import (
    BookTasks,
    Goal,
    certified_tasks,
    default_tasks,
    goals_of,
    tasks_of_book,
    tasks_of_lines,
)


def test_a_task_names_its_goal():
    task = default_tasks().of_goal("iron pickaxe")
    assert task.to_json() == {
        "family": "textcraft",
        "id": "textcraft/train/iron_pickaxe",
        "split": "train",
        "goal": "craft iron pickaxe",
        "category": "depth 2",
        "seed": 317068276,
        "horizon": 15,
        "difficulty": 4,
        "payload": {
            "item": "iron pickaxe",
            "rank": default_book().goals.index("iron pickaxe"),
            "book": default_book().digest[:8],
        },
    }


def test_the_rank_is_the_place_in_the_order_of_depth_and_name():
    tasks = default_tasks()
    assert len(tasks) == len(default_book().goals)
    for rank in range(len(tasks)):
        task = tasks.task(rank)
        assert task.payload["rank"] == rank
        assert task.payload["item"] == default_book().goals[rank]


@pytest.mark.parametrize("split", SPLITS)
def test_indices_of_a_split_follow_the_rank(split):
    ranks = [task.payload["rank"] for task in certified_tasks(split)]
    assert ranks == sorted(ranks)
    assert {task.split for task in certified_tasks(split)} == {split}


def test_the_splits_hold_every_goal_once():
    items = [task.payload["item"] for split in SPLITS for task in certified_tasks(split)]
    assert sorted(items) == sorted(default_book().goals)


def test_seeds_depend_on_the_id_alone_and_differ():
    seeds = {task.seed for split in SPLITS for task in certified_tasks(split)}
    assert len(seeds) == 551
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_the_horizon_is_twice_the_oracles_turns_and_five_and_at_least_15():
    assert [default_tasks().of_goal(goal).horizon for goal in ("stick", "cyan bed")] == [15, 25]
    for split in SPLITS:
        for task in certified_tasks(split):
            assert task.horizon == max(15, 2 * task.difficulty + 5)


def test_tasks_are_found_by_id_and_goal_in_every_split():
    tasks = default_tasks()
    for task in certified_tasks("test"):
        assert tasks.of_id(task.id) == tasks.of_goal(task.payload["item"]) == task
    train = certified_tasks("train")
    assert train["textcraft/train/iron_pickaxe"].goal == "craft iron pickaxe"
    with pytest.raises(UnknownName, match="unknown task of this set 'textcraft/test/bone_meal'"):
        train["textcraft/test/bone_meal"]


def test_what_is_no_task_is_answered_with_near_ones():
    tasks = default_tasks()
    with pytest.raises(UnknownName, match="did you mean 'textcraft/train/iron_pickaxe'"):
        tasks.of_id("textcraft/train/iron_pick_axe")
    with pytest.raises(UnknownName, match="unknown goal 'iron pickax'; did you mean"):
        tasks.of_goal("iron pickax")
    with pytest.raises(UnknownName, match="unknown goal 'iron ingot'"):
        tasks.of_goal("iron ingot")  # is fetched
    with pytest.raises(UnknownName, match="unknown split 'validation'"):
        certified_tasks("validation")


def test_the_file_of_goals_follows_the_rules_for_any_book():
    by_rule = tasks_of_book(default_book())
    for split in SPLITS:
        assert by_rule.of_split(split).digest() == certified_tasks(split).digest()


@pytest.mark.parametrize("line", ["", "train 1 2", "train one 2 stick", "train 1 two stick"])
def test_a_line_of_another_form_is_refused(line):
    with pytest.raises(InvalidTask, match=f"not a goal of textcraft: '{line}'"):
        tasks_of_lines(default_book(), ["train 1 2 oak planks", line])


# ------------------------------------------------------------------------------------ other books


def test_another_book_has_tasks_by_the_same_rules(small_book):
    tasks = tasks_of_book(small_book)
    assert [goal.item for goal in goals_of(small_book)] == list(small_book.goals)
    for rank, item in enumerate(small_book.goals):
        task = tasks.task(rank)
        assert task.split == split_of(item)
        assert task.category == category_of(small_book.depth[item])
        assert task.payload["book"] == small_book.digest[:8] != default_book().digest[:8]
    assert tasks.of_goal("chest").difficulty == 3


def test_steps_are_counted_when_a_task_is_asked_for(small_book):
    asked = []

    def num_steps(item):
        asked.append(item)
        return 7

    tasks = BookTasks(small_book, goals_of(small_book), num_steps)
    assert len(tasks.of_split("train")) > 0
    assert tasks.row("textcraft/train/none") is None
    assert asked == []
    assert tasks.of_goal("chest").horizon == 19
    assert asked == ["chest"]


def test_the_planner_that_counts_may_be_another_one(small_book):
    own = tasks_of_book(small_book).of_goal("fishing rod")
    single = tasks_of_book(small_book, Planner(small_book, single_crafts=True))
    assert own.difficulty == single.of_goal("fishing rod").difficulty == 5


def test_a_split_of_a_small_book_may_be_empty():
    book = RecipeBook("tiny", [Recipe("b", 1, (Ingredient("a", 1),))], kinds={}, base=["a"])
    assert tasks_of_book(book).of_split(split_of("b")).ids == (f"textcraft/{split_of('b')}/b",)
    (empty, _) = (split for split in SPLITS if split != split_of("b"))
    assert tasks_of_book(book).of_split(empty).ids == ()


def test_a_goal_that_takes_too_many_commands_is_a_task_that_nobody_has_solved():
    chain = [Recipe(f"i{n + 1}", 1, (Ingredient(f"i{n}", 9),)) for n in range(9)]
    tasks = tasks_of_book(RecipeBook("chain", chain, kinds={}, base=["i0"]))
    assert tasks.of_goal("i3").difficulty == 4
    hopeless = tasks.of_goal("i9")
    assert (hopeless.difficulty, hopeless.horizon) == (None, 20_005)


def test_goals_whose_ids_would_be_the_same_are_refused(small_book):
    goals = [Goal("a b", 1, "train"), Goal("a_b", 1, "train")]
    with pytest.raises(InvalidTask, match="'a b' and 'a_b' would have the same id"):
        BookTasks(small_book, goals, len)


# ------------------------------------------------------------------------------------ determinism


def test_task_sets_survive_pickling(small_book):
    for tasks in (certified_tasks("dev"), tasks_of_book(small_book).of_split("train")):
        assert pickle.loads(pickle.dumps(tasks)).digest() == tasks.digest()


def test_hash_seeds_change_no_task():
    code = """
import json
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.tasks import *
for split in ("train", "dev", "test"):
    print(certified_tasks(split).digest(), tasks_of_book(default_book()).of_split(split).digest())
book = default_book()
plan = Planner(book).plan
print(json.dumps([[step.text for step in plan(goal)] for goal in book.goals[::20]]))
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(printed) == 1
    assert len(json.loads(printed.pop().splitlines()[-1])) == 28


def test_no_family_of_goals_is_in_two_splits():
    families = [
        {family_of(task.payload["item"]) for task in certified_tasks(split)} for split in SPLITS
    ]
    assert sum(map(len, families)) == len(set.union(*families)) == 139
