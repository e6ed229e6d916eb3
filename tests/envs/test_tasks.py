import copy
import json
import pickle

import pytest
from toys import make_task

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.tasks import ListSource, Task, TaskSet, check_split


@pytest.fixture
def tasks() -> TaskSet:
    return TaskSet(ListSource([make_task(number) for number in range(10)]))


def test_a_task_survives_json_pickling_and_copying():
    task = make_task(3)
    assert Task.from_json(json.loads(json.dumps(task.to_json()))) == task
    assert pickle.loads(pickle.dumps(task)) == task
    assert copy.deepcopy(task) == task
    assert hash(pickle.loads(pickle.dumps(task))) == hash(task)


def test_a_task_cannot_change():
    payload = {"numbers": 1}
    task = make_task(3, payload=payload)
    with pytest.raises(AttributeError):
        task.goal = "another"
    with pytest.raises(TypeError):
        task.payload["numbers"] = 2
    payload["numbers"] = 2
    assert task.payload["numbers"] == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"id": "x"}, r"got keys \['id'\]"),
        ({**make_task(1).to_json(), "colour": "red"}, "colour"),
        ({**make_task(1).to_json(), "horizon": 0}, "horizon must be at least 1, got 0"),
        ({**make_task(1).to_json(), "horizon": "many"}, "not a task"),
        ([1, 2], "expected a mapping, got list"),
    ],
)
def test_what_is_no_task_is_refused(data, message):
    with pytest.raises(InvalidTask, match=message):
        Task.from_json(data)


def test_a_set_is_indexed_by_number_slice_and_id(tasks):
    assert len(tasks) == 10
    assert tasks[3].seed == 3
    assert tasks[-1].seed == 9
    assert tasks["toy/train/4"].seed == 4
    assert tasks[2:8:3].ids == ("toy/train/2", "toy/train/5")
    assert tasks.head(2).ids == ("toy/train/0", "toy/train/1")
    assert [task.seed for task in tasks] == list(range(10))
    assert "10 tasks" in repr(tasks)


def test_membership_is_by_id_or_by_task(tasks):
    few = tasks.head(3)
    assert "toy/train/2" in few
    assert make_task(2) in few
    assert "toy/train/3" not in few
    assert make_task(3) not in few
    assert 2 not in few


def test_an_id_outside_a_view_is_unknown_there(tasks):
    near = "unknown task of this set 'toy/train/7'; did you mean 'toy/train/[012]'"
    with pytest.raises(UnknownName, match=near):
        tasks.head(3)["toy/train/7"]


def test_an_unknown_id_suggests_near_ones(tasks):
    with pytest.raises(UnknownName, match=r"unknown task 'toy/trian/4'; did you mean .*/train/4"):
        tasks["toy/trian/4"]


def test_an_index_out_of_range_says_how_many_there_are(tasks):
    with pytest.raises(IndexError, match="task index 10 is out of range; there are 10"):
        tasks[10]


def test_shuffling_depends_on_the_seed_alone_and_loses_nothing(tasks):
    assert tasks.shuffle(1).ids == tasks.shuffle(1).ids
    assert tasks.shuffle(1).ids != tasks.shuffle(2).ids
    assert sorted(tasks.shuffle(1).ids) == sorted(tasks.ids)


def test_filters_keep_the_order(tasks):
    odd = tasks.filter(lambda task: task.category == "odd")
    assert [task.seed for task in odd] == [1, 3, 5, 7, 9]
    assert odd.head(2).ids == ("toy/train/1", "toy/train/3")
    assert tasks.categories() == {"even": 5, "odd": 5}


def test_equal_sets_have_equal_digests(tasks):
    again = TaskSet(ListSource([make_task(number) for number in range(10)]))
    assert tasks.digest() == again.digest()
    assert tasks.digest() != tasks[::-1].digest()
    changed = TaskSet(ListSource([make_task(n, goal="another") for n in range(10)]))
    assert changed.digest() != tasks.digest()


def test_a_set_makes_no_task_before_it_is_asked():
    class CountingSource(ListSource):
        made = 0

        def task(self, row):
            self.made += 1
            return super().task(row)

    source = CountingSource([make_task(number) for number in range(10)])
    view = TaskSet(source).shuffle(0)[2:].head(3)
    assert source.made == 0
    assert view[0].family == "toy"
    assert source.made == 1


def test_two_tasks_with_one_id_are_refused():
    with pytest.raises(InvalidTask, match=r"more than once: \['toy/train/1'\]"):
        ListSource([make_task(1), make_task(2), make_task(1)])


def test_splits_are_named():
    assert check_split("dev") == "dev"
    with pytest.raises(UnknownName, match="unknown split 'tset'; did you mean 'test'"):
        check_split("tset")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 5}, "id must be a text, got 5"),
        ({"goal": None}, "goal must be a text, got None"),
        ({"goal": "\ud800"}, "goal must be a text without lone surrogates"),
        ({"seed": -1}, "seed must be None or at least 0, got -1"),
        ({"seed": "1"}, "seed must be None or at least 0, got '1'"),
        ({"horizon": 2.5}, "horizon must be at least 1, got 2.5"),
        ({"horizon": True}, "horizon must be at least 1, got True"),
        ({"difficulty": "hard"}, "difficulty must be None or at least 0, got 'hard'"),
        ({"payload": [1]}, r"payload must be a mapping, got \[1\]"),
    ],
)
def test_a_field_of_a_wrong_kind_is_refused(change, message):
    with pytest.raises(InvalidTask, match=message):
        make_task(1, **change)


@pytest.mark.parametrize("index", [1.0, None, (1, 2)])
def test_what_is_no_index_is_refused(tasks, index):
    with pytest.raises(TypeError, match="integer"):
        tasks[index]


def test_a_head_of_less_than_nothing_is_refused(tasks):
    assert len(tasks.head(0)) == 0
    assert len(tasks.head(99)) == 10
    with pytest.raises(ValueError, match="at least 0; got -1"):
        tasks.head(-1)
