"""The two verbs and what is suggested to players that choose from a list."""

import pytest

from agentgym_envs.actions import ACTION_FORMATS, action_format
from agentgym_envs.deepsearch.actions import GRAMMAR, admissible, subject_of
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.questions import Question
from agentgym_envs.deepsearch.world import DeepSearchWorld


def world(question, *titles):
    found = [Passage(f"{number}", title, "") for number, title in enumerate(titles)]
    made = DeepSearchWorld(
        Question(question, ("x",)), lambda query: found, match="clean", max_answers=1
    )
    made.search("anything")
    return made


def test_the_verbs_and_their_forms():
    assert [entry.name for entry in GRAMMAR.verbs] == ["search", "answer"]
    assert GRAMMAR.parse("Search for rivers of Peru").text == "search rivers of Peru"
    assert GRAMMAR.parse("search for").text == "search for"
    assert GRAMMAR.parse("answer search for it").verb.name == "answer"


def test_what_is_suggested_are_the_question_titles_and_what_they_name():
    assert admissible(world("Which river?", "Peru: Rivers", "Peru: Lakes", "Lima")) == [
        "search Which river?",
        *("search Peru: Rivers", "search Peru: Lakes", "search Lima"),
        *("answer yes", "answer no", "answer Peru", "answer Lima"),
    ]


def test_suggestions_can_be_written_in_every_format():
    odd = ("Washington, D.C.", '"Heroes"', "<answer>: x", "a\x00b", "x" * 3_000, "…", "for it", "")
    commands = admissible(world("What?!", *odd))
    assert "search What?" in commands
    assert "answer Washington, D.C" in commands
    assert 'answer "Heroes"' in commands
    assert "search it" in commands
    assert not any("<" in command or len(command) > 2_000 for command in commands)
    for text in commands:
        command = GRAMMAR.parse(text)
        assert command.text == text
        for name in ACTION_FORMATS:
            for strict in (False, True):
                reply = action_format(name).render(command)
                assert action_format(name).parse(reply, GRAMMAR, strict=strict) == command


@pytest.mark.parametrize(
    ("title", "subject"), [("Peru: Rivers", "Peru"), ("Lima", "Lima"), ("2001: A: B", "2001")]
)
def test_the_subject_of_a_title_is_in_front_of_its_section(title, subject):
    assert subject_of(title) == subject
