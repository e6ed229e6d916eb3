"""Which tasks a run uses for what."""

import json

import pytest

from agentgym_envs.errors import InvalidTask
from agentgym_train.commands import parse_settings
from agentgym_train.config import config_from_dict
from agentgym_train.errors import ConfigError
from agentgym_train.world import build_world, fingerprint

ID = "agentgym_envs:AgentGym/BabyAI-v0"


def config(**tasks):
    return config_from_dict({"env": {"id": ID, "tasks": tasks}, "eval": {"tasks": 3}})


@pytest.fixture
def item_file(tmp_path):
    """Writes files as AgentGym-RL publishes them."""

    def write(name, numbers):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps([{"item_id": f"babyai_{n}"} for n in numbers]), encoding="utf-8")
        return str(path)

    return write


def test_files_of_item_ids_take_the_place_of_splits(item_file):
    files = {
        split: item_file(split, range(start, start + 4))
        for split, start in {"train": 0, "dev": 40, "test": 80}.items()
    }
    world = build_world(config(**files))
    levels = ["GoToRedBallGrey", "GoToRedBall", "GoToRedBallNoDists", "GoToObjS6"]
    for tasks, seed, count in ((world.train, 0, 4), (world.dev, 1, 3), (world.test, 2, 3)):
        assert [(task.category, task.seed) for task in tasks] == [
            (level, seed) for level in levels[:count]
        ]
    other = build_world(config(**files | {"train": item_file("other", [4])}))
    one, two = (fingerprint(config(**files), each)["tasks"] for each in (world, other))
    assert one["train"] != two["train"]
    assert one["test"] == two["test"]


def test_a_task_to_learn_from_may_not_be_held_out_as_well(item_file):
    held_out = build_world(config()).test[0]
    path = item_file("ids", [0]).replace("json", "txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(held_out.id)
    with pytest.raises(ConfigError, match=f"'{held_out.id}' is in train and in test"):
        build_world(config(train=path))


def test_files_are_given_by_split():
    words = ["--env.tasks", '{"train": "babyai_train.json"}']
    assert parse_settings(words).env.tasks == {"train": "babyai_train.json"}
    with pytest.raises(ConfigError, match=r"files by split, train, dev, test; got 'tset': 'x'"):
        config(tset="x")
    with pytest.raises(ConfigError, match="got 'train': 5"):
        config(train=5)
    with pytest.raises(InvalidTask, match=r"cannot read task ids from the file 'nowhere.json'"):
        build_world(config(train="nowhere.json"))
