"""Settings: presets, files, the command line, and what is refused."""

import dataclasses
import math
import shlex

import pytest

from agentgym_envs.errors import UnknownName
from agentgym_train.commands.settings import parse_settings
from agentgym_train.config import (
    TrainConfig,
    config_from_dict,
    config_to_dict,
    load_preset,
    presets,
    read_config,
    write_config,
)
from agentgym_train.errors import ConfigError


@pytest.mark.parametrize("name", presets())
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
            --horizon.stages 5 8 --horizon.steps 3 --credit.permute-rewards"""
        )
    )
    preset = load_preset("first-run")
    assert config.run.steps == 7
    assert config.env.arguments == {"levels": "BossLevel"}
    assert config.horizon.stages == (5, 8)
    assert config.batch == preset.batch
    assert config.credit == dataclasses.replace(preset.credit, permute_rewards=True)


def test_a_file_of_settings_starts_another_run(tmp_path):
    path = tmp_path / "config.toml"
    write_config(parse_settings(["--run.seed", "5"]), path)
    config = parse_settings(["--config", str(path), "--run.steps", "3"])
    assert (config.run.seed, config.run.steps) == (5, 3)


def test_an_unknown_preset_names_near_ones():
    with pytest.raises(UnknownName, match=r"unknown preset 'first_run'.*'first-run'"):
        parse_settings(["--preset", "first_run"])


def test_an_unknown_all_settings_near_ones():
    with pytest.raises(UnknownName, match=r"unknown setting 'run.step'.*'run.steps'"):
        config_from_dict({"run": {"step": 3}})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"run": {"steps": "many"}}, "run.steps must be int, got 'many'"),
        ({"run": {"steps": -1}}, "run.steps must be at least 0.* got -1"),
        (
            {"run": {"algorithm": "a2c"}},
            "run.algorithm must be one of 'grpo', 'rloo', 'reinforce_pp', 'ppo', 'gigpo', "
            "'dpo', 'evolve', 'sft', got 'a2c'",
        ),
        (
            {"refill": {"groups": 4}, "curriculum": {"mix": {"a": 1.0, "b": 1.0}}},
            "refill.groups with several families in curriculum.mix would be biased",
        ),
        ({"sampling": {"top_p": 0.9}}, "sampling.top_p = 0.9 would draw from another distribution"),
        ({"run": {"algorithm": "ppo"}, "refill": {"groups": 4}}, "refill.groups = 4 needs groups"),
        ({"run": {"algorithm": "sft"}, "critic": {"learning_rate": 1e-3}}, "sft has no use for"),
        (
            {"credit": {"permute_rewards": True}, "batch": {"group_size": 1}},
            "shuffles returns within groups .* got 1 with grpo",
        ),
        (
            {"run": {"algorithm": "sft"}, "credit": {"permute_rewards": True}},
            "shuffles returns within groups .* with sft",
        ),
        (
            {"refill": {"groups": 65}},
            r"refill.groups = 65 can never be reached: .* is 64",
        ),
        ({"dpo": {"beta": float("nan")}}, "dpo.beta must be a number below .* got nan"),
        ({"loss": {"clip_high": float("nan")}}, "loss.clip_high must be a number .* got nan"),
        ({"learner": {"learning_rate": float("inf")}}, "learner.learning_rate must .* got inf"),
        ({"model": {"max_context": 10**30}}, "model.max_context must be a number below 2,147,483"),
        ({"run": {"threads": 100_000}}, "run.threads must be at most 1024, got 100000"),
        (
            {"learner": {"updates_per_step": 513}},
            "learner.updates_per_step = 513 cannot be made of the 512 episodes of a step",
        ),
        ({"horizon": {"stages": 8}}, r"horizon.stages must be list\[int, ...\], got 8"),
        ({"learner": {"betas": 0.9}}, r"learner.betas must be list\[float, float\], got 0.9"),
        ({"sft": {"learning_rate": -1.0}}, "sft.learning_rate must be at least 0, got -1.0"),
        ({"batch": {"group_size": 1}}, "grpo compares .* set batch.group_size to 2 .* got 1"),
        (
            {"run": {"algorithm": "gigpo"}, "batch": {"group_size": 1}},
            "gigpo compares .* set batch.group_size to 2 .* got 1",
        ),
        (
            {
                "run": {"algorithm": "reinforce_pp"},
                "reinforce_pp": {"baseline": "group"},
                "batch": {"group_size": 1},
            },
            "reinforce_pp compares .* set batch.group_size to 2 .* got 1",
        ),
        ({"run": {"algorithm": "ppo"}}, "ppo needs a critic.* set critic.learning_rate above 0"),
        ({"critic": {"learning_rate": 1e-3}}, "grpo has no use for a critic"),
        (
            {"credit": {"on_horizon": "bootstrap"}},
            "grpo has no critic to bootstrap with; let credit.on_horizon",
        ),
        (
            {"run": {"algorithm": "rloo"}, "credit": {"on_context": "bootstrap"}},
            "rloo has no critic to bootstrap with",
        ),
        ({"credit": {"on_budget": "bootstrap"}}, "grpo has no critic to bootstrap with"),
        (
            {"credit": {"on_fault": "keep"}},
            "credit.on_fault must be one of 'mask', 'drop', got 'keep'",
        ),
        ({"loss": {"clip_low": 2.0}}, "loss.clip_low must be between 0 and 1"),
        ({"eval": {"horizon": 6}}, "up to 8 turns but evaluation stops at 6"),
        ({"env": {"num_envs": 0}}, "env.num_envs must be at least 1, got 0"),
        ({"model": {"num_heads": 0}}, "model.num_heads must be at least 1"),
        ({"learner": {"betas": [0.9]}}, r"learner.betas must be .*float, float.*, got \[0.9\]"),
        ({"run": 3}, "run must be a table, got 3"),
        ({"run": {"threads": -1}}, "run.threads must be at least 0, got -1"),
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


@pytest.mark.parametrize(
    "data",
    [
        {
            "run": {"algorithm": "ppo"},
            "critic": {"learning_rate": 1e-3},
            "batch": {"group_size": 1},
        },
        {"run": {"algorithm": "reinforce_pp"}, "batch": {"group_size": 1}},
        {"run": {"algorithm": "sft"}, "batch": {"group_size": 1}},
        {"run": {"algorithm": "ppo", "steps": 0}},
    ],
)
def test_what_an_algorithm_does_not_need_is_not_asked_for(data):
    assert config_from_dict(data).run.algorithm == data["run"]["algorithm"]


def test_no_limit_is_a_limit():
    data = {"learner": {"max_grad_norm": math.inf}, "loss": {"clip_high": math.inf}}
    assert config_from_dict(data).learner.max_grad_norm == math.inf


def test_settings_that_toml_cannot_hold_are_refused(tmp_path):
    config = config_from_dict({"env": {"arguments": {"levels": None}}})
    with pytest.raises(ConfigError, match=r"cannot be written as TOML.* leave out .* are null"):
        write_config(config, tmp_path / "config.toml")


def test_a_run_gets_the_algorithm_of_its_settings():
    config = config_from_dict(
        {
            "run": {"algorithm": "ppo"},
            "critic": {"learning_rate": 1e-3},
            "ppo": {"trace": 0.5},
            "loss": {"clip_low": 0.3},
            "credit": {"on_budget": "drop"},
        }
    )
    found = config.build_algorithm(seed=3)
    assert found.name == "ppo"
    assert (found.config, found.loss_config, found.credit_config) == (
        config.ppo,
        config.loss,
        config.credit,
    )


def test_a_file_that_is_no_text_is_one_line(tmp_path):
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"cannot read the settings in .*config.toml: 'utf-8'"):
        read_config(tmp_path / "config.toml")


def test_a_missing_file_of_settings_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the settings in .*nothing.toml"):
        read_config(tmp_path / "nothing.toml")
