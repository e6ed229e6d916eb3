import json

import pytest
from search_doubles import PASSAGES, write_corpus

from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.retrievers.corpus_files import read_lines
from agentgym_envs.deepsearch.retrievers.passage_store import PassageStore, StoreWriter, id_hash
from agentgym_envs.errors import EnvFault, InvalidCorpus


def passages_in(path, **options):
    return [line.passage for line in read_lines(path, **options)]


def write(path, *lines):
    path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def store_of(folder, corpus):
    folder.mkdir()
    writer = StoreWriter(folder, corpus)
    for line in read_lines(corpus):
        writer.add(line)
    return writer.finish()


# -------------------------------------------------------------------------------- reading lines


def test_both_shapes_are_read(tmp_path):
    assert passages_in(write_corpus(tmp_path / "c.jsonl")) == PASSAGES


@pytest.mark.parametrize(
    ("record", "passage"),
    [
        ({"id": 7, "contents": '"A"\nb\nc'}, Passage("7", "A", "b\nc")),
        ({"id": "7", "contents": "A\nb"}, Passage("7", "A", "b")),
        ({"id": "7", "contents": "no title"}, Passage("7", "", "no title")),
        ({"_id": "7", "title": "A", "text": "b", "metadata": {}}, Passage("7", "A", "b")),
        ({"id": "7", "text": "b"}, Passage("7", "", "b")),
        ({"id": "7", "title": None, "text": "b"}, Passage("7", "", "b")),
        ({"id": "7", "title": "A", "text": "b", "contents": "x\ny"}, Passage("7", "A", "b")),
        ({"id": "7", "text": "caf\ud800"}, Passage("7", "", "caf?")),
    ],
    ids=str,
)
def test_a_record_is_a_passage(tmp_path, record, passage):
    assert passages_in(write(tmp_path / "c", json.dumps(record))) == [passage]


BAD = {
    "no JSON": ("id: 7", "expected a JSON object, got b'id: 7"),
    "half of it": ('{"id": "7", "text": ', "expected a JSON object"),
    "no object": ("[1, 2]", "expected a JSON object"),
    "not UTF-8": (b'{"id": "7", "text": "\xff"}', "expected a JSON object"),
    "deep": ("[" * 200_000, "expected a JSON object"),
    "no id": ('{"text": "x"}', "expected an 'id', a text or whole number, got None"),
    "empty id": ('{"id": "", "text": "x"}', "expected an 'id'"),
    "id true": ('{"id": true, "text": "x"}', "expected an 'id'"),
    "no text": ('{"id": "7", "title": "x"}', r"expected 'contents', .* the keys \['id', 'title'\]"),
    "text a number": ('{"id": "7", "text": 7}', "expected 'contents'"),
    "title a list": ('{"id": "7", "title": [], "text": "x"}', "expected 'contents'"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD)
def test_a_line_that_is_no_passage_is_named_and_refused_or_skipped(tmp_path, line, message):
    good = '{"id": "1", "text": "x"}\n'
    path = write(tmp_path / "c.jsonl", good, "\n", line, "\n", good.replace("1", "2"))
    with pytest.raises(InvalidCorpus, match=rf"c\.jsonl, line 3: {message}"):
        passages_in(path)
    skipped = []
    assert [one.id for one in passages_in(path, skip=skipped.append)] == ["1", "2"]
    assert len(skipped) == 1
    assert "line 3" in skipped[0]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InvalidCorpus, match=r"cannot read the corpus .*nowhere"):
        passages_in(tmp_path / "nowhere")
    with pytest.raises(InvalidCorpus, match=r"c\.jsonl\.gz is compressed, .* decompress it first"):
        passages_in(write(tmp_path / "c.jsonl.gz", "x"))


# ------------------------------------------------------------------------------------- the store


def test_passages_come_back_by_row_and_by_id(tmp_path):
    corpus = write_corpus(tmp_path / "c.jsonl")
    text = corpus.read_text()
    corpus.write_text("\n" + text.replace("\n", "\n\n \n", 2) + "\n")  # empty lines anywhere
    store_of(tmp_path / "index", corpus)
    store = PassageStore(tmp_path / "index")
    assert [store.at(row) for row in range(len(store))] == PASSAGES
    assert [store.by_id(passage.id) for passage in PASSAGES] == PASSAGES
    with pytest.raises(KeyError, match="no passage 'river/99'"):
        store.by_id("river/99")
    store.close()


def test_ids_of_one_hash_are_told_apart(tmp_path, monkeypatch):
    from agentgym_envs.deepsearch.retrievers import passage_store

    monkeypatch.setattr(passage_store, "id_hash", lambda passage_id: len(passage_id))
    store_of(tmp_path / "index", write_corpus(tmp_path / "c.jsonl"))
    store = PassageStore(tmp_path / "index")
    assert [store.by_id(passage.id) for passage in PASSAGES] == PASSAGES
    store.close()


def test_hashes_are_the_same_everywhere():
    assert id_hash("river/0") == 4229749185141271830


def test_two_passages_of_one_id_are_refused(tmp_path):
    corpus = write_corpus(tmp_path / "c.jsonl", [*PASSAGES, PASSAGES[2]])
    with pytest.raises(InvalidCorpus, match="the id 'river/2': number 3 and number 7"):
        store_of(tmp_path / "index", corpus)


def test_an_empty_corpus_is_refused(tmp_path):
    with pytest.raises(InvalidCorpus, match="holds no passage"):
        store_of(tmp_path / "index", write(tmp_path / "c.jsonl", "\n\n"))


def test_a_corpus_that_is_gone_or_changed_is_refused_and_may_be_elsewhere(tmp_path):
    corpus = write_corpus(tmp_path / "c.jsonl")
    store_of(tmp_path / "index", corpus)
    moved = corpus.rename(tmp_path / "moved.jsonl")
    with pytest.raises(InvalidCorpus, match="if it has been moved, name it as 'corpus'"):
        PassageStore(tmp_path / "index")
    store = PassageStore(tmp_path / "index", moved)
    assert store.at(0) == PASSAGES[0]
    store.close()
    with moved.open("a") as file:
        file.write("\n")
    with pytest.raises(InvalidCorpus, match=r"is not the corpus of the index .* bytes expected"):
        PassageStore(tmp_path / "index", moved)


def test_a_corpus_that_changes_while_it_is_open_is_a_fault(tmp_path):
    corpus = write_corpus(tmp_path / "c.jsonl")
    store_of(tmp_path / "index", corpus)
    store = PassageStore(tmp_path / "index")
    corpus.write_bytes(b"x" * corpus.stat().st_size)
    with pytest.raises(EnvFault, match=r"row 1 of the corpus .* is broken"):
        store.at(1)
    store.close()


@pytest.mark.parametrize("name", ["passages.json", "starts.i64", "id_rows.i64"])
def test_a_store_of_which_a_part_is_missing_is_refused(tmp_path, name):
    store_of(tmp_path / "index", write_corpus(tmp_path / "c.jsonl"))
    (tmp_path / "index" / name).unlink()
    with pytest.raises(InvalidCorpus, match="holds no index of a corpus"):
        PassageStore(tmp_path / "index")
