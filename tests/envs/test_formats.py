import pytest
from toys import GRAMMAR

from agentgym_envs.actions import ACTION_FORMATS, action_format
from agentgym_envs.errors import CommandError, FormatError, UnknownName


def command_in(name, reply, *, strict=False):
    return action_format(name).parse(reply, GRAMMAR, strict=strict).text


def test_formats_are_found_by_name():
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
def test_a_format_describes_itself_with_an_example(name):
    assert GRAMMAR.examples[0] in action_format(name).describe(GRAMMAR)


@pytest.mark.parametrize("name", ACTION_FORMATS)
@pytest.mark.parametrize("reply", ["", " \n\t ", "\x00", "Action", "😀", "Thought: hm"])
def test_a_reply_without_command_is_refused_with_a_sentence(name, reply):
    for strict in (False, True):
        with pytest.raises(CommandError, match=r"\.$"):
            action_format(name).parse(reply, GRAMMAR, strict=strict)


def test_a_bare_command_may_stand_between_blank_lines():
    assert command_in("command", "\n\n  go to ball \n\n") == "go to ball"
    with pytest.raises(CommandError):
        command_in("command", "\ngo to ball\n", strict=True)


def test_two_bare_commands_are_refused():
    with pytest.raises(FormatError, match='got 2 lines that begin with "wait"'):
        command_in("command", "wait\nwait")


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
    ],
)
def test_strict_react_takes_one_thought_and_one_action(reply):
    assert command_in("react", reply) == "wait"
    with pytest.raises(CommandError):
        command_in("react", reply, strict=True)
