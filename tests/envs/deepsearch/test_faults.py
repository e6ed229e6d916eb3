"""A search service that breaks is a fault of the world: no observation, no reward, no answer."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agentgym_envs.errors import EnvFault
from agentgym_envs.vector import TextVectorEnv

GOOD = {"result": [[{"document": {"contents": '"Sarn"\nA river.'}, "score": 1.5}]]}
SEARCH = "<search>rivers {}</search>"


@pytest.fixture
def service():
    """A service whose next answers can be said: ``service.answer = (status, value)``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status, value = server.answer
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answer = (200, GOOD)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def arguments(service, small):
    limits = {"attempts": 1, "failures": 100, "timeout_s": 5.0}
    url = f"http://127.0.0.1:{service.server_port}"
    return small | {"retriever": {"name": "http", "url": url, "limits": limits}}


BROKEN = [
    (500, b"no"),
    (200, b"no JSON"),
    (200, {"result": "no list"}),
    (200, {"result": []}),
    (200, {"result": [[3]]}),
    (200, []),
]


@pytest.mark.parametrize("answer", BROKEN, ids=str)
def test_a_broken_answer_is_a_fault_and_changes_nothing(make, service, arguments, answer):
    env = make(**arguments)
    env.reset(options={"task": "deepsearch/train/two-hops/0"})
    text, *_ = env.step(SEARCH.format(0))
    assert text == "<information>\nDoc 1 (Title: Sarn) A river.\n</information>"
    before = env.world.to_json()
    service.answer = answer
    with pytest.raises(EnvFault, match="search service"):
        env.step(SEARCH.format(1))
    assert env.world.to_json() == before


def test_in_a_vector_it_ends_its_episode_without_a_reward(service, arguments):
    env = TextVectorEnv("AgentGym/DeepSearch-v0", 2, **arguments)
    try:
        env.reset(seed=0)
        service.answer = (500, b"no")
        observations, rewards, terminated, truncated, infos = env.step(
            (SEARCH.format(0), "<answer>nobody</answer>")
        )
        assert rewards.tolist() == [0.0, 0.0]
        assert terminated.tolist() == [False, True]
        assert truncated.tolist() == [True, False]
        assert infos["end_reason"].tolist() == ["fault", "failure"]
        assert "search service" in infos["fault"].tolist()[0]
        assert "<information>" not in observations[0]
    finally:
        env.close()


def test_a_service_that_is_not_there_is_a_fault_of_the_reset(make, arguments, service):
    service.shutdown()
    service.server_close()
    limits = {"attempts": 1, "timeout_s": 0.5, "attempt_timeout_s": 0.5}
    env = make(**arguments | {"retriever": arguments["retriever"] | {"limits": limits}})
    with pytest.raises(EnvFault):
        env.reset()
