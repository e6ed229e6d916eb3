import io
import json
import subprocess
import sys

import broken
import gymnasium
import pytest

from agentgym_envs.cli import main
from agentgym_envs.testing import check_horizon, check_oracle, run_checks

NINE = "counting/train/9"


def figures(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def answers(monkeypatch, *lines):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_families_are_listed_with_splits_and_capabilities(capsys):
    assert main(["list"]) == 0
    assert "AgentGym/BabyAI-v0: tasks train " in capsys.readouterr().out
    assert main(["list", "--json"]) == 0
    (family,) = figures(capsys)["families"]
    assert family["id"] == "AgentGym/BabyAI-v0"
    assert list(family["splits"]) == ["train", "dev", "test"]
    assert min(family["splits"].values()) > 0
    assert family["capabilities"] == ["admissible", "clone", "oracle", "state_key"]


def test_a_person_plays_and_sees_how_it_ends(capsys, monkeypatch):
    answers(monkeypatch, "what?", "add 9", "done")
    assert main(["play", "Test/Counting-v0", "--task", NINE, "--json"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("You have a counter.")
    assert '"what?" is not a command.' in output
    assert "You say that you are done. Right." in output
    assert json.loads(output.splitlines()[-1]) == {
        "id": "Test/Counting-v0",
        "task_id": NINE,
        "turns": 3,
        "return": 1.0,
        "score": 1.0,
        "success": True,
        "end_reason": "success",
    }


def test_arguments_seed_and_horizon_reach_the_environment(capsys, monkeypatch):
    answers(monkeypatch, "Thought: x\\nAction: add 1", "x")
    arguments = ["--arg", "action_format=react", "--arg", 'tasks=["counting/train/6"]']
    assert main(["play", "Test/Counting-v0", "--horizon", "2", "--seed", "3", *arguments]) == 0
    output = capsys.readouterr().out
    assert "Reply with a thought and one command" in output
    assert "Make the counter show 6" in output
    assert "turns 2" in output
    assert "end_reason horizon" in output


def test_the_end_of_input_stops_the_game(capsys, monkeypatch):
    answers(monkeypatch, "add 1")
    assert main(["play", "Test/Counting-v0", "--task", NINE, "--json"]) == 0
    assert figures(capsys) == {
        "id": "Test/Counting-v0",
        "task_id": NINE,
        "end_reason": "stopped",
    }


def test_checks_take_a_line_each_and_decide_the_exit_code(capsys, monkeypatch):
    two = (check_horizon, check_oracle)
    monkeypatch.setattr("agentgym_envs.cli.run_checks", lambda make: run_checks(make, two))
    assert main(["check", "Test/Counting-v0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok   check_horizon: The horizon truncates exactly")
    assert lines[-1].startswith("4 of 4 checks passed in ")

    monkeypatch.setitem(gymnasium.registry, "Test/GivesUp-v0", broken.spec_of(broken.GivesUp))
    assert main(["check", "Test/GivesUp-v0", "--json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("FAIL check_oracle: The oracle solves tasks")
    found = json.loads(lines[-1])
    assert found["failed"] == ["check_oracle", "check_oracle (wrapped)"]
    assert (found["checks"], found["id"]) == (4, "Test/GivesUp-v0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["play", "AgentGym/BabyAy-v0"], "did you mean 'AgentGym/BabyAI-v0'"),
        (["check", "AgentGym/BabyAy-v0"], "did you mean 'AgentGym/BabyAI-v0'"),
        (["play", "Test/Counting-v0", "--task", "counting/trian/9"], "counting/train/9"),
        (["play", "Test/Counting-v0", "--arg", "split=tset"], "did you mean 'test'"),
        (["play", "Test/Counting-v0", "--arg", "colour=red"], "colour"),
        (["play", "Test/Counting-v0", "--horizon", "0"], "at least 1; got 0"),
        (["play", "Test/Counting-v0", "--arg", "strict=False"], "True or False, got 'False'"),
        (["play", "CartPole-v1"], "expected a TextEnv or a TextWrapper"),
        (["check", "CartPole-v1"], "expected a TextEnv or a TextWrapper"),
    ],
)
def test_a_wrong_call_is_one_clear_line(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_arguments_need_a_name_and_a_value(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["play", "Test/Counting-v0", "--arg", "red"])
    assert stopped.value.code == 2
    assert "expected NAME=VALUE, got 'red'" in capsys.readouterr().err


def test_the_package_is_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "agentgym_envs", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "usage: python -m agentgym_envs" in done.stdout


def test_ctrl_c_ends_a_check_in_one_line(capsys, monkeypatch):
    def press_ctrl_c(make):
        raise KeyboardInterrupt

    monkeypatch.setattr("agentgym_envs.cli.run_checks", press_ctrl_c)
    assert main(["check", "Test/Counting-v0", "--json"]) == 130
    assert capsys.readouterr().err == "stopped\n"
