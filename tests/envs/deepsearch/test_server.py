import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager

import pytest
from search_doubles import HOSTILE, PASSAGES

from agentgym_envs.deepsearch.passages import Hit
from agentgym_envs.deepsearch.retrievers import fts5, open_retriever
from agentgym_envs.deepsearch.server import SearchServer, SearchService, ServerLimits
from agentgym_envs.errors import EnvFault


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "rivers.sqlite"
    fts5.build(path, PASSAGES)
    return path


@contextmanager
def serving(open_engine, *, load=True, **limits):
    """A server in a thread; gives where to ask it."""
    limits = ServerLimits(**limits)
    service = SearchService(open_engine, limits)
    server = SearchServer(service, "127.0.0.1", 0, limits)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        if load:
            service.load()
        yield Asking(server.server_port, service)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        service.close()


class Asking:
    def __init__(self, port, service):
        self.url = f"http://127.0.0.1:{port}"
        self.service = service
        self._port = port

    def ask(self, method, path, body=None, headers=()):
        """Status and JSON of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, data, dict(headers))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def retrieve(self, **body):
        return self.ask("POST", "/retrieve", body)


@pytest.fixture(scope="module")
def server(path):
    with serving(lambda: open_retriever({"name": "fts5", "path": str(path)})) as asking:
        yield asking


def test_it_answers_as_search_r1s_server_does(server):
    status, answer = server.retrieve(queries=["Ulve", "Sarn", ""], topk=1, return_scores=True)
    assert status == 200
    ((ulve,), (sarn,), nothing) = answer["result"]
    assert ulve["document"] == {
        "id": "river/1",
        "title": "Ulve: Course",
        "text": "The Ulve is 87 km long, all in Brellmark.",
        "contents": '"Ulve: Course"\nThe Ulve is 87 km long, all in Brellmark.',
    }
    assert ulve["score"] > 0
    assert sarn["document"]["id"] == "river/0"
    assert nothing == []


def test_without_scores_documents_come_alone_and_three_are_the_default(server):
    status, answer = server.retrieve(queries=["river course long"])
    assert status == 200
    assert [list(document) for document in answer["result"][0]] == [
        ["id", "title", "text", "contents"]
    ] * 3
    assert (
        server.retrieve(queries=["course"], topk=None)[1] == server.retrieve(queries=["course"])[1]
    )


def test_our_client_reads_it(server, path):
    engine = open_retriever({"name": "http", "url": server.url})
    direct = open_retriever({"name": "fts5", "path": str(path)})
    queries = [passage.title for passage in PASSAGES]
    assert engine.search(queries, 3) == direct.search(queries, 3)
    assert engine.digest == direct.digest


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_query_is_words_and_gaps(server, query):
    status, answer = server.retrieve(queries=[query], topk=1)
    if len(json.dumps(query)) > 1 << 20:
        assert status == 413
    else:
        assert status == 200
        ids = [document["id"] for document in answer["result"][0]]
        assert (ids == ["river/0"]) == ("Sarn" in query)


def test_health_and_version(server, path):
    assert server.ask("GET", "/health") == (200, {"status": "ready"})
    status, version = server.ask("GET", "/version")
    assert status == 200
    assert version["engine"] == "fts5"
    assert version["digest"] == open_retriever({"name": "fts5", "path": str(path)}).digest


@pytest.mark.parametrize(
    ("method", "route", "body", "status", "message"),
    [
        ("POST", "/retrieve", b"no JSON", 400, "expected a JSON object"),
        ("POST", "/retrieve", b"\xff", 400, "expected a JSON object"),
        ("POST", "/retrieve", b"[" * 100_000, 400, "expected a JSON object"),
        ("POST", "/retrieve", [], 400, "expected a JSON object"),
        ("POST", "/retrieve", {}, 400, "'queries' must be a list of texts, got None"),
        ("POST", "/retrieve", {"queries": "Sarn"}, 400, "'queries' must be a list"),
        ("POST", "/retrieve", {"queries": [1]}, 400, "'queries' must be a list"),
        ("POST", "/retrieve", {"queries": ["x"] * 513}, 413, "at most 512 queries"),
        ("POST", "/retrieve", {"queries": ["x"], "topk": 0}, 400, "'topk' must be"),
        ("POST", "/retrieve", {"queries": ["x"], "topk": 101}, 400, "from 1 to 100, got 101"),
        ("POST", "/retrieve", {"queries": ["x"], "topk": True}, 400, "'topk' must be"),
        ("POST", "/retrieve", {"queries": ["x"], "topk": "3"}, 400, "'topk' must be"),
        ("POST", "/retrieve", {"queries": [], "return_scores": 1}, 400, "'return_scores' must"),
        ("POST", "/retrieve", b"x" * 1_100_000, 413, "at most 1,048,576 bytes"),
        ("POST", "/retrieve", b"x" * 20_000_000, 413, "got 20,000,000"),
        ("GET", "/retrieve", None, 405, "/retrieve wants POST"),
        ("POST", "/health", {}, 405, "/health wants GET"),
        ("GET", "/", None, 404, "there is no '/'; there are /retrieve, /health, /version"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_request_is_told_why(server, method, route, body, status, message):
    got, answer = server.ask(method, route, body)
    assert got == status
    assert message in answer["error"]
    assert server.retrieve(queries=["Sarn"], topk=1)[0] == 200  # all is as before


def test_a_body_without_a_length_is_refused(server):
    got, answer = server.ask("POST", "/retrieve", None, {"Transfer-Encoding": "chunked"})
    assert got == 411
    assert "Content-Length" in answer["error"]


def test_a_client_that_hangs_up_is_no_trouble(server):
    port = int(server.url.rpartition(":")[2])
    for data in (
        b"",
        b"POST /retrieve HTTP/1.1\r\nContent-Length: 100\r\n\r\n{",
        b"\x16\x03\x01\n",
    ):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(data)
    assert server.retrieve(queries=["Sarn"], topk=1)[0] == 200


def test_until_the_engine_is_open_it_is_not_ready():
    with serving(lambda: None, load=False) as server:
        for method, path in (("GET", "/health"), ("GET", "/version"), ("POST", "/retrieve")):
            assert server.ask(method, path, {"queries": []} if method == "POST" else None) == (
                503,
                {"error": "the engine is being opened"},
            )


def test_an_engine_that_cannot_be_opened_is_told_of():
    def broken():
        raise EnvFault("the disk is gone")

    with serving(broken, load=False) as server:
        with pytest.raises(EnvFault):
            server.service.load()
        status, answer = server.ask("GET", "/health")
        assert (status, answer["error"]) == (503, "the engine cannot be opened: the disk is gone")


class Engine:
    """Answers when it may; fails where it is told to."""

    name, digest = "slow", "d"

    def __init__(self):
        self.may_answer = threading.Event()
        self.is_asked = threading.Semaphore(0)
        self.error = None
        self.batches = []

    def search(self, queries, k):
        self.batches.append(list(queries))
        self.is_asked.release()
        assert self.may_answer.wait(60)
        if self.error:
            raise self.error
        return [[Hit(PASSAGES[0], 1.0)] * k for _ in queries]


def test_more_than_may_wait_are_turned_away_and_what_waits_is_searched_together():
    engine = Engine()
    with serving(lambda: engine, max_waiting=4, threads=1) as server, ThreadPoolExecutor(9) as pool:
        first = pool.submit(server.retrieve, queries=["a"], topk=1)
        assert engine.is_asked.acquire(timeout=60)
        others = [pool.submit(server.retrieve, queries=[name], topk=1) for name in "bcdefghi"]
        for away in itertools.islice(as_completed(others, timeout=60), 5):
            status, answer = away.result()
            assert status == 503
            assert "4 requests are under way; try again" in answer["error"]
        engine.may_answer.set()
        assert [one.result(60)[0] for one in (first, *others)].count(200) == 4
    assert engine.batches[0] == ["a"]
    assert sum(len(batch) for batch in engine.batches) == 4


def test_a_search_that_takes_too_long_is_given_up():
    engine = Engine()
    with serving(lambda: engine, timeout_s=0.05) as server:
        status, answer = server.retrieve(queries=["a"])
        engine.may_answer.set()
    assert (status, answer["error"]) == (503, "no answer within 0.05 s")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (EnvFault("the disk is gone"), 503, "the engine slow is broken: the disk is gone"),
        (ZeroDivisionError("oh"), 500, "ZeroDivisionError: oh"),
    ],
)
def test_an_engine_that_breaks_is_an_error_and_never_an_empty_answer(error, status, message):
    engine = Engine()
    engine.error = error
    engine.may_answer.set()
    with serving(lambda: engine) as server:
        assert server.retrieve(queries=["a"]) == (status, {"error": message})


def test_many_clients_get_their_own_answers(server):
    def ask(number):
        engine = open_retriever({"name": "http", "url": server.url, "cache": number})
        titles = [PASSAGES[(number + step) % 6].title for step in range(20)]
        return [engine.search([title], 1)[0][0].passage.title == title for title in titles]

    with ThreadPoolExecutor(32) as pool:
        assert all(all(right) for right in pool.map(ask, range(32)))


def test_the_command_serves_until_it_is_stopped(path):
    command = [sys.executable, "-m", "agentgym_envs", "serve-search", "--port", "0"]
    spec = json.dumps({"name": "fts5", "path": str(path)})
    running = subprocess.Popen(
        [*command, spec], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        url = re.search(r"listening on (\S+)", running.stdout.readline()).group(1)
        assert "ready: engine fts5" in running.stdout.readline()
        engine = open_retriever({"name": "http", "url": url})
        assert engine.search(["Lenna"], 1)[0][0].passage.id == "river/4"
        engine.close()
    finally:
        os.kill(running.pid, signal.SIGTERM)
        _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "unknown search engine 'nonsense'"),
        (['{"name": "fts5", "path": "nowhere"}'], "there is no index of passages at"),
        (["{"], "expected a name or a JSON object"),
        (["--threads", "0"], "threads must be a whole number"),
        (["--host", "256.0.0.1"], ""),
    ],
    ids=str,
)
def test_a_wrong_call_is_told_why(arguments, message):
    done = subprocess.run(
        [sys.executable, "-m", "agentgym_envs", "serve-search", "--port", "0", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
