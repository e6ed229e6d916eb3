"""Tasks to learn from and held-out ones, of splits or of files."""

import json

import pytest

from agentgym_envs.errors import InvalidEvaluation, InvalidTask, UnknownName
from agentgym_envs.splits import Splits

ID = "AgentGym/BabyAI-v0"


def splits_of(num_held_out=3, **files):
    return Splits.of(ID, {}, num_held_out=num_held_out, files=files)


@pytest.fixture
def item_file(tmp_path):
    """Writes files as AgentGym-RL publishes them."""

    def write(name, numbers):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps([{"item_id": f"babyai_{n}"} for n in numbers]), encoding="utf-8")
        return str(path)

    return write


def test_without_files_the_splits_are_the_environments_own():
    splits = splits_of()
    assert (splits.env.split, len(splits.dev), len(splits.test)) == ("train", 3, 3)
    assert {task.split for task in splits.dev} == {"dev"}
    assert len(splits.train) == len(splits.env.tasks)


def test_files_of_item_ids_take_the_place_of_splits(item_file):
    files = {
        split: item_file(split, range(start, start + 4))
        for split, start in {"train": 0, "dev": 40, "test": 80}.items()
    }
    splits = splits_of(**files)
    levels = ["GoToRedBallGrey", "GoToRedBall", "GoToRedBallNoDists", "GoToObjS6"]
    for tasks, seed, count in ((splits.train, 0, 4), (splits.dev, 1, 3), (splits.test, 2, 3)):
        assert [(task.category, task.seed) for task in tasks] == [
            (level, seed) for level in levels[:count]
        ]
    one = splits.fingerprint()
    other = splits_of(**files | {"train": item_file("other", [4])}).fingerprint()
    assert one["train"] != other["train"]
    assert one["test"] == other["test"]


def test_a_task_to_learn_from_may_not_be_held_out_as_well(tmp_path):
    held_out = splits_of().test[0].id
    path = tmp_path / "ids.txt"
    path.write_text(held_out, encoding="utf-8")
    with pytest.raises(InvalidTask, match=f"'{held_out}' is in train and in test"):
        splits_of(train=str(path))


def test_splits_that_arguments_make_the_same_are_refused():
    """The family of a mixture gets its tasks whatever the split is."""
    tasks = splits_of().train.head(2).ids
    arguments = {"envs": {ID: {"tasks": list(tasks)}}}
    with pytest.raises(InvalidTask, match=f"'{tasks[0]}' is in train and in dev; splits, and"):
        Splits.of("AgentGymMixture-v0", arguments, num_held_out=1)


def test_shared_tasks_are_told_of_before_their_number(item_file):
    shared = item_file("shared", [0, 40])
    with pytest.raises(InvalidTask, match="is in train and in dev"):
        splits_of(train=shared, dev=shared)


def test_too_few_held_out_tasks_are_told_of(item_file):
    files = {"train": item_file("train", [7, 47]), "dev": item_file("dev", [4_000_000, 4_000_040])}
    with pytest.raises(InvalidTask, match=r"the dev split holds 2 tasks; .* or choose more tasks$"):
        splits_of(**files)


def test_files_are_given_by_split():
    with pytest.raises(InvalidTask, match=r"by split, train, dev, test; got 'tset': 'x'"):
        splits_of(tset="x")
    with pytest.raises(InvalidTask, match="got 'train': 5"):
        splits_of(train=5)
    with pytest.raises(InvalidTask, match=r"cannot read task ids from the file 'nowhere.json'"):
        splits_of(train="nowhere.json")


def test_arguments_of_no_sense_are_told_of_by_the_environments_name():
    message = "cannot make 'AgentGym/TextCraft-v0': max_depth must be .* at least 1, got 0"
    with pytest.raises(InvalidEvaluation, match=message):
        Splits.of("AgentGym/TextCraft-v0", {"max_depth": 0}, num_held_out=1)


def test_an_environment_that_chooses_tasks_itself_is_refused():
    with pytest.raises(InvalidEvaluation, match=r"must not hold \['split'\]"):
        Splits.of(ID, {"split": "test"}, num_held_out=1)
    with pytest.raises(UnknownName, match="did you mean 'AgentGym/BabyAI-v0'"):
        Splits.of("AgentGym/BabyAY-v0", {}, num_held_out=1)
