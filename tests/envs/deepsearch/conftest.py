"""A small corpus about places that do not exist, and questions about it."""

import json

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.retrievers import fts5

LANDS = {
    # land: capital, river, currency, founder of the capital, people
    "Avelonia": ("Tirmouth", "Sarn", "avel", "Queen Oda", 412_500),
    "Brellmark": ("Hoskeld", "Ulve", "mark", "Ragna Steen", 1_204_000),
    "Cortavia": ("São Quelim", "Mirandel", "corta", "Ines Falco", 87_310),
    "Dunmere": ("Port Gell", "Withy", "dun", "Abel Crane", 655_020),
    "Estrovia": ("Vaskograd", "Lenna", "estro", "Pavel Morav", 3_310_400),
    "Fenwick Isles": ("St. Orrin", "Brack", "shell", "Mother Keene", 9_450),
}


def passages():
    for land, (capital, river, currency, founder, people) in LANDS.items():
        yield Passage(
            f"{land}/capital", f"{land}: Capital", f"The seat of government of {land} is {capital}."
        )
        yield Passage(
            f"{land}/river", f"{land}: Water", f"The longest river of {land} is the {river}."
        )
        yield Passage(
            f"{land}/money",
            f"{land}: Money",
            f"People in {land} pay with a coin called {currency}.",
        )
        yield Passage(
            f"{capital}/history",
            f"{capital}: History",
            f"{capital} was founded by {founder} on a hill above the harbor.",
        )
        yield Passage(
            f"{capital}/people", f"{capital}: People", f"{capital} has {people:,} inhabitants."
        )


def records():
    """One hop, two hops and a comparison for each land, two lands a split."""
    for number, (land, (capital, _, currency, founder, people)) in enumerate(LANDS.items()):
        split = ("train", "dev", "test")[number % 3]
        row = number // 3
        other, (other_capital, *_, other_people) = list(LANDS.items())[number - 1]
        to_capital = step(f"capital of {land}", f"{land}/capital", capital)
        yield record(
            split,
            "one-hop",
            row,
            f"What is the coin of {land} called?",
            [currency, f"the {currency}"],
            [step(f"{land} money coin", f"{land}/money", currency)],
        )
        yield record(
            split,
            "two-hops",
            row,
            f"Who founded the capital of {land}?",
            [founder],
            [to_capital, step(f"{capital} history founded", f"{capital}/history", founder)],
        )
        yield record(
            split,
            "comparison",
            row,
            f"Has the capital of {land} more inhabitants than that of {other}?",
            ["yes" if people > other_people else "no"],
            [
                to_capital,
                step(f"capital of {other}", f"{other}/capital", other_capital),
                step(f"{capital} people inhabitants", f"{capital}/people", str(people)),
                step(f"{other_capital} people inhabitants", f"{other_capital}/people", "x"),
            ],
        )


def step(query, passage_id, answer):
    return {"query": query, "passage_id": passage_id, "answer": answer}


def record(split, name, row, question, answers, chain):
    return {
        "id": f"deepsearch/{split}/{name}/{row}",
        "set": name,
        "split": split,
        "question": question,
        "answers": answers,
        "hops": len(chain),
        "type": name,
        "chain": chain,
        "gold_passages": [each["passage_id"] for each in chain],
    }


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Arguments that name the small corpus and its questions."""
    folder = tmp_path_factory.mktemp("deepsearch")
    fts5.build(folder / "passages.sqlite", passages())
    (folder / "questions.jsonl").write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records()),
        encoding="utf-8",
    )
    return {
        "retriever": {"name": "fts5", "path": str(folder / "passages.sqlite")},
        "questions": str(folder / "questions.jsonl"),
    }


@pytest.fixture
def make(small):
    """Makes environments on the small corpus, without any wrapper."""

    def make(**arguments):
        return gymnasium.make("AgentGym/DeepSearch-v0", **small | arguments).unwrapped

    return make


@pytest.fixture
def env(make):
    """An environment at the start of a question of two hops."""
    env = make(info_keys=["em", "f1", "sub_em", "first_em", "gold_found", "searches"])
    env.reset(options={"task": "deepsearch/train/two-hops/0", "horizon": 100})
    return env
