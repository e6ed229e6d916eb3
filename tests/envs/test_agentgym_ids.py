"""AgentGym's item ids name tasks wherever a task or a set of tasks is asked for."""

import json

import gymnasium
import pytest

from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.errors import InvalidTask, UnknownName

pytest.importorskip("minigrid")


def babyai(**arguments):
    return gymnasium.make("AgentGym/BabyAI-v0", **arguments)


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("babyai_17", AgentGymItem("babyai", 17)),
        ("searchqa_51800", AgentGymItem("searchqa", 51800)),
        ("babyai_017", None),
        ("babyai_-1", None),
        ("babyai_1.0", None),
        ("babyai_\u0661", None),
        ("babyai_1\n", None),
        ("babyai", None),
        ("level_3", None),
        ("babyai/train/GoToRedBall/1", None),
    ],
)
def test_an_item_id_is_a_known_name_and_a_number(text, item):
    assert AgentGymItem.of(text) == item
    if item:
        assert item.id == text


def test_an_item_keeps_what_its_file_says():
    entry = {"item_id": "textcraft_3", "goal": "craft a chest"}
    assert AgentGymItem.of(entry) == AgentGymItem("textcraft", 3, entry)


def test_babyais_number_is_a_level_and_a_seed_by_the_rule_of_its_server():
    # 17 % 40 + 1 = level 18, UnblockPickup, seed 0; 41 is level 2, GoToRedBall, seed 1.
    env = babyai(tasks=["babyai_17", "babyai_41"])
    worlds = [(task.payload["level"], task.seed) for task in env.tasks]
    assert worlds == [("UnblockPickup", 0), ("GoToRedBall", 1)]
    env.reset(options={"task": 1})
    assert env.task.seed == 1


def test_an_item_is_the_certified_task_where_there_is_one_and_any_world_otherwise():
    env = babyai(tasks=[f"babyai_{number}" for number in range(600)])
    splits = {task.split for task in env.tasks}
    assert splits == {"train", "dev", "test", "any"}
    for task in env.tasks:
        assert (task.difficulty is None) == (task.split == "any")
    assert env.tasks.ids == babyai(split="dev", tasks=list(env.tasks.ids)).tasks.ids


def test_an_item_is_the_world_that_compat_has_under_its_number():
    plain, compat = babyai(), babyai(compat="agentgym")
    for number in (0, 3, 17, 62, 399):
        plain.reset(options={"task": f"babyai_{number}"})
        compat.reset(options={"task": number})
        assert (plain.task.goal, plain.task.seed) == (compat.task.goal, compat.task.seed)
        assert plain.state_key() == compat.state_key()
        compat.reset(options={"task": f"babyai_{number}"})
        assert compat.state_key() == plain.state_key()


def test_a_file_as_agentgym_publishes_it_is_a_task_set(tmp_path):
    path = tmp_path / "babyai_test.json"
    path.write_text(json.dumps([{"item_id": f"babyai_{n}"} for n in (5, 6, 7)]), encoding="utf-8")
    env = babyai(tasks=str(path))
    assert [task.category for task in env.tasks] == [
        "GoToObjMazeS7",
        "GoToImpUnlock",
        "GoToSeqS5R2",
    ]
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.tasks.ids == env.tasks.ids
    vector = gymnasium.make_vec("AgentGym/BabyAI-v0", num_envs=2, tasks=str(path))
    _, infos = vector.reset(options={"tasks": ["babyai_6", "babyai_7"]})
    assert infos["task_id"].tolist() == list(env.tasks.ids[1:])
    vector.close()


def test_ids_of_both_kinds_may_be_mixed():
    own = "babyai/any/GoTo/5"
    assert babyai(tasks=[own, {"item_id": "babyai_17"}]).tasks[0].id == own


def test_making_a_task_set_leaves_the_running_episode_alone():
    env = babyai(tasks=["babyai_17"])
    env.reset(options={"task": "babyai/any/GoTo/5"})
    before = env.state_key()
    assert len(env.tasks) == 1
    assert env.state_key() == before


@pytest.mark.parametrize(
    ("env_id", "item", "message"),
    [
        (
            "AgentGym/BabyAI-v0",
            "webarena_9",
            "'webarena_9' is an item of AgentGym's WebArena; item ids here begin with 'babyai_'",
        ),
        (
            "Test/Counting-v0",
            "babyai_9",
            "'babyai_9' is an item of AgentGym's BabyAI; this family takes no item ids",
        ),
    ],
)
def test_an_item_of_another_family_is_refused_by_name(env_id, item, message):
    with pytest.raises(InvalidTask, match=message):
        _ = gymnasium.make(env_id, tasks=[item]).tasks
    with pytest.raises(InvalidTask, match=message):
        gymnasium.make(env_id).reset(options={"task": item})


def test_what_is_no_item_of_anyone_is_an_unknown_task():
    with pytest.raises(UnknownName, match="unknown task 'alfworld_3'"):
        _ = babyai(tasks=["alfworld_3"]).tasks
    with pytest.raises(UnknownName, match="unknown task 'counting_3'"):
        _ = gymnasium.make("Test/Counting-v0", tasks=["counting_3"]).tasks


@pytest.mark.parametrize(
    "said",
    [
        {"goal": "craft chest"},
        {"goal": "chest"},
        {
            "conversations": [
                {"from": "human", "value": "Crafting commands:\n…\n\nGoal: craft chest."}
            ]
        },
    ],
)
@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_textcrafts_goal_is_trusted_more_than_its_number(tmp_path, said, compat):
    path = tmp_path / "textcraft_train.json"
    path.write_text(json.dumps([{"item_id": "textcraft_3"} | said]), encoding="utf-8")
    (task,) = gymnasium.make("AgentGym/TextCraft-v0", tasks=str(path), compat=compat).tasks
    assert task.goal == "craft chest"


def test_textcrafts_number_without_a_goal_is_its_place_in_sorted_order():
    ids = [f"textcraft_{number}" for number in (0, 3, 543)]
    compat = gymnasium.make("AgentGym/TextCraft-v0", tasks=ids, compat="agentgym")
    plain = gymnasium.make("AgentGym/TextCraft-v0", tasks=ids)
    assert [task.goal for task in plain.tasks] == [task.goal for task in compat.tasks]
    for number, task in zip((0, 3, 543), compat.tasks, strict=True):
        compat.reset(options={"task": number})
        assert compat.task.goal == task.goal
