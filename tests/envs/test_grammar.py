import pytest
from toys import GRAMMAR, go_to, put, spin, wait

from agentgym_envs.actions import Grammar, Parameter, verb
from agentgym_envs.actions.grammar import MAX_COMMAND, MAX_ECHO, shorten
from agentgym_envs.errors import CommandError


def parsed(text, **kwargs):
    command = GRAMMAR.parse(text, **kwargs)
    return command.verb.name, dict(command.arguments)


def test_a_verb_is_made_of_a_function_and_its_docstring():
    assert go_to.name == "go_to"
    assert go_to.description == "Walk to a thing. It must be in view."
    assert go_to.examples == ("go to red ball 1", "walk to door 2")
    assert [(p.name, p.kind) for p in put.parameters] == [("thing", "str"), ("place", "str")]


def test_a_command_has_one_canonical_form():
    command = GRAMMAR.parse("WALK  to  Red Ball 1.")
    assert command.text == str(command) == "go to Red Ball 1"
    assert GRAMMAR.parse(command.text) == command


@pytest.mark.parametrize(
    "text",
    [
        "wait",
        "  WAIT \n",
        "Wait.",
        "wait!",
        "`wait`",
        '"wait"',
        '"wait".',
        '"wait."',
        "**wait**",
        "'`wait`'",
        "\u00a0wait",
    ],
)
def test_lenient_parsing_forgives_what_cannot_be_mistaken(text):
    assert parsed(text) == ("wait", {})


@pytest.mark.parametrize(
    "text",
    [
        *(" wait", "wait ", "Wait", "wait.", '"wait"', "wait\n"),
        *("go to red  ball", "go to red\u00a0ball", "go to  red ball", "go to\u2003ball"),
    ],
)
def test_strict_parsing_forgives_nothing(text):
    assert parsed("wait", strict=True) == ("wait", {})
    with pytest.raises(CommandError):
        GRAMMAR.parse(text, strict=True)


def test_quotes_inside_a_command_stay():
    assert parsed('go to "red ball"') == ("go_to", {"target": '"red ball"'})
    assert parsed("go to the dog's bed") == ("go_to", {"target": "the dog's bed"})


def test_the_form_with_more_literal_text_wins():
    assert parsed("go to room 12") == ("go_to_room", {"number": 12})
    assert parsed("go to room twelve") == ("go_to", {"target": "room twelve"})


def test_nothing_is_found_inside_other_text():
    for text in ("I wait", "wait a bit", "please go to ball", "go to", "put a next to", ""):
        with pytest.raises(CommandError):
            GRAMMAR.parse(text)


def test_a_refusal_repeats_the_command_and_lists_the_forms():
    with pytest.raises(CommandError) as error:
        GRAMMAR.parse("fly away")
    assert str(error.value) == (
        '"fly away" is not a command. Commands are: go to <target>, go to room <number>, '
        "put <thing> next to <place>, wait."
    )


def test_a_refusal_of_a_long_text_is_short():
    with pytest.raises(CommandError) as error:
        GRAMMAR.parse("x\n" * 50_000)
    assert len(str(error.value)) < 250
    assert shorten("a\nb\x00c") == "a b c"
    assert shorten("x" * MAX_ECHO) == "x" * MAX_ECHO
    assert shorten("x" * (MAX_ECHO + 1)) == "x" * MAX_ECHO + "…"


def test_lines_that_are_too_long_or_hold_control_characters_are_no_commands():
    longest = "go to " + "x" * (MAX_COMMAND - 6)
    assert parsed(longest)[0] == "go_to"
    for text in (longest + "x", "go to a\x00b", "go to a\x1bb", "go to a\x9fb", "go to a\ud800"):
        for strict in (False, True):
            with pytest.raises(CommandError):
                GRAMMAR.parse(text, strict=strict)


def test_all_other_characters_may_stand_in_arguments():
    family = "\U0001f469\u200d\U0001f467"  # two people, joined by a zero-width joiner
    for text in ("e\u0301", family, "\u202eabc", "\ufeffa", "a\u00adb", "\uffff", "\U000e0001"):
        for strict in (False, True):
            assert parsed(f"go to {text}", strict=strict) == ("go_to", {"target": text})


def test_blanks_of_all_kinds_become_one_blank():
    for blank in ("  ", "\t", "\n", "\u00a0", "\u2028", " \u3000\r\n"):
        assert parsed(f"go to a{blank}b") == ("go_to", {"target": "a b"})
        assert GRAMMAR.command("go_to", target=f"{blank}a{blank}b").text == "go to a b"
    for line_break in "\n\u2028\u2029\x85":
        with pytest.raises(CommandError):
            GRAMMAR.parse(f"go to a{line_break}b", strict=True)


def test_text_that_makes_careless_patterns_slow_is_refused_quickly():
    repeated = "next to " * 245
    for text in (f"put {repeated}", f"put a {repeated}", f"put {repeated}\t", "go to" + " a" * 990):
        for strict in (False, True):
            try:
                GRAMMAR.parse(text, strict=strict)
            except CommandError:
                continue


def test_braces_in_arguments_are_plain_text():
    command = GRAMMAR.parse("put {place} next to {0}")
    assert dict(command.arguments) == {"thing": "{place}", "place": "{0}"}
    assert command.text == "put {place} next to {0}"


def test_whole_numbers_are_numbers():
    assert parsed("go to room 007") == ("go_to_room", {"number": 7})
    assert GRAMMAR.parse("go to room 007").text == "go to room 7"
    assert parsed("go to room -3") == ("go_to_room", {"number": -3})
    assert parsed("go to room +0") == ("go_to_room", {"number": 0})
    assert parsed("go to room 123456789012345678")[0] == "go_to_room"
    assert parsed("go to room 1234567890123456789")[0] == "go_to"  # a thing of that name
    assert parsed("go to room ٣")[0] == "go_to"  # digits of other scripts are text


def test_a_command_is_built_by_name_with_checked_arguments():
    assert GRAMMAR.command("go_to_room", number=3).text == "go to room 3"
    assert GRAMMAR.command("put", thing=" key ", place="door").text == "put key next to door"
    no_text = "go_to needs target, a text without control characters; got"
    no_number = "go_to_room needs number, a whole number of up to 18 digits; got"
    for name, arguments, message in (
        ("fly", {}, '"fly" is not a command. Commands are: go_to, go_to_room, put, wait.'),
        ("go_to", {}, "go_to needs target, a text; got nothing."),
        ("go_to", {"target": None}, "go_to needs target, a text; got nothing."),
        ("go_to_room", {}, "go_to_room needs number, a whole number; got nothing."),
        ("go_to", {"target": " "}, f'{no_text} " ".'),
        ("go_to", {"target": ["x"]}, f"{no_text} a value of type list."),
        ("go_to_room", {"number": "x"}, f'{no_number} "x".'),
        ("go_to_room", {"number": True}, f"{no_number} a value of type bool."),
        ("go_to_room", {"number": 1.0}, f"{no_number} a value of type float."),
        ("go_to_room", {"number": 10**18}, f"{no_number} a value of type int."),
        ("wait", {"time": 3, "n": 1}, "wait does not take time, n; it takes no arguments."),
        ("go_to", {"target": "x", "n": 1}, "go_to does not take n; it takes target."),
    ):
        with pytest.raises(CommandError) as error:
            GRAMMAR.command(name, **arguments)
        assert str(error.value) == message


def test_the_description_has_a_line_a_verb():
    lines = GRAMMAR.describe().splitlines()
    assert lines[0] == (
        "- go to <target>: Walk to a thing. It must be in view. Example: go to red ball 1"
    )
    assert len(lines) == 4


def test_every_example_parses_as_its_own_verb():
    assert len(GRAMMAR.examples) == 5
    for entry in GRAMMAR.verbs:
        for example in entry.examples:
            assert GRAMMAR.parse(example, strict=True).verb is entry


def test_a_form_must_name_every_parameter():
    def turn(world, side: str):
        """Turn.

        Examples:
            turn left
        """

    with pytest.raises(TypeError, match=r"form 'turn' of turn has \[\], not \['side'\]"):
        verb("turn")(turn)


def test_a_verb_needs_a_description_and_examples():
    def turn(world):
        """Turn."""

    with pytest.raises(TypeError, match="verb turn needs a docstring with 'Examples:'"):
        verb("turn")(turn)


def test_parameters_are_texts_or_whole_numbers():
    def turn(world, angle: float):
        """Turn.

        Examples:
            turn 3
        """

    with pytest.raises(TypeError, match="str or int"):
        verb("turn {angle}")(turn)


SPIN = Grammar([spin])


@pytest.mark.parametrize(
    ("text", "arguments", "done"),
    [
        ("spin left", {"side": "left"}, ("left", 1, None)),
        ("spin left 3 times", {"side": "left", "times": 3}, ("left", 3, None)),
        ("spin left because x", {"side": "left", "why": "x"}, ("left", 1, "x")),
        (
            "spin left -1 times because x",
            {"side": "left", "times": -1, "why": "x"},
            ("left", -1, "x"),
        ),
    ],
)
def test_arguments_with_a_default_may_be_left_out(text, arguments, done):
    command = SPIN.parse(text)
    assert dict(command.arguments) == arguments
    assert command.text == text
    assert command.verb.run(None, **command.arguments) == done
    assert SPIN.command("spin", **arguments) == command
    assert SPIN.command("spin", **{"times": None, "why": None} | arguments) == command


def test_a_parameter_knows_its_default():
    assert spin.parameters == (
        Parameter("side", "str", required=True, default=None),
        Parameter("times", "int", required=False, default=1),
        Parameter("why", "str", required=False, default=None),
    )


def test_defaults_are_written_where_no_form_leaves_out_just_these():
    @verb("mix {color}", "mix {color} and {other} {times} times")
    def mix(world, color: str, other: str = "white", times: int = 2):
        """Mix.

        Examples:
            mix red
        """

    grammar = Grammar([mix])
    assert grammar.command("mix", color="red").text == "mix red"
    assert grammar.command("mix", color="red", times=5).text == "mix red and white 5 times"
    assert grammar.command("mix", color="red", other="blue").text == "mix red and blue 2 times"


def described(function):
    function.__doc__ = "Do.\n\nExamples:\n    do"
    return function


def test_forms_and_defaults_must_allow_every_command_to_be_written():
    def do(world, a: str, b: int = 1, c: str | None = None):
        pass

    for forms, message in (
        (("do {b} {c}",), r"form 'do {b} {c}' of do has \['b', 'c'\], not \['a', 'b', 'c'\]"),
        (("do {a} {a}",), r"form 'do {a} {a}' of do has \['a', 'a'\]"),
        (("do {a} {d}",), r"form 'do {a} {d}' of do has \['a', 'd'\]"),
        (("do {a}", "do {a} {b}"), "no form of do names all of"),
        (("do {a} {b} {c}", "do {a}"), r"no form of do names just \['a', 'b'\]"),
    ):
        with pytest.raises(TypeError, match=message):
            verb(*forms)(described(do))


def test_a_default_is_of_the_kind_of_its_parameter():
    def text(world, a: int = "1"):
        pass

    def flag(world, a: int = True):
        pass

    def empty(world, a: str = ""):
        pass

    def nothing(world, a: str = None):  # noqa: RUF013
        pass

    def maybe(world, a: str | None = "x"):
        pass

    def required(world, a: str | None):
        pass

    for function in (text, flag, empty, nothing, maybe, required):
        with pytest.raises(TypeError, match=f"a of {function.__name__} is '.*', its default is"):
            verb("do {a}", "do")(described(function))


def test_verbs_of_a_grammar_have_different_names():
    with pytest.raises(TypeError, match="must differ"):
        Grammar([wait, wait])


def test_a_line_that_is_too_long_is_told_so():
    with pytest.raises(CommandError, match="The command is 2001 characters long; 2000 are allowed"):
        GRAMMAR.parse("go " + "x" * 1998)
