"""Ways to be paid without knowing: each is known from other environments, none works here.

Some are replies, some are plays; `docs/deepsearch.md` has the table.
"""

import gymnasium
import pytest

RIGHT, WRONG = "<answer>yes</answer>", "<answer>no</answer>"
CLOSED = "deepsearch/train/comparison/1"  # the answer is yes: 655,020 > 87,310
COMPAT = [None, "agentgym"]


@pytest.fixture
def closed(make):
    """Makes environments at the start of a yes-or-no question."""

    def closed(**arguments):
        env = make(info_keys=["first_em", "searches"], **arguments)
        env.reset(options={"task": CLOSED, "horizon": 100})
        return env

    return closed


def test_guessing_again_is_not_possible(closed):
    env = closed()
    _, reward, terminated, _, info = env.step(WRONG)
    assert (reward, terminated, info["end_reason"]) == (0.0, True, "failure")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(RIGHT)


def test_with_agentgyms_rules_guesses_are_counted_and_the_first_is_told_apart(closed):
    env = closed(compat="agentgym")
    guesses = [env.step(f"<answer>{guess}</answer>") for guess in ("no", "maybe", "yes")]
    assert [guess[1] for guess in guesses] == [0.0, 0.0, 1.0]
    assert [guess[2] for guess in guesses] == [False, False, True]
    assert guesses[-1][4]["first_em"] == 0.0
    env = closed(compat="agentgym", max_answers=2)
    assert [env.step(f"<answer>{guess}</answer>")[2] for guess in ("no", "maybe")] == [False, True]


@pytest.mark.parametrize("compat", COMPAT)
def test_the_right_answer_is_paid_once(closed, compat):
    env = closed(compat=compat)
    _, reward, terminated, _, _ = env.step(RIGHT)
    assert (reward, terminated) == (1.0, True)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(RIGHT)


REFUSED = [
    WRONG + RIGHT,
    RIGHT + WRONG,
    RIGHT + RIGHT,
    RIGHT * 30,
    f"<search>x</search>{RIGHT}",
    f"{RIGHT}<search>x</search>",
    f"<answer>{RIGHT}</answer>",
    f"<search>{RIGHT}</search>",
    "<answer><search>x</search></answer>",
    f"<think>{RIGHT}</think>",
    f"<think>I say {RIGHT}",
    f"{RIGHT}</think>",
    f"<think>a<think>b</think>{RIGHT}</think>",
    f"<THINK>{RIGHT}</THINK>",
    "<think><search>x</search></think>",
    f"<information>Doc 1 says</information>{RIGHT}{RIGHT}",
    "<ans<think></think>wer>yes</answer>",
    "<answer>yes",
    "yes</answer>",
    "<answer>",
    "</answer>yes<answer>",
    "<answer></answer>",
    "<answer> \n\t </answer>",
    "<answer/>yes",
    "<answer>yes\x00</answer>",
    "<answer right>yes</answer>",
    "&lt;answer&gt;yes&lt;/answer&gt;",
    "<search></search>",
    "<search>   </search>",
    "yes",
    "answer yes",
    "Action: answer yes",
    '{"name": "answer", "arguments": {"answer": "yes"}}',
    "<answer>" * 100_000,
    "<think>" * 100_000 + RIGHT,
    f"<answer>{'yes ' * 1_000}</answer>",
]


@pytest.mark.parametrize("compat", COMPAT)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("reply", REFUSED, ids=lambda reply: reply[:40])
def test_such_replies_are_neither_paid_nor_searched_for(closed, reply, strict, compat):
    env = closed(strict=strict, compat=compat)
    text, reward, terminated, truncated, info = env.step(reply)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["action_valid"], info["turn"], info["searches"]) == (False, 1, 0)
    assert 0 < len(text) < 600
    assert env.world.answers == []


@pytest.mark.parametrize(
    "thought",
    [
        "<think><search>x</search></think>",
        f"<think>{WRONG}</think>",
        f"<think>Is it {WRONG} or {RIGHT}?</think>\n",
        "<think>\n</think>",
        "so I think</think>",
        f"perhaps {WRONG}</think>",
    ],
)
def test_what_is_thought_before_the_answer_does_not_count(closed, thought):
    _, reward, terminated, _, info = closed().step(thought + RIGHT)
    assert (reward, terminated, info["searches"]) == (1.0, True, 0)


@pytest.mark.parametrize("answer", ["yes or no", "yes no", "yes, no, maybe", "no. yes.", "*", ".*"])
@pytest.mark.parametrize("match", ["clean", "search_r1"])
def test_an_answer_that_says_everything_is_wrong(closed, answer, match):
    _, reward, terminated, _, _ = closed(match=match).step(f"<answer>{answer}</answer>")
    assert (reward, terminated) == (0.0, True)


@pytest.mark.parametrize(
    ("action_format", "reply"),
    [
        ("command", "answer no\nanswer yes"),
        ("json", '[{"name": "answer", "arguments": {"answer": "no"}}, '
                 '{"name": "answer", "arguments": {"answer": "yes"}}]'),
        ("code", 'answer("no") or answer("yes")'),
        ("tools", '{"tool_calls": [{"function": {"name": "answer", "arguments": "{}"}}, '
                  '{"function": {"name": "answer", "arguments": {"answer": "yes"}}}]}'),
    ],
)  # fmt: skip
def test_no_action_format_takes_two_answers(closed, action_format, reply):
    _, reward, terminated, _, info = closed(action_format=action_format).step(reply)
    assert (reward, terminated, info["action_valid"]) == (0.0, False, False)


def test_the_first_action_of_react_is_the_one_that_counts(closed):
    reply = "Thought: x\nAction: answer no\nAction: answer yes"
    _, reward, terminated, _, _ = closed(action_format="react").step(reply)
    assert (reward, terminated) == (0.0, True)
    assert not closed(action_format="react", strict=True).step(reply)[4]["action_valid"]


@pytest.mark.parametrize("compat", COMPAT)
def test_the_right_answer_is_told_to_nobody(make, compat):
    env = make(compat=compat, info_keys=["admissible", "state_key", "gold_found"])
    shown = repr(env.reset(options={"task": "deepsearch/train/two-hops/0"})) + env.instructions
    shown += repr(env.step("<answer>x</answer>"))
    assert "Oda" not in shown


def test_a_reset_without_a_task_and_ids_that_are_none_are_no_crash(make):
    env = make()
    env.reset()
    for task in ("deepsearch/train/two-hops/99", 10**9):
        with pytest.raises(ValueError, match=r"unknown task|out of range"):
            env.reset(options={"task": task})
    with pytest.raises(TypeError):
        env.reset(options={"task": 3.5})
