"""`Breaker`: leaves a service alone for a while when it has failed several times in a row."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from agentgym_envs.errors import EnvFault


class Breaker:
    """Counts failures in a row; from `most` on, nothing is asked for `pause_s` seconds.

    After the pause one caller may try; its success ends the matter, its failure begins the next
    pause. May be used by many threads.

    Args:
        service: whom it guards, for messages.
        most: failures in a row that begin a pause.
        pause_s: how long it is.
        clock: gives seconds.
    """

    def __init__(
        self,
        service: str,
        most: int,
        pause_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._most = most
        self._pause_s = pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._last = ""
        self._resumes_at = 0.0

    def check(self) -> None:
        """Say whether the service may be asked now; a success or failure must be told later.

        Raises:
            EnvFault: it may not.
        """
        with self._lock:
            if self._failures < self._most:
                return
            left = self._resumes_at - self._clock()
            if left > 0:
                raise EnvFault(
                    f"{self._service} has failed {self._failures} times in a row and is left "
                    f"alone for {left:.1f} s more; the last time: {self._last}"
                )
            self._resumes_at = self._clock() + self._pause_s

    def succeeded(self) -> None:
        """The service has answered."""
        with self._lock:
            self._failures = 0

    def failed(self, why: str) -> None:
        """The service has not answered, or answered nonsense."""
        with self._lock:
            self._failures += 1
            self._last = why
            if self._failures >= self._most:
                self._resumes_at = self._clock() + self._pause_s
