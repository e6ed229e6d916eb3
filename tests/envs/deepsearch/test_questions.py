"""The embedded questions: their number, their answers, and what guessing is worth."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from typing import Any

import pytest

from agentgym_envs.deepsearch.generator import baselines
from agentgym_envs.deepsearch.generator.build import DATA
from agentgym_envs.deepsearch.generator.checks import Checker
from agentgym_envs.deepsearch.generator.makers import Candidate, Step
from agentgym_envs.deepsearch.generator.quotas import CLOSED, LARGEST_SHARE, SIZES, Selection
from agentgym_envs.deepsearch.matching import normalize, sub_em
from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.questions import check_record
from agentgym_envs.deepsearch.retrievers.fts5 import Fts5Retriever
from agentgym_envs.deepsearch.tasks import manifest

Record = dict[str, Any]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    lines = gzip.decompress((DATA / "questions.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def retriever() -> Fts5Retriever:
    return Fts5Retriever()


@pytest.fixture(scope="module")
def texts(retriever: Fts5Retriever) -> dict[str, str]:
    return {p.id: f"{p.title}. {p.text}" for p in retriever.passages()}


def test_every_record_is_one(records: list[Record]) -> None:
    for record in records:
        check_record(record)
    assert len({record["id"] for record in records}) == len(records) >= 10_000


def test_the_sets_have_their_sizes(records: list[Record]) -> None:
    sizes = Counter((record["set"], record["split"]) for record in records)
    expected = {(name, split): size for name, of in SIZES.items() for split, size in of.items()}
    assert sizes == {**expected, ("atlas-hand", "test"): 100}


def test_every_step_leads_to_a_passage_that_tells_its_answer(
    records: list[Record], texts: dict[str, str]
) -> None:
    for record in records:
        assert record["hops"] == len(record["chain"]) == len(record["facts"])
        assert {step["passage_id"] for step in record["chain"]} == set(record["gold_passages"])
        for step in record["chain"]:
            assert sub_em(texts[step["passage_id"]], [step["answer"]]), (record["id"], step)


def test_the_last_step_of_a_chain_gives_the_answer(records: list[Record]) -> None:
    for record in records:
        if record["set"] not in ("atlas-compare", "atlas-hand"):
            assert record["chain"][-1]["answer"] == record["answers"][0]


def test_no_question_holds_its_answer_unless_it_compares(records: list[Record]) -> None:
    told = [
        record["id"]
        for record in records
        if record["type"].partition(":")[0] not in ("which", "whether", "comparison")
        and sub_em(record["question"], record["answers"])
    ]
    assert told == []


def test_no_answer_is_right_for_more_than_three_percent_of_a_set(records: list[Record]) -> None:
    by_set: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        if record["set"] != "atlas-hand":
            by_set[record["set"], record["split"]].append(normalize(record["answers"][0]))
    for key, answers in by_set.items():
        common = Counter(answer for answer in answers if answer not in CLOSED).most_common(1)
        assert common[0][1] <= LARGEST_SHARE * len(answers), (key, common)


def test_yes_and_no_are_equally_frequent(records: list[Record]) -> None:
    for split in SIZES["atlas-compare"]:
        said = Counter(
            record["answers"][0]
            for record in records
            if record["set"] == "atlas-compare"
            and record["split"] == split
            and record["type"].startswith("whether")
        )
        assert abs(said["yes"] - said["no"]) <= 2, said


def test_guessing_is_worth_little(records: list[Record]) -> None:
    figures = baselines.of_records(records)
    assert set(figures) == {*SIZES, "atlas-hand"}
    for name, found in figures.items():
        assert found["majority"] <= 0.10, name
        assert found["random"] <= 0.10, name
        assert found["options"] <= 0.55, name


def test_the_manifest_tells_that_chains_find_nearly_all(records: list[Record]) -> None:
    sets = manifest().notes["sets"]
    assert set(sets) == {*SIZES, "atlas-hand"}
    for name, told in sets.items():
        assert told["share_found_by_chain"] >= 0.95, (name, told)


def test_chains_find_their_passages_among_the_first_three(
    records: list[Record], retriever: Fts5Retriever
) -> None:
    for record in records[::400] + [r for r in records if r["set"] == "atlas-hand"][::10]:
        found = retriever.search([step["query"] for step in record["chain"]], 3)
        for step, hits in zip(record["chain"], found, strict=True):
            assert step["passage_id"] in [hit.passage.id for hit in hits], record["id"]


def test_baselines_are_worked_out_by_hand() -> None:
    rows = [
        {"split": "test", "set": "s", "type": "t", "answers": ["Rome"]},
        {"split": "test", "set": "s", "type": "t", "answers": ["rome", "Roma"]},
        {"split": "test", "set": "s", "type": "whether: u", "answers": ["yes"]},
        {"split": "test", "set": "s", "type": "which: v", "answers": ["X"],
         "chain": [{"query": "X height"}, {"query": "Y height"}]},
        {"split": "train", "set": "s", "type": "t", "answers": ["x"]},
    ]  # fmt: skip
    found = baselines.of_records(rows)["s"]
    assert found["test_questions"] == 4
    assert found["majority"] == 0.5
    assert found["majority_of_family"] == 1.0
    assert found["random"] == pytest.approx(2 / 12, abs=1e-4)
    assert found["options"] == 0.5


def _candidate(question: str, answer: str, *steps: Step, led: bool = True) -> Candidate:
    return Candidate("s", "test", "t", question, (answer,), steps, led=led)


class _Shelf:
    """Finds the passages whose ids are words of the query."""

    def __init__(self, *passages: Passage) -> None:
        self._passages = passages

    def search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [
            [Hit(p, 1.0) for p in self._passages if p.id in query.split()][:k] for query in queries
        ]


def test_what_a_chain_or_one_search_finds_decides_what_is_kept() -> None:
    shelf = _Shelf(Passage("p", "P", "leads to Q"), Passage("q", "Q", "the answer is blue"))
    first, second = Step("p", "p", "Q", "p to"), Step("q", "q", "blue", "q color")
    lost = Step("nothing", "q", "blue", "q color")
    checker = Checker(shelf)
    good = _candidate("which color?", "blue", first, second)
    candidates = [
        good,
        _candidate("a lost one?", "blue", first, lost),
        _candidate("asks q itself?", "blue", first, second),
        _candidate("p q compared?", "P", first, second, led=False),
    ]
    assert list(checker.kept(candidates)) == [good, candidates[3]]
    assert checker.reasons["s"] == {
        "kept": 2,
        "not found by its chain": 1,
        "answered by one search with the question": 1,
    }


def test_a_selection_takes_no_answer_too_often_and_no_question_twice() -> None:
    asked = {normalize("known?")}
    selection = Selection(100, asked)
    stream = iter(
        [_candidate("known?", "a")]
        + [_candidate(f"q{number}?", "same") for number in range(10)]
        + [_candidate(f"r{number}?", f"other{number}") for number in range(10)]
    )
    assert selection.fill(stream, 8) == 8
    answers = Counter(candidate.answers[0] for candidate in selection.chosen)
    assert answers["same"] == 1
    assert len(asked) == 9


def test_a_selection_keeps_yes_and_no_in_balance() -> None:
    selection = Selection(100, set())
    stream = iter([_candidate(f"q{number}?", "yes") for number in range(10)])
    assert selection.fill(stream, 6) == 3
