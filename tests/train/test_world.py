"""Which tasks a run uses for what."""

import dataclasses
import json

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.errors import UnknownName, Unsupported
from agentgym_train.commands.settings import parse_settings
from agentgym_train.config import BatchConfig, config_from_dict
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.demonstrations import DemonstrationConfig
from agentgym_train.world import build_world

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


def test_too_few_tasks_for_a_step_are_told_of_when_the_world_is_built(item_file):
    settings = config(train=item_file("train", [7, 47]))
    many = dataclasses.replace(settings, batch=BatchConfig(tasks_per_step=3))
    with pytest.raises(ConfigError, match="wants 3 different tasks, but the task set holds 2"):
        build_world(many)


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
    world = build_world(
        parse_settings([*words, "--env.arguments", "{}", "--eval.tasks", "50"])
    ).splits
    assert [len(world.dev), len(world.test)] == [50, 50]


def test_a_world_that_cannot_demonstrate_says_how_to_do_without(monkeypatch):
    spec = EnvSpec("Test/Mute-v0", entry_point="counting:BareEnv", disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    settings = {"env": {"id": spec.id, "arguments": {"highest": 90}}, "eval": {"tasks": 3}}
    world = build_world(config_from_dict(settings))
    with pytest.raises(
        Unsupported, match=r"bare lacks admissible, oracle; .* start from a trained model"
    ):
        world.demonstrations(DemonstrationConfig(episodes=1))


def test_files_are_given_by_split():
    words = ["--env.tasks", '{"train": "babyai_train.json"}']
    assert parse_settings(words).env.tasks == {"train": "babyai_train.json"}
