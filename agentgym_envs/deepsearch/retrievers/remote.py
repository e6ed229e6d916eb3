"""`Remote`: asks a search service so that its failures never look like "nothing was found".

Whatever a service does, a search ends within `RemoteLimits.timeout_s`, with an answer or with an
`EnvFault`: a fault is no reward, an empty answer would be one. Failed attempts are made again after
a pause that grows and varies, so that many processes do not come back at the same moment.
"""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.deepsearch.passages import Hit
from agentgym_envs.deepsearch.retrievers.base import check_search
from agentgym_envs.deepsearch.retrievers.batcher import Batcher
from agentgym_envs.deepsearch.retrievers.breaker import Breaker
from agentgym_envs.deepsearch.retrievers.terms import MAX_CHARACTERS, terms_of
from agentgym_envs.errors import EnvFault, UnknownName

AskOnce = Callable[[Sequence[str], int, float], list[list[Hit]]]
"""Asks queries for `k` passages each, within so many seconds.

Raises `EnvFault`, with ``retryable=False`` where asking again would not help.
"""

_NOT_SENT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")  # control, halves of characters


@dataclasses.dataclass(frozen=True)
class RemoteLimits:
    """How patient a client is.

    Attributes:
        timeout_s: for a search, all attempts and pauses together.
        attempt_timeout_s: for one attempt.
        attempts: how many are made.
        pause_s: after the first failed attempt; twice as long after each further one, times
            something between 0.5 and 1.5.
        window_s: how long a request waits for others to be asked together with it.
        max_queries: in one request.
        connections: requests under way at once.
        failures: attempts in a row that must fail before the service is left alone.
        rest_s: for how long it then is.
    """

    timeout_s: float = 30.0
    attempt_timeout_s: float = 10.0
    attempts: int = 3
    pause_s: float = 0.25
    window_s: float = 0.002
    max_queries: int = 64
    connections: int = 4
    failures: int = 6
    rest_s: float = 10.0

    def __post_init__(self) -> None:
        """Check all of them."""
        for name in ("timeout_s", "attempt_timeout_s"):
            if arguments.finite(name, getattr(self, name), least=0.0) == 0.0:
                raise ValueError(f"{name} must be more than 0")
        for name in ("pause_s", "window_s", "rest_s"):
            arguments.finite(name, getattr(self, name), least=0.0)
        for name in ("attempts", "max_queries", "connections", "failures"):
            arguments.whole_number(name, getattr(self, name), least=1)

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None) -> RemoteLimits:
        """Limits from JSON values; what is left out is the default.

        Raises:
            UnknownName, TypeError, ValueError: one is unknown or out of range.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in settings or {}:
            if name not in known:
                raise UnknownName("limit", name, known)
        return cls(**settings or {})


class Remote:
    """A service, asked in batches, again if it fails, and left alone if it goes on failing.

    Args:
        service: its name and address, for messages.
        ask: asks it once.
        limits: how patient to be.
    """

    def __init__(self, service: str, ask: AskOnce, limits: RemoteLimits) -> None:
        self._service = service
        self._ask_once = ask
        self._limits = limits
        self._random = random.Random()  # differs between processes, as it should
        self._breaker = Breaker(service, limits.failures, limits.rest_s)
        self._batcher = Batcher(
            self._ask,
            window_s=limits.window_s,
            max_queries=limits.max_queries,
            num_threads=limits.connections,
        )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_search(queries, k)
        deadline = time.monotonic() + self._limits.timeout_s
        sent = {place: text for place, query in enumerate(queries) if (text := sendable(query))}
        texts = list(sent.values())
        size = self._limits.max_queries
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        answers = [self._batcher.submit(batch, k, deadline) for batch in batches]
        found: list[list[Hit]] = []
        for answer in answers:
            try:
                found += answer.result(max(0.0, deadline - time.monotonic()))
            except (TimeoutError, CancelledError) as error:
                answer.cancel()
                raise EnvFault(
                    f"{self._service} has not answered within {self._limits.timeout_s:g} s"
                ) from error
        by_place = dict(zip(sent, found, strict=True))
        return [by_place.get(place, []) for place in range(len(queries))]

    def call(self, ask: Callable[[float], Any]) -> Any:
        """Ask something else, in the same way but alone.

        Args:
            ask: asks once, within so many seconds.

        Raises:
            EnvFault: the service fails.
        """
        return self._retry(ask, time.monotonic() + self._limits.timeout_s)

    def close(self) -> None:
        """End what is under way."""
        self._batcher.close()

    def _ask(self, queries: Sequence[str], k: int, deadline: float) -> list[list[Hit]]:
        def ask(timeout_s: float) -> list[list[Hit]]:
            answers = self._ask_once(queries, k, timeout_s)
            if len(answers) != len(queries):
                raise EnvFault(
                    f"{self._service} answers {len(queries)} queries with {len(answers)} lists"
                )
            return [hits[:k] for hits in answers]

        answers: list[list[Hit]] = self._retry(ask, deadline)
        return answers

    def _retry(self, ask: Callable[[float], Any], deadline: float) -> Any:
        limits = self._limits
        pause_s = limits.pause_s
        problem = "there was no time left to ask"
        for attempt in range(limits.attempts):
            if attempt:
                left = deadline - time.monotonic()
                time.sleep(max(0.0, min(left, pause_s * self._random.uniform(0.5, 1.5))))
                pause_s *= 2
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._breaker.check()
            try:
                answer = ask(min(left, limits.attempt_timeout_s))
            except EnvFault as error:
                if not error.retryable:
                    self._breaker.succeeded()  # it lives
                    raise EnvFault(
                        f"{self._service} cannot be searched: {error}", retryable=False
                    ) from error
                problem = str(error)
                self._breaker.failed(problem)
            else:
                self._breaker.succeeded()
                return answer
        raise EnvFault(f"{self._service} cannot be searched: {problem}")


def fault(error: Exception, status: object) -> EnvFault:
    """The fault that an exception of a service's client is.

    Args:
        error: the exception.
        status: the HTTP status that was answered; anything else if there was no answer.
    """
    answered = isinstance(status, int) and 400 <= status < 500
    return EnvFault(
        f"{type(error).__name__}: {error!s:.300}",
        retryable=not answered or status in (408, 425, 429),
    )


def sendable(query: str) -> str:
    """What a service is asked for: one line of a bounded length; "" if there is no word in it."""
    text = " ".join(_NOT_SENT.sub(" ", query[:MAX_CHARACTERS]).split())
    return text if terms_of(text) else ""
