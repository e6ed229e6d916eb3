"""Which tasks a run uses for what."""

import dataclasses
import json

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_train.commands.settings import parse_settings
from agentgym_train.config import BatchConfig, config_from_dict
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.demonstrations import DemonstrationConfig
from agentgym_train.world import build_world, fingerprint

ID = "agentgym_envs:AgentGym/BabyAI-v0"


def config(**tasks):
    return config_from_dict(
        {
            "env": {"id": ID, "tasks": tasks},
            "eval": {"tasks": 3},
            "batch": {"tasks_per_step": 1},
        }
    )


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
    one, two = (fingerprint(config(**files), each)["data"] for each in (world, other))
    assert one["train"] != two["train"]
    assert one["test"] == two["test"]


def test_a_task_to_learn_from_may_not_be_held_out_as_well(item_file):
    held_out = build_world(config()).test[0]
    path = item_file("ids", [0]).replace("json", "txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(held_out.id)
    with pytest.raises(ConfigError, match=f"'{held_out.id}' is in train and in test"):
        build_world(config(train=path))


def test_shared_tasks_are_told_of_before_their_number(item_file):
    shared = item_file("shared", [0, 40])
    with pytest.raises(ConfigError, match="is in train and in dev"):
        build_world(config(train=shared, dev=shared))


def test_too_few_tasks_are_told_of_when_the_world_is_built(item_file):
    settings = config(train=item_file("train", [7, 47]))
    many = dataclasses.replace(settings, batch=BatchConfig(tasks_per_step=3))
    with pytest.raises(ConfigError, match="wants 3 different tasks, but the task set holds 2"):
        build_world(many)
    with pytest.raises(ConfigError, match=r"the dev split holds 2 tasks; .* or choose more tasks$"):
        build_world(config(dev=item_file("dev", [4_000_000, 4_000_040])))


@pytest.mark.parametrize(
    ("env_id", "near"),
    [("TextCraft", "AgentGym/TextCraft-v0"), ("agentgym_envs:BabyAI", "AgentGym/BabyAI-v0")],
)
def test_an_id_that_does_not_exist_suggests_text_worlds(env_id, near):
    with pytest.raises(UnknownName, match=f"did you mean '{near}'"):
        build_world(parse_settings(["--env.id", env_id]))


def test_arguments_of_the_preset_that_another_world_does_not_take_can_be_left_out():
    words = ["--env.id", "AgentGym/TextCraft-v0"]
    with pytest.raises(ConfigError, match=r"TextCraftEnv 'levels'; .* --env.arguments '{}' gives"):
        build_world(parse_settings(words))
    world = build_world(parse_settings([*words, "--env.arguments", "{}", "--eval.tasks", "50"]))
    assert [len(world.dev), len(world.test)] == [50, 50]


def test_a_world_that_cannot_demonstrate_says_how_to_do_without(monkeypatch):
    spec = EnvSpec("Test/Mute-v0", entry_point="counting:BareEnv", disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    settings = {"env": {"id": spec.id, "arguments": {"highest": 90}}, "eval": {"tasks": 3}}
    world = build_world(config_from_dict(settings))
    with pytest.raises(
        ConfigError, match="bare lacks admissible, oracle; .* start from a trained model"
    ):
        world.demonstrations(DemonstrationConfig(episodes=1))


def test_files_are_given_by_split():
    words = ["--env.tasks", '{"train": "babyai_train.json"}']
    assert parse_settings(words).env.tasks == {"train": "babyai_train.json"}
    with pytest.raises(ConfigError, match=r"files by split, train, dev, test; got 'tset': 'x'"):
        config(tset="x")
    with pytest.raises(ConfigError, match="got 'train': 5"):
        config(train=5)
    with pytest.raises(InvalidTask, match=r"cannot read task ids from the file 'nowhere.json'"):
        build_world(config(train="nowhere.json"))
