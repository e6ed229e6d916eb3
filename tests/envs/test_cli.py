import contextlib
import dataclasses
import functools
import io
import json
import os
import signal
import subprocess
import sys

import broken
import gymnasium
import pytest
from counting import CountingEnv
from gymnasium.envs.registration import EnvSpec

from agentgym_envs import testing
from agentgym_envs.cli import main
from agentgym_envs.cli.terminal import Completer

NINE = "counting/train/9"
COUNTING = "Test/Counting-v0"


def figures(capsys, *words):
    """The one JSON object that a command writes."""
    code = main([*words, "--json"])
    captured = capsys.readouterr()
    (line,) = captured.out.splitlines()
    return code, json.loads(line)


def answers(monkeypatch, *lines):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def registered(monkeypatch, env_class):
    """An id under which `gymnasium.make` finds a class."""
    name = f"Test/{env_class.__name__}-v0"
    spec = EnvSpec(name, entry_point=env_class, order_enforce=False, disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    return name


# ------------------------------------------------------------------------------------------- list


def test_families_are_listed_with_all_their_tasks_and_those_of_the_default_arguments(capsys):
    assert main(["list"]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if "BabyAI" in one]
    assert line.startswith(
        "AgentGym/BabyAI-v0: tasks train 19,882, dev 2,305, test 4,613 by default"
    )
    assert 'train 45,721, dev 5,371, test 10,722 with {"levels": "all"}' in line
    code, found = figures(capsys, "list")
    (family,) = [one for one in found["families"] if one["id"] == "AgentGym/BabyAI-v0"]
    assert code == 0
    assert family["splits"] == {"train": 19_882, "dev": 2_305, "test": 4_613}
    assert family["certified"] == {"train": 45_721, "dev": 5_371, "test": 10_722}
    assert family["capabilities"] == ["admissible", "clone", "oracle", "state_key"]


def test_what_is_not_installed_is_listed_with_the_reason():
    code = """
import sys
sys.modules["minigrid"] = None
from agentgym_envs.cli import main
for words in (["list"], ["validate", "--play", "1"], ["check", "AgentGym/BabyAI-v0"]):
    print(main(words))
"""
    done = run_python("-c", code)
    assert "AgentGym/BabyAI-v0: not installed: BabyAI needs the package minigrid" in done.stdout
    assert done.stdout.splitlines()[-1] == "2"
    assert done.stderr.startswith("error: BabyAI needs the package minigrid")
    assert "pip install 'agentgym-suite[babyai]'" in done.stderr
    assert done.stderr.count("\n") == 1


# --------------------------------------------------------------------------------------- describe


def test_a_description_holds_all_that_there_is_to_know(capsys):
    code, found = figures(capsys, "describe", "AgentGym/BabyAI-v0", "--arg", "levels=GoToRedBall")
    assert code == 0
    assert found["summary"] == (
        "Rooms with balls, boxes, keys and doors, and a goal in a small language."
    )
    arguments = found["arguments"]
    assert list(arguments)[:4] == ["levels", "action_mode", "obs_style", "split"]
    assert arguments["obs_style"]["default"] == "text"
    assert arguments["strict"] == {
        "type": "bool",
        "default": False,
        "help": "take only replies that follow the format to the letter.",
    }
    assert all(argument["help"] for argument in arguments.values())
    assert arguments["compat"]["help"].startswith('"agentgym" for AgentGym\'s texts')
    assert found["splits"]["test"] == {"count": 200, "categories": {"GoToRedBall": 200}}
    assert found["certified_with"] == {"levels": "all"}
    assert list(found["rewards"]) == ["default", "time_discounted"]
    assert found["compat_modes"] == ["agentgym"]
    assert found["info_keys"]["score"] == "float"
    assert found["info_keys_on_request"]["mission"] == "str"
    assert found["deadlines"]["reset_s"] > 0
    assert found["agentgym_ids"] == "babyai_<number>"
    assert found["instructions"].startswith("You are in a small world of rooms")
    assert found["example"]["observation"].startswith("Your goal: ")
    assert found["example"]["task"].startswith("babyai/train/GoToRedBall/")


def test_a_description_shows_the_task_and_the_format_that_were_asked_for(capsys):
    words = ["--task", "2", "--horizon", "4", "--arg", "action_format=react"]
    assert main(["describe", COUNTING, *words]) == 0
    output = capsys.readouterr().out
    assert "First observation of counting/train/9, horizon 4:" in output
    assert "Reply with a thought and one command" in output
    assert "train: 4 tasks: large 2, small 2" in output
    assert "  highest = 12:" in output


def test_a_description_says_a_default_once_and_one_task_in_the_singular(capsys):
    words = ["--arg", 'tasks=["textcraft/dev/cookie"]']
    assert main(["describe", "AgentGym/TextCraft-v0", *words]) == 0
    output = capsys.readouterr().out
    (line,) = [one for one in output.splitlines() if "partial_credit" in one]
    assert line == (
        "  partial_credit = False: whether the crafts on the way to the goal raise the score."
    )
    assert "  dev: 1 task: " in output


# ------------------------------------------------------------------------------------------- play


def test_a_person_plays_and_sees_how_it_ends(capsys, monkeypatch):
    answers(monkeypatch, "what?", "add 9", "done")
    assert main(["play", COUNTING, "--task", NINE]) == 0
    output = capsys.readouterr().out
    assert output.startswith("You have a counter.")
    assert "[0/10] > " in output
    assert '"what?" is not a command.' in output
    assert "[2/10] > You say that you are done. Right." in output
    assert output.splitlines()[-1] == (
        f"id {COUNTING}, task_id {NINE}, turns 3, return 1.0, score 1.0, success True, "
        "end_reason success"
    )


def test_arguments_seed_and_horizon_reach_the_environment(capsys, monkeypatch):
    answers(monkeypatch, "x", "x")
    arguments = ["--arg", 'tasks=["counting/train/6"]', "--seed", "3", "--horizon", "2"]
    code, found = figures(capsys, "play", COUNTING, *arguments)
    assert code == 0
    assert found == {
        "id": COUNTING,
        "task_id": "counting/train/6",
        "turns": 2,
        "return": 0.0,
        "score": 0.0,
        "success": False,
        "end_reason": "horizon",
    }


@pytest.mark.parametrize("action_format", ["react", "json", "code", "tools"])
def test_bare_commands_are_taken_in_every_format(capsys, monkeypatch, action_format):
    answers(monkeypatch, "add 9", "done")
    words = ["--task", NINE, "--arg", f"action_format={action_format}", "--arg", "strict=true"]
    _, found = figures(capsys, "play", COUNTING, *words)
    assert (found["turns"], found["success"]) == (2, True)


@pytest.mark.parametrize("last", [[], [":quit"]])
def test_the_end_of_input_and_quitting_stop_the_game(capsys, monkeypatch, last):
    answers(monkeypatch, "add 9", *last)
    code, found = figures(capsys, "play", COUNTING, "--task", NINE)
    assert code == 0
    assert (found["turns"], found["score"], found["end_reason"]) == (1, 0.5, "stopped")


def test_words_with_a_colon_cost_no_turn(capsys, monkeypatch):
    answers(monkeypatch, ":help", ":hint", ":commands", ":rules", ":oops", " add 2", ":hint")
    assert main(["play", COUNTING, "--task", NINE]) == 0
    output = capsys.readouterr().out
    assert output.count(":undo      take the last turn back") == 2  # :help, and what is unknown
    assert "[0/10] > There is no :oops.\n:help" in output
    assert "[0/10] > add 9\n" in output
    assert "[0/10] > add 1\nadd 2\nadd 9\nroll\ndone\n[0/10] > " in output
    assert output.count("You have a counter.") == 2
    assert "[1/10] > add 7\n" in output


def test_an_empty_line_costs_no_turn(capsys, monkeypatch):
    answers(monkeypatch, "", "  ", "add 9")
    assert main(["play", COUNTING, "--task", NINE]) == 0
    output = capsys.readouterr().out
    assert output.count("[0/10] > Write a command, or :help.") == 2
    assert "turns 1, " in output


def test_a_turn_can_be_taken_back_with_its_reward(capsys, monkeypatch):
    answers(monkeypatch, ":undo", "add 9", "add 1", ":undo", ":undo", "add 9", "done")
    assert main(["play", COUNTING, "--task", NINE]) == 0
    output = capsys.readouterr().out
    assert "[0/10] > There is no turn to take back." in output
    assert "[2/10] > You add 9. The counter shows 9.\n[1/10] > Make the counter show 9" in output
    assert output.splitlines()[-1].endswith(
        "turns 2, return 1.0, score 1.0, success True, end_reason success"
    )


def test_a_world_without_capabilities_can_be_played(capsys, monkeypatch):
    answers(monkeypatch, ":hint", "add 1", ":undo", ":commands")
    assert main(["play", "Test/Bare-v0"]) == 0
    output = capsys.readouterr().out
    assert "There is no hint: bare has no 'oracle'" in output
    assert "This world cannot go back." in output
    assert "[1/10] > add \ntake away \n" in output


def test_completion_finds_what_begins_alike():
    complete = Completer(lambda: ["add 1", "Add 2", "done", ":undo"])
    assert [complete("add", state) for state in range(3)] == ["add 1", "Add 2", None]
    assert [complete(":", state) for state in range(2)] == [":undo", None]
    assert complete("x", 0) is None


def test_the_tab_key_completes_in_a_terminal():
    pytest.importorskip("readline")
    import pty

    leader, follower = pty.openpty()
    play = subprocess.Popen(
        [sys.executable, "-m", "agentgym_envs", "play", "AgentGym/BabyAI-v0"],
        stdin=follower,
        stdout=follower,
        stderr=subprocess.STDOUT,
        env=os.environ | {"TERM": "dumb"},
    )
    os.close(follower)
    seen = b""
    with contextlib.suppress(OSError):  # the other end closes
        for marker, keys in ((b"[0/", b"turn le\t\n"), (b"[1/", b":q\t\n"), (b"\0", b"")):
            while marker not in seen:
                seen += os.read(leader, 4096)
            os.write(leader, keys)
    os.close(leader)
    assert play.wait(timeout=60) == 0
    assert b"> turn left" in seen
    assert b"turns 1, " in seen


# ----------------------------------------------------------------------------------------- oracle


def test_the_oracle_can_be_watched(capsys):
    assert main(["oracle", COUNTING, "--task", NINE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Make the counter show 9, then say done.", "The counter shows 0."]
    assert "[0/10] > add 9" in lines
    assert "[1/10] > done" in lines
    assert lines[-1].endswith("success True, end_reason success")


def test_an_oracle_that_does_not_get_there_is_exit_code_1(capsys, monkeypatch):
    code, found = figures(capsys, "oracle", COUNTING, "--task", NINE, "--horizon", "1")
    assert code == 1
    assert found["replies"] == ["add 9"]
    assert (found["success"], found["end_reason"]) == (False, "horizon")
    code, found = figures(capsys, "oracle", registered(monkeypatch, broken.GivesUp))
    assert (code, found["success"]) == (1, False)


# ------------------------------------------------------------------------------------------ check


def test_checks_take_a_line_each_and_decide_the_exit_code(capsys, monkeypatch):
    two = (testing.check_horizon, testing.check_oracle)
    run_two = functools.partial(testing.run_checks, checks=two)
    monkeypatch.setattr("agentgym_envs.cli.check.run_checks", run_two)
    assert main(["check", COUNTING]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok   check_horizon: The horizon truncates exactly")
    assert lines[-1].startswith("4 of 4 checks passed in ")
    name = "Test/GivesUp-v0"
    monkeypatch.setitem(gymnasium.registry, name, broken.spec_of(broken.GivesUp))
    code, found = figures(capsys, "check", name)
    assert code == 1
    assert found["failed"] == ["check_oracle", "check_oracle (wrapped)"]
    assert (found["checks"], found["id"]) == (4, name)


def test_ctrl_c_ends_a_command_in_one_line(capsys, monkeypatch):
    def press_ctrl_c(make):
        raise KeyboardInterrupt

    monkeypatch.setattr("agentgym_envs.cli.check.run_checks", press_ctrl_c)
    assert main(["check", COUNTING, "--json"]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "stopped\n")


# ------------------------------------------------------------------------------------------ bench


def test_steps_and_resets_are_timed_for_both_policies(capsys):
    words = ["--episodes", "3", "--repeats", "3", "--arg", 'tasks=["counting/train/12"]']
    code, found = figures(capsys, "bench", COUNTING, *words)
    assert code == 0
    assert list(found["policies"]) == ["oracle", "random"]
    for policy in found["policies"].values():
        assert (policy["episodes"], policy["repeats"]) == (3, 3)
        for name in ("steps_per_s", "resets_per_s"):
            low, high = policy[name]["spread"]
            assert 0 < low <= policy[name]["value"] <= high
    assert found["policies"]["oracle"]["steps"] == 3 * 3  # add 9, add 3, done
    assert "gymnasium" in found["versions"]


@pytest.mark.parametrize("workers", ["inline", "threads"])
def test_a_vector_is_timed_as_a_whole(capsys, workers):
    words = ["--num-envs", "2", "--workers", workers, "--episodes", "5", "--repeats", "2"]
    code, found = figures(capsys, "bench", COUNTING, "--policy", "random", *words)
    assert code == 0
    assert (found["num_envs"], found["workers"]) == (2, workers)
    assert list(found["policies"]) == ["random"]
    assert found["policies"]["random"]["episodes_per_s"]["value"] > 0


# --------------------------------------------------------------------------------------- validate


def test_tasks_are_compared_with_the_manifest_and_played(capsys):
    code, found = figures(capsys, "validate", "AgentGym/BabyAI-v0", "--play", "2")
    assert code == 0
    (family,) = found["families"]
    assert family == {"id": "AgentGym/BabyAI-v0", "tasks": 61_814, "played": 6, "problems": []}


class Slower(CountingEnv):
    """Its certificates say that every task takes five turns."""

    def _make_task(self, number):
        return dataclasses.replace(super()._make_task(number), difficulty=5)


def test_a_certificate_that_does_not_hold_is_exit_code_1(capsys, monkeypatch):
    assert main(["validate", COUNTING, "--play", "all"]) == 0
    output = capsys.readouterr().out
    assert "there is no manifest" in output
    assert "train: the oracle plays 4, 0 wrong" in output

    name = registered(monkeypatch, Slower)
    code, found = figures(capsys, "validate", name, "--play", "1")
    assert code == 1
    problem = found["families"][0]["problems"][0]
    assert problem == "counting/train/3: certified with 5 turns, the oracle takes 2"
    assert main(["validate", name, "--play", "1", "--arg", "highest=9"]) == 0


def test_a_task_set_that_differs_from_its_manifest_is_exit_code_1(capsys, monkeypatch):
    from agentgym_envs.babyai import tasks

    true_rows = tasks._rows

    @functools.cache
    def rows_with_a_typo(level, split):
        return [row.replace("go to", "goto") for row in true_rows(level, split)]

    monkeypatch.setattr(tasks, "_rows", rows_with_a_typo)
    code, found = figures(capsys, "validate", "AgentGym/BabyAI-v0", "--play", "0")
    assert code == 1
    assert "babyai/train differs from its manifest" in found["families"][0]["problems"][0]


# --------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["play", "AgentGym/BabyAy-v0"], "did you mean 'AgentGym/BabyAI-v0'"),
        (["check", "AgentGym/BabyAy-v0"], "did you mean 'AgentGym/BabyAI-v0'"),
        (["validate", "AgentGym/BabyAy-v0"], "did you mean 'AgentGym/BabyAI-v0'"),
        (
            ["check", "counting:Nope-v0"],
            "valid are AgentGym/BabyAI-v0, AgentGym/DeepSearch-v0, AgentGym/SciWorld-v0, ",
        ),
        (["play", "AgentGym/TextCraft-v0", "--task", "nosuch"], "'nosuch'; there are 551, such"),
        (["play", COUNTING, "--arg", "spli=test"], "'spli'; did you mean 'split'"),
        (["describe", "nowhere:My/World-v0"], "nowhere"),
        (["play", COUNTING, "--task", "counting/trian/9"], "counting/train/9"),
        (["oracle", COUNTING, "--task", "99"], "task index 99 is out of range; there are 4"),
        (["play", COUNTING, "--arg", "split=tset"], "did you mean 'test'"),
        (["bench", COUNTING, "--arg", "colour=red"], "colour"),
        (["play", COUNTING, "--arg", "strict=False"], "True or False, got 'False'"),
        (["play", "CartPole-v1"], "expected a TextEnv or a TextWrapper"),
        (["check", "CartPole-v1"], "expected a TextEnv or a TextWrapper"),
        (["oracle", "Test/Bare-v0"], "bare has no 'oracle'"),
        (["bench", "Test/Bare-v0"], "needs the capability oracle or admissible"),
        (["bench", COUNTING, "--workers", "threads"], "--workers needs --num-envs"),
        (["validate", "--arg", "levels=all"], "--arg needs an id"),
    ],
)
def test_a_wrong_call_is_one_clear_line(capsys, words, message):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["dance"], "invalid choice: 'dance'"),
        (["play"], "the following arguments are required: id"),
        (["play", COUNTING, "--arg", "red"], "expected NAME=VALUE, got 'red'"),
        (["play", COUNTING, "--horizon", "0"], "at least 1, got '0'"),
        (["play", COUNTING, "--seed", "x"], "a whole number of at least 0, got 'x'"),
        (["oracle", COUNTING, "--delay", "soon"], "expected seconds from 0 to 3600, got 'soon'"),
        (["bench", COUNTING, "--num-envs", "0"], "at least 1, got '0'"),
    ],
)
def test_options_that_make_no_sense_are_one_clear_line(capsys, words, message):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


# ---------------------------------------------------------------------------------------- process


def run_python(*words, **kwargs):
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=120, check=False, **kwargs
    )


def test_the_package_is_a_command():
    done = run_python("-m", "agentgym_envs", "--help")
    assert done.returncode == 0
    assert "usage: python -m agentgym_envs" in done.stdout
    for name in ("list", "describe", "play", "oracle", "check", "bench", "validate", "eval"):
        assert f"    {name} " in done.stdout


def test_a_pipe_that_is_closed_early_is_no_traceback():
    command = f"{sys.executable} -m agentgym_envs describe AgentGym/BabyAI-v0 | head -n 1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.startswith("AgentGym/BabyAI-v0: Rooms")
    assert done.stderr == ""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody_reads:
        done = subprocess.run(
            [sys.executable, "-m", "agentgym_envs", "list", "--json"],
            stdout=nobody_reads,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 141
    assert "Traceback" not in done.stderr


def test_streams_that_are_closed_or_cannot_write_every_letter_are_no_traceback():
    command = f"{sys.executable} -m agentgym_envs"
    for words, code in (
        (f"{command} play AgentGym/TextCraft-v0 <&-", 0),
        (f"{command} list >&-", 0),
        (f"{command} list --json 2>&-", 0),
        (f"PYTHONIOENCODING=ascii {command} describe AgentGym/BabyAI-v0", 0),
    ):
        done = subprocess.run(
            words, shell=True, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (code, ""), words


def test_a_command_that_is_asked_to_end_cleans_up_as_after_ctrl_c():
    command = [sys.executable, "-m", "agentgym_envs", "oracle", "AgentGym/TextCraft-v0"]
    watch = subprocess.Popen(
        [*command, "--delay", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert watch.stdout.readline()
    watch.send_signal(signal.SIGTERM)
    _, errors = watch.communicate(timeout=120)
    assert errors.splitlines()[-1] == "stopped"
