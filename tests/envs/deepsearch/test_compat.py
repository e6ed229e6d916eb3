"""`compat="agentgym"`: what its server says, and where its faults are not followed."""

import pytest

from agentgym_envs.actions import ACTION_FORMATS
from agentgym_envs.deepsearch.compat import first_answer_is_right
from agentgym_envs.policies import ScriptedPolicy, run_episode

TASK = "deepsearch/train/two-hops/0"


@pytest.fixture
def agentgym(make):
    env = make(compat="agentgym", info_keys=["em", "first_em"])
    env.reset(options={"task": TASK, "horizon": 30})
    return env


def test_passages_are_shown_as_there(agentgym):
    text, *_ = agentgym.step("<search> Avelonia capital </search>")
    lines = text.splitlines()
    assert lines[0] == (
        '<information>Doc 1(Title: "Avelonia: Capital") '
        "The seat of government of Avelonia is Tirmouth."
    )
    assert lines[1].startswith('Doc 2(Title: "')
    assert lines[-1] == "</information>"


def test_answers_may_be_given_again_until_one_is_right(agentgym):
    text, reward, terminated, _, info = agentgym.step("<answer>nobody</answer>")
    assert text == "Sorry, your answer is incorrect. Please try again."
    assert (reward, terminated, info["score"]) == (0.0, False, 0.0)
    text, reward, terminated, _, info = agentgym.step("<answer>queen oda</answer>")
    assert text == "Congratulations! You have answered the question correctly."
    assert (reward, terminated, info["success"]) == (1.0, True, True)
    assert (info["em"], info["first_em"]) == (1.0, 0.0)


def test_five_answers_may_be_given(agentgym):
    entries = [agentgym.step(f"<answer>guess {number}</answer>") for number in range(5)]
    assert [entry[2] for entry in entries] == [False] * 4 + [True]
    assert entries[-1][0] == "Sorry, your answer is incorrect."
    assert entries[-1][4]["end_reason"] == "failure"


def test_what_is_neither_is_answered_in_fixed_words(agentgym):
    for reply in ("hm", "<answer>a</answer><answer>b</answer>", "<search></search>"):
        text, reward, *_, info = agentgym.step(reply)
        assert text.startswith("Your previous action is invalid. ")
        assert text.endswith(" Please try again.")
        assert (reward, info["action_valid"]) == (0.0, False)


def test_in_other_formats_our_words_say_what_is_wrong(make):
    env = make(compat="agentgym", action_format="json")
    env.reset(options={"task": TASK})
    assert "There is no function call" in env.step("hm")[0]


def test_answers_are_compared_by_the_published_rule_unless_another_is_named(make):
    task = "deepsearch/test/two-hops/0"
    for arguments, right in (({}, False), ({"match": "clean"}, True)):
        env = make(compat="agentgym", **arguments)
        env.reset(options={"task": task})
        assert env.step("<answer>Inés Falco</answer>")[4]["success"] is right


def test_f1_is_paid_once_for_the_best_of_several_answers(make):
    env = make(compat="agentgym", reward="f1")
    env.reset(options={"task": TASK, "horizon": 30})
    said = ("nobody", "Oda", "Oda", "oda of old", "Queen Oda")
    paid = [env.step(f"<answer>{answer}</answer>")[1] for answer in said]
    assert paid == pytest.approx([0.0, 2 / 3, 0.0, 0.0, 1 / 3])


def test_the_format_weights_are_paid_in_the_last_turn_only(make):
    env = make(compat="agentgym", format_weight=0.2, max_answers=2)
    env.reset(options={"task": TASK})
    assert [env.step("<answer>nobody</answer>")[1] for _ in range(2)] == [0.0, 0.2]


@pytest.mark.parametrize("action_format", ACTION_FORMATS)
@pytest.mark.parametrize(
    ("said", "first", "success"),
    [
        (["Queen Oda"], True, True),
        (["nobody", "Queen Oda"], False, True),
        (["nobody"] * 5, False, False),
    ],
)
def test_the_first_try_is_told_apart_in_records_too(make, action_format, said, first, success):
    env = make(compat="agentgym", action_format=action_format)
    commands = ["search Avelonia", *(f"answer {answer}" for answer in said)]
    replies = ["hm", *map(env.render_command, commands)]
    episode = run_episode(env, ScriptedPolicy(replies), task=TASK, horizon=20)
    assert (first_answer_is_right(episode), episode.success) == (first, success)


def test_an_episode_without_an_answer_has_no_right_first_one(make):
    policy = ScriptedPolicy(["<search>x</search>"])
    assert not first_answer_is_right(run_episode(make(compat="agentgym"), policy, task=TASK))
