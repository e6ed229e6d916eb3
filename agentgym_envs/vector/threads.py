"""Thread workers: for worlds that wait, on a network, a browser or another process.

Any idle thread takes the next request, so a slow environment delays no other. A thread that takes
one wakes the next if there are more: worlds that wait run side by side, and those that answer at
once are worked off by one thread, without a change of threads for each. A request that runs
past its time limit is given up: its environment and its thread are abandoned where they are,
because neither can be stopped from outside, and fresh ones take their places. Nobody touches an
abandoned environment again but its own thread, which closes it if it ever comes back; its late
answer is thrown away. Threads are daemons, so one that hangs for good does not keep the process
alive.

Time limits are kept by whoever waits in `collect`; there is no watchdog thread.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from typing import Any, NamedTuple

from agentgym_envs.errors import WorkerFault
from agentgym_envs.vector.base import (
    Failure,
    Request,
    Slot,
    WorkerLimits,
    interrupted,
    require_process,
)
from agentgym_envs.vector.making import EnvFactory

_DEFAULT_MAX_THREADS = 64
_CLOSE_GRACE_S = 5.0


class _Running(NamedTuple):
    request: Request
    slot: Slot
    limit_s: float
    deadline: float


class ThreadWorkers:
    """A pool of at most `limits.max_threads` threads, started when needed; see `WorkerPool`.

    Args:
        factory: builds an environment; called from the threads.
        num_envs: number of environments.
        limits: time limits, and how many threads; by default one an environment, 64 at most.
            Abandoned threads do not count.
    """

    def __init__(self, factory: EnvFactory, num_envs: int, limits: WorkerLimits) -> None:
        limits.require_only(
            "threads share one process", "step_timeout_s", "reset_timeout_s", "max_threads"
        )
        self.limits = limits
        self._factory = factory
        self._process_id = os.getpid()
        self._max_threads = limits.max_threads or min(num_envs, _DEFAULT_MAX_THREADS)
        self._slots = [Slot(index, factory) for index in range(num_envs)]
        self._threads: set[threading.Thread] = set()
        self._queue: deque[Request] = deque()
        self._running: dict[threading.Thread, _Running] = {}
        self._outcomes: list[tuple[Request, Any]] = []
        self._interrupt: BaseException | None = None
        self._next_check = math.inf  # no deadline comes earlier
        self._is_waking = False  # a thread has been woken, and has not taken anything yet
        self._closed = False
        self._lock = threading.Lock()  # guards everything above; Ctrl-C cannot leave it locked,
        self._work = threading.Condition(self._lock)  # as it can a condition, which is Python code
        self._done = threading.Condition(self._lock)

    def submit(self, request: Request) -> None:
        require_process(self._process_id)
        with self._lock:
            self._queue.append(request)
            self._wake_thread_if_needed()

    def collect(self, timeout: float | None) -> list[tuple[Request, Any]]:
        require_process(self._process_id)
        end = math.inf if timeout is None else time.monotonic() + timeout
        with self._lock:
            while True:
                now = time.monotonic()
                if now >= self._next_check:
                    self._give_up_overdue(now)
                if self._interrupt is not None:
                    interrupt, self._interrupt = self._interrupt, None
                    raise interrupt
                pending = self._queue or self._running
                if self._outcomes or not pending or now >= end:
                    outcomes, self._outcomes = self._outcomes, []
                    return outcomes
                self._wake_thread_if_needed()  # Ctrl-C may have come between
                time_s = min(end, self._next_check) - now
                self._done.wait(min(time_s, threading.TIMEOUT_MAX))

    def pending(self) -> set[int]:
        with self._lock:
            running = {job.request.index for job in self._running.values()}
            queued = {request.index for request in self._queue}
            return running | queued | {request.index for request, _ in self._outcomes}

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._queue.clear()
            self._work.notify_all()
            threads = list(self._threads)
        end = time.monotonic() + _CLOSE_GRACE_S
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        with self._lock:
            in_use = [job.slot for job in self._running.values()]
            self._threads.clear()  # a thread that still works closes its environment itself
        for slot in self._slots:
            if slot not in in_use:
                slot.close()

    def _wake_thread_if_needed(self) -> None:
        """See to it that a thread comes for what is in the queue; the lock is held."""
        if self._is_waking or not self._queue:
            return
        if len(self._running) < len(self._threads):
            self._work.notify()
        elif len(self._threads) < self._max_threads:
            thread = threading.Thread(target=self._serve, name="agentgym-worker", daemon=True)
            self._threads.add(thread)
            thread.start()
        else:
            return
        self._is_waking = True

    def _serve(self) -> None:
        """What each thread does until the pool is closed or gives up on it."""
        thread = threading.current_thread()
        while True:
            with self._lock:
                job = self._take(thread)
            if job is None:
                return
            interrupt = None
            try:
                outcome = job.slot.run(job.request)
            except BaseException as error:  # SystemExit too: it ends the episode, not this thread
                outcome = interrupted(error)
                if isinstance(error, KeyboardInterrupt):
                    interrupt = error  # of whoever waits in collect()
            with self._lock:
                given_up = thread not in self._threads
                if not given_up:
                    del self._running[thread]
                    self._outcomes.append((job.request, outcome))
                    self._interrupt = self._interrupt or interrupt
                    self._done.notify()
            if given_up:
                job.slot.close()
                return

    def _take(self, thread: threading.Thread) -> _Running | None:
        """The next job, after waiting for one; None if the pool is closed. The lock is held."""
        while not self._queue and not self._closed:
            self._is_waking = False
            self._work.wait()
        self._is_waking = False
        if self._closed:
            return None
        request = self._queue.popleft()
        slot = self._slots[request.index]
        limit_s = self.limits.timeout_s(request, builds_env=slot.is_empty)
        job = _Running(request, slot, limit_s, time.monotonic() + limit_s)
        self._running[thread] = job
        if job.deadline < self._next_check:
            self._next_check = job.deadline
            self._done.notify()  # whoever waits there wakes up too late for it otherwise
        self._wake_thread_if_needed()
        return job

    def _give_up_overdue(self, now: float) -> None:
        """Abandon what runs past its limit; the lock is held."""
        for thread, job in list(self._running.items()):
            if now < job.deadline:
                continue
            del self._running[thread]
            self._threads.remove(thread)
            self._slots[job.request.index] = Slot(job.request.index, self._factory)
            fault = WorkerFault(
                f"{job.request.method}() took longer than {job.limit_s} s; the worker was replaced"
            )
            self._outcomes.append((job.request, Failure(fault)))
            self._wake_thread_if_needed()
        self._next_check = min((job.deadline for job in self._running.values()), default=math.inf)
