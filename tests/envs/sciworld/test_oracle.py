"""The oracle: what it says after lines that are not its own."""

import pytest

from agentgym_envs.errors import NoPlan
from agentgym_envs.sciworld.oracle import SciWorldOracle
from agentgym_envs.sciworld.session import gold_actions

GOLD = ["open door to kitchen", "pick up seed", "1", "look around", "wait"]


def next_after(*played):
    return SciWorldOracle(GOLD, lambda: played).next_command()


def test_lines_that_change_nothing_may_come_in_between():
    assert next_after("inventory", "open door to kitchen", "task") == "pick up seed"
    assert next_after(*GOLD[:3], "inventory") == "look around"
    assert next_after(*GOLD[:3], "look around", "look around") == "wait"


@pytest.mark.parametrize("line", ["look around", "inventory", "task", "wait", "0"])
def test_there_is_no_plan_past_a_question_that_was_not_answered_as_planned(line):
    with pytest.raises(NoPlan, match=f"not past '{line}'"):
        next_after(*GOLD[:2], line)
    with pytest.raises(NoPlan, match=f"not past '{line}'"):
        next_after(*GOLD[:2], line, "1")


def test_there_is_no_plan_past_the_end():
    with pytest.raises(NoPlan, match="at their end"):
        next_after(*GOLD, "inventory")


def test_an_open_question_that_a_look_around_drops_ends_the_plan(make):
    env = make()
    env.reset(options={"task": "sciworld/train/grow-plant/0"})
    oracle = env.oracle()
    while not (reply := oracle.reply("", {})).isdecimal():
        env.step(reply)
    env.step("look around")
    with pytest.raises(NoPlan, match="not past 'look around'"):
        oracle.reply("", {})


def test_gold_actions_do_not_depend_on_what_was_computed_before():
    first = gold_actions("boil", 24, "")
    assert gold_actions("boil", 21, "") != first
    assert gold_actions("boil", 24, "") == first
