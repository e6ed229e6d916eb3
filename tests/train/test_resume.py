"""A run that was killed goes on to the same weights, bit for bit."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

from agentgym_train.commands import evaluate, resume, train
from agentgym_train.errors import CheckpointError, ConfigError, TrainError
from agentgym_train.loggers.jsonl import read_metrics
from agentgym_train.runs import open_run_folder

DEADLINE_S = 300
SETTINGS = shlex.split("""
    --run.steps 6 --run.threads 1 --run.checkpoint-every 2 --run.save-episodes-every 1
    --env.num-envs 16 --model.hidden-size 64 --model.num-layers 1 --model.num-heads 2
    --model.vocab-size 400 --warmup.steps 20 --warmup.demonstrations.episodes 200
    --warmup.learning-rate 1e-2 --credit.no-drop-zero-variance
    --batch.tasks-per-step 4 --batch.group-size 4 --eval.tasks 6 --eval.every 3
    --horizon.stages 2 4 --horizon.steps 3 --eval.horizon 4
""")
WARMUP, STEPS = 20, 6
TOTAL = WARMUP + STEPS


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that nobody disturbed."""
    path = tmp_path_factory.mktemp("finished") / "run"
    figures = train([*SETTINGS, "--run.dir", str(path)])
    return path, figures


def start(*words):
    command = [sys.executable, "-m", "agentgym_train", *words, "--json"]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def stop_after(process, path, step, number):
    """Send signal `number` once `step` steps are in the log."""
    end = time.monotonic() + DEADLINE_S
    while sum(1 for _ in read_metrics(path / "metrics.jsonl")) < step:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "the run does not come on"
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=DEADLINE_S)
    return process.returncode, errors


def test_a_run_that_is_killed_and_interrupted_ends_with_the_same_weights(finished, tmp_path):
    path = tmp_path / "run"
    # In the warm-up, between checkpoints; then right after the phase changed; then by Ctrl-C.
    code, _ = stop_after(start(*SETTINGS, "--run.dir", str(path)), path, 3, signal.SIGKILL)
    assert code == -signal.SIGKILL
    code, _ = stop_after(start("resume", str(path)), path, WARMUP + 1, signal.SIGKILL)
    assert code == -signal.SIGKILL
    code, errors = stop_after(start("resume", str(path)), path, WARMUP + 3, signal.SIGINT)
    assert code == 130
    assert f"python -m agentgym_train resume {path}" in errors
    output, errors = start("resume", str(path)).communicate(timeout=DEADLINE_S)
    figures = json.loads(output.splitlines()[-1])

    assert weights_of(path) == weights_of(finished[0])
    for name in ("success_before", "success_after", "success_after_greedy", "n_eval"):
        assert figures[name] == finished[1][name]
    logged = [line["step"] for line in read_metrics(path / "metrics.jsonl")]
    assert logged == list(range(TOTAL + 1))  # every step once, and the end
    assert comparable(path) == comparable(finished[0])


def weights_of(path):
    folder = path / "checkpoints" / f"step-{TOTAL:06d}" / "model"
    tensors = load_file(folder / "model.safetensors")
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def comparable(path):
    """The log without what depends on the clock or on the machine."""
    return [
        {
            name: value
            for name, value in line.items()
            if not name.startswith(("time/", "speed/", "memory/"))
        }
        for line in read_metrics(path / "metrics.jsonl")
    ]


def test_the_run_that_is_resumed_has_something_to_learn_from(finished):
    lines = [
        line for line in read_metrics(finished[0] / "metrics.jsonl") if line["phase"] == "grpo"
    ]
    assert any(line["rollout/useful"] > 0 for line in lines)
    assert all(line["train/grad_norm"] > 0 for line in lines)


def test_sampler_and_learner_agree_on_every_sampled_token(finished):
    lines = read_metrics(finished[0] / "metrics.jsonl")
    gaps = [line["train/logprob_gap_max"] for line in lines if line["phase"] == "grpo"]
    assert len(gaps) == STEPS
    assert max(gaps) < 1e-5


def test_the_horizon_follows_its_stages_from_the_end_of_the_warm_up(finished):
    lines = read_metrics(finished[0] / "metrics.jsonl")
    horizons = [line["rollout/horizon"] for line in lines if line["phase"] == "grpo"]
    assert horizons == [2, 2, 2, 4, 4, 4]


def test_a_finished_run_holds_everything_that_the_docs_name(finished):
    path, figures = finished
    assert {"success_before", "success_after", "n_eval", "seconds"} <= figures.keys()
    names = ("config.toml", "metrics.jsonl", "result.json", "report.html", "tensorboard")
    assert all((path / name).exists() for name in names)
    assert len(list((path / "episodes").glob("*.jsonl"))) == 6
    assert len(list((path / "checkpoints").glob("step-*"))) == 2
    page = (path / "report.html").read_text()
    assert "held-out success at horizon 4" not in page  # that is in the picture
    assert page.count("data:image/png;base64") == 2


def test_a_finished_checkpoint_is_evaluated_to_the_same_figures(finished):
    path, figures = finished
    report = evaluate(str(path), "test", None, None)
    assert report["success"] == figures["success_after"]
    assert report["n"] == 6
    assert evaluate(str(path), "dev", 4, 2)["n"] == 4


def test_resuming_a_finished_run_changes_nothing(finished):
    path, figures = finished
    before, log = weights_of(path), comparable(path)
    again = resume(str(path))
    assert again["success_after"] == figures["success_after"]
    assert weights_of(path) == before
    assert comparable(path) == log
    assert log[-1]["phase"] == "end"


def test_a_finished_run_goes_on_when_it_is_made_longer(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished[0], path)
    lengthen(path)
    figures = resume(str(path))
    lines = comparable(path)
    assert [line["step"] for line in lines] == list(range(TOTAL + 2))
    assert [line["phase"] for line in lines[-2:]] == ["grpo", "end"]
    assert lines[:TOTAL] == comparable(finished[0])[:TOTAL]
    # What is reported is about the new end, not left over from the old one.
    assert evaluate(str(path), "test", None, None)["success"] == figures["success_after"]
    state = json.loads((path / f"checkpoints/step-{TOTAL + 1:06d}/state.json").read_text())
    assert state["progress"]["step"] == TOTAL + 1
    assert state["progress"]["reports"]["after"]["success"] == figures["success_after"]


def test_a_file_that_cannot_be_written_is_one_clear_line(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished[0], path)
    lengthen(path)
    shutil.rmtree(path / "episodes")
    (path / "episodes").write_text("")
    with pytest.raises(TrainError, match=r"cannot write into .*go on .* agentgym_train resume"):
        resume(str(path))
    assert comparable(path) == comparable(finished[0])[:TOTAL]


def lengthen(path):
    config = open_run_folder(path).config
    config.write_text(config.read_text().replace("\nsteps = 6\n", "\nsteps = 7\n", 1))


def test_ctrl_c_is_honored_during_the_warm_up(tmp_path):
    path = tmp_path / "run"
    words = [*SETTINGS, "--warmup.steps", "1000", "--run.dir", str(path)]
    code, errors = stop_after(start(*words), path, 3, signal.SIGINT)
    assert code == 130
    done = int(errors.partition("stopped after step ")[2].split()[0])
    assert done < 1000
    assert (path / "checkpoints" / f"step-{done:06d}" / "index.json").exists()


def test_a_checkpoint_of_other_settings_is_refused(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished[0], path)
    config = open_run_folder(path).config
    config.write_text(config.read_text().replace("learning_rate = 0.0003", "learning_rate = 0.1"))
    with pytest.raises(CheckpointError, match=r"settings.learner.learning_rate is 0.0003 there"):
        resume(str(path))


def test_resuming_nothing_is_one_clear_line(tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        resume(str(tmp_path))
