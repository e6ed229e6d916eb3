import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from search_doubles import HOSTILE, PASSAGES, write_corpus

from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.retrievers import fts5, open_retriever, tantivy
from agentgym_envs.deepsearch.retrievers.tantivy import TantivyRetriever
from agentgym_envs.errors import InvalidCorpus

pytest.importorskip("tantivy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tantivy")
    tantivy.build(folder / "index", write_corpus(folder / "rivers.jsonl"))
    return folder / "index"


@pytest.fixture
def engine(folder):
    engine = TantivyRetriever(folder)
    yield engine
    engine.close()


def ids(engine, query, k=3):
    (hits,) = engine.search([query], k)
    return [hit.passage.id for hit in hits]


def test_a_known_title_is_on_top_and_scores_differ(engine):
    for passage in PASSAGES:
        (hits,) = engine.search([f"How long is the {passage.title}?"], 6)
        assert hits[0].passage == passage
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > scores[1]


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_query_is_words_and_gaps(engine, query):
    found = ids(engine, query)
    assert (found[:1] == ["river/0"]) == ("Sarn" in query)


def test_endings_accents_and_case_do_not_matter_and_titles_count_more(tmp_path):
    corpus = write_corpus(
        tmp_path / "c.jsonl",
        [
            Passage("a", "Rivers: All", "The Sarn, the Ulve and others, founded by nobody."),
            Passage("b", "Sarn: Course", "Of it there is much more to say, São Quelim."),
            *PASSAGES[1:],
        ],
    )
    tantivy.build(tmp_path / "index", corpus)
    engine = TantivyRetriever(tmp_path / "index")
    assert ids(engine, "SARN") == ["b", "a"]
    assert ids(engine, "sao quelim") == ["b"]
    assert ids(engine, "founding") == ["a"]
    engine.close()


def test_passages_that_fit_equally_come_in_the_order_of_the_corpus(tmp_path):
    same = [Passage(f"p{n}", "Same", "Same words.") for n in range(50)]
    corpus = write_corpus(tmp_path / "c.jsonl", [*PASSAGES, *same])
    tantivy.build(tmp_path / "index", corpus)
    engine = TantivyRetriever(tmp_path / "index")
    assert ids(engine, "same words", 5) == [f"p{n}" for n in range(5)]
    engine.close()


def test_the_digest_is_that_of_another_engine_over_the_same_passages(tmp_path, engine):
    assert fts5.build(tmp_path / "x", PASSAGES).digest == engine.digest


def test_it_is_opened_by_name(folder):
    engine = open_retriever({"name": "tantivy", "path": str(folder)})
    assert ids(engine, "Lenna", 1) == ["river/4"]
    assert engine.passage("river/3") == PASSAGES[3]


def test_many_threads_search_at_once(engine):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: ids(engine, PASSAGES[n % 6].title, 1), range(300)))
    assert found == [[f"river/{n % 6}"] for n in range(300)]


def test_progress_is_told(tmp_path):
    corpus = write_corpus(
        tmp_path / "c.jsonl",
        [Passage(str(number), f"Title{number}", "Words.") for number in range(20_000)],
    )
    told = []
    tantivy.build(tmp_path / "index", corpus, progress=lambda *done: told.append(done))
    assert [rows for _, rows in told] == [10_000, 20_000]
    assert told[-1][0] == corpus.stat().st_size


# -------------------------------------------------------------------------------- what goes wrong


def test_lines_that_are_no_passages_are_refused_or_skipped(tmp_path):
    corpus = write_corpus(tmp_path / "c.jsonl")
    corpus.write_text("nonsense\n" + corpus.read_text())
    with pytest.raises(InvalidCorpus, match="line 1: expected a JSON object"):
        tantivy.build(tmp_path / "index", corpus)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["c.jsonl"]
    skipped = []
    manifest = tantivy.build(tmp_path / "index", corpus, skip=skipped.append)
    assert (manifest.rows, len(skipped)) == (6, 1)
    engine = TantivyRetriever(tmp_path / "index")
    assert engine.search(["Sarn"], 1)[0][0].passage == PASSAGES[0]
    engine.close()


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidCorpus, match="holds something else than an index"):
        tantivy.build(tmp_path / "index", write_corpus(tmp_path / "c.jsonl"))
    assert (tmp_path / "index" / "thesis.txt").exists()


def test_an_index_is_replaced_when_the_new_one_is_whole(tmp_path):
    corpus = write_corpus(tmp_path / "c.jsonl")
    tantivy.build(tmp_path / "index", corpus)
    less = write_corpus(tmp_path / "less.jsonl", PASSAGES[1:])
    tantivy.build(tmp_path / "index", less)
    assert TantivyRetriever(tmp_path / "index").manifest.rows == 5


def test_an_index_of_another_corpus_engine_or_schema_is_refused(tmp_path, folder):
    with pytest.raises(InvalidCorpus, match=r"is of the corpus .*, not of 1234"):
        TantivyRetriever(folder, digest="1234")
    corpus = write_corpus(tmp_path / "c.jsonl")
    tantivy.build(tmp_path / "index", corpus)
    path = tmp_path / "index" / "manifest.json"
    manifest = json.loads(path.read_text())
    for change, message in (
        ({"engine": "faiss"}, "an index of the engine 'faiss', not 'tantivy'"),
        ({"schema": 2}, "has schema 2, this version reads 1; build it again"),
        ({"rows": "many", "more": 1}, "holds no manifest"),
        ({"test_passage": "river/9"}, "its test query 'Sarn: Course .*' finds 'river/0' instead"),
    ):
        path.write_text(json.dumps(manifest | change))
        with pytest.raises(InvalidCorpus, match=message):
            TantivyRetriever(tmp_path / "index")
    path.write_text("no JSON")
    with pytest.raises(InvalidCorpus, match="holds no manifest"):
        TantivyRetriever(tmp_path / "index")


def test_files_of_tantivy_that_are_broken_are_refused(tmp_path):
    tantivy.build(tmp_path / "index", write_corpus(tmp_path / "c.jsonl"))
    (tmp_path / "index" / "tantivy" / "meta.json").write_text("{}")
    with pytest.raises(InvalidCorpus, match="build the index again"):
        TantivyRetriever(tmp_path / "index")


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(InvalidCorpus, match=r"there is no index of passages in .*nowhere"):
        TantivyRetriever(tmp_path / "nowhere")
