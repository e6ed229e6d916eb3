import json

import numpy as np
import pytest
import toy_encoder
from search_doubles import HOSTILE, PASSAGES, Service, send, write_corpus

from agentgym_envs.deepsearch.retrievers import faiss as engine_module
from agentgym_envs.deepsearch.retrievers import open_retriever
from agentgym_envs.deepsearch.retrievers.encoders import Encoder
from agentgym_envs.deepsearch.retrievers.faiss import FaissRetriever
from agentgym_envs.errors import EnvFault, InvalidCorpus, UnknownName, Unsupported

faiss = pytest.importorskip("faiss")

ENCODER = "toy_encoder:encode"


@pytest.fixture(params=["Flat", "IVF2,SQ8"])
def folder(request, tmp_path):
    corpus = write_corpus(tmp_path / "rivers.jsonl")
    engine_module.build(tmp_path / "index", corpus, encoder=ENCODER, factory=request.param)
    return tmp_path / "index"


def test_the_nearest_passages_are_found(folder):
    engine = open_retriever(
        {"name": "faiss", "path": str(folder), "encoder": ENCODER}
        | ({} if engine_is_flat(folder) else {"nprobe": 2})
    )
    for passage in PASSAGES:
        (hits,) = engine.search([f"How long is the {passage.title}"], 3)
        assert hits[0].passage == passage
        assert hits[0].score > hits[1].score
    assert engine.passage("river/2") == PASSAGES[2]


def engine_is_flat(folder):
    return isinstance(faiss.read_index(str(folder / "vectors.faiss")), faiss.IndexFlat)


def test_where_there_are_too_few_passages_there_are_fewer_hits(folder):
    engine = FaissRetriever(folder, encoder=ENCODER)
    (hits,) = engine.search(["Sarn"], 100)
    assert len({hit.passage.id for hit in hits}) == len(hits) <= 6
    engine.close()


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_query_is_only_a_text(folder, query):
    engine = FaissRetriever(folder, encoder=ENCODER)
    (hits,) = engine.search([query], 2)
    assert bool(hits) == any(character.isalnum() for character in query[:2_000])
    engine.close()


def test_vectors_of_somebody_else_are_used_where_they_are(tmp_path):
    corpus = write_corpus(tmp_path / "c.jsonl")
    texts = [f"{passage.title}\n{passage.text}" for passage in PASSAGES]
    index = faiss.IndexFlatL2(toy_encoder.WIDTH)
    index.add(toy_encoder.encode(texts))
    faiss.write_index(index, str(tmp_path / "e5.index"))
    engine_module.build(tmp_path / "index", corpus, encoder=ENCODER, vectors=tmp_path / "e5.index")
    engine = FaissRetriever(tmp_path / "index", encoder=ENCODER)
    (hits,) = engine.search(["Sarn: Course"], 3)
    assert hits[0].passage == PASSAGES[0]
    assert hits[0].score > hits[1].score  # distances are turned around
    engine.close()
    index.add(toy_encoder.encode(["one more"]))
    faiss.write_index(index, str(tmp_path / "e5.index"))
    with pytest.raises(InvalidCorpus, match="7 vectors for 6 passages"):
        engine_module.build(
            tmp_path / "again", corpus, encoder=ENCODER, vectors=tmp_path / "e5.index"
        )


@pytest.mark.parametrize(
    ("encoder", "error", "message"),
    [
        ("toy_encoder:narrow", InvalidCorpus, "vectors of 7 numbers, the index has 512"),
        ("toy_encoder:other", InvalidCorpus, "does not work with this version|its test query"),
        ("toy_encoder:broken", EnvFault, "the encoder toy_encoder:broken fails: OSError"),
        ("toy_encoder:flat", EnvFault, "should give 1 vectors .* got an array of shape"),
        ("toy_encoder:not_finite", EnvFault, "finite numbers"),
        ("toy_encoder:missing", Unsupported, "there is no encoder toy_encoder:missing"),
        ("no_such_module:encode", Unsupported, "there is no encoder"),
        ("toy_encoder:WIDTH", TypeError, "is no function"),
        ("toy_encoder", ValueError, "expected an encoder as"),
        ({"uri": "x"}, UnknownName, "unknown setting of an encoder 'uri'"),
        ({"url": "x"}, ValueError, "expected a URL"),
    ],
    ids=str,
)
def test_an_encoder_that_does_not_fit_is_refused(folder, encoder, error, message):
    with pytest.raises(error, match=message):
        FaissRetriever(folder, encoder=encoder)


def test_a_service_can_be_the_encoder():
    def answer(handler):
        send(handler, 200, json.dumps({"data": [row(1, [0, 1]), row(0, [1, 0])]}))

    def row(index, vector):
        return {"index": index, "embedding": vector}

    with Service(faults=[answer]).running() as service:
        encoder = Encoder({"url": service.url, "model": "m"}, "query: ")
        vectors = encoder.encode(["a", "b"])
        encoder.close()
    assert service.bodies == [{"model": "m", "input": ["query: a", "query: b"]}]
    np.testing.assert_array_equal(vectors, [[1, 0], [0, 1]])


def test_a_file_that_holds_no_vectors_is_refused(folder):
    (folder / "vectors.faiss").write_bytes(b"nonsense")
    with pytest.raises(InvalidCorpus, match="FAISS cannot read the vectors"):
        FaissRetriever(folder, encoder=ENCODER)
