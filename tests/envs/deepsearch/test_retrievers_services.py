"""The adapters of services, by their official clients, against servers that speak a few routes."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import toy_encoder
from search_doubles import PASSAGES

from agentgym_envs.deepsearch.retrievers import open_retriever
from agentgym_envs.deepsearch.retrievers.terms import terms_of
from agentgym_envs.errors import EnvFault, InvalidCorpus, Unsupported

LIMITS = {"attempts": 2, "pause_s": 0.001, "failures": 1000, "timeout_s": 60.0}
ENGINES = {"opensearch": "opensearchpy", "elasticsearch": "elasticsearch"}


class Cluster:
    """An index named "rivers" that speaks ``_count``, ``_msearch`` and ``_doc``."""

    def __init__(self):
        self.faults = []
        self.searches = []
        self.spoil = lambda response: response

    def answer(self, method, path, body):
        """Status and JSON."""
        if self.faults:
            return self.faults.pop(0), {"error": "no"}
        if path == "/rivers/_count":
            return 200, {"count": len(PASSAGES)}
        if path == "/_msearch":
            lines = [json.loads(line) for line in body.splitlines()]
            self.searches += zip(lines[::2], lines[1::2], strict=True)
            return 200, {"responses": [self.find(line) for line in lines[1::2]]}
        for passage in PASSAGES:
            if path == f"/rivers/_doc/{passage.id.replace('/', '%2F')}":
                return 200, {"_id": passage.id, "_source": source(passage)}
        return 404, {"error": "nothing is here", "found": False}

    def find(self, search):
        words = set(terms_of(search["query"]["multi_match"]["query"]))
        scored = [
            (len(words & set(terms_of(f"{passage.title} {passage.text}"))), passage)
            for passage in PASSAGES
        ]
        scored.sort(key=lambda pair: -pair[0])
        hits = [
            {"_id": passage.id, "_score": float(score), "_source": source(passage)}
            for score, passage in scored[: search["size"]]
            if score
        ]
        return self.spoil(
            {"hits": {"hits": hits}, "timed_out": False, "_shards": {"total": 1, "failed": 0}}
        )

    @contextmanager
    def running(self):
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = cluster.answer(self.command, self.path.partition("?")[0], body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("X-Elastic-Product", "Elasticsearch")
                self.send_header("Content-Type", self.headers.get("Accept") or "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def do_GET(self):
                self.serve()

            def do_POST(self):
                self.serve()

            def do_HEAD(self):
                self.serve()

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def source(passage):
    return {"title": passage.title, "text": passage.text}


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture(params=ENGINES)
def engine(request, cluster):
    pytest.importorskip(ENGINES[request.param])
    with cluster.running() as url:
        engine = open_retriever(
            {"name": request.param, "url": url, "index": "rivers", "limits": LIMITS, "cache": 0}
        )
        yield engine
        engine.close()


def test_it_searches_with_a_text_and_not_with_a_query(engine, cluster):
    found = engine.search(['How "long" is the Ulve? title:* AND (', "", "Sarn"], 2)
    assert [hits[0].passage for hits in (found[0], found[2])] == [PASSAGES[1], PASSAGES[0]]
    assert found[1] == []
    assert found[0][0].score > found[0][1].score
    (header, search), _ = cluster.searches
    assert header == {"index": "rivers"}
    assert search["size"] == 2
    assert search["query"] == {
        "multi_match": {
            "query": 'How "long" is the Ulve? title:* AND (',
            "fields": ["title^3", "text", "contents"],
            "type": "most_fields",
        }
    }


def test_a_passage_is_found_by_its_id(engine):
    assert engine.passage("river/2") == PASSAGES[2]
    with pytest.raises(KeyError, match="no passage 'river/99'"):
        engine.passage("river/99")


def test_a_status_that_passes_is_not_noticed_and_another_is_a_fault(engine, cluster):
    cluster.faults = [503]
    assert engine.search(["Sarn"], 1)[0][0].passage == PASSAGES[0]
    cluster.faults = [503, 503]
    with pytest.raises(EnvFault, match="cannot be searched"):
        engine.search(["Sarn"], 1)
    cluster.faults = [400]
    with pytest.raises(EnvFault) as caught:
        engine.search(["Sarn"], 1)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda response: {"error": {"type": "oom"}, "status": 500}, "a search failed: .*oom"),
        (lambda response: response | {"timed_out": True}, "was not made everywhere"),
        (lambda response: response | {"_shards": {"failed": 1}}, "was not made everywhere"),
        (lambda response: {}, "no known shape"),
        (lambda response: {"hits": {"hits": [{"_id": "1", "_source": {}}]}}, "no known shape"),
    ],
)
def test_an_answer_that_is_not_whole_is_a_fault(engine, cluster, spoil, message):
    cluster.spoil = spoil
    with pytest.raises(EnvFault, match=message):
        engine.search(["Sarn"], 1)


@pytest.mark.parametrize("name", ENGINES)
def test_an_index_that_is_not_there_and_a_service_that_is_not_there(name, cluster):
    pytest.importorskip(ENGINES[name])
    with cluster.running() as url, pytest.raises(InvalidCorpus, match="has no index 'lakes'"):
        open_retriever({"name": name, "url": url, "index": "lakes", "limits": LIMITS})
    with pytest.raises(EnvFault, match="cannot be searched"):
        open_retriever({"name": name, "url": url, "index": "rivers", "limits": LIMITS})


# ---------------------------------------------------------------------------------------- Qdrant

leaves_connections = pytest.mark.filterwarnings(  # its local mode, to SQLite
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def qdrant(tmp_path):
    """The settings of a collection in a folder, made by the client's local mode."""
    client_module = pytest.importorskip("qdrant_client")
    models = client_module.models
    client = client_module.QdrantClient(path=str(tmp_path / "q"))
    client.create_collection(
        "rivers",
        vectors_config=models.VectorParams(size=toy_encoder.WIDTH, distance=models.Distance.COSINE),
    )
    vectors = toy_encoder.encode([f"{one.title} {one.text}" for one in PASSAGES])
    client.upsert(
        "rivers",
        [
            models.PointStruct(
                id=number,
                vector=vector.tolist(),
                payload={"id": passage.id, "title": passage.title, "text": passage.text},
            )
            for number, (passage, vector) in enumerate(zip(PASSAGES, vectors, strict=True))
        ],
    )
    client.close()
    return {
        "name": "qdrant",
        "collection": "rivers",
        "path": str(tmp_path / "q"),
        "encoder": "toy_encoder:encode",
        "limits": LIMITS,
        "cache": 0,
    }


@leaves_connections
def test_qdrant_finds_the_nearest_points(qdrant):
    engine = open_retriever(qdrant)
    found = engine.search(["How long is the Ulve: Course", "", "Sarn: Course"], 2)
    assert [hits[0].passage for hits in (found[0], found[2])] == [PASSAGES[1], PASSAGES[0]]
    assert found[0][0].score > found[0][1].score
    assert found[1] == []
    with pytest.raises(Unsupported):
        engine.passage("river/0")
    engine.close()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"collection": "lakes"}, InvalidCorpus, "has no collection 'lakes'"),
        ({"path": None}, ValueError, "expected a url or a path"),
        ({"url": "http://127.0.0.1:9"}, ValueError, "expected a url or a path"),
        ({"path": None, "url": "http://127.0.0.1:9"}, EnvFault, "cannot be searched"),
    ],
    ids=str,
)
@leaves_connections
def test_qdrant_refuses_what_is_not_there(qdrant, change, error, message):
    with pytest.raises(error, match=message):
        open_retriever(qdrant | change)


@leaves_connections
def test_qdrant_with_another_encoder_is_a_fault(qdrant):
    engine = open_retriever(qdrant | {"encoder": "toy_encoder:narrow"})
    with pytest.raises(EnvFault, match="cannot be searched"):
        engine.search(["Sarn"], 1)
    engine.close()
