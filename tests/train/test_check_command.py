"""``check`` on whole model folders, environments and runs, as people call it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from chat_models import (
    BY_POSITION,
    CHATML,
    DEFAULT_SYSTEM,
    HEADERS,
    INST,
    THOUGHT_STRIPPING,
    TURNS,
    save_chat_model,
)

from agentgym_train import batching, learner, optimizer
from agentgym_train.cli import main
from agentgym_train.rollout import collector

CHECKS = ["template", "prompts", "mask", "rewards", "logprobs", "gradient", "update"]


def run(capsys, *words: str):
    """Exit code, figures and the lines for people."""
    code = main(["check", "--json", "--run.threads", "1", *words])
    captured = capsys.readouterr()
    figures = json.loads(captured.out.splitlines()[-1]) if captured.out else {}
    return code, figures, captured.err.splitlines()


@pytest.mark.parametrize(
    ("architecture", "template", "settings"),
    [
        ("llama", HEADERS, {}),
        ("qwen2", DEFAULT_SYSTEM, {}),
        ("mistral", INST, {}),
        ("gemma", TURNS, {"head_dim": 8}),
        ("gpt_neox", CHATML, {}),
        ("mixtral", CHATML, {"num_local_experts": 4}),
    ],
)
def test_model_folders_of_the_field_pass(
    tmp_path, capsys, architecture, template, settings
) -> None:
    folder = save_chat_model(tmp_path, template, architecture, **settings)
    code, figures, lines = run(capsys, "--model", folder)
    assert (code, figures["passed"], figures["failed"]) == (0, True, "none")
    assert [line.split()[:2] for line in lines[-7:]] == [[name, "passed"] for name in CHECKS]
    assert 0 < figures["logprobs"] < 1e-5
    assert 0 < figures["gradient"] < 1e-5
    assert figures["update"] < -1e-6


@pytest.mark.slow
@pytest.mark.parametrize("template", [HEADERS, INST])
def test_instructions_stand_in_front_with_and_without_a_system_role(
    tmp_path, capsys, template
) -> None:
    words = ["--model.instructions", "--model.max-context", "4096"]
    code, figures, _ = run(capsys, "--model", save_chat_model(tmp_path, template), *words)
    assert (code, figures["failed"]) == (0, "none")


def test_a_template_that_strips_thoughts_fails_until_appending_is_named(tmp_path, capsys) -> None:
    folder = save_chat_model(tmp_path, THOUGHT_STRIPPING, "qwen3", head_dim=8)
    code, figures, lines = run(capsys, "--model", folder)
    assert (code, figures["failed"]) == (1, "template")
    (line,) = (line for line in lines if "FAILED" in line)
    assert "'<think>" in line
    assert "--append" in line
    code, figures, _ = run(capsys, "--model", folder, "--append")
    assert (code, figures["failed"]) == (0, "none")


@pytest.mark.parametrize(
    ("template", "architecture", "settings", "reason"),
    [
        (BY_POSITION, "llama", {}, "does not extend by appending"),
        (CHATML, "gemma2", {"head_dim": 8}, "final_logit_softcapping = 30.0"),
        (CHATML, "bloom", {"n_head": 4, "n_layer": 2}, "BloomForCausalLM"),
    ],
)
def test_a_model_that_cannot_be_used_is_a_failed_check(
    tmp_path, capsys, template, architecture, settings, reason
) -> None:
    folder = save_chat_model(tmp_path, template, architecture, **settings)
    code, figures, lines = run(capsys, "--model", folder)
    assert (code, figures) == (1, {"passed": False, "failed": "model", "model": 1.0})
    assert lines[-1].startswith("model    FAILED")
    assert reason in lines[-1]


def test_a_model_that_is_not_there_is_a_failed_check(capsys) -> None:
    code, figures, lines = run(capsys, "--model", "nowhere")
    assert (code, figures["failed"]) == (1, "model")
    assert "no model folder 'nowhere'" in lines[-1]


def test_windowed_attention_that_the_sampler_does_not_know_is_found(tmp_path, capsys) -> None:
    """Every second layer of GPT-Neo sees a window; cached sampling sees everything."""
    folder = save_chat_model(
        tmp_path,
        CHATML,
        "gpt_neo",
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=32,
        initializer_range=0.2,
    )
    code, figures, _ = run(capsys, "--model", folder)
    assert code == 1
    assert figures["failed"] in ("logprobs", "model")


def test_a_new_model_is_checked_where_none_is_given_and_any_environment(capsys) -> None:
    code, figures, lines = run(capsys, "--env", "AgentGym/TextCraft-v0")
    assert (code, list(figures)) == (0, ["passed", "failed", *CHECKS])
    assert any("textcraft/train/" in line for line in lines)


def plant_doubled_rewards(monkeypatch) -> None:
    sequence = batching.token_sequence

    def doubled(episode, **options):
        found = sequence(episode, **options)
        return dataclasses.replace(found, rewards=2 * found.rewards)

    monkeypatch.setattr(batching, "token_sequence", doubled)


def plant_lost_rewards(monkeypatch) -> None:
    record = collector.record_turn

    def lost(episode, reply, outcome):
        record(episode, reply, (outcome[0], 0.0, *outcome[2:]))

    monkeypatch.setattr(collector, "record_turn", lost)


def plant_another_temperature(monkeypatch) -> None:
    collate = learner.collate

    def at_one(samples):
        batch = collate(samples)
        return dataclasses.replace(batch, temperatures=torch.ones_like(batch.temperatures))

    monkeypatch.setattr(learner, "collate", at_one)


def plant_ascent(monkeypatch) -> None:
    step = optimizer.Optimizer.step

    def ascend(self):
        for group in self._adam.param_groups:
            group["maximize"] = True
        step(self)

    monkeypatch.setattr(optimizer.Optimizer, "step", ascend)


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (plant_doubled_rewards, "rewards"),
        (plant_lost_rewards, "rewards"),
        (plant_another_temperature, "logprobs"),
        (plant_ascent, "update"),
    ],
)
def test_a_fault_in_the_trainer_is_found_under_its_name(
    tmp_path, capsys, monkeypatch, plant, name
) -> None:
    folder = save_chat_model(tmp_path, DEFAULT_SYSTEM)
    plant(monkeypatch)
    code, figures, _ = run(capsys, "--model", folder, "--sampling.temperature", "0.7")
    assert (code, figures["failed"]) == (1, name)


@pytest.mark.parametrize("algorithm", ["ppo", "gigpo", "sft"])
def test_the_algorithm_of_the_run_is_the_one_that_is_checked(capsys, algorithm) -> None:
    critic = ["--critic.learning-rate", "1e-3"] if algorithm == "ppo" else []
    code, figures, _ = run(capsys, "--run.algorithm", algorithm, *critic)
    assert (code, figures["failed"]) == (0, "none")


def test_a_run_is_checked_with_its_own_settings(tmp_path, capsys) -> None:
    folder = str(tmp_path / "run")
    train = [
        *("train", "--run.dir", folder, "--run.steps", "1", "--run.threads", "1"),
        *("--run.algorithm", "rloo", "--warmup.steps", "1", "--eval.tasks", "2"),
        *("--warmup.demonstrations.episodes", "40", "--sft.demonstrations.episodes", "40"),
        *("--batch.tasks-per-step", "2", "--batch.group-size", "2", "--env.num-envs", "4"),
        *("--sampling.temperature", "0.8"),
    ]
    assert main(train) == 0
    before = {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")}
    capsys.readouterr()
    code, figures, _ = run(capsys, "--model", folder)
    assert (code, figures["failed"]) == (0, "none")
    assert {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")} == before


def test_wrong_calls_are_no_failed_checks(capsys) -> None:
    for words, reason in [
        (["--env", "AgentGym/Nowhere-v0"], "Nowhere"),
        (["--env-args", '{"levels": "nowhere"}'], "nowhere"),
        (["--wrong"], "wrong"),
        (["--model.max-context", "20"], "raise model.max_context"),
    ]:
        code, figures, lines = run(capsys, *words)
        assert (code, figures) == (2, {})
        assert reason in lines[-1]


@pytest.mark.slow
def test_the_default_preset_passes(capsys) -> None:
    code, _, lines = run(capsys)
    assert code == 0
    assert "(3 looked at)" in next(line for line in lines if line.startswith("gradient"))
