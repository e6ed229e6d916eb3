import pickle
from collections import Counter

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS
from agentgym_envs.textcraft.families import HOLDOUTS, family_of, variant_split_of
from agentgym_envs.textcraft.planner import planner_of
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.tasks import default_tasks, tasks_of_book


def make(**kwargs):
    return gymnasium.make("AgentGym/TextCraft-v0", **kwargs).unwrapped


def items_of(tasks):
    return [task.payload["item"] for task in tasks]


def split_items():
    return {split: items_of(default_tasks().by_variants.of_split(split)) for split in SPLITS}


# ------------------------------------------------------------------------------------- the splits


def test_some_variants_of_a_thing_are_held_out_and_others_are_not():
    splits = {item: split for split, items in split_items().items() for item in items}
    assert splits == {goal: variant_split_of(goal) for goal in default_book().goals}
    assert Counter(splits.values()) == {"train": 450, "dev": 50, "test": 51}
    pickaxes = {f"{kind} pickaxe" for kind in ("wooden", "stone", "iron", "golden", "diamond")}
    assert {item for item in pickaxes if splits[item] != "train"} == {"iron pickaxe"}
    assert splits["iron pickaxe"] == "dev"
    assert splits["stick"] == "train"


def test_every_word_of_a_held_out_goal_stands_in_three_goals_of_train():
    items = split_items()
    uses = Counter(word for item in items["train"] for word in item.split())
    for item in (*items["dev"], *items["test"]):
        assert min(uses[word] for word in item.split()) >= 3, item


def test_every_family_keeps_two_thirds_of_its_goals_in_train():
    families = Counter(map(family_of, default_book().goals))
    in_train = Counter(map(family_of, split_items()["train"]))
    assert in_train.keys() == families.keys()
    for family, goals in families.items():
        assert in_train[family] >= goals - goals // 3
        assert in_train[family] == goals or goals >= 4


def test_no_plan_makes_a_held_out_goal_on_its_way():
    plan = planner_of(default_book()).plan
    for goal in default_book().goals:
        made = {step.text.split(" using ")[0].split(" ", 2)[2] for step in plan(goal)}
        assert {item for item in made if variant_split_of(item) != "train"} <= {goal}


def test_dev_and_test_have_as_many_goals_that_are_not_deep():
    numbers = {
        split: len(make(holdout="variants", split=split, max_depth=2).tasks) for split in SPLITS
    }
    assert numbers == {"train": 356, "dev": 34, "test": 34}


def test_of_other_books_only_goals_that_ours_has_are_held_out(small_book):
    tasks = tasks_of_book(small_book).by_variants
    assert items_of(tasks.of_split("dev")) == ["iron pickaxe"]
    assert items_of(tasks.of_split("test")) == []
    assert variant_split_of("pale oak stairs") == "train"


# --------------------------------------------------------------------------------- tasks and ids


def test_an_id_says_what_is_held_out_and_names_one_task():
    task = default_tasks().by_variants.of_goal("iron pickaxe")
    assert (task.id, task.split) == ("textcraft/dev/variants/iron_pickaxe", "dev")
    other = default_tasks().of_goal("iron pickaxe")
    assert task.seed != other.seed
    assert (task.goal, task.payload) == (other.goal, other.payload)
    ids = [set(make(holdout=rule, split=split).tasks.ids) for rule in HOLDOUTS for split in SPLITS]
    assert sum(map(len, ids)) == len(set.union(*ids)) == 2 * 551


@pytest.mark.parametrize(
    ("holdout", "known", "unknown"),
    [
        ("variants", "textcraft/dev/variants/iron_pickaxe", "textcraft/train/iron_pickaxe"),
        ("families", "textcraft/train/iron_pickaxe", "textcraft/dev/variants/iron_pickaxe"),
    ],
)
def test_an_id_of_one_rule_is_unknown_under_the_other(holdout, known, unknown):
    env = make(holdout=holdout)
    assert "craft iron pickaxe" in env.reset(options={"task": known})[0]
    with pytest.raises(UnknownName, match=f"unknown task '{unknown}'; did you mean .*{known}"):
        env.reset(options={"task": unknown})


def test_a_task_itself_is_played_alike_under_both_rules():
    task = default_tasks().by_variants.of_goal("iron pickaxe")
    played = [make(holdout=rule).reset(options={"task": task}) for rule in HOLDOUTS]
    assert played[0] == played[1]


def test_the_oracle_solves_what_is_held_out():
    for split in ("dev", "test"):
        env = make(holdout="variants", split=split)
        for task in env.tasks:
            episode = run_episode(env, task=task)
            assert (episode.success, len(episode.turns)) == (True, task.difficulty)


def test_agentgyms_goals_are_split_by_the_same_rule():
    env = make(holdout="variants", compat="agentgym", split="test")
    assert {variant_split_of(item) for item in items_of(env.tasks)} == {"test"}
    assert len(env.tasks) == 51


def test_task_sets_of_variants_survive_pickling():
    tasks = make(holdout="variants", split="dev").tasks
    assert pickle.loads(pickle.dumps(tasks)).digest() == tasks.digest()


# -------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("holdout", HOLDOUTS)
def test_max_depth_leaves_out_deeper_goals_but_refuses_none(holdout):
    whole, shallow = make(holdout=holdout), make(holdout=holdout, max_depth=2)
    depth = default_book().depth
    expected = [item for item in items_of(whole.tasks) if depth[item] <= 2]
    assert items_of(shallow.tasks) == expected
    assert len(expected) < len(whole.tasks)
    deep = next(task for task in whole.tasks if depth[task.payload["item"]] == 3)
    assert shallow.reset(options={"task": deep.id}) == whole.reset(options={"task": deep.id})


def test_other_rules_and_depths_are_refused():
    with pytest.raises(UnknownName, match="unknown holdout 'colors'; valid are families, variants"):
        make(holdout="colors")
    with pytest.raises(ValueError, match="max_depth must be a whole number of at least 1, got 0"):
        make(max_depth=0)
    with pytest.raises(ValueError, match="at least 1, got 'two'"):
        make(max_depth="two")
    with pytest.raises(InvalidTask, match="index 34 is out of range; there are 34"):
        make(holdout="variants", split="test", max_depth=2).reset(options={"task": 34})
