import hashlib
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from search_doubles import HOSTILE, PASSAGES, RIVERS

from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.retrievers import fts5
from agentgym_envs.deepsearch.retrievers.fts5 import Fts5Retriever
from agentgym_envs.errors import InvalidCorpus, Unsupported


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("fts5") / "rivers.sqlite"
    fts5.build(path, PASSAGES)
    return path


@pytest.fixture
def engine(path):
    engine = Fts5Retriever(path)
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


def test_a_word_in_the_title_counts_more_than_in_the_text(tmp_path):
    passages = [
        Passage("text", "Rivers: All", "The Sarn, the Ulve and the Lenna."),
        Passage("title", "Sarn: Course", "Of a river, another and many more of them."),
        *(Passage(f"other{number}", "Hills: Some", "Nothing of rivers.") for number in range(9)),
    ]
    fts5.build(tmp_path / "x", passages)
    assert ids(Fts5Retriever(tmp_path / "x"), "Sarn") == ["title", "text"]


def test_endings_accents_and_case_do_not_matter(tmp_path):
    fts5.build(
        tmp_path / "x",
        [
            Passage("a", "São Quelim: History", "It was founded by Ines Falco."),
            Passage("b", "Vaskograd: History", "Nobody knows."),
        ],
    )
    engine = Fts5Retriever(tmp_path / "x")
    assert ids(engine, "SAO QUELIM", 1) == ids(engine, "founder of são quelim", 1) == ["a"]
    assert ids(engine, "founding") == ["a"]


def test_a_corpus_may_be_very_small(tmp_path):
    for number in (1, 2, 3):
        fts5.build(tmp_path / f"{number}", PASSAGES[:number])
        assert ids(Fts5Retriever(tmp_path / f"{number}"), "Sarn", 1) == ["river/0"]


def test_passages_that_fit_equally_come_in_the_order_of_the_corpus(tmp_path):
    passages = [Passage(f"p{n}", "Same: Title", "Same words.") for n in (3, 1, 2)]
    fts5.build(tmp_path / "x", [Passage("first", "Other: Title", "Else."), *passages])
    assert ids(Fts5Retriever(tmp_path / "x"), "same words") == ["p3", "p1", "p2"]


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_query_is_words_and_gaps(engine, query):
    found = ids(engine, query)
    assert (found[:1] == ["river/0"]) == ("Sarn" in query)
    assert len(engine.search(["Ulve"], 1)[0]) == 1  # all is as before


def test_several_queries_are_answered_in_their_order(engine):
    found = engine.search(["Ulve", "", "Sarn"], 1)
    assert [[hit.passage.id for hit in hits] for hits in found] == [["river/1"], [], ["river/0"]]
    assert engine.search([], 3) == []


@pytest.mark.parametrize(
    ("queries", "k", "error"),
    [
        ("Sarn", 3, TypeError),
        ([None], 3, TypeError),
        (["Sarn"], 0, ValueError),
        (["Sarn"], 1001, ValueError),
        (["Sarn"], "3", TypeError),
        (["Sarn"], True, TypeError),
    ],
    ids=str,
)
def test_what_is_no_search_is_refused(engine, queries, k, error):
    with pytest.raises(error):
        engine.search(queries, k)


def test_a_passage_is_found_by_its_id(engine):
    assert engine.passage("river/2") == PASSAGES[2]
    with pytest.raises(KeyError, match="no passage 'river/99'"):
        engine.passage("river/99")


def test_all_passages_come_in_order(engine):
    assert list(engine.passages()) == PASSAGES


def test_the_same_passages_give_the_same_bytes(tmp_path, path):
    fts5.build(tmp_path / "again", PASSAGES)
    one, other = (hashlib.sha256(each.read_bytes()).digest() for each in (path, tmp_path / "again"))
    assert one == other


def test_the_digest_is_of_the_passages_alone(tmp_path, path):
    other = fts5.build(tmp_path / "a", PASSAGES, tokenizer="unicode61")
    changed = fts5.build(tmp_path / "b", PASSAGES[::-1])
    assert other.digest == Fts5Retriever(path).digest != changed.digest
    assert other.rows == len(RIVERS)


def test_the_index_has_all_details(path):
    with sqlite3.connect(path) as connection:
        ((sql,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'words'")
    connection.close()
    assert "detail=full" in sql


def test_many_threads_search_at_once(engine):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: ids(engine, list(RIVERS)[n % 6], 1), range(200)))
    assert found == [[f"river/{n % 6}"] for n in range(200)]


def test_a_file_that_nobody_may_write_can_be_searched(path):
    os.chmod(path, 0o400)
    assert ids(Fts5Retriever(path), "Sarn", 1) == ["river/0"]
    assert [each.name for each in path.parent.iterdir()] == [path.name]  # no file beside it


def test_odd_names_of_files_are_no_trouble(tmp_path):
    path = tmp_path / "a b?c#d%20é.sqlite"
    fts5.build(path, PASSAGES)
    assert ids(Fts5Retriever(path), "Sarn", 1) == ["river/0"]


# ------------------------------------------------------------------------------------ bad files


def test_a_closed_engine_says_so(path):
    engine = Fts5Retriever(path)
    engine.search(["Sarn"], 1)
    engine.close()
    with pytest.raises(ValueError, match="has been closed"):
        engine.search(["Sarn"], 1)


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(4096)])
def test_what_is_no_index_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InvalidCorpus, match="no index of passages"):
        Fts5Retriever(tmp_path / "x")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidCorpus, match=r"there is no index of passages at .*nowhere"):
        Fts5Retriever(tmp_path / "nowhere")


def test_an_index_of_another_corpus_is_refused(path):
    digest = Fts5Retriever(path).digest
    assert Fts5Retriever(path, digest=digest).digest == digest
    with pytest.raises(InvalidCorpus, match=f"is of the corpus {digest}, not of 1234"):
        Fts5Retriever(path, digest="1234")


def test_an_index_without_counts_is_found_out(tmp_path, path):
    """Contentless indexes of fewer details score every passage alike, without any error."""
    broken = tmp_path / "broken"
    broken.write_bytes(path.read_bytes())
    with sqlite3.connect(broken) as connection:
        connection.executescript(
            """
            DROP TABLE words;
            CREATE VIRTUAL TABLE words USING fts5(title, text, content='', detail=none);
            INSERT INTO words (rowid, title, text)
                SELECT row, title, text FROM passages ORDER BY row;
            UPDATE manifest SET json = replace(json, 'river/0', 'river/5');
            UPDATE manifest SET json = replace(json, 'Sarn', 'Brack');
            """
        )
    connection.close()
    with pytest.raises(InvalidCorpus, match=r"its test query 'Brack: Course .*' finds 'river/0'"):
        Fts5Retriever(broken)


def test_passages_of_one_id_are_refused_and_no_file_is_left(tmp_path):
    with pytest.raises(InvalidCorpus, match="two passages have one id"):
        fts5.build(tmp_path / "x", [PASSAGES[0], PASSAGES[0]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("passages", [[], [Passage("a", "", "…")]], ids=["none", "no words"])
def test_passages_in_which_nothing_can_be_found_are_refused(tmp_path, passages):
    with pytest.raises(InvalidCorpus, match="no passage of this corpus is found"):
        fts5.build(tmp_path / "x", passages)


def test_a_build_that_fails_leaves_the_old_index(tmp_path):
    path = tmp_path / "x"
    fts5.build(path, PASSAGES)

    def broken():
        yield PASSAGES[0]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        fts5.build(path, broken())
    assert list(Fts5Retriever(path).passages()) == PASSAGES


def test_a_python_without_fts5_is_told_what_else_there_is(path, monkeypatch):
    class Connection(sqlite3.Connection):
        def execute(self, sql, *parameters):
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Connection, **k))
    with pytest.raises(Unsupported, match=r"without FTS5; .* the engine tantivy: pip install"):
        Fts5Retriever(path)


def test_processes_share_the_file(path):
    script = (
        "import sys; from agentgym_envs.deepsearch.retrievers import open_retriever;"
        "engine = open_retriever({'name': 'fts5', 'path': sys.argv[1]});"
        "print(engine.search(['Lenna'], 1)[0][0].passage.id)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [one.communicate(timeout=120)[0].decode().strip() for one in running] == ["river/4"] * 3
