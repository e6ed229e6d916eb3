"""Replies of a million characters: refused in time that grows with their length, not its square.

The slowest takes half a second of one core; what grows with the square would take hours.
"""

import time

import pytest
from counting import CountingEnv
from toys import GRAMMAR

from agentgym_envs.actions import ACTION_FORMATS, action_format
from agentgym_envs.errors import CommandError
from agentgym_envs.spaces import is_utf8
from agentgym_envs.testing.text import hostile_replies

LENGTH = 1_000_000
DEADLINE_S = 20.0
MAX_ANSWER = 500

UNITS = (
    *("\n", " ", "a ", "x", "\u202e", "`", "```\n", "Action:\n", "Thought:", "go to ", "next to "),
    *("{", "}", "{}", "[", "[]", '"', '\\"', "\\", '{"', '{"a":', '{"name":"a"}', "{'a': ", ","),
    *("(", "f(", "-", "not ", "lambda:", "#", "#\n", "'", "'\n", '"""', "f'{", "1if 2else ", "9"),
)
FRAMES = (
    *(
        "{}",
        "{}x",
        "1{}",
        'f("{}',
        "f({})",
        '{{"{}',
        '{{"{}"}}',
        "{{{}}}",
        "Action: {}",
        "```\n{}\n```",
    ),
    *("<think>{}", "<think>{}</think><wait></wait>", "<go_to>{}</go_to>", "<put>{}</put>"),
    "<put><thing>{}</thing><place>x</place></put>",
    '{{"name": "go_to", "arguments": {{"target": "{}"}}}}',
    '{{"name": "wait", "arguments": {{{}}}}}',
    '{{"name": "wait", "arguments": [{}]}}',
    '{{"name": "go_to_room", "arguments": {{"number": {}}}}}',
    '{{"name": "wait", "arguments": "{}"}}',
    '{{"tool_calls": [{}]}}',
    '{{"tool_calls": [{{"id": "{}", "function": {{"name": "wait", "arguments": "{{}}"}}}}]}}',
)


@pytest.mark.parametrize("name", ACTION_FORMATS)
def test_a_million_characters_are_read_in_linear_time(name):
    chosen = action_format(name)
    for unit in UNITS:
        _check(chosen, unit * (LENGTH // len(unit)))


@pytest.mark.parametrize("name", ACTION_FORMATS)
def test_long_texts_inside_a_frame_are_read_in_linear_time(name):
    chosen = action_format(name)
    for unit in UNITS:
        text = unit * (LENGTH // 20 // len(unit))
        for frame in FRAMES:
            _check(chosen, frame.format(text))


@pytest.mark.parametrize("name", ACTION_FORMATS)
def test_many_keys_names_and_arguments_are_read_in_linear_time(name):
    chosen = action_format(name)
    keys = ",".join(f'"{number}": {number}' for number in range(50_000))
    for reply in (
        f"{{{keys}}}",
        f'{{"name": "wait", "arguments": {{{keys}}}}}',
        f'{{"tool_calls": [{{"name": "wait", "arguments": {{{keys}}}}}]}}',
        f"wait({', '.join(f'a{number}={number}' for number in range(50_000))})",
    ):
        _check(chosen, reply)


def _check(chosen, reply):
    for strict in (False, True):
        start = time.process_time()
        try:
            answer = chosen.parse(reply, GRAMMAR, strict=strict).text
        except CommandError as error:
            answer = str(error)
        chosen.answer_to(reply)
        assert time.process_time() - start < DEADLINE_S, f"{chosen.name}: {reply[:60]!r}"
        assert len(answer) < MAX_ANSWER, f"{chosen.name}: {reply[:60]!r}"
        assert is_utf8(answer)


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("command", "add {x}"),
        ("json", '{"name": "add", "arguments": {"amount": "{x}"}}'),
        ("code", 'add(amount="{x}")'),
    ],
)
def test_the_kit_puts_hostile_texts_into_the_arguments_of_well_formed_replies(name, reply):
    assert reply in hostile_replies(CountingEnv(action_format=name))
