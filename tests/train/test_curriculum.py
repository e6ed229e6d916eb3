"""Which tasks and which horizon a step uses."""

import pytest

from agentgym_envs.tasks import ListSource, Task, TaskSet
from agentgym_train.curriculum.horizon import HorizonConfig
from agentgym_train.curriculum.order import TaskOrder
from agentgym_train.errors import ConfigError


def tasks(count):
    return TaskSet(
        ListSource(
            [Task("t", f"t/{n}", "train", "", "c", seed=None, horizon=5) for n in range(count)]
        )
    )


def test_staged_resumed_at_step_100_trains_101_to_200_at_20_turns():
    """Steps are counted from 0: the 101st is number 100."""
    config = HorizonConfig(schedule="staged", stages=(10, 20, 30), steps=(100,))
    resumed = config.build()
    resumed.load_state_dict(config.build().state_dict())
    assert {resumed.horizon(step) for step in range(100, 200)} == {20}
    assert resumed.horizon(99) == 10
    assert resumed.horizon(200) == 30
    assert resumed.horizon(10_000) == 30


def test_fixed_takes_one_number():
    assert HorizonConfig(schedule="fixed", stages=(8,)).build().horizon(1000) == 8
    with pytest.raises(ConfigError, match=r"one number of turns, got stages \[4, 8\]"):
        HorizonConfig(schedule="fixed", stages=(4, 8))


def test_stages_and_lengths_must_fit():
    with pytest.raises(ConfigError, match="3 stages need 2 or 3 lengths, got 4"):
        HorizonConfig(stages=(4, 6, 8), steps=(1, 2, 3, 4))
    with pytest.raises(ConfigError, match="at least 1 turn, got 0"):
        HorizonConfig(stages=(0, 6), steps=(5,))


def test_every_task_comes_once_before_any_comes_again():
    order = TaskOrder(tasks(10), per_step=4, seed=3)
    drawn = [task.id for step in range(5) for task in order.step(step)]
    assert sorted(drawn[:10]) == sorted(drawn[10:]) == sorted(f"t/{n}" for n in range(10))
    assert drawn[:10] != drawn[10:]


def test_the_tasks_of_a_step_depend_on_seed_and_step_alone():
    order = TaskOrder(tasks(10), per_step=4, seed=3)
    forward = [[task.id for task in order.step(step)] for step in range(6)]
    backward = [[task.id for task in order.step(step)] for step in reversed(range(6))]
    assert forward == backward[::-1]
    other = TaskOrder(tasks(10), per_step=4, seed=4)
    assert forward != [[task.id for task in other.step(step)] for step in range(6)]


def test_more_tasks_a_step_than_there_are_is_refused():
    with pytest.raises(ConfigError, match="wants 11 different tasks, but the task set holds 10"):
        TaskOrder(tasks(10), per_step=11, seed=0)
