"""``eval`` and ``compare`` as a user calls them, with real tiny models."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import pytest

from agentgym_envs.cli import main as envs_main
from agentgym_envs.episodes import read_episodes
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.checkpoint import save_checkpoint
from agentgym_train.cli import main
from agentgym_train.config import config_from_dict, write_config
from agentgym_train.model import create_model, save_model

COUNTING = "Test/Counting-v0"
TEXTS = ["The counter shows 0.", "add 3", "done", "roll", "Make the counter show 3, then say done."]
QUICK = ("--env", COUNTING, "--split", "train", "--horizon", "3")
TOKENS = (*QUICK, "--max-tokens", "6", "--max-context", "1024")


@pytest.fixture(autouse=True)
def _counting(monkeypatch):
    spec = gymnasium.envs.registration.EnvSpec(
        COUNTING, "counting:CountingEnv", order_enforce=False, disable_env_checker=True
    )
    monkeypatch.setitem(gymnasium.registry, COUNTING, spec)
    # Models here are tiny: more threads only wait for one another.


def tiny(seed=0):
    tokenizer = train_tokenizer(TEXTS, 280)
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "max_context": 2048}
    return create_model(len(tokenizer), **sizes, seed=seed), tokenizer


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny"
    save_model(*tiny(), path)
    return path


@pytest.fixture
def call(capsys):
    """Calls a command and gives its figures."""

    def run(*words):
        code = main([*map(str, words), "--json"])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return json.loads(captured.out)

    return run


@pytest.fixture
def refused(capsys):
    """Calls a command and gives the one line that says what is wrong."""

    def run(*words):
        assert main([*map(str, words)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return run


def test_an_oracle_and_random_play_are_evaluated_and_compared(call, tmp_path):
    oracle = call("eval", "oracle", *QUICK, "--out", tmp_path / "oracle")
    assert (oracle["success"], oracle["n"], oracle["k"], oracle["horizon"]) == (1.0, 4, 1, 3)
    chance = call("eval", "random", *QUICK, "--out", tmp_path / "random", "--parallel", "2")
    assert chance["success"] < 1
    found = call("compare", tmp_path / "oracle", tmp_path / "random")
    assert found["success"]["value"] == pytest.approx(1 - chance["success"])
    assert set(found["differs"]) == {"policy.name"}


def test_a_chat_model_plays_by_its_tokens(call, model_folder, tmp_path):
    figures = call("eval", model_folder, *TOKENS, "--k", 2, "--out", tmp_path / "eval")
    assert (figures["n"], figures["k"], list(figures["pass_at"])) == (4, 2, ["1", "2"])
    episodes = list(read_episodes(tmp_path / "eval/episodes.jsonl"))
    assert len(episodes) == 8
    assert all(episode.has_tokens and episode.turns for episode in episodes)
    replies = [[turn.reply for turn in episode.turns] for episode in episodes]
    assert replies[0] != replies[1]
    result = json.loads((tmp_path / "eval/result.json").read_text())
    assert result["tokens"]["sampled"] == sum(
        len(turn.sampled_ids) for episode in episodes for turn in episode.turns
    ) / len(episodes)
    assert len(result["plan"]["policy"]["weights"]) == 64
    assert result["plan"]["policy"]["instructions"] is True


def test_the_same_seed_gives_the_same_files_and_greedy_play_needs_none(
    call, model_folder, tmp_path
):
    def files(name, *words):
        call("eval", model_folder, *TOKENS, "--out", tmp_path / name, *words)
        return [(tmp_path / name / file).read_bytes() for file in ("result.json", "episodes.jsonl")]

    assert files("a", "--seed", 5) == files("b", "--seed", 5)
    first, second = (files(f"greedy{seed}", "--temperature", 0, "--seed", seed) for seed in (1, 2))
    replies = [
        [
            turn.reply
            for e in read_episodes(tmp_path / f"greedy{seed}/episodes.jsonl")
            for turn in e.turns
        ]
        for seed in (1, 2)
    ]
    assert replies[0] == replies[1]
    assert first != second  # they say which seed they had


@pytest.fixture
def make_run(tmp_path):
    """Makes a run with two checkpoints of different weights, the first of them the better one."""

    def make(env_id=COUNTING, **arguments):
        path = tmp_path / "run"
        path.mkdir()
        settings = {
            "run": {"seed": 3, "threads": 1},
            "env": {"id": env_id, "arguments": arguments, "num_envs": 4},
            "model": {"max_context": 2048},
            "sampling": {"max_tokens": 6, "temperature": 0.7},
            "horizon": {"stages": [2], "steps": [1]},
            "eval": {"tasks": 3, "horizon": 2},
        }
        write_config(config_from_dict(settings), path / "config.toml")
        for step in (10, 20):
            model, tokenizer = tiny(seed=step)
            save_checkpoint(
                path / "checkpoints",
                model=model,
                tokenizer=tokenizer,
                tensors={},
                state={"step": step, "best": {"step": 10, "success": 0.5}},
                keep=2,
            )
        return path

    return make


def test_a_run_is_evaluated_as_it_was_trained_at_any_checkpoint(call, make_run, tmp_path):
    run_folder = make_run(highest=20)

    def plan(name, *words):
        call("eval", run_folder, "--out", tmp_path / name, *words)
        return json.loads((tmp_path / name / "plan.json").read_text())

    last = plan("last")
    assert (last["env_args"], last["tasks"]["number"]) == ({"highest": 20}, 3)
    assert (last["horizon"], last["seed"]) == (2, 3)
    assert last["policy"] | {"weights": "", "versions": {}} == {
        "name": "run",
        "weights": "",
        "temperature": 0.7,
        "max_tokens": 6,
        "max_context": 2048,
        "instructions": False,
        "versions": {},
    }
    weights = {name: plan(name, "--checkpoint", name)["policy"]["weights"] for name in ("10", "20")}
    assert weights["10"] != weights["20"] == last["policy"]["weights"]
    assert plan("best", "--checkpoint", "best")["policy"]["weights"] == weights["10"]
    other = plan("other", "--env", COUNTING, "--tasks", 2, "--horizon", 4, "--split", "dev")
    assert (other["env_args"], other["tasks"]["number"], other["horizon"]) == ({}, 2, 4)


def test_another_policy_does_not_go_on_and_says_what_differs(call, refused, make_run, tmp_path):
    run_folder = make_run()
    call("eval", run_folder, "--out", tmp_path / "eval")
    words = ("eval", run_folder, "--out", tmp_path / "eval", "--resume")
    call(*words)
    assert "policy.weights was" in refused(*words, "--checkpoint", "10")
    assert "policy.temperature was 0.7, is 1.0" in refused(*words, "--temperature", "1")
    assert "is not an empty folder" in refused(*words[:-1])


def test_all_that_decides_what_a_model_says_is_in_its_digest(call, tmp_path):
    def digest_of(name, change=lambda model, tokenizer: None):
        model, tokenizer = tiny()
        change(model, tokenizer)
        save_model(model, tokenizer, tmp_path / name)
        call("eval", tmp_path / name, *TOKENS, "--tasks", 1, "--out", tmp_path / f"{name}-eval")
        plan = json.loads((tmp_path / f"{name}-eval/plan.json").read_text())
        return plan["policy"]["weights"]

    def other_settings(model, tokenizer):
        model.config.rms_norm_eps = 0.1

    def other_weights(model, tokenizer):
        model.get_input_embeddings().weight.data[0, 0] += 1e-4

    def other_template(model, tokenizer):
        tokenizer.chat_template = "Be brief. " + tokenizer.chat_template

    changes = (other_settings, other_weights, other_template)
    digests = [digest_of("same"), *(digest_of(change.__name__, change) for change in changes)]
    assert len(set(digests)) == 4
    assert digest_of("again") == digests[0]


def test_a_kill_in_the_middle_leaves_the_same_result_after_resuming(call, make_run, tmp_path):
    run_folder = make_run("agentgym_envs:AgentGym/BabyAI-v0", levels="redball", obs_style="compact")
    words = ["eval", run_folder, "--tasks", "24", "--k", "4", "--horizon", "4", "--out"]
    path = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "agentgym_train", *map(str, words), path],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    records = path / "episodes.jsonl"
    while not records.exists() or records.read_bytes().count(b"\n") < 10:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert records.read_bytes().count(b"\n") < 96
    call(*words, path, "--resume")
    call(*words, tmp_path / "whole")
    for name in ("plan.json", "result.json", "report.md", "report.png"):
        assert (path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert replies_in(records) == replies_in(tmp_path / "whole/episodes.jsonl")


def replies_in(path):
    return [
        (episode.task.id, episode.member, [turn.sampled_ids for turn in episode.turns])
        for episode in read_episodes(path)
    ]


def test_episodes_of_a_person_are_evaluated_and_compared_with_a_policy(
    call, tmp_path, monkeypatch, capsys
):
    file = tmp_path / "me.jsonl"
    for number in (6, 3):
        lines = iter([f"add {number}", "done"])
        monkeypatch.setattr("builtins.input", lambda prompt, lines=lines: next(lines))
        task = f"counting/train/{number}"
        words = ("play", COUNTING, "--task", task, "--horizon", "3", "--record", str(file))
        assert envs_main(words) == 0
    capsys.readouterr()
    mine = call("eval", file, "--out", tmp_path / "me")
    assert (mine["success"], mine["n"], mine["horizon"]) == (1.0, 2, 3)
    call("eval", "oracle", *QUICK, "--tasks", 2, "--out", tmp_path / "oracle")
    assert call("compare", tmp_path / "me", tmp_path / "oracle")["tasks"]["equal"] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["oracle", "--env", "AgentGym/BabyAy-v0"], "did you mean 'AgentGym/BabyAI-v0'"),
        (["oracle", "--env", "CartPole-v1"], "cannot make 'CartPole-v1'"),
        (["oracle", *QUICK, "--env-args", "[1]"], "expected a JSON object"),
        (["oracle", *QUICK, "--env-args", '{"split": "dev"}'], "must not hold"),
        (["oracle", *QUICK, "--tasks", "99"], "99 tasks are asked for, but the train split has 4"),
        (["oracle", *QUICK, "--tasks", "0"], "expected at least 1 task, got 0"),
        (["oracle", *QUICK, "--tasks", "nowhere.txt"], "cannot read task ids"),
        (["oracle", *QUICK, "--horizon", "0"], "horizon and k must be at least 1, got 0 and 1"),
        (["oracle", *QUICK, "--k", "0"], "got 3 and 0"),
        (["oracle", *QUICK, "--split", "tset"], "invalid choice: 'tset'"),
        (["oracle", *QUICK, "--parallel", "0"], "--parallel must be at least 1, got 0"),
        (["random", *QUICK, "--max-faults", "2"], "--max-faults must be a share"),
        (["nowhere", *QUICK, "--temperature", "-1"], "--temperature must be at least 0"),
        (["nowhere", *QUICK, "--temperature", "inf"], "and finite, got inf"),
        (["nowhere", *QUICK, "--max-tokens", "0"], "--max-tokens must be at least 1, got 0"),
        (["nowhere", *QUICK, "--url", "http://h/v1"], "--url would change nothing for 'nowhere'"),
        (["nowhere", *QUICK, "--checkpoint", "best"], "--checkpoint would change nothing for"),
        (["oracle", *QUICK, "--max-context", "9"], "--max-context would change nothing for"),
        (["endpoint", *QUICK], "expected a URL like http"),
        (["endpoint", *QUICK, "--url", "http://127.0.0.1:1/v1"], "needs the name of a model"),
        (["nowhere", *QUICK], "no model folder 'nowhere'"),
        (["nowhere.jsonl"], "No such file"),
    ],
)
def test_a_wrong_call_is_one_clear_line_and_leaves_no_folder(refused, words, told, tmp_path):
    path = tmp_path / "eval"
    assert told in refused("eval", *words, "--out", path)
    assert not path.exists()


def test_evaluations_that_cannot_be_compared_are_one_clear_line(call, refused, tmp_path):
    call("eval", "oracle", *QUICK, "--out", tmp_path / "a")
    call("eval", "oracle", *QUICK, "--horizon", 4, "--out", tmp_path / "b")
    call("eval", "oracle", *QUICK, "--tasks", 2, "--out", tmp_path / "c")
    assert "horizon is 3 in" in refused("compare", tmp_path / "a", tmp_path / "b")
    assert "--common" in refused("compare", tmp_path / "a", tmp_path / "c")
    found = call("compare", tmp_path / "a", tmp_path / "c/result.json", "--common")
    assert found["success"]["tasks"] == 2
    assert "cannot read" in refused("compare", tmp_path / "a", Path("nowhere"))
