"""``eval`` and ``compare`` without a trainer."""

import json

import gymnasium
import pytest

from agentgym_envs.cli import main

COUNTING = "Test/Counting-v0"
QUICK = ("--env", COUNTING, "--split", "train", "--horizon", "3")


@pytest.fixture(autouse=True)
def _counting(monkeypatch):
    spec = gymnasium.envs.registration.EnvSpec(
        COUNTING, "counting:CountingEnv", order_enforce=False, disable_env_checker=True
    )
    monkeypatch.setitem(gymnasium.registry, COUNTING, spec)


@pytest.fixture
def figures(capsys):
    """Calls a command and gives its figures."""

    def call(*words):
        code = main([*map(str, words), "--json"])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return json.loads(captured.out)

    return call


def test_policies_of_text_are_evaluated_and_compared(figures, tmp_path):
    oracle = figures("eval", "oracle", *QUICK, "--out", tmp_path / "oracle")
    assert (oracle["success"], oracle["n"], oracle["horizon"]) == (1.0, 4, 3)
    chance = figures("eval", "random", *QUICK, "--k", "2", "--out", tmp_path / "random")
    assert chance["k"] == 2
    once = figures("eval", "random", *QUICK, "--out", tmp_path / "once")
    found = figures("compare", tmp_path / "oracle", tmp_path / "once")
    assert found["success"]["value"] == pytest.approx(1 - once["success"])


def test_figures_are_told_to_people_on_lines(tmp_path, capsys):
    assert main(["eval", "oracle", *QUICK, "--out", str(tmp_path / "oracle")]) == 0
    assert "success: 1.0\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["runs/first-run", *QUICK], "unknown policy 'runs/first-run'; valid are oracle, random"),
        (["oracle", *QUICK, "--tasks", "99"], "99 tasks are asked for"),
        (["oracle", *QUICK, "--parallel", "0"], "--parallel must be at least 1, got 0"),
        (["random", *QUICK, "--max-faults", "2"], "--max-faults must be a share of the episodes"),
        (["random", *QUICK, "--max-faults", "nan"], "from 0 to 1, got nan"),
        (["endpoint", *QUICK, "--temperature", "-1"], "--temperature must be at least 0"),
        (["endpoint", *QUICK, "--max-tokens", "0"], "--max-tokens must be at least 1, got 0"),
        (["oracle", *QUICK, "--temperature", "1"], "--temperature would change nothing for 'ora"),
        (["random", *QUICK, "--url", "http://h/v1"], "--url would change nothing for 'random'"),
        (["me.jsonl", "--horizon", "3", "--k", "2"], "--horizon, --k would change nothing for"),
        (["endpoint", *QUICK], "expected a URL like http"),
    ],
)
def test_a_wrong_call_is_one_line_and_leaves_no_folder(words, told, tmp_path, capsys):
    assert main(["eval", *words, "--out", str(tmp_path / "eval")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert not (tmp_path / "eval").exists()


def test_a_stop_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("agentgym_envs.evaluation.commands.run_evaluation", stop)
    assert main(["eval", "oracle", *QUICK, "--out", str(tmp_path / "eval")]) == 130
    assert f"--resume --out {tmp_path / 'eval'} goes on" in capsys.readouterr().err
