import pytest
from toys import GRAMMAR, go_to, put, wait

from agentgym_envs.actions import Grammar, verb
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


@pytest.mark.parametrize("text", [" wait", "Wait", "wait.", '"wait"', "wait\n"])
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
    for text in (longest + "x", "go to a\x00b", "go to a\x1bb"):
        with pytest.raises(CommandError):
            GRAMMAR.parse(text)


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
    assert parsed("go to room 1234567890")[0] == "go_to"  # too many digits: a thing of that name
    assert parsed("go to room ٣")[0] == "go_to"  # digits of other scripts are text


def test_a_command_is_built_by_name_with_checked_arguments():
    assert GRAMMAR.command("go_to_room", number=3).text == "go to room 3"
    assert GRAMMAR.command("put", thing=" key ", place="door").text == "put key next to door"
    for name, arguments, message in (
        ("fly", {}, '"fly" is not a command. Commands are: go_to, go_to_room, put, wait.'),
        ("go_to", {}, 'go_to needs target: a text, got "".'),
        ("go_to_room", {"number": "x"}, 'go_to_room needs number: a whole number, got "x".'),
        ("go_to_room", {"number": True}, 'go_to_room needs number: a whole number, got "True".'),
        ("wait", {"time": 3, "n": 1}, "wait does not take time, n."),
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


def test_verbs_of_a_grammar_have_different_names():
    with pytest.raises(TypeError, match="must differ"):
        Grammar([wait, wait])
