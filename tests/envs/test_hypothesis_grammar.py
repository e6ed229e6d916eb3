"""Properties of reading and writing commands, on texts nobody thought of."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from toys import GRAMMAR, spin

from agentgym_envs.actions import ACTION_FORMATS, Grammar, action_format
from agentgym_envs.actions.grammar import shorten
from agentgym_envs.errors import CommandError, FormatError
from agentgym_envs.spaces import UnicodeText, is_utf8, to_utf8

steady = settings(deadline=None, derandomize=True, database=None)

ALL_VERBS = Grammar([*GRAMMAR.verbs, spin])
BARE = ("command", "react")
CALLS = ("json", "code", "tools")

ANY_TEXT = st.text(st.characters(exclude_categories=()))
WORDS = st.lists(st.text(st.characters(categories=["L"]), min_size=1), min_size=1, max_size=3).map(
    " ".join
)
NAMES = WORDS.filter(lambda text: "next to" not in text.casefold())
NUMBERS = st.integers(-(10**18) + 1, 10**18 - 1)
ODD_TEXT = st.text(
    st.one_of(
        st.sampled_from("'\"\\/`{}[]().,!:;#*\n\t \u00a0\u2028\u200d\u0301\ufeff"),
        st.characters(exclude_categories=["Cc", "Cs"]),
    ),
    min_size=1,
).filter(lambda text: text.strip())

THOUGHTS = st.lists(
    WORDS | ANY_TEXT.map(to_utf8) | st.sampled_from(["Thought: x", " action : go to x", "```"])
).map("\n".join)


def commands():
    """Commands that can be told from one another when they are written as a line."""
    return st.one_of(
        st.just(GRAMMAR.command("wait")),
        NUMBERS.map(lambda n: GRAMMAR.command("go_to_room", number=n)),
        NAMES.map(lambda name: GRAMMAR.command("go_to", target=name)),
        st.tuples(NAMES, NAMES).map(
            lambda names: GRAMMAR.command("put", thing=names[0], place=names[1])
        ),
    )


def odd_commands():
    """Commands with any arguments that a verb may be given."""
    return st.one_of(
        NUMBERS.map(lambda n: ALL_VERBS.command("go_to_room", number=n)),
        ODD_TEXT.map(lambda text: ALL_VERBS.command("go_to", target=text)),
        st.tuples(ODD_TEXT, ODD_TEXT).map(
            lambda texts: ALL_VERBS.command("put", thing=texts[0], place=texts[1])
        ),
        st.tuples(ODD_TEXT, st.none() | NUMBERS, st.none() | ODD_TEXT).map(
            lambda given: ALL_VERBS.command("spin", side=given[0], times=given[1], why=given[2])
        ),
    )


@steady
@given(commands())
def test_the_canonical_form_parses_as_the_same_command(command):
    assert GRAMMAR.parse(command.text) == command
    assert GRAMMAR.parse(command.text, strict=True) == command


@steady
@given(commands(), st.sampled_from(ACTION_FORMATS), st.booleans(), THOUGHTS)
def test_a_rendered_reply_parses_as_the_same_command(command, name, strict, thought):
    chosen = action_format(name)
    assert chosen.parse(chosen.render(command, thought), GRAMMAR, strict=strict) == command


@steady
@given(odd_commands(), st.sampled_from(CALLS), st.booleans(), ANY_TEXT.map(to_utf8))
def test_a_rendered_call_parses_as_the_same_command_whatever_its_arguments(
    command, name, strict, thought
):
    chosen = action_format(name)
    reply = chosen.render(command, thought)
    assert reply in UnicodeText()
    assert chosen.parse(reply, ALL_VERBS, strict=strict) == command


@steady
@given(odd_commands(), st.sampled_from(BARE), st.booleans(), THOUGHTS)
def test_a_rendered_line_parses_as_what_its_canonical_form_says(command, name, strict, thought):
    try:
        expected = ALL_VERBS.parse(command.text, strict=strict)
    except CommandError:
        expected = None
    assume(expected is not None)
    chosen = action_format(name)
    assert chosen.parse(chosen.render(command, thought), ALL_VERBS, strict=strict) == expected


@steady
@given(odd_commands())
def test_arguments_are_one_line_of_single_blanks(command):
    assert command.text.splitlines() == [command.text]
    for value in command.arguments.values():
        if isinstance(value, str):
            assert value
            assert value == " ".join(value.split())


@steady
@given(odd_commands(), st.sampled_from(["json", "code"]))
def test_a_call_is_found_in_a_fence_and_behind_a_thought(command, name):
    chosen = action_format(name)
    reply = f"So I act.\n```{name}\n{chosen.render(command)}\n```\nThat will do."
    assert chosen.parse(reply, ALL_VERBS, strict=False) == command


@steady
@given(odd_commands(), odd_commands(), st.sampled_from(CALLS))
def test_two_calls_are_never_one(first, second, name):
    chosen = action_format(name)
    reply = f"{chosen.render(first)}\n{chosen.render(second)}"
    for strict in (False, True):
        try:
            chosen.parse(reply, ALL_VERBS, strict=strict)
        except FormatError:
            continue
        raise AssertionError(f"{reply!r} is taken for one call")


@steady
@given(commands(), st.sampled_from(["`{}`", '"{}"', "  {}\n", "{}.", "**{}**", "\t'{}'. "]))
def test_wrapping_changes_nothing(command, wrapping):
    assert GRAMMAR.parse(wrapping.replace("{}", command.text)) == command


@steady
@given(ANY_TEXT, st.sampled_from(ACTION_FORMATS), st.booleans())
def test_any_text_is_a_command_or_refused_with_encodable_words(text, name, strict):
    try:
        command = action_format(name).parse(to_utf8(text), GRAMMAR, strict=strict)
        answer = command.text
    except CommandError as error:
        answer = str(error)
    assert answer
    assert is_utf8(answer)


@steady
@given(commands(), ANY_TEXT, st.data(), st.sampled_from(CALLS), st.booleans())
def test_any_text_inside_a_call_is_a_command_or_refused(command, text, data, name, strict):
    chosen = action_format(name)
    reply = chosen.render(command)
    start, end = (data.draw(st.integers(0, len(reply))) for _ in range(2))
    reply = to_utf8(reply[: min(start, end)] + text + reply[max(start, end) :])
    try:
        answer = chosen.parse(reply, GRAMMAR, strict=strict).text
    except CommandError as error:
        answer = str(error)
    assert answer
    assert is_utf8(answer)
    assert chosen.answer_to(reply).role in (None, "tool")


@steady
@given(ANY_TEXT)
def test_any_text_becomes_encodable_without_growing(text):
    clean = to_utf8(text)
    assert clean in UnicodeText()
    assert len(clean) == len(text)
    assert to_utf8(clean) is clean


@steady
@given(ANY_TEXT)
def test_shortened_text_is_one_printable_line(text):
    line = shorten(text)
    assert len(line) <= 81
    assert line.isprintable()
