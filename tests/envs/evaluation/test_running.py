"""Folders of evaluations: complete, interrupted, continued, refused."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import pytest
from counting import CountingEnv

from agentgym_envs.episodes import EndReason, read_episodes, write_episodes
from agentgym_envs.errors import InvalidEvaluation, InvalidRecord, PolicyFault, UnknownName
from agentgym_envs.evaluation import (
    EvalFolder,
    EvalPlan,
    Player,
    choose_tasks,
    make_env,
    oracle_player,
    play,
    random_player,
    recorded,
    run_evaluation,
    summarize,
)
from agentgym_envs.policies import ScriptedPolicy
from agentgym_envs.wrappers import TurnBudget

COUNTING = "Test/Counting-v0"
FILES = ("plan.json", "episodes.jsonl", "result.json", "report.md", "report.png")


@pytest.fixture
def plan():
    return EvalPlan(COUNTING, {}, choose_tasks(COUNTING, {}, "train"), horizon=6, k=3, seed=4)


def evaluate(plan, path, player=None, *, resume=False, stop_after=None, **options):
    """An evaluation that may be interrupted after so many episodes."""
    player = player or random_player(plan.seed)

    def play_some(jobs, on_episode):
        play(plan, player, jobs if stop_after is None else jobs[:stop_after], on_episode, **options)
        if stop_after is not None:
            raise KeyboardInterrupt

    folder = EvalFolder(path)
    return run_evaluation(plan, player.description, play_some, folder, resume=resume)


def contents(path):
    return {name: (path / name).read_bytes() for name in FILES}


def test_an_evaluation_leaves_plan_records_result_and_report(plan, tmp_path):
    result = evaluate(plan, tmp_path / "eval")
    assert json.loads((tmp_path / "eval/result.json").read_text()) == result
    assert {path.name for path in (tmp_path / "eval").iterdir()} == set(FILES)
    episodes = list(read_episodes(tmp_path / "eval/episodes.jsonl"))
    assert [(episode.task, episode.member) for episode in episodes] == [
        (job.task, job.member) for job in plan.jobs()
    ]
    again = summarize(plan.tasks, episodes, horizon=6, k=3).to_json()
    assert result == {"plan": plan.fingerprint({"name": "random"})} | again
    assert result["plan"]["tasks"]["number"] == 4


def test_equal_evaluations_have_equal_files(plan, tmp_path):
    evaluate(plan, tmp_path / "one")
    evaluate(plan, tmp_path / "two", threads=3)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("done", [0, 1, 7, 12])
def test_an_interrupted_evaluation_goes_on_to_the_same_files(plan, tmp_path, done):
    evaluate(plan, tmp_path / "whole")
    path = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        evaluate(plan, path, stop_after=done)
    assert not (path / "result.json").exists()
    if done:
        with open(path / "episodes.jsonl", "ab") as file:
            file.write(b'{"schema": 1, "task": {"fam')  # a kill amid a write
    played = []
    player = random_player(plan.seed)

    def make(env, job):
        played.append((job.task.id, job.member))
        return player.make_policy(env, job)

    evaluate(plan, path, dataclasses.replace(player, make_policy=make), resume=True)
    assert len(played) == 12 - done
    assert contents(path) == contents(tmp_path / "whole")


def test_an_evaluation_that_is_killed_goes_on_to_the_same_files(plan, tmp_path):
    program = (
        "import sys, time; sys.path.insert(0, sys.argv[2])\n"
        "import gymnasium\n"
        "from agentgym_envs import evaluation as e\n"
        "gymnasium.register('Test/Counting-v0', entry_point='counting:CountingEnv',\n"
        "                   order_enforce=False, disable_env_checker=True)\n"
        "plan = e.EvalPlan('Test/Counting-v0', {}, e.choose_tasks('Test/Counting-v0', {}, 'train'),"
        " horizon=6, k=3, seed=4)\n"
        "player = e.random_player(4)\n"
        "def slowly(jobs, on_episode):\n"
        "    e.play(plan, player, jobs, lambda one: (on_episode(one), time.sleep(0.1)))\n"
        "e.run_evaluation(plan, player.description, slowly, e.EvalFolder(sys.argv[1]))\n"
    )
    path = tmp_path / "killed"
    words = [sys.executable, "-c", program, str(path), str(Path(__file__).parents[1])]
    process = subprocess.Popen(words)
    deadline = time.monotonic() + 60
    records = path / "episodes.jsonl"
    while not records.exists() or records.read_bytes().count(b"\n") < 4:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = records.read_bytes().count(b"\n")
    assert 4 <= kept < 12
    evaluate(plan, tmp_path / "whole")
    evaluate(plan, path, resume=True)
    assert contents(path) == contents(tmp_path / "whole")


def test_to_resume_what_has_not_begun_is_to_begin(plan, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/.plan.json.writing").write_text("{")
    result = evaluate(plan, tmp_path / "empty", resume=True)
    assert evaluate(plan, tmp_path / "new", resume=True) == result


def test_to_resume_what_is_finished_plays_nothing(plan, tmp_path):
    evaluate(plan, tmp_path / "eval")
    before = contents(tmp_path / "eval")

    def make(env, job):
        raise AssertionError("nothing is left to play")

    player = dataclasses.replace(random_player(4), make_policy=make)
    evaluate(plan, tmp_path / "eval", player, resume=True)
    assert contents(tmp_path / "eval") == before


def test_what_broke_is_played_again_on_resume(plan, tmp_path):
    class Down:
        def start(self, instructions):
            raise PolicyFault("down")

    broken = dataclasses.replace(oracle_player(), make_policy=lambda env, job: Down())
    first = evaluate(plan, tmp_path / "eval", broken, max_faults=1.0)
    assert (first["faults"], first["success"]["value"]) == (12, None)
    second = evaluate(plan, tmp_path / "eval", oracle_player(), resume=True)
    assert (second["faults"], second["success"]["value"]) == (0, 1.0)
    evaluate(plan, tmp_path / "whole", oracle_player())
    assert contents(tmp_path / "eval") == contents(tmp_path / "whole")


def test_what_always_breaks_does_not_keep_an_evaluation_from_ending(plan, tmp_path):
    def make(env, job):
        is_broken = (job.task.payload["number"], job.member) == (3, 1)
        return ScriptedPolicy(["break"]) if is_broken else env.oracle()

    faulty = dataclasses.replace(plan, env_id="Test/Faulty-v0")
    player = Player({"name": "x"}, make)
    first = evaluate(faulty, tmp_path / "eval", player)
    assert (first["faults"], first["success"]["value"]) == (1, 1.0)
    assert evaluate(faulty, tmp_path / "eval", player, resume=True) == first


def test_an_evaluation_that_goes_on_has_no_result_until_it_has_ended_again(plan, tmp_path):
    class Down:
        def start(self, instructions):
            raise PolicyFault("down")

    broken = dataclasses.replace(oracle_player(), make_policy=lambda env, job: Down())
    evaluate(plan, tmp_path / "eval", broken, max_faults=1.0)
    with pytest.raises(KeyboardInterrupt):
        evaluate(plan, tmp_path / "eval", oracle_player(), resume=True, stop_after=1)
    assert {path.name for path in (tmp_path / "eval").iterdir()} == {"plan.json", "episodes.jsonl"}


def test_a_call_that_fails_before_its_first_episode_leaves_the_folder_free(plan, tmp_path):
    def make(env, job):
        raise InvalidEvaluation("wrong key")

    wrong = dataclasses.replace(random_player(4), make_policy=make)
    with pytest.raises(InvalidEvaluation, match="wrong key"):
        evaluate(plan, tmp_path / "eval", wrong)
    assert not (tmp_path / "eval").exists()
    evaluate(dataclasses.replace(plan, seed=5), tmp_path / "eval")


def test_a_damaged_plan_is_told_of(plan, tmp_path):
    evaluate(plan, tmp_path / "eval")
    (tmp_path / "eval/plan.json").write_text('{"policy"')
    with pytest.raises(InvalidEvaluation, match=r"cannot read .*plan\.json: .*another folder$"):
        evaluate(plan, tmp_path / "eval", resume=True)


def test_a_folder_that_is_taken_is_refused(plan, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidEvaluation, match="is not an empty folder; --resume goes on"):
        evaluate(plan, tmp_path)
    with pytest.raises(InvalidEvaluation, match=r"holds no evaluation: there is no plan\.json"):
        evaluate(plan, tmp_path, resume=True)
    with pytest.raises(InvalidEvaluation, match="is not an empty folder"):
        evaluate(plan, tmp_path / "notes.txt")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"horizon": 7}, r"horizon was 6, is 7"),
        ({"k": 2}, r"k was 3, is 2"),
        ({"seed": 5}, r"seed was 4, is 5"),
        ({"env_args": {"highest": 12}}, r"env_args\.highest was absent, is 12"),
        ({"tasks": "fewer"}, r'tasks\.number was 4, is 3; tasks\.sha256 was "'),
    ],
)
def test_another_evaluation_is_not_gone_on_with(plan, tmp_path, change, told):
    evaluate(plan, tmp_path / "eval")
    if "tasks" in change:
        change = {"tasks": plan.tasks[:3]}
    with pytest.raises(InvalidEvaluation, match=told):
        evaluate(dataclasses.replace(plan, **change), tmp_path / "eval", resume=True)


def test_another_policy_or_version_does_not_go_on(plan, tmp_path):
    evaluate(plan, tmp_path / "eval")
    with pytest.raises(InvalidEvaluation, match=r'policy\.name was "random", is "oracle"'):
        evaluate(plan, tmp_path / "eval", oracle_player(), resume=True)
    file = tmp_path / "eval/plan.json"
    saved = json.loads(file.read_text())
    saved["versions"]["gymnasium"] = "0.1"
    file.write_text(json.dumps(saved))
    with pytest.raises(InvalidEvaluation, match=r'versions\.gymnasium was "0\.1", is "'):
        evaluate(plan, tmp_path / "eval", resume=True)


def test_records_that_are_broken_or_strange_are_told_of(plan, tmp_path):
    evaluate(plan, tmp_path / "eval")
    records = tmp_path / "eval/episodes.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join([lines[0], "{}\n", *lines[1:]]))
    with pytest.raises(InvalidRecord, match=r"episodes\.jsonl, line 2: episode schema 1 expected"):
        evaluate(plan, tmp_path / "eval", resume=True)
    records.write_text("".join([lines[0], lines[0]]))
    with pytest.raises(InvalidEvaluation, match=r"'counting/train/3', try 0, more than once"):
        evaluate(plan, tmp_path / "eval", resume=True)


def test_the_order_of_tasks_decides_nothing(plan, tmp_path):
    turned = dataclasses.replace(plan, tasks=plan.tasks[::-1])
    assert turned.fingerprint({}) == plan.fingerprint({})
    first, second = evaluate(plan, tmp_path / "a"), evaluate(turned, tmp_path / "b")
    assert first["tasks"] == second["tasks"][::-1]


def test_a_plan_without_sense_is_refused(plan):
    with pytest.raises(InvalidEvaluation, match="no task to evaluate on"):
        dataclasses.replace(plan, tasks=())
    for change in ({"horizon": 0}, {"k": 0}):
        with pytest.raises(InvalidEvaluation, match="must be at least 1, got"):
            dataclasses.replace(plan, **change)


def test_a_world_that_allows_fewer_turns_is_told_of_at_once(plan, tmp_path, monkeypatch):
    spec = gymnasium.envs.registration.EnvSpec(
        "Test/Brief-v0", lambda **arguments: TurnBudget(CountingEnv(**arguments), 5)
    )
    spec.order_enforce, spec.disable_env_checker = False, True
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    brief = dataclasses.replace(plan, env_id=spec.id)
    with pytest.raises(InvalidEvaluation, match="Test/Brief-v0 allows 5 turns where 6 are asked"):
        evaluate(brief, tmp_path / "eval")
    evaluate(dataclasses.replace(brief, horizon=5), tmp_path / "five")


def test_tasks_are_a_split_its_beginning_or_those_of_a_file(tmp_path):
    def numbers(*words, **options):
        tasks = choose_tasks(COUNTING, {"highest": 20}, *words, **options)
        return [task.payload["number"] for task in tasks]

    file = tmp_path / "ids.txt"
    file.write_text("counting/test/11\ncounting/test/5\n")
    assert numbers("test") == [5, 8, 11, 14, 17, 20]
    assert numbers("test", 2) == numbers("test", "2") == [5, 8]
    assert numbers("test", str(file)) == [11, 5]
    assert numbers("test", 1, file=str(file)) == [11]
    with pytest.raises(InvalidEvaluation, match="7 tasks are asked for, but the test split has 6"):
        numbers("test", 7)
    with pytest.raises(InvalidEvaluation, match=r"must not hold \['split'\]"):
        choose_tasks(COUNTING, {"split": "dev"}, "test")


def test_what_is_no_text_environment_is_told_of():
    with pytest.raises(InvalidEvaluation, match="'CartPole-v1' is no text environment"):
        make_env("CartPole-v1", {})
    with pytest.raises(InvalidEvaluation, match=r"cannot make 'nowhere:X': No module named"):
        make_env("nowhere:X", {})
    with pytest.raises(UnknownName, match="did you mean"):
        make_env("AgentGym/BabyAy-v0", {})


def test_recorded_episodes_are_taken_as_they_are(plan, tmp_path):
    evaluate(plan, tmp_path / "eval")
    episodes = list(read_episodes(tmp_path / "eval/episodes.jsonl"))
    for episode in episodes:
        episode.member = 0  # as a person's are
    episodes[0].end_reason, episodes[0].success = EndReason.STOPPED, False
    file = tmp_path / "me.jsonl"
    write_episodes(file, episodes[:-1])  # the last task has two tries
    theirs, policy, play_them = recorded(file)
    assert (theirs.env_id, theirs.tasks, theirs.horizon, theirs.k) == (COUNTING, plan.tasks, 6, 3)
    assert policy["name"] == "me"
    result = run_evaluation(theirs, policy, play_them, EvalFolder(tmp_path / "me"))
    assert [task["episodes"] for task in result["tasks"]] == [3, 3, 3, 2]
    assert result["end_reasons"]["stopped"] == 1
    again = run_evaluation(*recorded(file), EvalFolder(tmp_path / "me"), resume=True)
    assert again == result


def test_an_episode_that_has_not_ended_is_not_counted_as_a_failure(plan, tmp_path):
    evaluate(plan, tmp_path / "eval")
    episodes = list(read_episodes(tmp_path / "eval/episodes.jsonl"))
    episodes[0].end_reason = EndReason.RUNNING
    write_episodes(tmp_path / "me.jsonl", episodes)
    with pytest.raises(InvalidEvaluation, match="'counting/train/3' has not ended"):
        run_evaluation(*recorded(tmp_path / "me.jsonl"), EvalFolder(tmp_path / "me"))
    assert not (tmp_path / "me").exists()


def test_recorded_episodes_of_several_horizons_are_refused(make_episode, tmp_path):
    file = tmp_path / "mixed.jsonl"
    write_episodes(file, [make_episode(0, 1), make_episode(1, 1, horizon=9)])
    with pytest.raises(InvalidEvaluation, match=r"episodes of one horizon in .*, got \[8, 9\]"):
        recorded(file)
    write_episodes(file, [])
    with pytest.raises(InvalidEvaluation, match=r"no episode in .*mixed\.jsonl; play at least one"):
        recorded(file)


def test_the_report_says_what_the_result_says(plan, tmp_path):
    result = evaluate(plan, tmp_path / "eval")
    report = (tmp_path / "eval/report.md").read_text()
    low, high = result["success"]["interval_95"]
    row = f"| success (avg@3) | {result['success']['value']:.3f} | [{low:.3f}, {high:.3f}] |"
    assert row in report.splitlines()
    assert "4 tasks, 3 episodes each, at most 6 turns. 0 episodes broke" in report
    assert "| k = 1 | k = 2 | k = 3 |" in report
    assert (tmp_path / "eval/report.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["cost $5 or $6", r"$\frac{", "日本", "a\\b^_{"])
def test_names_cannot_break_the_picture(plan, tmp_path, name):
    tasks = tuple(dataclasses.replace(task, category=name) for task in plan.tasks)
    player = dataclasses.replace(random_player(4), description={"name": name})
    evaluate(dataclasses.replace(plan, tasks=tasks), tmp_path / "eval", player)
    assert (tmp_path / "eval/report.png").read_bytes().startswith(b"\x89PNG")


def test_names_cannot_break_the_table(plan, tmp_path):
    tasks = [dataclasses.replace(task, category="a|b\nc") for task in plan.tasks]
    evaluate(
        dataclasses.replace(plan, tasks=tuple(tasks)),
        tmp_path / "eval",
        Player({"name": "x"}, lambda env, job: env.oracle()),
    )
    assert r"| a\|b c | 4 |" in (tmp_path / "eval/report.md").read_text()


def test_the_example_of_the_docs_runs(tmp_path, monkeypatch):
    pytest.importorskip("minigrid")
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs/evaluation.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(program, names)
    assert names["result"]["success"]["value"] == 1.0
    assert (tmp_path / "evaluations/mine/report.md").exists()
