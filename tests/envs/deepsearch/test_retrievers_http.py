"""The drill: whatever a search service does, a search ends, in an answer or in a fault."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from search_doubles import (
    PASSAGES,
    Service,
    as_contents,
    break_off,
    dead,
    drip,
    drip_headers,
    found,
    half_open,
    hang_up,
    sleep,
)

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.http import HttpRetriever
from agentgym_envs.errors import EnvFault, InvalidCorpus, UnknownName, Unsupported

PATIENT = {
    "timeout_s": 60.0,
    "attempt_timeout_s": 30.0,
    "attempts": 2,
    "pause_s": 0.01,
    "failures": 1000,
}
QUICK = PATIENT | {"attempt_timeout_s": 0.3}
FIRST = PASSAGES[0]


@pytest.fixture
def client():
    """Makes clients and closes them after the test."""
    made = []

    def make(url, *, limits=PATIENT, **settings):
        made.append(HttpRetriever(url, limits=limits, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


def within_a_minute(call):
    """What `call` gives or raises; fails if it does neither."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(60)


# ---------------------------------------------------------------------------------- its answers


SHAPES = {
    "with scores": lambda passage: {"document": as_contents(passage), "score": 1.5},
    "title and text": lambda passage: {
        "document": {"id": passage.id, "title": passage.title, "text": passage.text},
        "score": 1,
    },
    "documents alone": as_contents,
    "numbers as ids": lambda passage: {"document": {**as_contents(passage), "id": 17}, "score": 0},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_each_shape_of_an_answer_is_read(client, shape):
    def answer(body):
        return {"result": [[shape(one) for one in PASSAGES[: body["topk"]]]]}

    with Service(answer).running() as service:
        ((first, second),) = client(service.url).search(["river"], 2)
    assert (first.passage.title, first.passage.text) == (FIRST.title, FIRST.text)
    assert second.passage.title == PASSAGES[1].title
    assert first.passage.id in (FIRST.id, "17")


def test_documents_that_are_a_text_without_id_and_score_keep_their_order_and_get_an_id(client):
    texts = ['"One"\nFirst text.', '"Two"\nSecond text.', "Only a text."]
    with Service(lambda body: {"result": [texts]}).running() as service:
        (hits,) = client(service.url).search(["x"], 3)
        (again,) = client(service.url).search(["y"], 3)
    assert [hit.passage.title for hit in hits] == ["One", "Two", ""]
    assert hits[2].passage.text == "Only a text."
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({hit.passage.id for hit in hits}) == 3
    assert hits == again


def test_more_passages_than_asked_for_are_cut(client):
    def answer(body):
        return {"result": [[{"document": as_contents(one)} for one in PASSAGES]]}

    with Service(answer).running() as service:
        assert len(client(service.url).search(["x"], 2)[0]) == 2


def test_it_asks_as_the_protocol_says(client):
    with Service().running() as service:
        client(service.url + "/retrieve").search(["Sarn", "Ulve"], 2)
        client(service.url, rerank_from=30).search(["Sarn"], 2)
    plain, rerank = service.bodies
    assert plain == {"queries": ["Sarn", "Ulve"], "topk": 2, "return_scores": True}
    assert rerank == {
        "queries": ["Sarn"],
        "topk": 2,
        "return_scores": True,
        "topk_retrieval": 30,
        "topk_rerank": 2,
    }


def test_nothing_is_asked_where_there_is_no_word_and_control_characters_are_gaps(client):
    with Service().running() as service:
        results = client(service.url).search(["", " \t?!", "a\x00b\nc", "x" * 10**6], 1)
    assert [len(hits) for hits in results] == [0, 0, 1, 1]
    assert service.bodies[0]["queries"] == ["a b c", "x" * 2000]


def test_the_token_comes_from_the_environment(client, monkeypatch):
    monkeypatch.setenv("SEARCH_TOKEN", "abc")
    with Service().running() as service:
        client(service.url, token_variable="SEARCH_TOKEN").search(["x"], 1)
    assert service.headers[0]["Authorization"] == "Bearer abc"
    with pytest.raises(ValueError, match="'NO_SUCH_TOKEN' holds no token"):
        HttpRetriever("http://x", token_variable="NO_SUCH_TOKEN")


# ------------------------------------------------------------------------------------ its faults

SCORE_IS_NO_NUMBER = {"result": [[{"document": as_contents(FIRST), "score": float("nan")}]]}
WRONG = {
    "slow": sleep,
    "dripping": drip,
    "dripping headers": drip_headers,
    "hanging up": hang_up,
    "breaking off": break_off,
    "500": 500,
    "503": 503,
    "400": 400,
    "a page": "<html>It works!</html>",
    "empty": "",
    "half an answer": '{"result": [[{"document"',
    "null": "null",
    "a list": "[[]]",
    "no result": '{"error": "index not loaded"}',
    "result null": '{"result": null}',
    "too few lists": '{"result": []}',
    "too many lists": '{"result": [[], []]}',
    "no list": '{"result": [{"a": 1}]}',
    "document null": '{"result": [[{"document": null, "score": 1}]]}',
    "document a number": '{"result": [[7]]}',
    "document without text": '{"result": [[{"document": {"id": "1"}, "score": 1}]]}',
    "score a text": '{"result": [[{"document": "x", "score": "high"}]]}',
    "score not a number": json.dumps(SCORE_IS_NO_NUMBER),
    "deep": "[" * 100_000,
}
SLOW = (sleep, drip, drip_headers)


def limits_for(fault, attempts):
    """Short only where time decides; then a machine that is slow may take more attempts."""
    return QUICK | {"attempts": attempts} if fault in SLOW else PATIENT


@pytest.mark.parametrize("fault", WRONG.values(), ids=WRONG)
def test_what_is_no_answer_is_a_fault_and_never_an_empty_one(client, fault):
    with Service(faults=[fault, ...]).running() as service:
        engine = client(service.url, limits=limits_for(fault, 5))
        with pytest.raises(EnvFault, match="the search service http"):
            within_a_minute(lambda: engine.search(["river"], 3))


PASSING = {name: fault for name, fault in WRONG.items() if fault != 400}  # 400 is not asked again


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_fault_that_passes_is_not_noticed(client, fault):
    with Service(faults=[fault]).running() as service:
        engine = client(service.url, limits=limits_for(fault, 50))
        assert within_a_minute(lambda: engine.search(["river"], 1)) == [[Hit(FIRST, 2.5)]]
        assert len(service.bodies) >= 2


@pytest.mark.parametrize("nobody", [half_open, dead])
def test_where_nobody_answers_opening_is_a_fault(client, nobody):
    with nobody() as url, pytest.raises(EnvFault, match="cannot be searched"):
        within_a_minute(lambda: client(url, limits=QUICK))


@pytest.mark.parametrize("nobody", [half_open, dead])
def test_a_service_that_dies_is_a_fault_at_the_next_search(client, nobody):
    with Service().running() as service:
        engine = client(service.url, limits=QUICK | {"attempts": 4})
        assert engine.search(["river"], 1) == [[Hit(FIRST, 2.5)]]
    with nobody(service.port), pytest.raises(EnvFault, match="cannot be searched"):
        within_a_minute(lambda: engine.search(["river"], 1))
    with Service().running(service.port):
        assert engine.search(["river"], 1) == [[Hit(FIRST, 2.5)]]


def test_a_search_ends_in_time_however_many_attempts_are_left(client):
    limits = PATIENT | {"timeout_s": 0.3, "attempt_timeout_s": 0.2, "attempts": 10_000}
    with Service(faults=[drip, ...]).running() as service:
        engine = client(service.url, limits=limits)
        with pytest.raises(EnvFault):
            within_a_minute(lambda: engine.search(["river"], 1))
        assert len(service.bodies) <= 10


def test_a_request_that_is_refused_is_not_made_again(client):
    with Service(faults=[422, ...]).running() as service:
        engine = client(service.url, limits=PATIENT | {"attempts": 5})
        with pytest.raises(EnvFault) as caught:
            engine.search(["river"], 1)
        assert not caught.value.retryable
        assert len(service.bodies) == 1


def test_a_failing_service_is_left_alone(client):
    limits = PATIENT | {"failures": 2, "rest_s": 3000}
    with Service(faults=[500, 500]).running() as service:
        engine = client(service.url, limits=limits)
        for problem in ("status 500", "2 times in a row and is left alone for [23]"):
            with pytest.raises(EnvFault, match=problem):
                engine.search(["river"], 1)
        assert len(service.bodies) == 2


def test_a_connection_that_the_server_closed_meanwhile_is_made_again(client):
    def answer_and_close(handler):
        handler.close_connection = True
        handler.send_response(200)
        data = json.dumps(found({"queries": ["x"], "topk": 1})).encode()
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    with Service(faults=[answer_and_close, ...]).running() as service:
        engine = client(service.url, limits=PATIENT | {"attempts": 1})
        for _ in range(3):
            assert engine.search(["river"], 1) == [[Hit(FIRST, 2.5)]]


def test_closing_ends_it(client):
    with Service().running() as service:
        engine = client(service.url)
        engine.search(["x"], 1)
        engine.close()
        with pytest.raises(ValueError, match="closed"):
            engine.search(["x"], 1)


# ---------------------------------------------------------------------------- batches and corpora


def test_searches_of_many_threads_go_out_together_and_come_back_apart(client):
    def answer(body):
        return {
            "result": [[{"document": f'"{query}"\nAbout {query}.'}] for query in body["queries"]]
        }

    limits = PATIENT | {"window_s": 0.1, "connections": 1}
    with Service(answer).running() as service, ThreadPoolExecutor(16) as pool:
        engine = client(service.url, limits=limits)
        words = [f"word{number}" for number in range(16)]
        results = list(pool.map(lambda word: engine.search([word], 1), words))
    assert [hits[0].passage.title for (hits,) in results] == words
    assert len(service.bodies) < 16


def test_many_queries_go_out_in_requests_of_the_most_that_is_allowed(client):
    limits = PATIENT | {"max_queries": 4, "connections": 1}
    with Service().running() as service:
        results = client(service.url, limits=limits).search([f"w{n}" for n in range(10)], 1)
    assert len(results) == 10
    assert sorted(len(body["queries"]) for body in service.bodies) == [2, 4, 4]


def test_the_digest_is_what_the_service_tells(client):
    with Service(version={"digest": "d1"}).running() as service:
        assert client(service.url).digest == "d1"
        assert client(service.url, digest="d1").digest == "d1"
        with pytest.raises(InvalidCorpus, match=r"expected to search the corpus d2; .* is d1"):
            client(service.url, digest="d2")
    with Service(version=404).running() as service:
        assert client(service.url).digest == "unknown"
        with pytest.raises(InvalidCorpus, match="is unknown"):
            client(service.url, digest="d2")


def test_a_service_that_changes_its_corpus_is_a_fault(client):
    def answer(body):
        return found(body) | {"digest": "d2"}

    with Service(answer, version={"digest": "d1"}).running() as service:
        engine = client(service.url)
        with pytest.raises(EnvFault, match="now searches the corpus d2, not d1"):
            engine.search(["x"], 1)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x", "http://", None, 7])
def test_what_is_no_url_is_refused(url):
    with pytest.raises((ValueError, TypeError), match="expected a URL"):
        HttpRetriever(url)


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"timeout": 3}, UnknownName),
        ({"timeout_s": 0}, ValueError),
        ({"timeout_s": "3"}, ValueError),
        ({"attempts": 0}, ValueError),
        ({"window_s": -1}, ValueError),
    ],
    ids=str,
)
def test_limits_out_of_range_are_refused(limits, error):
    with pytest.raises(error):
        HttpRetriever("http://127.0.0.1:1", limits=limits)


def test_it_gives_no_passages_by_id(client):
    with Service().running() as service, pytest.raises(Unsupported):
        client(service.url).passage("x")


def test_a_lone_surrogate_is_no_trouble(client):
    with Service().running() as service:
        assert len(client(service.url).search(["caf\ud800 x"], 1)[0]) == 1
    assert Passage("a", "b", "c") != service.bodies[0]
