import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.batcher import Batcher
from agentgym_envs.deepsearch.retrievers.breaker import Breaker
from agentgym_envs.errors import EnvFault

FOREVER = float("inf")


def answer_to(query, k):
    return [Hit(Passage(f"{query}/{number}", query, ""), 1.0) for number in range(k)]


class Engine:
    """Answers once it is let; remembers the batches."""

    def __init__(self):
        self.batches = []
        self.may_answer = threading.Event()
        self.is_asked = threading.Event()

    def ask(self, queries, k, deadline):
        self.batches.append((list(queries), k))
        self.is_asked.set()
        assert self.may_answer.wait(60)
        if "break" in queries:
            raise EnvFault("broken")
        return [answer_to(query, k) for query in queries]


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def batcher(engine):
    batcher = Batcher(engine.ask, window_s=0.0, max_queries=4, num_threads=1)
    yield batcher
    engine.may_answer.set()
    batcher.close()


def test_what_waits_meanwhile_is_asked_together_up_to_the_most_and_for_one_k(engine, batcher):
    first = batcher.submit(["a"], 2, FOREVER)
    assert engine.is_asked.wait(60)
    others = [batcher.submit([name], 2, FOREVER) for name in "bcdef"]
    other_k = batcher.submit(["g"], 3, FOREVER)
    engine.may_answer.set()
    assert first.result(60) == [answer_to("a", 2)]
    assert [other.result(60) for other in others] == [[answer_to(name, 2)] for name in "bcdef"]
    assert other_k.result(60) == [answer_to("g", 3)]
    assert engine.batches == [
        (["a"], 2),
        (["b", "c", "d", "e"], 2),
        (["f"], 2),
        (["g"], 3),
    ]


def test_a_request_that_is_larger_than_a_batch_goes_alone(engine, batcher):
    engine.may_answer.set()
    assert len(batcher.submit(list("abcdefg"), 1, FOREVER).result(60)) == 7
    assert len(engine.batches[0][0]) == 7


def test_a_fault_reaches_all_who_had_a_part_in_it_and_nobody_else(engine, batcher):
    first = batcher.submit(["a"], 1, FOREVER)
    assert engine.is_asked.wait(60)
    shared = [batcher.submit([name], 1, FOREVER) for name in ("break", "b")]
    later = batcher.submit(["c"], 2, FOREVER)
    engine.may_answer.set()
    assert first.result(60)
    for one in shared:
        with pytest.raises(EnvFault, match="broken"):
            one.result(60)
    assert later.result(60)


def test_what_nobody_waits_for_any_more_is_not_asked(engine, batcher):
    first = batcher.submit(["a"], 1, FOREVER)
    assert engine.is_asked.wait(60)
    given_up, wanted = (batcher.submit([name], 1, FOREVER) for name in "bc")
    assert given_up.cancel()
    engine.may_answer.set()
    assert first.result(60)
    assert wanted.result(60)
    assert engine.batches[1] == (["c"], 1)


def test_a_window_gathers_what_comes_soon(engine):
    engine.may_answer.set()
    batcher = Batcher(engine.ask, window_s=60.0, max_queries=3, num_threads=1)
    answers = [batcher.submit([name], 1, FOREVER) for name in "abc"]  # the third fills it
    assert [answer.result(30) for answer in answers] == [[answer_to(name, 1)] for name in "abc"]
    assert engine.batches == [(["a", "b", "c"], 1)]
    batcher.close()


def test_many_threads_all_get_their_own_answers():
    def ask(queries, k, deadline):
        return [answer_to(query, k) for query in queries]

    batcher = Batcher(ask, window_s=0.0, max_queries=5, num_threads=3)

    def search(number):
        return batcher.submit([f"q{number}"], number % 3 + 1, FOREVER).result(60)

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(search, range(500)))
    assert found == [[answer_to(f"q{number}", number % 3 + 1)] for number in range(500)]
    batcher.close()


def test_a_closed_batcher_takes_nothing(batcher):
    batcher.close()
    with pytest.raises(ValueError, match="closed"):
        batcher.submit(["a"], 1, FOREVER)


def test_a_breaker_opens_after_failures_in_a_row_and_lets_one_try_after_the_pause():
    now = [0.0]
    breaker = Breaker("the service", 2, 10.0, lambda: now[0])
    breaker.failed("one")
    breaker.succeeded()
    breaker.failed("two")
    breaker.check()
    breaker.failed("three")
    with pytest.raises(EnvFault, match=r"the service has failed 2 times .* 10.0 s more; .*three"):
        breaker.check()
    now[0] = 10.0
    breaker.check()  # this one may try
    with pytest.raises(EnvFault, match=r"10\.0 s more"):
        breaker.check()
    breaker.failed("four")
    now[0] = 19.0
    with pytest.raises(EnvFault, match=r"3 times .* 1\.0 s more; .*four"):
        breaker.check()
    now[0] = 20.0
    breaker.check()
    breaker.succeeded()
    breaker.check()
    breaker.check()
