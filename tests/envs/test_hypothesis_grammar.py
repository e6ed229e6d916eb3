"""Properties of reading and writing commands, on texts nobody thought of."""

from hypothesis import given, settings
from hypothesis import strategies as st
from toys import GRAMMAR

from agentgym_envs.actions import ACTION_FORMATS, action_format
from agentgym_envs.actions.grammar import shorten
from agentgym_envs.errors import CommandError
from agentgym_envs.spaces import UnicodeText, is_utf8, to_utf8

steady = settings(deadline=None, derandomize=True, database=None)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
WORDS = st.lists(st.text(st.characters(categories=["L"]), min_size=1), min_size=1, max_size=3).map(
    " ".join
)
NAMES = WORDS.filter(lambda text: "next to" not in text.casefold())


def commands():
    return st.one_of(
        st.just(GRAMMAR.command("wait")),
        st.integers(0, 10**9 - 1).map(lambda n: GRAMMAR.command("go_to_room", number=n)),
        NAMES.map(lambda name: GRAMMAR.command("go_to", target=name)),
        st.tuples(NAMES, NAMES).map(
            lambda names: GRAMMAR.command("put", thing=names[0], place=names[1])
        ),
    )


@steady
@given(commands())
def test_the_canonical_form_parses_as_the_same_command(command):
    assert GRAMMAR.parse(command.text) == command
    assert GRAMMAR.parse(command.text, strict=True) == command


@steady
@given(commands(), st.sampled_from(ACTION_FORMATS), st.booleans(), WORDS)
def test_a_rendered_reply_parses_as_the_same_command(command, name, strict, thought):
    chosen = action_format(name)
    assert chosen.parse(chosen.render(command, thought), GRAMMAR, strict=strict) == command


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
