"""The embedded corpus, and the generator's facts and sentences."""

from __future__ import annotations

import re
import zlib

import pytest

from agentgym_envs.deepsearch.generator import corpus, facts, sources
from agentgym_envs.deepsearch.generator.facts import Entity, Fact
from agentgym_envs.deepsearch.generator.phrasings import (
    LEAST_WORDINGS,
    fill,
    open_ended,
    parse,
    phrasings_of,
    slots,
)
from agentgym_envs.deepsearch.generator.places import Grid
from agentgym_envs.deepsearch.generator.region_names import region_name
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.retrievers.base import CorpusDigest
from agentgym_envs.deepsearch.retrievers.fts5 import EMBEDDED, Fts5Retriever
from agentgym_envs.deepsearch.tasks import manifest
from agentgym_envs.errors import Unsupported

KINDS = ("country", "element", "isotope", "airport", "town", "region")


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return list(Fts5Retriever().passages())


def test_the_corpus_has_at_least_30_000_passages_with_a_title_and_a_text(
    passages: list[Passage],
) -> None:
    assert len(passages) == manifest().notes["passages"] >= 30_000
    assert len({passage.id for passage in passages}) == len(passages)
    assert all(passage.title.strip() and passage.text.strip() for passage in passages)


def test_the_corpus_takes_at_most_6_mb_compressed() -> None:
    assert len(zlib.compress(EMBEDDED.read_bytes(), 6)) <= 6_000_000


def test_the_manifest_names_the_digest_of_the_corpus(passages: list[Passage]) -> None:
    digest = CorpusDigest()
    for passage in passages:
        digest.add(passage)
    assert digest.hexdigest() == manifest().notes["corpus"]


def test_no_passage_shows_a_slot_a_doubled_word_or_a_lost_value(passages: list[Passage]) -> None:
    odd = re.compile(r"[{}<>]|\bNone\b|\b(the|of|in|is) \1\b|  |\.\.|\s[,;]|\s\.(?!\w)|&\w+;")
    assert [passage for passage in passages if odd.search(passage.text)] == []


def test_every_passage_begins_with_a_capital_or_a_mark_and_ends_with_a_stop(
    passages: list[Passage],
) -> None:
    assert [p.text for p in passages if p.text[0].islower() or p.text[-1] != "."] == []


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("capital of Kenya", "Kenya: Capital"),
        ("tin symbol atomic number", "Tin: Symbol and atomic number"),
        ("Zaragoza Airport Spain", "Zaragoza, Spain"),
        ("what is the half-life of carbon-14", "Carbon-14: Nuclear data"),
        ("New Mexico region", "New Mexico: Region of United States"),
    ],
)
def test_a_known_title_is_among_the_first_three(query: str, title: str) -> None:
    hits = Fts5Retriever().search([query], 3)[0]
    assert title in [hit.passage.title for hit in hits]
    assert len({hit.score for hit in hits}) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_relation_has_six_phrasings_and_every_question_one_more(kind: str) -> None:
    phrasings = phrasings_of(kind)
    for section in phrasings.sections:
        for sentence in section.sentences:
            assert len(set(sentence)) >= LEAST_WORDINGS, section.title
    for table in (phrasings.links, phrasings.inverses):
        for relation, wordings in table.items():
            assert len(set(wordings.texts)) >= LEAST_WORDINGS, relation
    for relation, wordings in phrasings.asks.items():
        assert len(set(wordings.texts)) > LEAST_WORDINGS, relation


@pytest.mark.parametrize("kind", KINDS)
def test_the_phrasings_of_a_sentence_need_the_same_facts(kind: str) -> None:
    for section in phrasings_of(kind).sections:
        for sentence in section.sentences:
            assert len({frozenset(slots(text)) for text in sentence}) == 1, sentence


@pytest.mark.parametrize("kind", KINDS)
def test_every_wording_of_a_question_names_the_thing_and_ends_as_a_question(kind: str) -> None:
    for wordings in phrasings_of(kind).asks.values():
        for text in wordings.texts:
            assert "{e}" in text or "{E}" in text
            assert text.endswith(("?", "."))
        assert len(open_ended(wordings.texts)) > 1


def test_countries_have_at_least_twelve_relations_to_ask_for() -> None:
    assert len(phrasings_of("country").asks) >= 12


def test_phrasings_are_read_from_their_format() -> None:
    read = parse(
        """
## Color
say
{E} is {color}.
The color of {e} is {color}.
ask color | {name} color
What is the color of {e}?
inverse color | {value} color
the thing that is {value}

## Shape | {name} (shape)
say
{E} is {shape}.
"""
    )
    assert [section.title for section in read.sections] == ["Color", "Shape"]
    assert [section.shown for section in read.sections] == ["{name}: Color", "{name} (shape)"]
    assert read.sections[0].sentences == (("{E} is {color}.", "The color of {e} is {color}."),)
    assert read.asks["color"].query == "{name} color"
    assert read.inverses["color"].texts == ("the thing that is {value}",)
    assert read.section_of("color") == "Color"
    assert read.section_of("shape") == "Shape"


def test_a_template_is_filled_with_the_phrase_of_the_thing_or_of_a_subject() -> None:
    entity = Entity("country/NL", "country", "Netherlands", "the Netherlands", {"area": Fact("1")})
    assert fill("{E} covers {area}.", entity) == "The Netherlands covers 1."
    assert fill("How big is {e}?", entity) == "How big is the Netherlands?"
    assert fill("{name} area", entity) == "Netherlands area"
    assert fill("How big is {e}?", entity, subject="the country of X") == (
        "How big is the country of X?"
    )


def test_a_passage_tells_the_sentences_whose_facts_are_known() -> None:
    told = {"highest": Fact("Mount X"), "highest_m": Fact("10 meters")}
    entity = Entity("country/XX", "country", "Xland", "Xland", told)
    (passage,) = corpus.passages_of(entity)
    assert passage.id == "country/XX/highest-point"
    assert passage.title == "Xland: Highest point"
    assert passage.text.count(".") == 1
    assert "Mount X" in passage.text
    assert "10 meters" in passage.text


def test_numbers_have_their_thousands_and_no_needless_decimals() -> None:
    assert facts.digits(1234567) == "1,234,567"
    assert facts.digits(0.50) == "0.5"
    assert facts.digits(-86.0) == "-86"


def test_a_measure_is_right_with_and_without_its_unit() -> None:
    fact = facts.measure(1234, "kilometers", "km")
    assert fact.text == "1,234 kilometers"
    assert fact.number == 1234
    assert facts.measure(1, "feet", "ft").text == "1 foot"
    assert set(fact.answers) == {
        *("1,234 kilometers", "1,234", "1,234 km", "1234", "1234 kilometers", "1234 km"),
    }


def test_a_depth_is_below_the_level_of_the_sea() -> None:
    assert facts.height(-86).text == "86 meters below sea level"
    assert "-86 m" in facts.height(-86).answers
    assert facts.height(5).text == "5 meters"


def test_a_date_has_three_forms_and_what_is_none_is_refused() -> None:
    fact = facts.date("5 July 1962")
    assert fact is not None
    assert fact.answers == ("July 5, 1962", "5 July 1962", "1962-07-05")
    assert fact.number == 19620705
    assert facts.date("ca. 965") is None
    assert facts.date("5 Juli 1962") is None


def test_a_degree_along_the_equator_is_111_kilometers() -> None:
    assert facts.distance_km((0, 0), (0, 1)) == pytest.approx(111.19, abs=0.01)
    assert facts.distance_km((90, 0), (-90, 50)) == pytest.approx(3.14159265 * 6371, abs=0.1)


def test_names_have_a_plain_form() -> None:
    assert facts.plain("São Tomé") == "Sao Tome"
    assert facts.plain("Łódź") == "Lodz"
    assert facts.variants("Bogotá", "Bogotá") == ("Bogotá", "Bogota")


def test_places_are_told_by_hemisphere() -> None:
    assert facts.coordinates(-1.283, 36.817) == "1.28° S, 36.82° E"


def test_lists_are_told_with_an_and() -> None:
    assert facts.enumeration(["A"]) == "A"
    assert facts.enumeration(["A", "B", "C"]) == "A, B and C"


@pytest.mark.parametrize(
    ("name", "code", "aliases", "shown"),
    [
        ("Bayern", "DE.02", [], "Bavaria"),
        ("Yunnan Sheng", "CN.29", [], "Yunnan"),
        ("Murcia, Región de", "ES.99", [], "Región de Murcia"),
        ("Saratovskaya oblast'", "RU.67", ["Saratov Oblast"], "Saratov Oblast"),
        ("Mahārāshtra", "IN.16", [], "Maharashtra"),
        ("Rīga", "LV.25", [], "Rīga"),
    ],
)
def test_regions_have_names_that_one_reads_in_english(
    name: str, code: str, aliases: list[str], shown: str
) -> None:
    assert region_name(name, code, aliases) == shown


def test_a_source_of_another_version_is_refused_with_the_one_that_is_needed() -> None:
    other = sources.Source("numpy", "0.0.1", "", "numpy/", (".txt",), "", "", "")
    with pytest.raises(Unsupported, match=r"reads numpy==0\.0\.1, but .* is installed"):
        sources.files_of(other)


def test_a_source_that_is_not_installed_is_named() -> None:
    missing = sources.Source("no-such-package-at-all", "1", "", "", (), "", "", "")
    with pytest.raises(Unsupported, match="reads no-such-package-at-all==1; install it"):
        sources.files_of(missing)


@pytest.mark.slow
def test_the_generator_makes_the_embedded_corpus_again(passages: list[Passage]) -> None:
    try:
        for source in sources.SOURCES:
            sources.files_of(source)
    except Unsupported as error:
        pytest.skip(str(error))
    assert list(corpus.read_corpus().passages.values()) == passages


def test_the_nearest_is_found_across_squares_and_the_line_of_dates() -> None:
    grid = Grid([((10.0, 179.9), "west"), ((10.0, -179.8), "east"), ((10.9, 179.9), "north")])
    assert [name for _, name in grid.near((10.0, -179.99))] == ["west", "east", "north"]
    assert Grid([((10.0, 5.0), "far")]).near((12.5, 5.0)) == []


def test_a_grid_reaches_less_far_near_the_poles() -> None:
    assert Grid.reach_km((0.0, 0.0)) == pytest.approx(110, abs=0.1)
    assert Grid.reach_km((59.0, 0.0)) == pytest.approx(55, abs=0.1)
