import json

import pytest
from toys import make_task

from agentgym_envs.errors import InvalidTask
from agentgym_envs.manifests import Manifest, SplitSummary, verify
from agentgym_envs.tasks import ListSource, TaskSet


@pytest.fixture
def task_sets() -> dict[str, TaskSet]:
    return {
        "train": TaskSet(ListSource([make_task(number) for number in range(6)])),
        "test": TaskSet(ListSource([make_task(number) for number in range(6, 9)])),
    }


@pytest.fixture
def manifest(task_sets) -> Manifest:
    splits = {name: SplitSummary.of(tasks) for name, tasks in task_sets.items()}
    return Manifest("toy", "1", splits, notes={"left out": 0})


def test_a_manifest_states_counts_digests_and_categories(manifest):
    assert manifest.splits["train"].count == 6
    assert manifest.splits["test"].categories == {"even": 2, "odd": 1}


def test_a_manifest_survives_its_file(manifest, tmp_path):
    manifest.write(tmp_path / "manifest.json")
    assert Manifest.read(tmp_path / "manifest.json") == manifest
    assert Manifest.read(str(tmp_path / "manifest.json")) == manifest


def test_equal_manifests_are_equal_files(manifest, tmp_path):
    manifest.write(tmp_path / "a.json")
    Manifest.read(tmp_path / "a.json").write(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_what_the_manifest_says_is_verified(manifest, task_sets):
    verify(manifest, task_sets)


def test_a_changed_task_is_seen(manifest, task_sets):
    changed = [make_task(number) for number in range(5)] + [make_task(5, goal="another")]
    with pytest.raises(InvalidTask, match="toy/train differs from its manifest of version 1"):
        verify(manifest, task_sets | {"train": TaskSet(ListSource(changed))})


def test_a_missing_split_is_seen(manifest, task_sets):
    with pytest.raises(InvalidTask, match=r"\['test', 'train'\] expected, got \['train'\]"):
        verify(manifest, {"train": task_sets["train"]})


def test_a_task_in_two_splits_is_seen(task_sets):
    shared = task_sets | {"test": task_sets["train"].head(1)}
    splits = {name: SplitSummary.of(tasks) for name, tasks in shared.items()}
    with pytest.raises(InvalidTask, match="'toy/train/0' is in 'train' and in 'test'"):
        verify(Manifest("toy", "1", splits), shared)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nothing", "cannot read the manifest"),
        ("[]", "cannot read the manifest"),
        (json.dumps({"schema": 99}), "schema 1 expected, got 99"),
        (json.dumps({"schema": 1, "family": "toy"}), "cannot read the manifest"),
        (json.dumps({"schema": 1, "splits": {"train": {"count": 1}}}), "cannot read the manifest"),
    ],
)
def test_what_is_no_manifest_is_refused(content, message, tmp_path):
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidTask, match=message):
        Manifest.read(tmp_path / "manifest.json")


def test_a_missing_manifest_is_refused(tmp_path):
    with pytest.raises(InvalidTask, match=r"cannot read the manifest .*missing\.json"):
        Manifest.read(tmp_path / "missing.json")
