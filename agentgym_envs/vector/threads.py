"""Thread workers: for worlds that wait, on a network, a browser or another process.

Any idle thread takes the next request, so a slow environment delays no other. A request that runs
past its time limit is given up: its environment and its thread are abandoned where they are,
because neither can be stopped from outside, and fresh ones take their places. Nobody touches an
abandoned environment again but its own thread, which closes it if it ever comes back; its late
answer is thrown away. Threads are daemons, so one that hangs for good does not keep the process
alive.

Time limits are kept by whoever waits in `collect`; there is no watchdog thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, NamedTuple

from agentgym_envs.errors import WorkerFault
from agentgym_envs.vector.base import (
    EnvFactory,
    Failure,
    Request,
    Slot,
    WorkerLimits,
    interrupted,
)

_DEFAULT_MAX_THREADS = 64
_CLOSE_GRACE_S = 5.0


class _Running(NamedTuple):
    request: Request
    slot: Slot
    started: float


class ThreadWorkers:
    """A pool of at most `limits.max_threads` threads, started when needed; see `WorkerPool`.

    Args:
        factory: builds an environment; called from the threads.
        num_envs: number of environments.
        limits: time limits, and how many threads; by default one an environment, 64 at most.
            Abandoned threads do not count.
    """

    def __init__(self, factory: EnvFactory, num_envs: int, limits: WorkerLimits) -> None:
        self._factory = factory
        self._limits = limits
        self._max_threads = limits.max_threads or min(num_envs, _DEFAULT_MAX_THREADS)
        self._slots = [Slot(index, factory) for index in range(num_envs)]
        self._threads: set[threading.Thread] = set()
        self._queue: deque[Request] = deque()
        self._running: dict[threading.Thread, _Running] = {}
        self._outcomes: list[tuple[Request, Any]] = []
        self._interrupt: BaseException | None = None
        self._closed = False
        lock = threading.Lock()  # guards everything above
        self._work = threading.Condition(lock)
        self._done = threading.Condition(lock)

    def submit(self, request: Request) -> None:
        with self._work:
            self._queue.append(request)
            self._start_thread_if_needed()
            self._work.notify()

    def collect(self, timeout: float | None) -> list[tuple[Request, Any]]:
        end = None if timeout is None else time.monotonic() + timeout
        with self._done:
            while True:
                now = time.monotonic()
                self._give_up_overdue(now)
                if self._interrupt is not None:
                    interrupt, self._interrupt = self._interrupt, None
                    raise interrupt
                pending = self._queue or self._running
                if self._outcomes or not pending or (end is not None and now >= end):
                    outcomes, self._outcomes = self._outcomes, []
                    return outcomes
                self._done.wait(self._longest_wait(now, end))

    def close(self) -> None:
        with self._work:
            self._closed = True
            self._queue.clear()
            self._work.notify_all()
            threads = list(self._threads)
        end = time.monotonic() + _CLOSE_GRACE_S
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        with self._work:
            in_use = [job.slot for job in self._running.values()]
            self._threads.clear()  # a thread that still works closes its environment itself
        for slot in self._slots:
            if slot not in in_use:
                slot.close()

    def _start_thread_if_needed(self) -> None:
        """Start a thread if there is more work than idle threads; the lock is held."""
        idle = len(self._threads) - len(self._running)
        if len(self._queue) > idle and len(self._threads) < self._max_threads:
            thread = threading.Thread(target=self._serve, name="agentgym-worker", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _serve(self) -> None:
        """What each thread does until the pool is closed or gives up on it."""
        thread = threading.current_thread()
        while True:
            with self._work:
                while not self._queue and not self._closed:
                    self._work.wait()
                if self._closed:
                    return
                request = self._queue.popleft()
                slot = self._slots[request.index]
                self._running[thread] = _Running(request, slot, time.monotonic())
            interrupt = None
            try:
                outcome = slot.run(request)
            except BaseException as error:  # belongs to the thread that waits in collect()
                interrupt, outcome = error, interrupted(error)
            with self._done:
                given_up = thread not in self._threads
                if not given_up:
                    del self._running[thread]
                    self._outcomes.append((request, outcome))
                    self._interrupt = self._interrupt or interrupt
                    self._done.notify()
            if given_up:
                slot.close()
                return

    def _give_up_overdue(self, now: float) -> None:
        """Abandon what runs past its limit; the lock is held."""
        for thread, job in list(self._running.items()):
            limit = self._limits.timeout_s(job.request)
            if limit is None or now - job.started < limit:
                continue
            del self._running[thread]
            self._threads.remove(thread)
            self._slots[job.request.index] = Slot(job.request.index, self._factory)
            fault = WorkerFault(
                f"{job.request.method}() took longer than {limit} s; the worker was replaced"
            )
            self._outcomes.append((job.request, Failure(fault)))
            self._start_thread_if_needed()

    def _longest_wait(self, now: float, end: float | None) -> float | None:
        """Seconds until something may be overdue or `end` comes; None if neither can."""
        times = [] if end is None else [end - now]
        for job in self._running.values():
            limit = self._limits.timeout_s(job.request)
            if limit is not None:
                times.append(job.started + limit - now)
        # A queued request may start at any moment from now on.
        limits = (self._limits.timeout_s(request) for request in self._queue)
        times += [limit for limit in limits if limit is not None]
        return max(0.0, min(times)) if times else None
