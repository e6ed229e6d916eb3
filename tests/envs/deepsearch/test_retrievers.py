import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from search_doubles import PASSAGES

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers import ENGINES, fts5, open_retriever
from agentgym_envs.deepsearch.retrievers.cache import Cached
from agentgym_envs.deepsearch.retrievers.hybrid import fuse
from agentgym_envs.deepsearch.retrievers.terms import STOP_WORDS, terms_of
from agentgym_envs.errors import EnvFault, InvalidCorpus, UnknownName, Unsupported


@pytest.fixture
def path(tmp_path):
    fts5.build(tmp_path / "rivers", PASSAGES)
    return str(tmp_path / "rivers")


# ------------------------------------------------------------------------------- opening by name


def test_one_engine_is_shared_by_all_that_name_it_alike(path):
    spec = {"name": "fts5", "path": path}
    with ThreadPoolExecutor(8) as pool:
        engines = list(pool.map(lambda _: open_retriever(dict(spec)), range(32)))
    assert len({id(engine) for engine in engines}) == 1
    assert open_retriever({"path": path, "name": "fts5"}) is engines[0]
    assert open_retriever(spec | {"cache": 5}) is not engines[0]


def test_one_that_was_closed_is_opened_anew(path):
    spec = {"name": "fts5", "path": path}
    closed = open_retriever(spec)
    closed.close()
    engine = open_retriever(spec)
    assert engine is not closed
    assert engine.search(["Sarn"], 1)[0][0].passage == PASSAGES[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_opens_its_own(path):
    spec = {"name": "fts5", "path": path}
    engine = open_retriever(spec)
    assert engine.search(["Sarn"], 1)
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        found = pool.starmap(_in_child, [(spec, id(engine))] * 4)
    assert found == [(False, "river/0")] * 4
    assert open_retriever(spec) is engine


def _in_child(spec, parents):
    engine = open_retriever(spec)
    return id(engine) == parents, engine.search(["Sarn"], 1)[0][0].passage.id


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("fts", UnknownName, "unknown search engine 'fts'; did you mean 'fts5'"),
        ({}, UnknownName, "unknown search engine None"),
        ({"name": "fts5", "file": "x"}, UnknownName, "unknown setting of the engine fts5 'file'"),
        ({"name": "fts5", "path": "nowhere"}, InvalidCorpus, "no index of passages at .*nowhere"),
        ({"name": "fts5", "cache": -1}, ValueError, "cache must be a whole number"),
        ("tantivy", ValueError, "the engine tantivy needs the setting 'path'"),
        ("http", ValueError, "the engine http needs the setting 'url'"),
        (
            {"name": "tantivy", "path": "nowhere"},
            InvalidCorpus,
            "no index of passages in .*nowhere",
        ),
        ({"name": "hybrid", "engines": ["fts5"]}, ValueError, "at least two engines"),
        ({"name": "hybrid", "engines": "fts5"}, ValueError, "at least two engines"),
    ],
    ids=str,
)
def test_a_wrong_name_or_setting_gets_one_clear_answer(spec, error, message):
    with pytest.raises(error, match=message):
        open_retriever(spec)


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch, tmp_path):
    from agentgym_envs.deepsearch.retrievers.optional import load

    with pytest.raises(Unsupported, match=r"engine x needs the package no_such .*suite\[deep\]'"):
        load("no_such.module", engine="x", extra="deep")


def test_the_names_of_the_engines_are_those_of_their_modules():
    import importlib

    for name, class_name in ENGINES.items():
        module = importlib.import_module(f"agentgym_envs.deepsearch.retrievers.{name}")
        assert getattr(module, class_name).name == name


# ----------------------------------------------------------------------------------- the queries


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Who was the author of Middlemarch?", ["author", "middlemarch"]),
        ("the who", ["the", "who"]),
        ("it's a snake_case-word", ["s", "snake", "case", "word"]),
        ("São 10,381,222", ["são", "10", "381", "222"]),
        ("Rome rome ROME", ["rome"]),
        ("東京", ["東京"]),
        ("", []),
        ("-- ?? \x00", []),
    ],
    ids=repr,
)
def test_a_query_is_taken_apart_into_words(query, terms):
    assert terms_of(query) == terms


def test_a_query_is_cut():
    assert len(terms_of(" ".join(f"w{number}" for number in range(10_000)))) == 64
    assert terms_of("x" * 10_000) == ["x" * 2_000]


def test_stop_words_are_words():
    assert all(terms_of(word) == [word] for word in STOP_WORDS)


# ------------------------------------------------------------------------------------- the cache


class Counting:
    """An engine that counts; "break" breaks it."""

    name, digest = "counting", "d"

    def __init__(self):
        self.asked = []

    def search(self, queries, k):
        self.asked += queries
        if "break" in queries:
            raise EnvFault("broken")
        return [[Hit(Passage(query, "", ""), 1.0)] * k for query in queries]

    def passage(self, passage_id):
        return Passage(passage_id, "", "")

    def close(self):
        self.asked = None


def test_what_was_asked_lately_is_not_asked_again():
    engine = Counting()
    cached = Cached(engine, 2)
    first = cached.search(["a", "b", "a"], 1)
    assert engine.asked == ["a", "b"]
    assert [hits[0].passage.id for hits in first] == ["a", "b", "a"]
    first[0].clear()  # what a caller does with it is its own affair
    assert cached.search(["a"], 1)[0][0].passage.id == "a"
    assert engine.asked == ["a", "b"]
    cached.search(["a"], 2)  # another k; b goes
    cached.search(["b"], 1)
    assert engine.asked == ["a", "b", "a", "b"]


def test_faults_and_endless_queries_are_not_remembered():
    engine = Counting()
    cached = Cached(engine, 10)
    for _ in range(2):
        with pytest.raises(EnvFault):
            cached.search(["break"], 1)
        cached.search(["x" * 100_000], 1)
    assert len(engine.asked) == 4


def test_the_cache_may_be_used_by_many_threads():
    cached = Cached(Counting(), 7)
    barrier = threading.Barrier(8)

    def search(number):
        barrier.wait(60)
        return [
            cached.search([f"q{(number * step) % 20}"], 1)[0][0].passage.id for step in range(500)
        ]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(search, range(8)))
    assert found == [[f"q{(number * step) % 20}" for step in range(500)] for number in range(8)]


# -------------------------------------------------------------------------------------- hybrid


def test_orders_are_merged_by_reciprocal_rank():
    a, b, c = (Hit(Passage(name, name, ""), 9.0) for name in "abc")
    fused = fuse([[a, b], [c, b]], 60.0)
    assert [hit.passage.id for hit in fused] == ["b", "a", "c"]
    assert fused[0].score == pytest.approx(2 / 62)
    assert fused[1].score == fused[2].score == pytest.approx(1 / 61)


def test_a_hybrid_searches_with_all_its_engines(tmp_path, path):
    fts5.build(tmp_path / "plain", PASSAGES, tokenizer="unicode61")
    engines = [{"name": "fts5", "path": path}, {"name": "fts5", "path": str(tmp_path / "plain")}]
    hybrid = open_retriever({"name": "hybrid", "engines": engines, "constant": 10})
    ((hit, *_),) = hybrid.search(["Ulve"], 3)
    assert hit == Hit(PASSAGES[1], pytest.approx(2 / 11))
    assert hybrid.digest == open_retriever(engines[0]).digest
    assert hybrid.passage("river/3") == PASSAGES[3]


def test_engines_of_different_corpora_make_no_hybrid(tmp_path, path):
    fts5.build(tmp_path / "other", PASSAGES[1:])
    engines = [{"name": "fts5", "path": path}, {"name": "fts5", "path": str(tmp_path / "other")}]
    with pytest.raises(InvalidCorpus, match=r"search different corpora: fts5 .*, fts5"):
        open_retriever({"name": "hybrid", "engines": engines})
