"""No split helps in another."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from agentgym_envs.deepsearch.generator.build import DATA
from agentgym_envs.deepsearch.generator.facts import Entity, Fact
from agentgym_envs.deepsearch.generator.phrasings import capitalize, phrasings_of
from agentgym_envs.deepsearch.generator.splits import fact_id, split_of
from agentgym_envs.deepsearch.matching import normalize

Record = dict[str, Any]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    lines = gzip.decompress((DATA / "questions.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def test_no_question_is_in_two_splits_or_asked_twice(records: list[Record]) -> None:
    split_of_question: dict[str, str] = {}
    for record in records:
        question = normalize(record["question"])
        assert question not in split_of_question, record["id"]
        split_of_question[question] = record["split"]


def test_no_fact_is_needed_in_two_splits(records: list[Record]) -> None:
    split_of_fact: dict[str, str] = {}
    for record in records:
        for fact in record["facts"]:
            assert split_of_fact.setdefault(fact, record["split"]) == record["split"], fact


def test_things_other_than_countries_are_in_one_split_with_all_their_facts(
    records: list[Record],
) -> None:
    split_of_thing: dict[str, str] = {}
    for record in records:
        for fact in record["facts"]:
            thing = fact.split(" ")[0]
            if not thing.startswith("country/"):
                split = split_of_thing.setdefault(thing, record["split"])
                assert split == record["split"], thing


def test_the_last_wording_of_a_question_is_kept_for_test(records: list[Record]) -> None:
    kept = {
        capitalize(wordings.texts[-1].partition("{e}")[0])
        for kind in ("country", "element", "isotope", "airport", "town", "region")
        for wordings in phrasings_of(kind).asks.values()
        if len(wordings.texts[-1].partition("{e}")[0]) > 30
    }
    begun = [
        {record["split"] for record in records if record["question"].startswith(beginning)}
        for beginning in sorted(kept)
    ]
    assert all(splits <= {"test"} for splits in begun)
    assert {"test"} in begun


def _town(key: str, place: tuple[float, float]) -> Entity:
    return Entity(f"town/{key}", "town", key, key, {"region": Fact("R")}, place=place)


def test_things_that_lie_near_are_in_one_split() -> None:
    for latitude in range(-56, 56, 4):
        near = [_town(key, (latitude + 1 + number, 9.0)) for number, key in enumerate("ab")]
        assert len({split_of({}, town, "region") for town in near}) == 1


def test_a_capital_is_in_the_split_of_its_town() -> None:
    for number in range(30):
        town = _town("x", (4.0 * number - 60, 20.0))
        capital = Fact("x", ("x",), link=town.id)
        country = Entity("country/XX", "country", "X", "X", {"capital": capital})
        entities = {town.id: town, country.id: country}
        assert split_of(entities, country, "capital") == split_of(entities, town, "region")


def test_facts_of_one_country_are_in_several_splits() -> None:
    country = Entity("country/XX", "country", "X", "X", {})
    assert len({split_of({}, country, f"relation {n}") for n in range(50)}) == 3
    assert fact_id(country, "area") == "country/XX area"
