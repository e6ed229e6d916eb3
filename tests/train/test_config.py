"""Settings: presets, files, the command line, and what is refused."""

import dataclasses
import shlex

import pytest

from agentgym_envs.errors import UnknownName
from agentgym_train.commands import parse_settings
from agentgym_train.config import (
    TrainConfig,
    config_from_dict,
    config_to_dict,
    load_preset,
    preset_names,
    read_config,
    write_config,
)
from agentgym_train.errors import ConfigError


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_survives_a_file(name, tmp_path):
    config = load_preset(name)
    assert config.preset == name
    write_config(config, tmp_path / "config.toml")
    assert read_config(tmp_path / "config.toml") == config


def test_settings_survive_a_dict():
    config = TrainConfig()
    assert config_from_dict(config_to_dict(config)) == config


def test_flags_are_laid_over_the_preset():
    config = parse_settings(
        shlex.split(
            """--run.steps 7 --env.arguments '{"levels": "BossLevel"}'
            --horizon.stages 5 8 --horizon.steps 3 --grpo.permute-rewards"""
        )
    )
    preset = load_preset("first-run")
    assert config.run.steps == 7
    assert config.env.arguments == {"levels": "BossLevel"}
    assert config.horizon.stages == (5, 8)
    assert config.grpo.permute_rewards
    assert config.batch == preset.batch
    assert config.grpo == dataclasses.replace(preset.grpo, permute_rewards=True)


def test_a_file_of_settings_starts_another_run(tmp_path):
    path = tmp_path / "config.toml"
    write_config(parse_settings(["--run.seed", "5"]), path)
    config = parse_settings(["--config", str(path), "--run.steps", "3"])
    assert (config.run.seed, config.run.steps) == (5, 3)


def test_an_unknown_preset_names_near_ones():
    with pytest.raises(UnknownName, match=r"unknown preset 'first_run'.*'first-run'"):
        parse_settings(["--preset", "first_run"])


def test_an_unknown_setting_names_near_ones():
    with pytest.raises(UnknownName, match=r"unknown setting 'run.step'.*'run.steps'"):
        config_from_dict({"run": {"step": 3}})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"run": {"steps": "many"}}, "run.steps must be int, got 'many'"),
        ({"run": {"steps": -1}}, "run.steps must be at least 0.* got -1"),
        ({"run": {"algorithm": "ppo"}}, "run.algorithm must be one of 'grpo', 'sft', got 'ppo'"),
        ({"batch": {"group_size": 1}}, "set batch.group_size to 2 or more .* got 1"),
        ({"eval": {"horizon": 6}}, "up to 8 turns but evaluation stops at 6"),
        ({"env": {"arguments": {"split": "test"}}}, "must not hold .'split'."),
        ({"env": {"num_envs": 0}}, "env.num_envs must be at least 1, got 0"),
        ({"model": {"num_heads": 0}}, "model.num_heads must be at least 1"),
        ({"learner": {"betas": [0.9]}}, r"learner.betas must be .*float, float.*, got \[0.9\]"),
        ({"run": 3}, "run must be a table, got 3"),
        ({"run": {"threads": -1}}, "run.threads must be at least 0, got .* -1"),
        (
            {"warmup": {"episodes_per_step": 9, "demonstrations": {"episodes": 8}}},
            "wants 9 different demonstrations, but only 8",
        ),
        ({"model": {"hidden_size": 100, "num_heads": 3}}, "multiple of model.num_heads, got 100"),
        ({"sampling": {"temperature": 0.0}}, "sampling.temperature must be above 0, got 0"),
        ({"warmup": {"demonstrations": {"noise": 1.0}}}, r"noise must be in \[0, 1\), got 1"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_what_to_change(data, message):
    with pytest.raises(ConfigError, match=message):
        config_from_dict(data)


def test_a_file_that_is_no_text_is_one_line(tmp_path):
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"cannot read the settings in .*config.toml: 'utf-8'"):
        read_config(tmp_path / "config.toml")


def test_a_missing_file_of_settings_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the settings in .*nothing.toml"):
        read_config(tmp_path / "nothing.toml")
