import json

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.errors import InvalidState, InvalidTask, UnknownName
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS, Task
from agentgym_envs.textcraft.families import family_of
from agentgym_envs.textcraft.minecraft_data import known_versions
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.tasks import default_tasks

ID = "AgentGym/TextCraft-v0"


def make(**kwargs):
    return gymnasium.make(ID, **kwargs).unwrapped


def reset_to(env, item):
    return env.reset(options={"task": default_tasks().of_goal(item).id})


@pytest.fixture
def env():
    return make()


# -------------------------------------------------------------------------------------- play


def test_making_the_goal_ends_the_episode_with_reward_1(env):
    observation, info = reset_to(env, "chest")
    assert observation.startswith("Your goal: craft chest\n")
    assert not info["success"]
    rewards = []
    for command in (
        "get 2 oak log",
        "craft 8 oak planks using 2 oak log",
        "craft 1 chest using 8 oak planks",
    ):
        observation, reward, terminated, truncated, info = env.step(command)
        rewards.append(reward)
        assert info["action_valid"]
    assert rewards == [0.0, 0.0, 1.0]
    assert (terminated, truncated) == (True, False)
    assert (info["success"], info["score"], info["end_reason"]) == (True, 1.0, "success")
    assert observation == "You crafted 1 chest and have 1 now. That was the goal."


def test_a_command_that_cannot_be_done_costs_a_turn_and_changes_nothing(env):
    reset_to(env, "chest")
    env.step("get 2 oak log")
    key = env.state_key()
    for turn, reply in enumerate(
        ("get 0 oak log", "get -3 oak log", "get 99999 oak log", "get 1 oka log", "craft", ""), 2
    ):
        observation, reward, terminated, truncated, info = env.step(reply)
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert (info["turn"], info["action_valid"], env.state_key()) == (turn, False, key)
        assert observation.endswith(".") or observation.endswith("?")


def test_partial_credit_pays_each_part_of_the_tree_once():
    env = make(partial_credit=True)
    reset_to(env, "chest")
    rewards = []
    for command in (
        "get 3 oak log",
        "craft 4 oak planks using 1 oak log",
        "craft 4 oak planks using 1 oak log",
        "craft 4 oak planks using 1 oak log",
        "craft 1 chest using 8 oak planks",
    ):
        _, reward, *_, info = env.step(command)
        rewards.append(reward)
    assert rewards == [0.0, 0.0, 0.5, 0.0, 0.5]
    assert info["success"]


def test_a_refused_command_keeps_partial_credit():
    env = make(partial_credit=True)
    reset_to(env, "chest")
    env.step("get 2 oak log")
    env.step("craft 8 oak planks using 2 oak log")
    *_, info = env.step("craft 1 chest using 9 oak planks")
    assert (info["score"], info["action_valid"]) == (0.5, False)


def test_extras_in_info():
    env = make(info_keys=("inventory", "depth", "state_key", "admissible"))
    _, info = reset_to(env, "chest")
    assert (info["inventory"], info["depth"]) == ({}, 2)
    env.step("get 3 spruce log")
    *_, info = env.step("get 2 oak log")
    assert list(info["inventory"].items()) == [("oak log", 2), ("spruce log", 3)]
    assert "craft 4 oak planks using 1 oak log" in info["admissible"]


def test_ansi_shows_goal_and_inventory():
    env = make(render_mode="ansi")
    reset_to(env, "chest")
    env.step("get 2 oak log")
    assert env.render().startswith("Goal: chest\nInventory:\n  2 oak log\nRecipes:\n")


@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_the_oracle_plays_from_wherever_a_policy_has_got_to(compat):
    env = make(compat=compat, partial_credit=True, split="test")
    for index in range(0, len(env.tasks), 9):
        env.reset(seed=0, options={"task": env.tasks[index].id})
        for command in env.admissible()[::3][:6]:
            env.step(command)
        episode_over, oracle = False, env.oracle()
        while not episode_over:
            *_, terminated, truncated, info = env.step(oracle.reply("", {}))
            assert info["action_valid"]
            episode_over = terminated or truncated
        assert info["success"], env.task.id


# -------------------------------------------------------------------------------------- tasks


def test_tasks_are_named_by_their_goals_and_numbered_in_their_split(env):
    for index in (0, 1, len(env.tasks) - 1):
        task = env.tasks[index]
        item = task.payload["item"]
        assert task.id == f"textcraft/train/{item.replace(' ', '_')}"
        assert task.goal == f"craft {item}"
        first, info = env.reset(options={"task": index})
        assert info["task_id"] == task.id
        assert env.world.goal == item
        assert task.goal in first


def test_a_task_of_another_split_can_be_named(env):
    other = make(split="test").tasks[0].id
    assert env.reset(options={"task": other})[1]["task_id"] == other
    assert make(tasks=[other]).tasks.ids == (other,)


def test_a_near_id_is_suggested(env):
    with pytest.raises(UnknownName, match=r"textcraft/.*/iron_pickaxe"):
        env.reset(options={"task": "textcraft/train/iron_pickax"})


def test_no_family_of_goals_is_in_two_splits():
    splits = {split: make(split=split).tasks for split in SPLITS}
    families = [{family_of(task.payload["item"]) for task in tasks} for tasks in splits.values()]
    assert not families[0] & families[1]
    assert not families[0] & families[2]
    assert not families[1] & families[2]
    assert sum(map(len, splits.values())) == len(default_book().goals)


def test_the_seed_of_a_reset_has_no_part_in_the_world(env):
    task = env.tasks[3].id
    assert env.reset(seed=1, options={"task": task}) == env.reset(seed=2, options={"task": task})


@pytest.mark.parametrize(
    "change",
    [
        {"payload": {}},
        {"payload": {"item": "oak log"}},
        {"payload": {"item": "no such item"}},
        {"payload": {"item": ["chest"]}},
        {"seed": None},
        {"goal": "craft a chest"},
    ],
)
def test_a_task_that_is_none_of_this_family_is_refused(env, change):
    good = env.tasks[0].to_json()
    with pytest.raises(InvalidTask, match="needs a seed and a payload"):
        env.reset(options={"task": Task.from_json(good | change)})


def test_a_task_of_other_recipes_is_refused(env, large_folder):
    other = make(recipes_dir=str(large_folder))
    task = other.tasks[0]
    with pytest.raises(InvalidTask, match="is of other recipes"):
        env.reset(options={"task": task})
    with pytest.raises(InvalidTask, match="is of other recipes"):
        make(compat="agentgym").reset(options={"task": env.tasks[0]})


# ------------------------------------------------------------------------------------- states


def test_a_state_of_other_recipes_is_refused(small_folder, tmp_path):
    folder = tmp_path / "recipes"
    folder.mkdir()
    for file in small_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    env = make(recipes_dir=str(folder))
    env.reset()
    state = env.save_state()
    make(recipes_dir=str(folder)).load_state(state)
    chest = next(folder.glob("chest_*.json"))
    data = json.loads(chest.read_text())
    data["result"]["count"] = 2
    chest.write_text(json.dumps(data))
    with pytest.raises(InvalidState, match="saved by another environment"):
        make(recipes_dir=str(folder)).load_state(state)


def test_a_loaded_state_goes_on_with_the_same_recipes_and_progress():
    env = make(partial_credit=True, render_mode="ansi")
    reset_to(env, "chest")
    env.step("get 2 oak log")
    env.step("craft 8 oak planks using 2 oak log")
    twin = env.clone()
    assert twin.render() == env.render()
    assert twin.step("craft chest using 8 oak planks") == env.step("craft chest using 8 oak planks")


# ---------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("kwargs", "kind", "message"),
    [
        ({"num_distractors": -1}, ValueError, "num_distractors must be .* at least 0, got -1"),
        ({"num_distractors": "ten"}, ValueError, "got 'ten'"),
        ({"partial_credit": "no"}, TypeError, "partial_credit must be True or False"),
        ({"recipes_dir": ".", "minecraft_version": "1.17"}, ValueError, "leave minecraft_version"),
        ({"recipes_dir": "/no/such/folder"}, InvalidTask, "/no/such/folder"),
        ({"recipes_dir": ""}, InvalidTask, "cannot read the recipe folder ''"),
        ({"recipes_dir": 5}, TypeError, "recipes_dir must be a text or None, got 5"),
        ({"minecraft_version": 1.17}, TypeError, "minecraft_version must be a text .*, got 1.17"),
        ({"compat": "adapt"}, UnknownName, "agentgym"),
    ],
)
def test_arguments_are_checked_when_the_environment_is_made(kwargs, kind, message):
    with pytest.raises(kind, match=message):
        make(**kwargs)


def test_the_version_of_the_own_recipes_needs_no_package(env):
    assert make(minecraft_version="1.16.5").tasks.digest() == env.tasks.digest()


@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_recipes_of_other_versions_are_played_with_the_package_that_has_them(compat):
    pytest.importorskip("minecraft_data")
    for version in ("1.12.2", "1.17.1"):
        env = make(minecraft_version=version, compat=compat, split="test")
        assert run_episode(env, task=env.tasks[3]).success
    for wrong in ("1.165", ""):
        with pytest.raises(UnknownName, match="Minecraft version"):
            make(minecraft_version=wrong, compat=compat)


def test_every_version_of_the_data_set_can_be_played():
    pytest.importorskip("minecraft_data")
    for version in known_versions():
        env = make(minecraft_version=version, split="test")
        for index in (0, len(env.tasks) // 2, -1):
            assert run_episode(env, task=index).success, version


def test_the_number_of_distractors_is_an_argument():
    none, many = make(num_distractors=0), make(num_distractors=20)
    assert len(reset_to(none, "chest")[0]) < len(reset_to(many, "chest")[0])
    assert len(none.world.shown) == 9
    assert len(many.world.shown) == 29


def test_a_folder_of_recipes_is_played_with_its_own_tasks(large_folder):
    env = make(recipes_dir=str(large_folder), split="dev")
    episode = run_episode(env, task=0)
    assert episode.success
    assert len(env.tasks) == len(make(split="dev").tasks)


def test_a_split_without_tasks_says_so_and_leaves_the_tasks_of_others(small_folder, tmp_path):
    chest = next(small_folder.glob("chest_*.json"))
    (tmp_path / "chest.json").write_bytes(chest.read_bytes())
    env = make(recipes_dir=str(tmp_path), split="dev")
    with pytest.raises(InvalidTask, match="the task set of textcraft/dev is empty"):
        env.reset()
    named = make(recipes_dir=str(tmp_path), split="dev", tasks=["textcraft/train/chest"])
    assert run_episode(named).success


# ------------------------------------------------------------------------------- AgentGym's ids


def test_an_item_id_is_a_goal_in_the_order_of_sorted_files(env):
    compat = make(compat="agentgym")
    for number in (0, 3, 543):
        compat.reset(options={"task": number})
        env.reset(options={"task": f"textcraft_{number}"})
        assert env.world.goal == compat.world.goal
    assert env.world.book.depth[env.world.goal] == 4


def test_a_goal_that_an_item_states_counts_more_than_its_number():
    said = {"from": "human", "value": "Crafting commands:\ncraft ...\n\nGoal: craft oak fence.\n"}
    entry = {"item_id": "textcraft_3", "conversations": [{"from": "gpt", "value": "OK."}, said]}
    for compat in (None, "agentgym"):
        (task,) = make(tasks=[entry], compat=compat).tasks
        assert task.payload["item"] == "oak fence"


def test_an_item_that_cannot_be_mapped_is_refused_by_name(small_folder):
    with pytest.raises(InvalidTask, match="'textcraft_3' asks for 'nowhere'"):
        _ = make(tasks=[{"item_id": "textcraft_3", "text": "Goal: craft nowhere."}]).tasks
    with pytest.raises(InvalidTask, match="'textcraft_56' asks for 'iron ingot', which is fetched"):
        _ = make(tasks=["textcraft_56"]).tasks
    with pytest.raises(InvalidTask, match="'textcraft_3': its goal must be a text, got 5"):
        _ = make(tasks=[{"item_id": "textcraft_3", "goal": 5}]).tasks


def test_two_entries_that_mean_one_task_are_named():
    entries = ["textcraft_3", {"item_id": "textcraft_547"}]  # 544 goals: 547 is 3 again
    with pytest.raises(InvalidTask, match="'textcraft_3' and 'textcraft_547' are one task"):
        _ = make(tasks=entries).tasks
