"""The format `tags`: thoughts are taken out, then there is exactly one action."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import GRAMMAR, spin

from agentgym_envs.actions import Grammar, action_format
from agentgym_envs.errors import CommandError, FormatError

TAGS = action_format("tags")
ALL_VERBS = Grammar([*GRAMMAR.verbs, spin])


def command_in(reply, *, strict=False, grammar=ALL_VERBS):
    return TAGS.parse(reply, grammar, strict=strict).text


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("wait", "<wait></wait>"),
        ("go to red ball", "<go_to>red ball</go_to>"),
        ("go to room 3", "<go_to_room>3</go_to_room>"),
        ("put key next to box", "<put><thing>key</thing><place>box</place></put>"),
    ],
)
def test_a_command_is_rendered_as_a_tag_of_its_verb(command, reply):
    parsed = GRAMMAR.parse(command)
    assert TAGS.render(parsed) == reply
    assert TAGS.render(parsed, "Hm.") == f"<think>Hm.</think>\n{reply}"
    for text in (reply, f"<think>Hm.</think>\n{reply}", f"\n<think></think> {reply} \n"):
        for strict in (False, True):
            assert TAGS.parse(text, GRAMMAR, strict=strict) == parsed


@pytest.mark.parametrize(
    "reply",
    [
        "I think that I go there. <go_to>ball</go_to> Now I wait.",
        "<GO_TO>ball</go_to>",
        "<go_to>\n ball \n</go_to>",
        "</think><go_to>ball</go_to>",
        "<go_to>key</go_to></think><go_to>ball</go_to>",
        "<think><go_to>key</go_to></think><go_to>ball</go_to>",
        "<THINK><wait></wait></Think><go_to>ball</go_to>",
        "<think>a</think>b<think>c</think><go_to>ball</go_to>",
        "<go_to>ball</go_to><think><go_to>key</go_to>",
        "<think>a<think>b</think><go_to>key</go_to></think><go_to>ball</go_to>",
    ],
)
def test_what_is_around_the_action_and_in_thoughts_is_not_looked_at(reply):
    assert command_in(reply) == "go to ball"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "no action"),
        ("go to ball", "no action"),
        ("<think><go_to>ball</go_to></think>", "no action"),
        ("<go_to>ball</go_to></think>", "no action"),
        ("<think>hm <go_to>ball</go_to>", "no action"),
        ("<fly>away</fly>", "no action"),
        ("<go_to color='red'>ball</go_to>", "exactly one action"),
        ("<go<think></think>_to>ball</go_to>", "exactly one action"),
        ("<go_to>ball", "<go_to> is not closed"),
        ("<go_to/>ball", "go_to needs target"),
        ("ball</go_to>", "exactly one action"),
        ("<go_to>ball</wait>", "exactly one action"),
        ("<go_to>ball</go_to><wait></wait>", "exactly one action"),
        ("<go_to>ball</go_to><go_to>ball</go_to>", "exactly one action"),
        ("<wait><go_to>ball</go_to></wait>", "exactly one action"),
        ("I use <wait>. <go_to>ball</go_to>", "exactly one action"),
        ("<go_to></go_to>", "go_to needs target"),
        ("<go_to> \n </go_to>", "go_to needs target"),
        ("<go_to>ba\x00ll</go_to>", "without control characters"),
        ("<go_to_room>three</go_to_room>", "go_to_room needs number"),
        ("<wait>long</wait>", "text between the tags in <wait>"),
        ("<put>key, box</put>", "text between the tags in <put>"),
        ("<put><thing>key</thing></put>", "put needs place"),
        ("<put><thing>key</thing><thing>box</thing></put>", "takes one <thing>"),
        ("<put><thing>key</place><place>box</thing></put>", "takes one <thing>"),
        ("<put><thing>key<place>box</place></put>", "takes one <thing>"),
        ("<put></thing>key<thing><place>box</place></put>", "takes one <thing>"),
    ],
)
def test_other_replies_are_refused_with_what_is_wrong(reply, message):
    with pytest.raises(CommandError, match=message):
        command_in(reply)
    with pytest.raises(CommandError):
        command_in(reply, strict=True)


@pytest.mark.parametrize(
    "reply",
    [
        "I go. <go_to>ball</go_to>",
        "<go_to>ball</go_to> There.",
        "<GO_TO>ball</GO_TO>",
        "<go_to>red  ball</go_to>",
        "</think><go_to>ball</go_to>",
        "<think>a</think><think>b</think><go_to>ball</go_to>",
        "<go_to>ball</go_to><think>a",
        "<go_to>ball</go_to><think>a</think>",
        "<THINK>a</think><go_to>ball</go_to>",
        "<go_to_room>03</go_to_room>",
        "<wait/>",
    ],
)
def test_what_only_lenient_reading_forgives(reply):
    command_in(reply)
    with pytest.raises(FormatError):
        command_in(reply, strict=True)


def test_optional_arguments_may_be_left_out():
    command = ALL_VERBS.command("spin", side="left")
    assert TAGS.render(command) == "<spin><side>left</side></spin>"
    for strict in (False, True):
        assert TAGS.parse(TAGS.render(command), ALL_VERBS, strict=strict) == command


@settings(deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<wait>", "</wait>", "<go_to>", "</go_to>", "ball", " ", "<"]
        ),
        max_size=9,
    ).map("".join)
)
def test_a_reply_that_is_taken_has_one_action_outside_of_its_thoughts(reply):
    try:
        command = TAGS.parse(reply, GRAMMAR, strict=False)
    except CommandError:
        return
    said, is_thinking = [], False
    for part in re.split("(</?think>)", reply):
        if part == "<think>":
            is_thinking = True
        elif part == "</think>":
            said = said if is_thinking else []
            is_thinking = False
        elif not is_thinking:
            said.append(part)
    said = "".join(said)
    assert said.count(f"<{command.verb.name}>") == said.count(f"</{command.verb.name}>") == 1
    other = {"wait": "go_to", "go_to": "wait"}[command.verb.name]
    assert f"<{other}>" not in said
