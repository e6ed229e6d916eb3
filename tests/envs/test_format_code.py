import pytest
from toys import GRAMMAR

from agentgym_envs.actions import action_format
from agentgym_envs.actions.code import MAX_SOURCE, MAX_TOKENS
from agentgym_envs.errors import CommandError, FormatError

CODE = action_format("code")


def command_in(reply, *, strict=False):
    return CODE.parse(reply, GRAMMAR, strict=strict).text


def refusal(reply, *, strict=False, kind=FormatError):
    with pytest.raises(CommandError) as error:
        CODE.parse(reply, GRAMMAR, strict=strict)
    assert type(error.value) is kind
    return str(error.value)


def test_a_command_is_one_call_with_arguments_by_name():
    assert CODE.render(GRAMMAR.parse("go to red ball 1"), "x") == 'go_to(target="red ball 1")'
    assert CODE.render(GRAMMAR.parse("go to room -3")) == "go_to_room(number=-3)"
    assert CODE.render(GRAMMAR.parse("wait")) == "wait()"
    assert (
        CODE.render(GRAMMAR.parse('put a\\ next to "é"')) == 'put(thing="a\\\\", place="\\"é\\"")'
    )


@pytest.mark.parametrize(
    "reply",
    [
        'put(thing="a", place="b c")',
        "put('a', 'b c')",
        'put("a", place="b c")',
        'put(place="b c", thing="a")',
        'put (\n    "a",\n    "b c",\n)',
        'put("a", "b" " c")',
        'put("\\x61", "\\u0062\\U00000020c")',
    ],
)
def test_arguments_are_given_by_position_or_by_name(reply):
    for strict in (False, True):
        assert command_in(reply, strict=strict) == "put a next to b c"


@pytest.mark.parametrize(
    "reply",
    [
        "\n go_to_room(3) \n",
        "```python\ngo_to_room(3)\n```",
        "I go there.\n```\n  go_to_room(3)  # the hall\n```\nDone.",
        "# the hall\r\ngo_to_room(+3)\r\n",
        "Go_To_Room(3)",
        'go_to_room("3")',
        'go_to_room("""\n3\n""")',
    ],
)
def test_lenient_reading_forgives_what_stands_around_and_kinds(reply):
    assert command_in(reply) == "go to room 3"
    with pytest.raises(CommandError):
        command_in(reply, strict=True)


@pytest.mark.parametrize("blank", ["\u2028", "\x0c", "\x85", "\u00a0"])
def test_a_text_is_the_same_in_a_fence(blank):
    call = f"go_to('a{blank}b')"
    for reply in (call, f"```\n{call}\n```", f"```\r\n{call}\r\n```"):
        assert command_in(reply) == "go to a b"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "There is no code in the reply."),
        ("wait", '"wait" is not one Python call.'),
        ("wait(", '"wait(" is not one Python call.'),
        ("I wait()", '"I wait()" is not one Python call.'),
        ("x = wait()", '"x = wait()" is not one Python call.'),
        ("-wait()", '"-wait()" is not one Python call.'),
        ("wait() wait()", "Expected exactly one call"),
        ("wait()()", "Expected exactly one call"),
        ("go_to(str(1))", "Expected exactly one call"),
        ("```\nwait()\n```\n```\nwait()\n```", "Expected one block of code, got 2."),
        ("env.wait()", '"." cannot stand in a call.'),
        ("wait();", '";" cannot stand in a call.'),
        ("go_to(['x'])", '"[" cannot stand in a call.'),
        ("go_to(**x)", '"*" cannot stand in a call.'),
        ("go_to(f'x')", "cannot stand in a call."),
        ("go_to(b'x')", "cannot stand in a call."),
        ("go_to_room(1.5)", '"." cannot stand in a call.'),
        ("go_to_room(1if 2else 3)", '"1" cannot stand in a call.'),
        ("go_to_room(0x10)", '"0" cannot stand in a call.'),
        ("\uff57ait()", '"\uff57ait" cannot stand in a call.'),
        ("go_to(\uff54arget='x')", '"\uff54arget" cannot stand in a call.'),
        ("go_to_room(007)", "is not one Python call."),
        ("go_to(ball)", 'texts in quotes and whole numbers, got "ball".'),
        ("go_to(not 1)", 'texts in quotes and whole numbers, got "not 1".'),
        ("go_to(-'x')", "texts in quotes and whole numbers"),
        ("go_to('x)", '"go_to(\'x)" is not one Python call.'),
        ("go_to('a\x00b')", "is not one Python call."),
        (r"go_to('\d')", r'There is no escape "\d" in texts here'),
        (r"go_to('\N{BULLET}')", r'There is no escape "\N" in texts here'),
        (r"go_to('\777')", r'There is no escape "\7" in texts here'),
        (r"go_to('\ud8')", r'There is no escape "\u" in texts here'),
        ("go_to(target='a', target='b')", "The argument target stands more than once"),
        ("go_to('" + "x" * MAX_SOURCE + "')", f"longer than {MAX_SOURCE} characters"),
        ("go_to_room(" + "-" * MAX_TOKENS + "1)", "Expected exactly one call"),
    ],
)
def test_a_refusal_says_what_is_wrong(reply, message):
    for strict in (False, True) if "```" not in reply else (False,):
        assert message in refusal(reply, strict=strict)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("fly()", '"fly" is not a command. Commands are: go_to, go_to_room, put, wait.'),
        ("wait(1, 2)", "wait takes 0 arguments, got 2."),
        ("go_to('a', target='b')", "go_to got target twice: by position and by name."),
        ("go_to(place='a')", "go_to needs target, a text; got nothing."),
        ("go_to('a', b=1)", "go_to does not take b; it takes target."),
        ("go_to(None)", "go_to needs target, a text; got nothing."),
        ("go_to(True)", "got a value of type bool."),
        (
            "go_to_room('three')",
            'go_to_room needs number, a whole number of up to 18 digits; got "three".',
        ),
        (
            "go_to_room(" + "9" * 19 + ")",
            "a whole number of up to 18 digits; got a value of type int.",
        ),
        ("go_to('\\u0000')", 'got " ".'),
        ("go_to('\\ud800')", 'got " ".'),
    ],
)
def test_calls_that_do_not_fit_are_no_error_of_the_format(reply, message):
    for strict in (False, True):
        assert message in refusal(reply, strict=strict, kind=CommandError)


@pytest.mark.parametrize(
    "reply",
    [
        '"""a""" + ' + "-" * 10_000 + '1 + """b"""',
        "'''\"\"\"''' # ' \" \n" + "-" * 10_000 + "1",
        "f(# '''\r" + "-" * 10_000 + "1)",
        'f("\\\n", ' + "not " * 10_000 + "1)",
        "lambda " * 10_000,
        "await " * 10_000,
        "x if y else " * 4_000,
        "f(" * 10_000,
    ],
)
def test_nothing_nested_reaches_the_parser_of_python(reply, monkeypatch):
    monkeypatch.setattr("agentgym_envs.actions.code.ast", None)
    refusal(reply)
