"""A run that was killed, stopped or sent back goes on to the same weights, bit for bit."""

import contextlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from agentgym_train import checkpoint
from agentgym_train.cli import main
from agentgym_train.loggers import read_metrics
from agentgym_train.runs import open_run_folder

DRILL = Path(__file__).parents[2] / "benchmarks" / "resume_drill.py"
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


def figures_of(*words):
    """The figures of a command that must work."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main([*map(str, words), "--json"]) == 0
    return json.loads(output.getvalue().splitlines()[-1])


def error_of(capsys, *words):
    """The line of a command that must be refused."""
    assert main([*map(str, words)]) == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that nobody disturbed."""
    path = tmp_path_factory.mktemp("finished") / "run"
    return path, figures_of("train", *SETTINGS, "--run.dir", path)


@pytest.fixture
def copied(finished, tmp_path):
    """The folder of a copy of the run."""
    return shutil.copytree(finished[0], tmp_path / "run")


def weights_of(path, step=TOTAL):
    folder = path / "checkpoints" / f"step-{step:06d}" / "model"
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


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def state_of(path, step=TOTAL):
    return json.loads((path / f"checkpoints/step-{step:06d}/state.json").read_text())


def edit(path, before, after):
    """Change the settings of a run."""
    config = open_run_folder(path).config
    text = config.read_text()
    assert text.count(before) == 1
    config.write_text(text.replace(before, after))


def drill(*options):
    command = [sys.executable, str(DRILL), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=3600, check=False)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, figures
    return figures


def test_a_run_that_is_killed_at_three_random_steps_ends_in_the_same_state():
    found, passed = drill("--only", "grpo/adaptive/success_rate")
    assert passed["value"] is True
    assert len(found["killed_at"]) == 3
    assert found["updates"] > 3
    assert len(found["horizons"]) > 1


@pytest.mark.slow
def test_so_does_one_of_every_algorithm_schedule_and_curriculum():
    *found, passed = drill()
    assert passed["value"] is True
    assert all(figure["updates"] > 0 for figure in found)


def start(*words):
    command = [sys.executable, "-m", "agentgym_train", *words, "--json"]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def interrupt_after(process, path, step):
    """Press Ctrl-C once `step` steps are in the log; gives what is said then."""
    end = time.monotonic() + DEADLINE_S
    while sum(1 for _ in read_metrics(path / "metrics.jsonl")) < step:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "the run does not come on"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    return errors


def test_a_run_that_is_interrupted_ends_with_the_same_weights(finished, tmp_path):
    path = tmp_path / "run"
    process = start("train", *SETTINGS, "--run.dir", str(path))
    errors = interrupt_after(process, path, WARMUP + 3)
    assert f"python -m agentgym_train resume {path}" in errors
    figures = figures_of("resume", path)
    assert weights_of(path) == weights_of(finished[0])
    for name in ("success_before", "success_after", "success_after_greedy", "n_eval"):
        assert figures[name] == finished[1][name]
    assert comparable(path) == comparable(finished[0])


def test_ctrl_c_is_honored_during_the_warm_up(tmp_path):
    path = tmp_path / "run"
    words = [*SETTINGS, "--warmup.steps", "1000", "--run.dir", str(path)]
    errors = interrupt_after(start("train", *words), path, 3)
    done = int(errors.partition("stopped after step ")[2].split()[0])
    assert done < 1000
    assert (path / "checkpoints" / f"step-{done:06d}" / "index.json").exists()


def test_a_run_that_is_ended_before_it_has_begun_leaves_nothing(tmp_path):
    path = tmp_path / "run"
    words = [*SETTINGS, "--warmup.demonstrations.episodes", "100000", "--run.dir", str(path)]
    process = start("train", *words)
    end = time.monotonic() + DEADLINE_S
    while not (path / "config.toml").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "the run does not come on"
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=DEADLINE_S)
    # Python ends by the signal where it came while code from a string was run: 130 to a shell, too.
    assert process.returncode in (130, -signal.SIGINT), errors
    assert not path.exists()


def test_the_run_that_is_resumed_has_something_to_learn_from(finished):
    lines = [line for line in comparable(finished[0]) if line["phase"] == "grpo"]
    assert any(line["rollout/useful"] > 0 for line in lines)
    assert all(line["train/grad_norm"] > 0 for line in lines)


def test_sampler_and_learner_agree_on_every_sampled_token(finished):
    lines = comparable(finished[0])
    gaps = [line["train/logprob_gap_max"] for line in lines if line["phase"] == "grpo"]
    assert len(gaps) == STEPS
    assert max(gaps) < 1e-5


def test_the_horizon_follows_its_stages_from_the_end_of_the_warm_up(finished):
    lines = comparable(finished[0])
    horizons = [line["rollout/horizon"] for line in lines if line["phase"] == "grpo"]
    assert horizons == [2, 2, 2, 4, 4, 4]


def test_a_finished_run_holds_everything_that_the_docs_name(finished):
    path, figures = finished
    assert {"success_before", "success_after", "n_eval", "seconds"} <= figures.keys()
    names = ("config.toml", "metrics.jsonl", "result.json", "report.html", "tensorboard")
    assert all((path / name).exists() for name in names)
    assert len(list((path / "episodes").glob("*.jsonl"))) == STEPS
    assert [line["step"] for line in comparable(path)] == list(range(TOTAL + 1))


def test_the_newest_checkpoints_are_kept_and_the_best(finished):
    path = finished[0]
    evaluated = [(line["step"], line["eval/success"]) for line in comparable(path)[WARMUP::3]]
    step, success = max(evaluated, key=lambda pair: pair[1])  # of equals the first
    assert state_of(path)["best"] == {"step": step, "success": success}
    expected = {step, TOTAL - 2, TOTAL}
    assert names_in(path / "checkpoints") == [f"step-{step:06d}" for step in sorted(expected)]


def test_a_finished_checkpoint_is_evaluated_to_the_same_figures(finished, tmp_path):
    path, figures = finished
    found = figures_of("eval", path, "--tasks", 6, "--out", tmp_path / "test")
    assert found["success"] == figures["success_after"]
    best = state_of(path)["best"]
    words = ("--split", "dev", "--tasks", 6, "--checkpoint", "best", "--out", tmp_path / "dev")
    assert figures_of("eval", path, *words)["success"] == best["success"]


def test_resuming_a_finished_run_changes_nothing(finished):
    path, figures = finished
    before, log = weights_of(path), comparable(path)
    again = figures_of("resume", path)
    assert again["success_after"] == figures["success_after"]
    assert weights_of(path) == before
    assert comparable(path) == log
    assert log[-1]["phase"] == "end"


@pytest.mark.parametrize("which", ["best", str(TOTAL - 2)])
def test_a_run_that_goes_back_comes_to_the_same_end_again(copied, finished, which):
    path = finished[0]
    before = names_in(path / "checkpoints")
    # What a run forgets must not lie about: it would be taken for what comes again.
    (copied / "episodes" / f"step-{TOTAL:06d}.jsonl").write_text("")
    shutil.copytree(
        copied / f"checkpoints/step-{TOTAL:06d}", copied / f"checkpoints/step-{TOTAL + 1:06d}"
    )
    (copied / "result.json").write_text("{}")
    figures = figures_of("resume", copied, "--from", which)
    assert figures["success_after"] == finished[1]["success_after"]
    assert weights_of(copied) == weights_of(path)
    assert comparable(copied) == comparable(path)
    assert names_in(copied / "checkpoints") == before
    assert names_in(copied / "episodes") == names_in(path / "episodes")


def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(copied, capsys):
    error = error_of(capsys, "resume", copied, "--from", "7")
    assert "no whole checkpoint '7'" in error
    assert f"{TOTAL - 2}, {TOTAL}" in error
    assert weights_of(copied)  # nothing was deleted


def test_a_finished_run_goes_on_when_it_is_made_longer(copied, finished):
    edit(copied, "\nsteps = 6\n", "\nsteps = 7\n")
    figures = figures_of("resume", copied)
    lines = comparable(copied)
    assert [line["step"] for line in lines] == list(range(TOTAL + 2))
    assert [line["phase"] for line in lines[-2:]] == ["grpo", "end"]
    assert lines[:TOTAL] == comparable(finished[0])[:TOTAL]
    # What is reported is about the new end, not left over from the old one.
    state = state_of(copied, TOTAL + 1)
    assert state["progress"]["step"] == TOTAL + 1
    assert state["progress"]["reports"]["after"]["success"] == figures["success_after"]


def test_a_file_that_cannot_be_written_is_one_clear_line(copied, finished, capsys):
    edit(copied, "\nsteps = 6\n", "\nsteps = 7\n")
    shutil.rmtree(copied / "episodes")
    (copied / "episodes").write_text("")
    error = error_of(capsys, "resume", copied)
    assert "cannot write into" in error
    assert "agentgym_train resume" in error
    assert comparable(copied) == comparable(finished[0])[:TOTAL]


def test_a_checkpoint_of_other_settings_is_refused(copied, capsys):
    edit(copied, "learning_rate = 0.0003", "learning_rate = 0.1")
    error = error_of(capsys, "resume", copied)
    assert "settings.learner.learning_rate is 0.0003 there and 0.1 here" in error


def test_a_checkpoint_of_other_data_is_refused_by_what_differs(copied, capsys):
    state = state_of(copied)
    data = state["fingerprint"]["world"]
    assert {"train", "dev", "test", "beginnings", "instructions", "versions"} == data.keys()
    data |= {"train": "of other tasks", "beginnings": "of other levels"}
    data["versions"]["minigrid"] = "2.0"
    path = copied / f"checkpoints/step-{TOTAL:06d}"
    (path / "index.json").unlink()
    checkpoint._write_json(path / "state.json", state)
    checkpoint._write_index(path)
    error = error_of(capsys, "resume", copied)
    assert "belongs to another run" in error
    for part in (
        'world.train is "of other tasks" there and',
        'world.beginnings is "of other levels" there and',
        'world.versions.minigrid is "2.0" there and',
    ):
        assert part in error


def test_resuming_nothing_is_one_clear_line(tmp_path, capsys):
    assert "holds no run" in error_of(capsys, "resume", tmp_path)


RULE = shlex.split("--monitor.repeats.metric rollout/episodes --monitor.repeats.condition above")


def test_a_run_that_the_monitor_stops_keeps_its_best_and_goes_on_without_the_rule(
    finished, tmp_path, capsys
):
    path = tmp_path / "run"
    words = [*SETTINGS, *RULE, "--monitor.repeats.action", "stop", "--monitor.repeats.patience", 2]
    error = error_of(capsys, "train", *words, "--run.dir", path)
    assert "training has collapsed: monitor.repeats: rollout/episodes" in error
    assert f"the best checkpoint, of step {WARMUP} with held-out success" in error
    assert f"--model.path {path}/checkpoints/step-{WARMUP:06d}/model" in error
    lines = comparable(path)
    assert [line["step"] for line in lines] == list(range(WARMUP + 2))
    assert [line["monitor/alarms"] for line in lines[WARMUP:]] == [0, 1]
    assert names_in(path / "checkpoints")[-1] == f"step-{WARMUP + 2:06d}"
    edit(path, 'action = "stop"\n\n[monitor.success]', 'action = "off"\n\n[monitor.success]')
    figures_of("resume", path)
    assert weights_of(path) == weights_of(finished[0])


def test_the_monitor_lowers_the_horizon_of_a_schedule_that_has_a_lower_stage(tmp_path):
    """By a rule over any number of the log; this one is above 0.4 at every step."""
    path = tmp_path / "run"
    words = [*SETTINGS, *RULE, "--monitor.repeats.action", "lower", "--monitor.repeats.patience", 5]
    words += ["--monitor.repeats.metric", "memory/peak"]
    figures_of("train", *words, "--run.dir", path)
    lines = comparable(path)
    horizons = [line["rollout/horizon"] for line in lines if line["phase"] == "grpo"]
    assert horizons == [2, 2, 2, 4, 4, 2]  # fired after the fifth
