"""What counts as the same answer, by the published rule and by ours; values by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.deepsearch.matching import MATCHES, exact_match, f1, normalize, sub_em
from agentgym_envs.errors import UnknownName

steady = settings(deadline=None, derandomize=True, database=None)

SAME = [
    # said, gold, equal by the published rule, equal by ours
    ("Paris", "paris", True, True),
    ("the Paris.", "Paris", True, True),
    ("Beyonce", "Beyoncé", False, True),
    ("1990–1995", "1990-1995", False, True),
    ("“Heroes”", "Heroes", False, True),
    ("O’Higgins", "O'Higgins", False, True),
    ("10,381,222", "10381222", True, True),
    ("rock n roll", "rock 'n' roll", True, True),
    ("3.5", "35", True, False),
    ("7.50", "7.5", False, True),
    ("007", "7", False, True),
    ("1,5", "15", True, False),
    ("-5", "5", True, False),
    ("−5 °C", "-5°C", False, True),
    ("three", "3", False, True),
    ("U.S.", "US", True, True),
    ("Washington,D.C.", "Washington, D.C.", False, True),
    ("Saint-Denis", "St. Denis", False, True),
    ("Trinidad & Tobago", "Trinidad and Tobago", False, True),
    ("Łódź", "Lodz", False, True),
    ("Ａｂｃ", "abc", False, True),
    ("٣", "3", False, True),
    ("B-52", "B52", True, True),
    ("Paris, France", "Paris", False, False),
    ("", "Paris", False, False),
    ("the", "an", True, False),
    ("???", "!!!", True, False),
    ("C++", "C", True, True),
    ("x" * 2_000, "x", False, False),
]


@pytest.mark.parametrize(("said", "gold", "published", "clean"), SAME)
def test_which_answers_are_equal(said, gold, published, clean):
    assert exact_match(said, [gold], match="search_r1") is published
    assert exact_match(said, [gold], match="clean") is clean
    assert exact_match(gold, [said], match="clean") is clean


def test_any_alias_is_right_and_without_any_nothing_is():
    assert exact_match("USA", ["United States", "USA"])
    assert not exact_match("", [])
    assert f1("x", []) == 0.0
    assert not sub_em("x", [])


@pytest.mark.parametrize("match", MATCHES)
def test_f1_is_that_of_the_nearest_alias(match):
    # two of three words said, two of two wanted: 2 * 2 / (3 + 2)
    assert f1("city of Lima", ["Lima city"], match=match) == pytest.approx(0.8)
    assert f1("Lima", ["Quito", "city of Lima"], match=match) == pytest.approx(2 * 1 / (1 + 3))
    assert f1("Lima Lima", ["Lima"], match=match) == pytest.approx(2 * 1 / (2 + 1))
    assert f1("Lima", ["Lima"], match=match) == 1.0
    assert f1("", ["Lima"], match=match) == 0.0


@pytest.mark.parametrize("match", MATCHES)
def test_closed_answers_share_nothing_with_others(match):
    assert f1("yes", ["no"], match=match) == 0.0
    assert f1("no idea", ["no"], match=match) == 0.0
    assert f1("yes", ["yes"], match=match) == 1.0


def test_containment_is_by_letters_in_the_published_rule_and_by_words_in_ours():
    assert sub_em("It is Lima.", ["lima"], match="search_r1")
    assert sub_em("It is Lima.", ["lima"], match="clean")
    assert sub_em("Limassol", ["Lima"], match="search_r1")
    assert not sub_em("Limassol", ["Lima"], match="clean")
    assert sub_em("anything", ["the"], match="search_r1")
    assert not sub_em("anything", ["the"], match="clean")


def test_an_unknown_rule_is_refused_by_name():
    with pytest.raises(UnknownName, match="unknown matching rule 'claen'; did you mean 'clean'"):
        normalize("x", match="claen")


@steady
@given(st.text(), st.sampled_from(MATCHES))
def test_any_text_is_its_own_right_answer(text, match):
    said = normalize(text, match=match)
    assert said == " ".join(said.split())
    assert exact_match(text, [text], match=match)
    assert f1(text, [text], match=match) == (1.0 if said else 0.0)
