"""The page about a run: everything is in it, nothing is loaded, and no text becomes markup."""

import json
import re

import pytest

from agentgym_envs.episodes import write_episodes
from agentgym_train.config import config_from_dict, write_config
from agentgym_train.errors import ConfigError
from agentgym_train.loggers import JsonlLogger
from agentgym_train.metrics import METRICS
from agentgym_train.runs import create_run_folder
from agentgym_train.viewer.report import write_report

EVIL = "</script><script>alert(1)</script><!-- & \u2028"


@pytest.fixture
def make_run(tmp_path, make_episode):
    """Makes the folder of a run that lasted some steps."""

    def make(name, *, eval_horizon=8, steps=4, finished=True):
        folder = create_run_folder(str(tmp_path / name), "first-run")
        write_config(config_from_dict({"eval": {"horizon": eval_horizon}}), folder.config)
        logger = JsonlLogger(folder.metrics)
        for step in range(steps):
            values = {"train/entropy": 0.5, "train/logprob_gap_mean": 9.0, "time/rollout": 1.5}
            evaluated = {"eval/success": 0.5, "eval/success_low": 0.4, "eval/success_high": 0.6}
            logger.log(step, "grpo", values | (evaluated if step == 2 else {}))
        logger.close()
        episodes = [make_episode([([1], [2], 0.0), ([3], [4], 1.0)]) for _ in range(5)]
        episodes[0].first_observation = EVIL
        write_episodes(folder.episodes(0), episodes)
        if finished:
            folder.write_result({"reports": {"before": {"success": 0.25}}, "seconds": 3.0})
        return folder

    return make


def data_of(folder):
    page = folder.report.read_text(encoding="utf-8")
    return json.loads(re.search(r"^const data = (.*);$", page, re.MULTILINE)[1])


def test_the_page_holds_the_numbers_of_all_runs_and_the_episodes(make_run):
    run, control = make_run("run"), make_run("control", eval_horizon=20, steps=3, finished=False)
    assert write_report(run, [control]) == run.report
    data = data_of(run)
    assert [each["name"] for each in data["runs"]] == ["run", "control"]
    assert [each["eval_horizon"] for each in data["runs"]] == [8, 20]
    assert [len(each["lines"]) for each in data["runs"]] == [4, 3]
    assert data["runs"][0]["lines"][2]["eval/success_low"] == 0.4
    assert data["metrics"]["train/entropy"]["unit"] == METRICS["train/entropy"].unit
    assert data["result"]["reports"]["before"]["success"] == 0.25
    assert len(data["episodes"]["step-000000"]) == 3  # of five
    first = data["episodes"]["step-000000"][0]
    assert first["headline"] == "t/0: horizon, return 1, horizon 20"
    assert [kind for kind, _ in first["texts"]] == ["observation"] + ["reply", "observation"] * 2


def test_the_page_tells_the_alarms_that_the_log_gives_rise_to(make_run):
    run = make_run("run")
    write_report(run)
    ((step, reason),) = data_of(run)["alarms"]
    assert step == 2
    assert reason.startswith("monitor.sampler_gap: train/logprob_gap_mean")


def test_a_run_that_goes_on_has_a_page_too(make_run):
    run = make_run("run", finished=False)
    write_report(run)
    assert data_of(run)["result"] == {}


def test_the_page_loads_nothing(make_run):
    run = make_run("run")
    page = write_report(run).read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"'`\s]+", page)) == {"http://www.w3.org/2000/svg"}  # a name
    assert not re.search(r"\b(src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest|import\(", page)


def test_texts_of_a_run_cannot_become_markup(make_run):
    run = make_run("run")
    page = write_report(run).read_text(encoding="utf-8")
    assert page.count("</script>") == 1
    assert "<!--" not in page
    assert data_of(run)["episodes"]["step-000000"][0]["texts"][0][1] == EVIL
    assert "innerHTML" not in page


def test_a_damaged_result_is_told_of(make_run):
    run = make_run("run")
    run.result.write_text('{"reports')
    with pytest.raises(ConfigError, match=r"result\.json is damaged: .*; delete it"):
        write_report(run, [])
