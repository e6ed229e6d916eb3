"""`Batcher`: gathers what many threads ask at about the same time into one request."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from agentgym_envs.deepsearch.passages import Hit

Answers = list[list[Hit]]
Ask = Callable[[Sequence[str], int, float], Answers]
"""Asks queries for `k` passages each, until a time of `time.monotonic`."""


class _Request(NamedTuple):
    queries: Sequence[str]
    k: int
    deadline: float
    answer: Future[Answers]


class Batcher:
    """Threads of its own take what is waiting, all for one `k`, and ask it together.

    The threads begin with the first request and do not keep the process alive. What a request
    raises is raised in everyone who had a part in it.

    Args:
        ask: asks a batch.
        window_s: how long a thread waits for more after the first request.
        max_queries: in a batch, unless one request alone has more.
        num_threads: how many batches may be under way at once.
    """

    def __init__(self, ask: Ask, *, window_s: float, max_queries: int, num_threads: int) -> None:
        self._ask = ask
        self._window_s = window_s
        self._max_queries = max_queries
        self._num_threads = num_threads
        self._threads: list[threading.Thread] = []
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._is_closed = False

    def submit(self, queries: Sequence[str], k: int, deadline: float) -> Future[Answers]:
        """Ask soon.

        Args:
            queries: what to ask.
            k: passages for each.
            deadline: time of `time.monotonic` after which nobody waits for the answer.
        """
        request = _Request(queries, k, deadline, Future())
        with self._changed:
            if self._is_closed:
                raise ValueError("this retriever has been closed")
            while len(self._threads) < self._num_threads:
                thread = threading.Thread(target=self._run, name="search", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._waiting.append(request)
            self._changed.notify_all()
        return request.answer

    def close(self) -> None:
        """End the threads; what waits is given up."""
        with self._changed:
            self._is_closed = True
            for request in self._waiting:
                request.answer.cancel()
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while batch := self._next_batch():
            running = [one for one in batch if one.answer.set_running_or_notify_cancel()]
            if running:
                self._answer(running)

    def _next_batch(self) -> list[_Request]:
        """What to ask next; nothing once closed."""
        batch: list[_Request] = []
        with self._changed:
            while not batch and not self._is_closed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._window_s:
                    self._changed.wait_for(self._is_full, self._window_s)
                batch = self._take()  # nothing if another thread was faster
        return batch

    def _is_full(self) -> bool:
        return self._is_closed or (
            sum(len(request.queries) for request in self._waiting) >= self._max_queries
        )

    def _take(self) -> list[_Request]:
        batch: list[_Request] = []
        left: deque[_Request] = deque()
        num_queries = 0
        for request in self._waiting:
            num_queries += len(request.queries)
            fits = not batch or (request.k == batch[0].k and num_queries <= self._max_queries)
            (batch if fits else left).append(request)
        self._waiting = left
        return batch

    def _answer(self, batch: Sequence[_Request]) -> None:
        queries = [query for request in batch for query in request.queries]
        try:
            answers = self._ask(queries, batch[0].k, max(request.deadline for request in batch))
        except Exception as error:  # whoever asked gets it
            for request in batch:
                request.answer.set_exception(error)
            return
        for request in batch:
            request.answer.set_result(answers[: len(request.queries)])
            answers = answers[len(request.queries) :]
