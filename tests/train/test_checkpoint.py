from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from agentgym_train import checkpoint
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.checkpoint import (
    check_fingerprint,
    delete_later,
    find_checkpoint,
    load_checkpoint,
    random_states,
    restore_random_states,
    save_checkpoint,
)
from agentgym_train.errors import CheckpointError
from agentgym_train.learner import Learner, LearnerConfig
from agentgym_train.model import load_model, load_tokenizer

STATE = {"step": 0, "fingerprint": {"learner": {"learning_rate": 3e-4}, "tasks": "abc"}}


def tokenizer_of(num_words):
    words = {"[UNK]": 0, **{f"w{i}": i for i in range(1, num_words)}}
    backend = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="w1", chat_template="{{ messages[0]['content'] }}"
    )


@pytest.fixture
def tokenizer():
    return tokenizer_of(29)


@pytest.fixture
def save(tmp_path, tiny_model, tokenizer):
    """Saves a checkpoint of a step; the model and the tensors hold the step's number."""

    def save_step(step, *, keep=10, **changes):
        model = tiny_model()
        with torch.no_grad():
            model.model.norm.weight.fill_(step)
        arguments = {
            "model": model,
            "tokenizer": tokenizer,
            "tensors": {"number": torch.tensor(float(step)), "more": torch.arange(5)},
            "state": STATE | {"step": step},
            "keep": keep,
        }
        return save_checkpoint(tmp_path, **arguments | changes)

    return save_step


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_gives_back_what_was_saved(save, tiny_model, tokenizer):
    path = save(12)
    assert path.name == "step-000012"
    found = load_checkpoint(path)
    assert found.state == STATE | {"step": 12}
    assert found.tensors["number"].item() == 12.0
    assert found.tensors["more"].tolist() == [0, 1, 2, 3, 4]
    model = load_model(found.model_folder, dtype=torch.float32, device="cpu")
    expected = tiny_model().state_dict() | {"model.norm.weight": torch.full((32,), 12.0)}
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    assert load_tokenizer(found.model_folder).get_vocab() == tokenizer.get_vocab()


def test_a_checkpoint_holds_no_file_that_could_run_code(save):
    suffixes = {path.suffix for path in save(1).rglob("*") if path.is_file()}
    assert suffixes == {".json", ".safetensors", ".jinja"}


def test_learner_and_random_states_survive_bit_for_bit(save, random_groups, tiny_model):
    learner = Learner(tiny_model(), LearnerConfig(), seed=0)
    samples = GRPO().assign(GRPO().select(random_groups(3, 4), 0))
    learner.update(samples, GRPO(), 0)
    tensors, counters = learner.state_dict()
    path = save(
        1, model=learner.model, tensors=tensors | random_states(), state={"step": 1} | counters
    )
    drawn = torch.rand(3)
    found = load_checkpoint(path)
    for name, tensor in tensors.items():
        assert torch.equal(found.tensors[name], tensor), name
        assert found.tensors[name].dtype == tensor.dtype, name
    restored = Learner(
        load_model(found.model_folder, dtype=torch.float32, device="cpu"), LearnerConfig(), seed=0
    )
    restored.load_state_dict(found.tensors, found.state)
    for ours, theirs in zip(restored.model.parameters(), learner.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    restore_random_states(found.tensors)
    assert found.tensors["random.cpu"].dtype == torch.uint8
    assert torch.equal(torch.rand(3), drawn)


def test_missing_random_states_are_an_error():
    with pytest.raises(CheckpointError, match=r"holds no random state: 'random.cpu' is missing"):
        restore_random_states({})


def test_the_newest_are_kept(save, tmp_path):
    for step in (1, 2, 10, 9):
        save(step, keep=2)
    assert names_in(tmp_path) == ["step-000009", "step-000010"]
    assert find_checkpoint(tmp_path).name == "step-000010"


def test_the_one_just_written_is_kept_even_if_others_have_higher_numbers(save, tmp_path):
    save(7)
    assert save(3, keep=1).exists()
    assert names_in(tmp_path) == ["step-000003"]


def test_the_best_is_kept_beside_the_newest(save, tmp_path):
    best = {"step": 2, "success": 0.7}
    save(1)
    for step in (2, 3, 4, 5):
        save(step, keep=2, state={"step": step, "best": best})
    assert names_in(tmp_path) == ["step-000002", "step-000004", "step-000005"]
    assert find_checkpoint(tmp_path, "best").name == "step-000002"
    save(6, keep=1, state={"step": 6, "best": {"step": 6, "success": 0.8}})
    assert names_in(tmp_path) == ["step-000006"]
    assert find_checkpoint(tmp_path, "best").name == "step-000006"


def test_a_checkpoint_is_found_by_its_step(save, tmp_path):
    for step in (1, 12):
        save(step)
    assert find_checkpoint(tmp_path, "1").name == "step-000001"
    assert find_checkpoint(tmp_path, "last").name == "step-000012"
    with pytest.raises(CheckpointError, match=r"no whole checkpoint '7' .* or a step of 1, 12"):
        find_checkpoint(tmp_path, "7")
    with pytest.raises(CheckpointError, match=r"no whole checkpoint 'newest' in"):
        find_checkpoint(tmp_path, "newest")
    with pytest.raises(CheckpointError, match=r"no checkpoint .* was evaluated .*; choose a step"):
        find_checkpoint(tmp_path, "best")
    cut_short(tmp_path / "step-000001")
    with pytest.raises(CheckpointError, match=r"no whole checkpoint '1' in"):
        find_checkpoint(tmp_path, "1")


def test_going_back_deletes_what_came_later(save, tmp_path):
    for step in (1, 2, 3):
        save(step)
    shutil.copytree(tmp_path / "step-000003", tmp_path / ".replaced-step-000003")
    assert delete_later(tmp_path, 1) == [2, 3]
    assert names_in(tmp_path) == ["step-000001"]
    assert delete_later(tmp_path, 1) == []


def test_a_checkpoint_of_the_same_step_is_replaced(save, tmp_path):
    save(4)
    path = save(4, state={"step": 4, "second": True})
    assert load_checkpoint(path).state["second"] is True
    assert names_in(tmp_path) == ["step-000004"]


def cut_short(path):
    with open(path / "tensors.safetensors", "r+b") as file:
        file.truncate(20)
    return "tensors.safetensors is damaged"


def one_bit_flipped(path):
    file = path / "model" / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    return "model/model.safetensors is damaged"


def file_missing(path):
    (path / "state.json").unlink()
    return "state.json cannot be read: No such file"


def index_missing(path):
    (path / "index.json").unlink()
    return "is no whole checkpoint: FileNotFoundError"


def index_cut_short(path):
    index = path / "index.json"
    index.write_text(index.read_text()[:30])
    return "is no whole checkpoint: JSONDecodeError"


def index_of_another_kind(path):
    (path / "index.json").write_text("[]")
    return "is no whole checkpoint: index.json holds no table"


def index_of_nothing(path):
    (path / "index.json").write_text('{"schema": 1, "files": {}}')
    return "is no whole checkpoint: its index names too few files"


def other_schema(path):
    index = path / "index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"schema": 99}))
    return "has checkpoint schema 99, expected 1"


@pytest.mark.parametrize(
    "damage",
    [
        cut_short,
        one_bit_flipped,
        file_missing,
        index_missing,
        index_cut_short,
        index_of_another_kind,
        index_of_nothing,
        other_schema,
    ],
)
def test_a_broken_checkpoint_is_passed_over_with_a_warning(save, tmp_path, caplog, damage):
    save(1)
    message = damage(save(2))
    assert find_checkpoint(tmp_path).name == "step-000001"
    assert "passing over a broken checkpoint" in caplog.text
    assert message in caplog.text
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path / "step-000002")


def test_without_a_whole_checkpoint_there_is_no_latest(save, tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*; start the run anew"):
        find_checkpoint(tmp_path / "nowhere")
    cut_short(save(1))
    with pytest.raises(
        CheckpointError,
        match=r"no whole checkpoint 'last' in .* expected 'last', 'best' or a step of 1",
    ):
        find_checkpoint(tmp_path)


def test_folders_of_other_names_are_left_alone(save, tmp_path):
    for name in ("step-best", "notes", "step-000001.bak"):
        (tmp_path / name).mkdir()
    save(1, keep=1)
    assert find_checkpoint(tmp_path).name == "step-000001"
    assert names_in(tmp_path) == ["notes", "step-000001", "step-000001.bak", "step-best"]


def test_another_fingerprint_is_refused_by_key_and_value(save):
    path = save(1)
    load_checkpoint(path, fingerprint=STATE["fingerprint"])
    other = {"learner": {"learning_rate": 1e-3}, "tasks": "abc", "horizon": [4, 6]}
    message = (
        r"another run: horizon is absent there and \[4, 6\] here; "
        r"learner.learning_rate is 0.0003 there and 0.001 here; use the settings"
    )
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path, fingerprint=other)


def test_fingerprints_compare_as_json():
    check_fingerprint({"a": (1, 2), "b": {"c": None}}, {"b": {"c": None}, "a": [1, 2]})
    with pytest.raises(CheckpointError, match=r"b.c is absent there and null here"):
        check_fingerprint({"b": {"c": None}}, {"b": {}})
    many = {f"k{i}": i for i in range(9)}
    with pytest.raises(CheckpointError, match="k4 is absent there and 4 here; and 4 more"):
        check_fingerprint(many, {})


@pytest.fixture
def file_size_limit():
    """Makes every write beyond a number of bytes fail, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# The weights take 80,000 bytes. Each writer has its own way to fail.
@pytest.mark.parametrize(
    ("limit", "larger"),
    [
        pytest.param(0, {}, id="every file"),
        pytest.param(10_000, {}, id="weights"),
        pytest.param(200_000, {"tokenizer": tokenizer_of(20_000)}, id="tokenizer"),
        pytest.param(200_000, {"tensors": {"large": torch.zeros(100_000)}}, id="tensors"),
        pytest.param(200_000, {"state": {"step": 2, "large": "x" * 300_000}}, id="state"),
    ],
)
def test_a_write_that_fails_leaves_the_last_checkpoint_and_nothing_else(
    save, tmp_path, file_size_limit, limit, larger
):
    save(1)
    file_size_limit(limit)
    with pytest.raises(CheckpointError, match=r"cannot save the checkpoint .*step-000002") as error:
        save(2, **larger)
    file_size_limit(resource.RLIM_INFINITY)
    assert "\n" not in str(error.value)
    assert "File too large" in str(error.value)
    assert names_in(tmp_path) == ["step-000001"]
    assert load_checkpoint(find_checkpoint(tmp_path)).state["step"] == 1
    assert save(2).exists()


def test_a_full_disk_is_one_clear_line(save, tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    save(1)
    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(CheckpointError, match=r"No space left on device .*; free space or choose"):
        save(2)
    assert names_in(tmp_path) == ["step-000001"]


def test_a_state_that_is_no_json_leaves_nothing_behind(save, tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        save(1, state={"step": 1, "loss": float("nan")})
    assert names_in(tmp_path) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from unittest import mock
import torch
from agentgym_train import checkpoint
from agentgym_train.checkpoint import load_checkpoint, save_checkpoint
from agentgym_train.model import load_model, load_tokenizer

folder = Path(sys.argv[1])
first = load_checkpoint(folder / "step-000001")
model = load_model(first.model_folder, dtype=torch.float32, device="cpu")
tokenizer = load_tokenizer(first.model_folder)

def die_at(count):
    # Every write, flush and rename of the second checkpoint passes through one of these.
    left = [count]
    def counted(call):
        def wrapper(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)
        return wrapper
    for module, name in [
        (checkpoint, "save_model"), (checkpoint, "save_file"), (checkpoint, "_write_json"),
        (os, "fsync"), (os, "rename"),
    ]:
        setattr(module, name, counted(getattr(module, name)))
    save_checkpoint(
        folder, model=model, tokenizer=tokenizer, tensors={"number": torch.tensor(2.0)},
        state={"step": int(sys.argv[2]), "second": True}, keep=1,
    )

count = 0
while True:
    child = os.fork()
    if child == 0:
        die_at(count)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found = load_checkpoint(checkpoint.find_checkpoint(folder))
    print(count, os.WTERMSIG(status), found.state["step"], found.state.get("second", False))
    if os.WTERMSIG(status) != signal.SIGKILL:
        break
    count += 1
"""


@pytest.mark.parametrize("step", [2, 1], ids=["a new step", "the same step"])
def test_a_kill_at_any_point_of_saving_leaves_a_whole_checkpoint(save, tmp_path, step):
    save(1)
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path), str(step)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    lines = [line.split() for line in output.splitlines()]
    assert len(lines) > 15
    signals = [int(line[1]) for line in lines]
    assert signals == [signal.SIGKILL] * (len(lines) - 1) + [0]
    seconds = [line[3] == "True" for line in lines]
    assert seconds == sorted(seconds)  # the first checkpoint up to the rename, then the second
    assert not seconds[0]
    assert seconds[-1]
    assert int(lines[-1][2]) == step
    assert names_in(tmp_path) == [f"step-00000{step}"]


def test_what_a_killed_process_left_is_removed(save, tmp_path):
    shutil.copytree(save(1), tmp_path / ".writing-step-000002")
    assert find_checkpoint(tmp_path).name == "step-000001"
    save(3)
    assert names_in(tmp_path) == ["step-000001", "step-000003"]
