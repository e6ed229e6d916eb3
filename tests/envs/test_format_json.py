import json

import pytest
from toys import GRAMMAR

from agentgym_envs.actions import action_format
from agentgym_envs.actions.json_text import MAX_DEPTH, objects_in, read_json
from agentgym_envs.errors import CommandError, FormatError

JSON = action_format("json")
CANONICAL = '{"name": "go_to", "arguments": {"target": "red ball 1"}}'


def command_in(reply, *, strict=False):
    return JSON.parse(reply, GRAMMAR, strict=strict).text


def refusal(reply, *, strict=False, kind=FormatError):
    with pytest.raises(CommandError) as error:
        JSON.parse(reply, GRAMMAR, strict=strict)
    assert type(error.value) is kind
    return str(error.value)


def test_a_command_is_one_object_with_name_and_arguments():
    assert JSON.render(GRAMMAR.parse("go to red ball 1"), "thoughts are dropped") == CANONICAL
    assert JSON.render(GRAMMAR.parse("go to room 3")) == (
        '{"name": "go_to_room", "arguments": {"number": 3}}'
    )
    assert JSON.render(GRAMMAR.parse('go to "é" \\')) == (
        '{"name": "go_to", "arguments": {"target": "\\"é\\" \\\\"}}'
    )


@pytest.mark.parametrize(
    "reply",
    [
        CANONICAL,
        f"```json\n{CANONICAL}\n```",
        f"```\n{CANONICAL}\n```",
        f"I see a ball. It is 5\" away, so I go there:\n{CANONICAL}\nThat's it.",
        f"<tool_call>\n{CANONICAL}\n</tool_call>",
        f"Out of {{red, blue}} I take red. {CANONICAL}",
        f'{{"thought": "I go."}} {CANONICAL}',
        f"[{CANONICAL}]",
        '{"name":"go_to","arguments":{"target":"red ball 1"}}',
        '{"arguments": {"target": "red\\u0020ball\\n1"}, "name": "go_to"}',
        '{"name": "Go To", "arguments": {"target": " red  ball 1 "}}',
        '{"name": "go-to", "parameters": {"target": "red ball 1"}, "thought": "{"}',
        '{"function": "go_to", "args": {"target": "red ball 1"}}',
        '{"type": "function", "function": {"name": "go_to", "arguments": '
        '"{\\"target\\": \\"red ball 1\\"}"}}',
    ],
)
def test_lenient_reading_finds_the_one_call(reply):
    assert command_in(reply) == "go to red ball 1"


@pytest.mark.parametrize(
    "reply",
    [
        *('{"name": "wait"}', '{"name": "wait", "args": null}', '{"name":"wait","arguments":""}'),
        *('{"name":"wait","arguments":" \\n"}', '{"name":"wait","arguments":"null"}'),
    ],
)
def test_a_call_without_arguments_may_leave_them_out(reply):
    assert command_in(reply) == "wait"


def test_numbers_and_texts_may_stand_for_each_other():
    assert command_in('{"name": "go_to_room", "arguments": {"number": "-3"}}') == "go to room -3"
    assert command_in('{"name": "go_to", "arguments": {"target": 12}}') == "go to 12"


@pytest.mark.parametrize(
    "reply",
    [
        f" {CANONICAL}",
        f"{CANONICAL}\n",
        f"```json\n{CANONICAL}\n```",
        f"{CANONICAL}{CANONICAL}",
        f"[{CANONICAL}]",
        '{"name": "wait"}',
        '{"name": "wait", "arguments": {}, "thought": ""}',
        '{"name": "wait", "args": {}}',
        '{"name": "wait", "arguments": "{}"}',
        '{"name": ["wait"], "arguments": {}}',
        '{"name": "go_to_room", "arguments": {"number": "3"}}',
        '{"name": "go_to", "arguments": {"target": 3}}',
        '{"name": "go_to", "arguments": {"target": "red  ball"}}',
    ],
)
def test_strict_reading_takes_the_canonical_object_only(reply):
    refusal(reply, strict=True)


def test_strict_reading_takes_any_spelling_of_the_canonical_object():
    spelled = '{ "arguments" : {"target":"\\u0072ed ball 1"},\n"name":"go_to" }'
    assert command_in(spelled, strict=True) == "go to red ball 1"
    assert "Wait" in refusal('{"name": "Wait", "arguments": {}}', strict=True, kind=CommandError)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("go to ball", "There is no function call in the reply. Reply with"),
        ('{"thought": "hm"}', "There is no function call in the reply. Reply with"),
        ('{"name": 3, "arguments": {}}', "There is no function call in the reply. Reply with"),
        ("{'name': 'wait'}", "is not JSON: Expecting property name enclosed in double quotes"),
        ('{"name": "wait"', 'The object "{"name": "wait"" has no closing brace.'),
        ('{"name": "wait", "name": "wait"}', 'The key "name" stands more than once'),
        ('{"name": "wait", "arguments": {"x": NaN}}', "NaN is no number in JSON."),
        ('{"name": "wait", "arguments": {"x": -Infinity}}', "-Infinity is no number in JSON."),
        ('{"name": "wait", "arguments": {"x": ' + "9" * 41 + "}}", "more than 40 characters"),
        ('{"name": "wait", "arguments": ["x"]}', "The arguments of the call are no object."),
        ('{"name": "wait", "arguments": "x"}', '"x" is not JSON'),
        ('{"name": "a", "function": "b"}', 'The call has both "name" and "function".'),
        ('{"name": "a", "args": {}, "parameters": {}}', 'has both "parameters" and "args".'),
        ('{"name": "a", "function": {"name": "wait"}}', 'The call has both "name" and "function".'),
        (
            '{"function": {"name": "wait"}, "arguments": {}}',
            'The call has both "function" and "arguments".',
        ),
        (f"{CANONICAL} {CANONICAL}", "Expected one function call, got 2."),
        ("{}" * 101, "There are more than 100 objects in the reply."),
        ("{" * (MAX_DEPTH + 1), f"The JSON is nested more than {MAX_DEPTH} deep."),
    ],
)
def test_a_refusal_says_what_is_wrong(reply, message):
    assert message in refusal(reply)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "go_to needs target, a text; got nothing."),
        ({"target": None}, "go_to needs target, a text; got nothing."),
        ({"target": ["x"]}, "got a value of type list."),
        ({"target": True}, "got a value of type bool."),
        ({"target": "a\x00b"}, 'got "a b".'),
        ({"target": "\ud800"}, 'got " ".'),
        ({"target": "x", "speed": 3}, "go_to does not take speed; it takes target."),
        ({"target": "x" * 3_000}, "The command is 3006 characters long; 2000 are allowed."),
    ],
)
def test_arguments_that_do_not_fit_are_no_error_of_the_format(arguments, message):
    for strict in (False, True):
        reply = json.dumps({"name": "go_to", "arguments": arguments})
        assert message in refusal(reply, strict=strict, kind=CommandError)


def test_an_unknown_function_is_no_error_of_the_format():
    message = refusal('{"name": "fly", "arguments": {}}', kind=CommandError)
    assert message == '"fly" is not a command. Commands are: go_to, go_to_room, put, wait.'


def test_outermost_objects_are_found_whatever_they_hold():
    text = 'a } "{" {"x": "}{\\"", "y": {"z": [1]}} {b'
    found = objects_in(text)
    assert next(found) == '{" {"x": "}'
    assert list(objects_in('x {"a": "}{\\"", "y": {"z": [1]}} y {}')) == [
        '{"a": "}{\\"", "y": {"z": [1]}}',
        "{}",
    ]


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, "x", null, true]}', '"x"', "3", " [[]] "])
def test_json_within_the_limits_is_read_as_it_is(text):
    assert read_json(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "01", "'a'", "{} {}", '"\n"', "\ufeff{}", "]"])
def test_text_that_is_no_json_is_refused_by_its_beginning(text):
    with pytest.raises(FormatError, match=r"is not JSON: .* at character \d"):
        read_json(text)
