"""AgentGym's texts, rules and items."""

import collections

import pytest

from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.errors import InvalidTask
from agentgym_envs.sciworld.compat import MAX_MOVES, task_of_item
from agentgym_envs.sciworld.experiments import (
    AGENTGYM_EXPERIMENTS,
    NOT_IN_AGENTGYM_FILES,
    agentgym_variation,
    split_of,
)
from agentgym_envs.sciworld.session import Session
from agentgym_envs.sciworld.tasks import certified_rows, certified_tasks

MELT_1 = 31
"""An item of the list of AgentGym's server: variation 1 of the second experiment."""


@pytest.fixture
def env(make):
    return make(compat="agentgym", info_keys=["moves", "failure"])


def observations(env, *replies):
    return [env.step(reply)[0] for reply in replies]


def test_an_index_counts_agentgyms_list(env):
    env.reset(options={"task": MELT_1})
    assert env.task.id == "sciworld/train/melt/1"


def test_the_first_observation_is_the_task_and_the_room_untrimmed(env):
    observation, _ = env.reset(options={"task": 0})
    task, room = observation.split("\n", 1)
    assert task.startswith("Your task is to boil water. ")
    assert room.startswith("This room is called the hallway. In it, you see: \n\tthe agent\n")


def test_what_names_no_action_is_answered_by_the_simulator(env):
    env.reset(options={"task": 0})
    no_match = "No known action matches that input."
    replies = ["dance", "pick up dragon", "", "x" * 5000]
    assert observations(env, *replies) == [no_match] * 4
    *_, info = env.step("dance")
    assert not info["action_valid"]
    assert info["moves"] == 0
    assert env.step("help")[0].startswith("Possible actions: \n\t")


@pytest.mark.parametrize("reply", ["dance", "open door to kitchen", "17"])
def test_a_reply_that_is_no_answer_is_spent_on_dropping_the_question(env, reply):
    env.reset(options={"task": 0})
    question, spent = observations(env, "open door", reply)
    assert question.startswith("Ambiguous request: Please enter the number")
    assert spent.startswith("Unknown action.")
    assert env.step("open door to kitchen")[0] == "The door is now open."


def test_a_number_answers_the_question(env):
    env.reset(options={"task": 0})
    assert observations(env, "open door", "0")[1] == "The door is now open."


def test_a_wrong_focus_fails_without_words_of_ours(env):
    env.reset(options={"task": 0})
    observation, reward, terminated, _, info = env.step("focus on agent")
    assert (observation, reward, terminated) == ("You focus on the agent.", 0.0, True)
    assert (info["end_reason"], info["score"]) == ("failure", 0.0)
    assert info["failure"].startswith("The task has failed: you focused on agent")


def test_the_task_ends_after_a_hundred_units_of_time(env):
    env.reset(options={"task": MELT_1, "horizon": 50})
    infos = []
    while not infos or not infos[-1]["end_reason"]:
        infos.append(env.step("wait")[4])
    assert infos[-2]["moves"] <= MAX_MOVES < infos[-1]["moves"]
    assert (infos[-1]["end_reason"], infos[-1]["score"]) == ("failure", 0.0)
    assert infos[-1]["failure"] == f"The time is over: {infos[-1]['moves']} units of 100."


def test_its_tasks_are_those_of_its_experiments_that_gold_actions_solve_in_time(env):
    assert len(AGENTGYM_EXPERIMENTS) == 23
    listed = {task.id for task in env.tasks}
    expected = {
        task.id
        for task in certified_tasks("train", AGENTGYM_EXPERIMENTS)
        if certified_rows(task.category)[task.payload["variation"]].moves <= MAX_MOVES
    }
    assert listed == expected
    assert "sciworld/train/boil/0" in certified_tasks("train", ["boil"], 34).ids
    assert "sciworld/train/boil/0" not in certified_tasks("train", ["boil", "melt"], 33).ids


def test_a_state_is_loaded_by_the_same_rules(env):
    env.reset(options={"task": 0})
    replies = ["open door", "open door to kitchen", "inventory", "wait1"]
    observations(env, *replies)
    twin = env.clone()
    assert twin.step("look around")[0] == env.step("look around")[0]
    twin.close()


def test_its_list_mixes_the_splits():
    listed = [agentgym_variation(number) for number in range(4639)]
    assert collections.Counter(split_of(*entry) for entry in listed) == {
        "train": 2312,
        "dev": 1156,
        "test": 1171,
    }


def test_the_list_behind_its_files_leaves_out_one_experiment_more():
    differing = [
        number
        for number in range(4339)
        if agentgym_variation(number) != agentgym_variation(number, NOT_IN_AGENTGYM_FILES)
    ]
    assert differing == list(range(1096, 4339))
    with pytest.raises(InvalidTask, match="has 4339 items of sciworld, from 0; got 4339"):
        agentgym_variation(4339, NOT_IN_AGENTGYM_FILES)


def described(name, variation):
    session = Session()
    try:
        return session.load(name, variation, "")[1]
    finally:
        session.close()


def item(number, first_observation=None):
    turns = [
        {"from": "human", "value": "What the server says about the rules."},
        {"from": "gpt", "value": "OK."},
        {"from": "human", "value": first_observation},
    ]
    return AgentGymItem("sciworld", number, {"conversations": turns} if first_observation else {})


def test_an_item_that_states_its_task_is_of_the_list_where_that_fits():
    by_number = task_of_item(item(1096))
    assert by_number.id == "sciworld/train/measure-melting-point-unknown-substance/0"
    goal = described("power-component", 0)
    stated = goal.replace(". ", ".\n ") + "\nThis room is called the hallway."
    assert task_of_item(item(1096, stated)).id == "sciworld/train/power-component/0"
    assert (
        task_of_item(item(1096, described("measure-melting-point-unknown-substance", 0)))
        == by_number
    )
    with pytest.raises(InvalidTask, match=r"'sciworld_1096' states 'Your task is to dance\.', but"):
        task_of_item(item(1096, "Your task is to dance."))
