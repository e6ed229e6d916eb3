"""What all action formats have in common, and `command` and `react`."""

import pytest
from toys import GRAMMAR

from agentgym_envs.actions import ACTION_FORMATS, Answer, action_format
from agentgym_envs.errors import CommandError, FormatError, UnknownName

CALLS = ("json", "code", "tools")


def command_in(name, reply, *, strict=False):
    return action_format(name).parse(reply, GRAMMAR, strict=strict).text


def test_formats_are_found_by_name():
    assert ("command", "react", *CALLS, "tags") == ACTION_FORMATS
    for name in ACTION_FORMATS:
        assert action_format(name).name == name
    with pytest.raises(UnknownName, match="unknown action format 'recat'; did you mean 'react'"):
        action_format("recat")


@pytest.mark.parametrize("name", ACTION_FORMATS)
@pytest.mark.parametrize("strict", [False, True])
def test_what_a_format_renders_it_parses(name, strict):
    chosen = action_format(name)
    for example in GRAMMAR.examples:
        command = GRAMMAR.parse(example)
        for thought in ("", "Which one?\nThe red one."):
            reply = chosen.render(command, thought)
            assert chosen.parse(reply, GRAMMAR, strict=strict) == command


@pytest.mark.parametrize("name", ACTION_FORMATS)
def test_a_format_describes_all_verbs_and_itself_with_an_example(name):
    chosen = action_format(name)
    text = chosen.describe(GRAMMAR)
    example = chosen.render(GRAMMAR.parse(GRAMMAR.examples[0])).removeprefix("Thought:\n")
    assert example.rpartition("\n\n")[2] in text
    for entry in GRAMMAR.verbs:
        assert entry.description in text


@pytest.mark.parametrize("name", CALLS)
def test_call_like_formats_list_typed_functions_and_no_bare_forms(name):
    text = action_format(name).describe(GRAMMAR)
    assert "\n- go_to_room(number: int): Walk to a room. Example: " in text
    assert "\n- put(thing: str, place: str): Put one thing next to another. Example: " in text
    assert "<" not in text
    assert "go to room" not in text


@pytest.mark.parametrize("name", ACTION_FORMATS)
@pytest.mark.parametrize("reply", ["", " \n\t ", "\x00", "Action", "😀", "Thought: hm"])
def test_a_reply_without_command_is_refused_with_a_sentence(name, reply):
    for strict in (False, True):
        with pytest.raises(CommandError, match=r"\.$"):
            action_format(name).parse(reply, GRAMMAR, strict=strict)


@pytest.mark.parametrize("name", ["command", "react", "json", "code"])
def test_only_tool_calls_are_answered_as_tools(name):
    chosen = action_format(name)
    for reply in ("", chosen.render(GRAMMAR.parse("wait"))):
        assert chosen.answer_to(reply) == Answer(role=None, call_id=None)


def test_a_bare_command_may_stand_between_blank_lines():
    assert command_in("command", "\n\n  go to ball \n\n") == "go to ball"
    with pytest.raises(CommandError):
        command_in("command", "\ngo to ball\n", strict=True)


def test_two_bare_commands_are_refused():
    with pytest.raises(FormatError, match='got 2 lines that begin with "wait"'):
        command_in("command", "wait\nwait")


@pytest.mark.parametrize(
    "reply",
    ["```\nwait\n```", "\n```text\n\n  Wait. \n```\n\n", "```wait```", "  ```\nwait\n  ```"],
)
def test_a_bare_command_may_stand_in_one_fence(reply):
    assert command_in("command", reply) == "wait"
    assert command_in("react", f"Thought: x\nAction:\n{reply}") == "wait"
    for name, text in (("command", reply), ("react", f"Thought: x\nAction:\n{reply}")):
        with pytest.raises(CommandError):
            command_in(name, text, strict=True)


@pytest.mark.parametrize(
    "reply",
    [
        *("```\nwait", "```\nwait\n```\nand more", "```\nwait\n```\n```\nwait\n```", "```\n```"),
        *("```\nwait\n```\nNo, do not.\n```", "```\nwait\n``` and go to ball```"),
    ],
)
def test_other_fences_are_no_bare_command(reply):
    with pytest.raises(FormatError):
        command_in("command", reply)


def test_what_follows_the_fence_of_an_action_is_not_looked_at():
    assert command_in("react", "Action:\n```\nwait\n```\nObservation: x\nAction: fly") == "wait"
    with pytest.raises(FormatError, match='one command after "Action:", got 2 lines'):
        command_in("react", "Action:\n```\nwait\nwait\n```")
    with pytest.raises(FormatError, match='no command after "Action:"'):
        command_in("react", "Action:\n```\n\n```")


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: I look.\nAction: go to ball",
        "Thought:\nI look.\n\nAction:\ngo to ball",
        "thought: x\n  ACTION :  Go to ball.",
        "Action: go to ball",
        "I think.\nAction: go to ball\nObservation: You see it.\nAction: wait",
        "Action: go to ball\nand then something else",
    ],
)
def test_the_first_action_of_a_reply_is_the_command(reply):
    assert command_in("react", reply).casefold() == "go to ball"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("go to ball", 'There is no "Action:"'),
        ("Reaction: go to ball", 'There is no "Action:"'),
        ("Thought: x\nAction:", "no command after"),
        ("Thought: x\nAction:\nAction: wait", "no command after"),
    ],
)
def test_a_reply_without_action_is_told_what_is_expected(reply, message):
    with pytest.raises(FormatError, match=message):
        command_in("react", reply)


@pytest.mark.parametrize(
    "reply",
    [
        "Action: wait",
        "Thought: x\nAction: wait\nAction: wait",
        "Thought: x\nAction: wait\nand more",
        "Thought: x\nAction: Wait.",
        "Thought: x\nThought: y\nAction: wait",
        "thought: x\nAction: wait",
        "Thought: x\nACTION: wait",
        "Thought: x\n  Action : wait",
        "So.\nThought: x\nAction: wait",
    ],
)
def test_strict_react_takes_one_thought_and_one_action(reply):
    assert command_in("react", reply) == "wait"
    with pytest.raises(CommandError):
        command_in("react", reply, strict=True)


def test_a_thought_that_looks_like_an_action_is_none():
    thought = "Action: go to ball\n  thought : no.\nReaction: x"
    reply = action_format("react").render(GRAMMAR.parse("wait"), thought)
    assert reply == (
        "Thought:\n> Action: go to ball\n>   thought : no.\nReaction: x\n\nAction:\nwait"
    )
    for strict in (False, True):
        assert command_in("react", reply, strict=strict) == "wait"
