"""The command line as a user sees it: figures on standard output, one clear line for a mistake."""

import json
import shlex

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from agentgym_train.assemble import start_run
from agentgym_train.cli import main
from agentgym_train.commands.settings import parse_settings

TINY = shlex.split("""
    --run.steps 1 --run.threads 1 --env.num-envs 4 --model.hidden-size 16 --model.num-layers 1
    --model.num-heads 2 --model.vocab-size 280 --warmup.steps 1 --warmup.demonstrations.episodes 4
    --warmup.episodes-per-step 4 --batch.tasks-per-step 2 --batch.group-size 2 --eval.tasks 3
    --eval.every 0 --horizon.stages 2 --horizon.steps 1 --eval.horizon 2
""")


def test_the_last_line_of_json_is_the_figures_and_nothing_else_is_on_standard_output(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main([*TINY, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    figures = json.loads(line)
    assert {"success_before", "success_after", "n_eval", "seconds"} <= figures.keys()
    assert figures["n_eval"] == 3
    assert figures["run"] == "runs/first-run"
    assert main(["eval", "runs/first-run", "--split", "dev", "--tasks", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2
    assert main(["report", "runs/first-run", "--beside", "runs/first-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"report": "runs/first-run/report.html"}
    assert main(["presets", "--json"]) == 0
    assert "red ball" in json.loads(capsys.readouterr().out)["first-run"]


def only_error(capsys):
    """The one line that says what is wrong; before it may stand what was being done."""
    captured = capsys.readouterr()
    assert captured.out == ""
    *doing, line = captured.err.splitlines()
    assert doing in ([], ["preparing tasks, demonstrations and model …"])
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "unknown command 'trian'; did you mean 'train'?"),
        (["--preset", "first"], "unknown preset 'first'; did you mean 'first-run'?"),
        (["resume", "nowhere"], "nowhere holds no run"),
        (["report", "nowhere"], "nowhere holds no run"),
        (["--batch.group-size", "1"], "set batch.group_size to 2 or more"),
        (["--env.id", "AgentGym/BabyAy-v0"], "BabyAy"),
        (
            ["--env.arguments", '{"levels": "GoToRedBal"}'],
            "unknown level 'GoToRedBal'; did you mean 'GoToRedBall'",
        ),
        (["--model.path", "nowhere/at/all"], "no model folder 'nowhere/at/all'"),
        (["--model.max-context", "16", "--warmup.steps", "0"], "does not fit the context of 16"),
        (["--eval.tasks", "100000"], "split holds"),
        (["--batch.group-sise", "3"], "'--batch.group-sise'; did you mean '--batch.group-size'"),
        (["--run.steps", "many"], "error: Error parsing --run.steps"),
        (["--run.device", "tpu"], "error: invalid choice 'tpu' for argument '--run.device'"),
        (["--env.arguments", "[1]"], "expected a JSON object"),
        (["--env.arguments", '{"levels": null}'], "cannot be written as TOML"),
        (["--env.arguments", '{"levels": []}'], "levels is empty"),
        (["--env.arguments", "{levels"], "expected a JSON object"),
        (["train", "runs/x"], "expected settings such as --run.dir FOLDER, got 'runs/x'"),
        (["--config", "nowhere.toml"], "the settings in nowhere.toml: No such file or directory"),
        (["eval", "nobody.jsonl"], "cannot read the episodes in nobody.jsonl: No such file"),
        (["resume"], "required: run"),
        (["eval", "nowhere", "--tasks", "0"], "expected at least 1 task, got 0"),
        (["presets", "all"], "unrecognized arguments: all"),
        (["--batch.tasks-per-step", "100000"], "wants 100000 different tasks"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = TINY if words[0].startswith("--") else []
    assert main([*settings, *words]) == 2
    assert message in only_error(capsys)
    assert not (tmp_path / "runs").exists()  # nothing is left behind


def test_a_model_folder_without_a_chat_template_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*TINY, "--run.steps", "0"]) == 0
    capsys.readouterr()
    folder = next((tmp_path / "runs/first-run/checkpoints").glob("step-*")) / "model"
    (folder / "chat_template.jinja").unlink()
    assert main([*TINY, "--model.path", str(folder)]) == 2
    assert "has no chat template" in capsys.readouterr().err.splitlines()[-1]
    (folder / "chat_template.jinja").write_text("{% for %}")
    assert main([*TINY, "--model.path", str(folder)]) == 2
    assert "the chat template fails" in capsys.readouterr().err.splitlines()[-1]
    (folder / "tokenizer.json").unlink()
    assert main([*TINY, "--model.path", str(folder)]) == 2
    assert "no tokenizer.json in" in capsys.readouterr().err.splitlines()[-1]


def test_a_tokenizer_of_a_larger_model_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for vocab_size in ("270", "280"):
        assert main([*TINY, "--run.steps", "0", "--model.vocab-size", vocab_size]) == 0
    capsys.readouterr()
    small, large = (
        next((tmp_path / "runs" / name / "checkpoints").glob("step-*")) / "model"
        for name in ("first-run", "first-run-2")
    )
    (large / "tokenizer.json").replace(small / "tokenizer.json")
    assert main([*TINY, "--model.path", str(small)]) == 2
    line = only_error(capsys)
    assert "gives ids up to 279, but the model there has only 270 embeddings" in line


def test_demonstrations_longer_than_the_context_are_left_out(tmp_path):
    settings = [*TINY, "--warmup.demonstrations.episodes", "40", "--run.dir", str(tmp_path / "run")]
    parts = start_run(parse_settings([*settings, "--model.max-context", "140"]))
    config = parts.config.warmup.demonstrations
    lengths = [len(episode.token_ids) for episode in parts.demonstrations(config)]
    assert 0 < len(lengths) < 40
    assert max(lengths) <= 140
    parts.close()


def test_any_registered_world_of_text_can_be_trained_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    spec = EnvSpec("Test/Numbers-v0", entry_point="counting:CountingEnv", disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    words = ["--env.id", spec.id, "--env.arguments", '{"highest": 20}', "--json"]
    assert main([*TINY, *words]) == 0
    assert json.loads(capsys.readouterr().out)["n_eval"] == 3


def test_a_context_too_short_for_a_later_task_is_refused_before_the_run(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    words = ["--env.id", "AgentGym/TextCraft-v0", "--env.arguments", "{}", "--eval.tasks", "50"]
    words += ["--warmup.demonstrations.horizon", "30", "--sampling.max-tokens", "24"]
    parts = start_run(parse_settings([*TINY, *words, "--model.max-context", "4096"]))
    lengths = []
    for task in parts.world.splits.test:
        observation, _ = parts.world.splits.env.reset(seed=0, options={"task": task})
        lengths.append(len(parts.collector.first_prompt(task, observation)) + 24)
    parts.close()
    assert lengths[0] < max(lengths)
    assert main([*TINY, *words, "--model.max-context", str(max(lengths) - 1)]) == 2
    assert "the first prompt of task 'textcraft/" in only_error(capsys)
    assert not (tmp_path / "runs/first-run-2").exists()


def test_a_finished_model_can_be_trained_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*TINY]) == 0
    folder = next((tmp_path / "runs/first-run/checkpoints").glob("step-*")) / "model"
    assert main([*TINY, "--model.path", str(folder), "--warmup.steps", "0"]) == 0
    assert (tmp_path / "runs/first-run-2/result.json").exists()
