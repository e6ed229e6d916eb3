"""The folder of a run, and stopping it."""

import dataclasses
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentgym_train.errors import ConfigError
from agentgym_train.loggers import JsonlLogger, read_metrics
from agentgym_train.runs import (
    Interrupted,
    InterruptRequest,
    Progress,
    create_run_folder,
    open_run_folder,
)


def test_without_a_name_the_first_free_folder_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        names.append(str(create_run_folder("", "first-run").path))
    assert names == ["runs/first-run", "runs/first-run-2", "runs/first-run-3"]


def test_a_folder_with_a_run_is_not_written_over(tmp_path):
    create_run_folder(str(tmp_path / "run"), "first-run")
    with pytest.raises(ConfigError, match=r"agentgym_train resume .*run"):
        create_run_folder(str(tmp_path / "run"), "first-run")


def test_runs_that_start_at_once_get_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: create_run_folder("", "first-run"), range(8)))
    assert len({folder.path for folder in folders}) == 8


def test_a_run_folder_below_a_file_is_one_clear_line(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(ConfigError, match=r"cannot create the run folder .*runs/one"):
        create_run_folder(str(tmp_path / "runs/one"), "first-run")


def test_a_folder_without_a_run_cannot_be_opened(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no run: there is no config.toml"):
        open_run_folder(tmp_path)


def test_one_process_at_a_time_works_on_a_run(tmp_path):
    folder = create_run_folder(str(tmp_path / "run"), "first-run")
    folder.config.write_text("")
    again = open_run_folder(folder.path)
    refused = pytest.raises(ConfigError, match=r"another process is .*; stop it")
    with folder.locked(), refused, again.locked():
        pass
    with pytest.raises(KeyboardInterrupt), again.locked():
        raise KeyboardInterrupt
    with folder.locked():
        pass


def test_progress_survives_json():
    progress = Progress(step=7, seconds=1.5, reports={"before": {"success": 0.5}})
    assert Progress(**json.loads(json.dumps(dataclasses.asdict(progress)))) == progress


def test_the_first_ctrl_c_is_a_request_and_the_second_stops_at_once():
    with InterruptRequest() as interrupt:
        interrupt()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted):
            interrupt()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_resumed_log_holds_every_step_once_and_no_half_line(tmp_path):
    path = tmp_path / "metrics.jsonl"
    logger = JsonlLogger(path)
    for step in range(5):
        logger.log(step, "grpo", {"train/loss": float(step)})
    logger.close()
    with open(path, "a") as file:
        file.write('{"step": 5, "phase"')  # killed in the middle of a line
    logger = JsonlLogger(path, resume_at=3)
    logger.log(3, "grpo", {"train/loss": 30.0})
    logger.close()
    assert [(line["step"], line["train/loss"]) for line in read_metrics(path)] == [
        (0, 0.0),
        (1, 1.0),
        (2, 2.0),
        (3, 30.0),
    ]


def test_the_best_is_the_earliest_of_the_highest():
    progress = Progress(step=10)
    assert progress.is_best(0.5)
    progress.step = 20
    assert not progress.is_best(0.5)
    assert not progress.is_best(0.4)
    assert progress.best == {"step": 10, "success": 0.5}
    progress.step = 30
    assert progress.is_best(0.6)
    assert progress.best == {"step": 30, "success": 0.6}
    # A run that goes on from there evaluates the same weights again.
    again = Progress(**json.loads(json.dumps(dataclasses.asdict(progress))))
    assert not again.is_best(0.6)


def test_a_run_that_goes_back_forgets_episodes_and_result(tmp_path):
    folder = create_run_folder(str(tmp_path / "run"), "first-run")
    for step in (0, 2, 4, 10):
        folder.episodes(step).write_text("")
    folder.write_result({"success_after": 1.0})
    folder.go_back(4)
    left = sorted(path.name for path in folder.episodes(0).parent.iterdir())
    assert left == ["step-000000.jsonl", "step-000002.jsonl"]
    assert not folder.result.exists()
    folder.go_back(4)  # nothing is left to forget
