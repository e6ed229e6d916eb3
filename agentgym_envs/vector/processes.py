"""Process workers: for worlds that compute much, crash, leak, or keep Python's lock to themselves.

One process an environment. A world that hangs, dies or eats memory takes nothing with it: its
process is killed and replaced, and the others notice nothing. What crosses the border is pickled
once each way; text is cheap to pickle, and there is no shared memory to go stale.

Answers are read and deadlines kept by whoever waits in `collect`; there is no thread. Sending never
blocks either: what does not fit into a socket is sent while waiting.

Left out: several environments in one process. They would share its fate.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import pickle
import select
import socket
import time
from typing import Any, ClassVar

import cloudpickle  # type: ignore[import-untyped]

from agentgym_envs.errors import Unsupported, WorkerFault
from agentgym_envs.vector.base import (
    Failure,
    Request,
    WorkerLimits,
    interrupted,
    require_process,
)
from agentgym_envs.vector.launcher import Launcher
from agentgym_envs.vector.making import EnvFactory
from agentgym_envs.vector.wire import Receiver, connection, encode

_TRANSFER_S = 10.0  # a worker that goes on sending is not hung
_LONGEST_WAIT_MS = 1 << 30  # what poll() takes


class _Worker:
    """A worker process, seen from the caller's.

    Args:
        index: which environment it runs.
        serial: what the launcher calls it.
        sock: the connection to it; does not block.
    """

    def __init__(self, index: int, serial: int, sock: socket.socket) -> None:
        self.index = index
        self.serial = serial
        self.sock = sock
        self.receiver = Receiver(sock)
        self.unsent = bytearray()
        self.has_env = False
        self.pending: Request | None = None
        self.number = 0  # of the pending request
        self.limit_s = self.deadline = math.inf


class ProcessWorkers:
    """A pool of processes; see `WorkerPool`. `ForkedWorkers` and `SpawnedWorkers` are its kinds.

    Args:
        factory: makes an environment; cloudpickle must be able to pickle it.
        num_envs: number of environments.
        limits: of time and memory.

    Raises:
        TypeError: `factory` cannot be pickled.
        Unsupported: not on this system.
        ValueError: a limit that processes cannot keep.
    """

    method: ClassVar[str]

    def __init__(self, factory: EnvFactory, num_envs: int, limits: WorkerLimits) -> None:
        _check_system(limits)
        self.limits = limits
        self._factory = _pickled(factory)
        self._process_id = os.getpid()
        self._workers: list[_Worker | None] = [None] * num_envs
        self._by_fd: dict[int, _Worker] = {}
        self._poll = select.poll()
        self._serials = itertools.count()
        self._lost: dict[int, WorkerFault] = {}  # of workers that died between two requests
        self._outcomes: list[tuple[Request, Any]] = []
        self._busy: dict[int, _Worker] = {}  # by index
        self._next_check = math.inf  # no deadline comes earlier
        self._launcher = Launcher(self.method, self._factory, limits.max_memory_mb)
        try:
            for index in range(num_envs):
                self._start(index)
        except BaseException:
            self.close()
            raise

    def submit(self, request: Request) -> None:
        require_process(self._process_id)
        lost = self._lost.pop(request.index, None)
        if lost is not None and not request.begins_anew:
            self._outcomes.append((request, Failure(lost)))
            return
        try:
            worker = self._worker_for(request)
            worker.number = (worker.number + 1) & 0xFFFFFFFF
            message = encode(worker.number, (request.method, request.args, request.kwargs))
        except OSError as error:
            fault = WorkerFault(f"no worker process could be started: {error}")
            self._outcomes.append((request, Failure(fault)))
            return
        except Exception as error:  # pickle raises all kinds
            mistake = TypeError(f"the arguments of {request.method}() cannot be sent: {error}")
            self._outcomes.append((request, Failure(mistake)))
            return
        try:
            worker.limit_s = self.limits.timeout_s(request, builds_env=not worker.has_env)
            worker.deadline = time.monotonic() + worker.limit_s
            self._next_check = min(self._next_check, worker.deadline)
            worker.pending = request
            self._busy[request.index] = worker
            self._send(worker, message)
        except BaseException as error:  # Ctrl-C: nobody knows how much of it was sent
            self._replace(worker, str(interrupted(error).error))
            raise

    def collect(self, timeout: float | None) -> list[tuple[Request, Any]]:
        require_process(self._process_id)
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            for fd, event in self._poll.poll(self._longest_wait_ms(end)):
                self._attend(self._by_fd[fd], event)
            now = time.monotonic()
            if now >= self._next_check:
                self._end_overdue(now)
            if self._outcomes or not self._busy or now >= end:
                outcomes, self._outcomes = self._outcomes, []
                return outcomes

    def pending(self) -> set[int]:
        return self._busy.keys() | {request.index for request, _ in self._outcomes}

    def close(self) -> None:
        for worker in self._by_fd.values():
            worker.sock.close()
        self._by_fd.clear()
        self._launcher.close()

    # --------------------------------------------------------------------------------- messages

    def _longest_wait_ms(self, end: float) -> int:
        if self._outcomes or not self._busy:
            return 0
        time_s = min(end, self._next_check) - time.monotonic()
        return math.ceil(min(max(0.0, time_s) * 1000, _LONGEST_WAIT_MS))

    def _send(self, worker: _Worker, message: bytes) -> None:
        """Send what the socket takes; the rest follows when it takes more."""
        worker.unsent += message
        try:
            sent = worker.sock.send(worker.unsent)
        except BlockingIOError:
            sent = 0
        except OSError:  # it is dead, which shows when its socket is read
            sent = len(worker.unsent)
        del worker.unsent[:sent]
        if worker.unsent:
            self._poll.modify(worker.sock, select.POLLIN | select.POLLOUT)

    def _attend(self, worker: _Worker, event: int) -> None:
        """Do what a socket is ready for."""
        try:
            if event & select.POLLOUT:
                self._poll.modify(worker.sock, select.POLLIN)
                self._send(worker, b"")
            if event & ~select.POLLOUT:
                self._receive(worker)
        except (EOFError, ConnectionError):
            self._replace(worker, None)
        except ValueError as error:
            self._replace(worker, f"the worker process answered nonsense: {error}")
        except BaseException as error:
            self._replace(worker, str(interrupted(error).error))
            raise

    def _receive(self, worker: _Worker) -> None:
        message = worker.receiver.receive()
        if message is None:
            worker.deadline = max(worker.deadline, time.monotonic() + _TRANSFER_S)
            return
        number, body = message
        request = worker.pending
        if request is None or number != worker.number:
            raise ValueError("nobody had asked for it")
        try:
            outcome = pickle.loads(body)
        except Exception as error:  # pickle raises all kinds
            if request.method in ("reset", "step"):
                raise ValueError(f"{type(error).__name__}: {error}") from error
            outcome = Failure(error)
        worker.has_env = not (isinstance(outcome, Failure) and outcome.is_fault)
        worker.deadline = math.inf
        del self._busy[worker.index]  # in this order Ctrl-C leaves nothing to wait for in vain
        worker.pending = None
        self._outcomes.append((request, outcome))

    # -------------------------------------------------------------------------------- processes

    def _start(self, index: int) -> _Worker:
        ours, theirs = connection()
        ours.setblocking(False)
        worker = _Worker(index, next(self._serials), ours)
        try:
            with theirs:
                self._launcher.start(worker.serial, theirs)
            self._workers[index] = self._by_fd[ours.fileno()] = worker
            self._poll.register(ours, select.POLLIN)
            self._send(worker, encode(index, self._factory))
        except BaseException:
            self._forget(worker)  # it notices, and ends
            raise
        return worker

    def _forget(self, worker: _Worker) -> None:
        self._by_fd.pop(worker.sock.fileno(), None)
        self._workers[worker.index] = None
        with contextlib.suppress(KeyError):
            self._poll.unregister(worker.sock)
        worker.sock.close()

    def _worker_for(self, request: Request) -> _Worker:
        worker = self._workers[request.index]
        if worker is not None and request.begins_anew and self._has_died(worker):
            self._replace(worker, None)
            self._lost.pop(request.index, None)  # nothing is: the episode was to end anyway
            worker = None
        return worker or self._start(request.index)

    def _has_died(self, worker: _Worker) -> bool:
        try:
            return not (
                worker.sock.recv(1, socket.MSG_PEEK) and self._launcher.holds(worker.serial)
            )
        except BlockingIOError:
            return not self._launcher.holds(worker.serial)
        except OSError:
            return True

    def _end_overdue(self, now: float) -> None:
        for worker in list(self._by_fd.values()):
            if worker.deadline <= now:
                assert worker.pending is not None
                self._replace(
                    worker, f"{worker.pending.method}() took longer than {worker.limit_s} s"
                )
        self._next_check = min((each.deadline for each in self._by_fd.values()), default=math.inf)

    def _replace(self, worker: _Worker, what_broke: str | None) -> None:
        """End a process; the next request to its environment starts another.

        Args:
            worker: which.
            what_broke: the fault; None if the process ended by itself.
        """
        ending = "ended"
        try:
            self._forget(worker)
            ending = self._launcher.end(worker.serial)
        finally:  # Ctrl-C must not lose the request
            what_broke = what_broke or f"the worker process {ending}"
            fault = WorkerFault(f"{what_broke}; the worker was replaced")
            if worker.pending is not None:
                self._busy.pop(worker.index, None)
                self._outcomes.append((worker.pending, Failure(fault)))
            elif worker.has_env:
                self._lost[worker.index] = fault


class ForkedWorkers(ProcessWorkers):
    """Processes forked from one that has imported the environments: started in milliseconds."""

    method = "forkserver"


class SpawnedWorkers(ProcessWorkers):
    """Processes that each begin as a fresh interpreter: for libraries that cannot be forked."""

    method = "spawn"


def _check_system(limits: WorkerLimits) -> None:
    if not hasattr(socket, "send_fds") or not hasattr(os, "posix_spawn"):
        raise Unsupported("process workers need Linux or macOS; use workers='threads'")
    if limits.max_memory_mb is not None and not os.path.exists("/proc/self/statm"):
        raise Unsupported("max_memory_mb needs Linux, where /proc tells what a process uses")
    limits.require_only(
        "process workers are one process an environment",
        "step_timeout_s",
        "reset_timeout_s",
        "max_memory_mb",
    )


def _pickled(factory: EnvFactory) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(factory.portable())
    except Exception as error:  # pickle raises all kinds
        raise TypeError(
            "process workers need an environment that another process can make: an id, a spec, or "
            f"a function, with arguments and wrappers that can be pickled; {error}"
        ) from error
    return pickled
