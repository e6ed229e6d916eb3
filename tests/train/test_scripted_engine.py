from __future__ import annotations

import pytest
from scripted_engine import ScriptedEngine, ScriptedReply

from agentgym_train.engines import Completion, Request
from agentgym_train.errors import ContextError, TokenError

STOP = 9


def test_replies_come_in_the_order_of_the_script() -> None:
    engine = ScriptedEngine([[1, 2, STOP], ScriptedReply([3], [-0.5])], stop_ids={STOP})
    engine.submit(Request(10, [4], seed=0, max_tokens=5))
    engine.submit(Request(20, [4, 5], seed=0, max_tokens=1))
    assert engine.poll() == [
        Completion(10, [1, 2, STOP], [-1.0, -1.0, -1.0], "stop", 0),
        Completion(20, [3], [-0.5], "length", 0),
    ]
    assert engine.poll() == []
    with pytest.raises(IndexError, match="no reply left for stream 30"):
        engine.submit(Request(30, [1], seed=0, max_tokens=1))


def test_a_function_sees_the_request_it_answers() -> None:
    engine = ScriptedEngine(lambda request: [request.seed, len(request.prompt_ids)])
    engine.submit(Request(0, [4, 4, 4], seed=7, max_tokens=2))
    (done,) = engine.poll()
    assert done.token_ids == [7, 3]
    assert [request.seed for request in engine.requests] == [7]


def test_replies_are_cut_at_the_stop_token_and_at_the_limit() -> None:
    script = ScriptedReply([1, STOP, 2], [-0.1, -0.2, -0.3])
    engine = ScriptedEngine([script, script], stop_ids={STOP})
    engine.submit(Request(0, [4], seed=0, max_tokens=3))
    engine.submit(Request(1, [4], seed=0, max_tokens=1))
    assert engine.poll() == [
        Completion(0, [1, STOP], [-0.1, -0.2], "stop", 0),
        Completion(1, [1], [-0.1], "length", 0),
    ]


def test_replies_can_overtake_one_another() -> None:
    polls = {0: 3, 1: 1, 2: 2}
    engine = ScriptedEngine(lambda request: ScriptedReply([1], polls=polls[request.stream]))
    for stream in range(3):
        engine.submit(Request(stream, [4], seed=0, max_tokens=1))
    assert [[done.stream for done in engine.poll()] for _ in range(4)] == [[1], [2], [0], []]


def test_a_script_keeps_the_contract_of_an_engine() -> None:
    engine = ScriptedEngine(lambda request: ScriptedReply([1], polls=2), max_context=6)
    engine.submit(Request(0, [4, 5], seed=0, max_tokens=1))
    with pytest.raises(TokenError, match="stream 0 is still sampling"):
        engine.submit(Request(0, [4, 5, 1], seed=0, max_tokens=1))
    with pytest.raises(RuntimeError, match="1 requests are in flight"):
        engine.load_weights(None, 1)
    assert engine.poll() == []
    assert len(engine.poll()) == 1
    with pytest.raises(TokenError, match=r"from position 2 on expected tokens \[1\], got \[8\]"):
        engine.submit(Request(0, [4, 5, 8], seed=0, max_tokens=1))
    with pytest.raises(ContextError, match="6 tokens and a reply of up to 1"):
        engine.submit(Request(0, [4, 5, 1, 2, 2, 2], seed=0, max_tokens=1))

    engine.load_weights(None, 4)
    engine.submit(Request(0, [4, 5, 1, 2], seed=0, max_tokens=1))
    assert [done.weights_version for _ in range(2) for done in engine.poll()] == [4]
    engine.release(0)
    engine.release(77)
    assert engine.released == [0, 77]
    engine.submit(Request(0, [8], seed=0, max_tokens=1))
