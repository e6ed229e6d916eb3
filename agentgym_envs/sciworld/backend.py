"""The server of simulators: one Java process for each Python process, started when it is needed.

A `Server` takes requests from any thread; those of different simulators are worked on at the same
time, also where they come in one message. No thread of its own reads the answers: of those who
wait, one reads the pipe and hands the others theirs, so that a lone caller is woken once and by
nobody but the pipe.

Every request has a deadline. A request that is late ends the server, because a simulator cannot be
stopped any other way; all its simulators end with it as faults, and the next `server()` starts
another one. After a fork the child has a server of its own; the pipes of its parent's are closed in
the child, so that the parent's server ends with the parent.
"""

from __future__ import annotations

import atexit
import collections
import itertools
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from io import FileIO
from typing import IO, cast

from agentgym_envs.errors import EnvFault
from agentgym_envs.sciworld.java_runtime import server_command
from agentgym_envs.sciworld.messages import Answer, ReplyBuffer, Request, encode_message

START_TIMEOUT_S = 120.0
"""How long the first answer of a server may take, in seconds."""

_CHUNK = 1 << 16
_MAX_COMPLAINT = 500
_MAX_NAMED = 200
_MAX_THREADS = 8
_NAMING_TIMEOUT_S = 1.0
_NO_SIMULATOR = 0


class SimulatorError(Exception):
    """The simulator refused a request; the text is its own."""


class _Message:
    """A message on its way: its answers once they are there, and what wakes whoever waits."""

    __slots__ = ("answers", "awake")

    def __init__(self) -> None:
        self.answers: list[Answer] | None = None
        self.awake = threading.Event()


class Begun:
    """A request that goes out with the next message of its thread; see `Server.begin`.

    Attributes:
        request: what was asked.
        answer: what came of it, once that is known.
        fault: why no answer will come; "" unless the message that it went out with was lost.
        is_wanted: False lets it be forgotten if it has not gone out yet.
    """

    __slots__ = ("answer", "fault", "is_wanted", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: Answer | None = None
        self.fault = ""
        self.is_wanted = True


class _Batch(threading.local):
    """What a thread has begun and not sent."""

    def __init__(self) -> None:
        self.begun: list[Begun] = []


class Server:
    """A Java process that hosts simulators. `close` ends it; so does the end of this process.

    Args:
        num_threads: how many simulators run at the same time.

    Raises:
        Unsupported: Java or the simulator is not installed.
        EnvFault: the process does not answer.
    """

    def __init__(self, num_threads: int | None = None) -> None:
        command = server_command(num_threads or min(_MAX_THREADS, os.cpu_count() or 1))
        with tempfile.TemporaryFile() as complaints:
            self._start(command, complaints)
            try:
                self.call(_NO_SIMULATOR, ["hello"], START_TIMEOUT_S)
            except EnvFault as error:
                complaints.seek(0)
                text = complaints.read(_MAX_COMPLAINT).decode(errors="replace").strip()
                raise EnvFault(f"{error}; {command[0]} says: {text or 'nothing'}") from error

    def _start(self, command: Sequence[str], complaints: IO[bytes]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            bufsize=0,  # a buffer has a lock, which a fork could leave taken
            cwd=tempfile.gettempdir(),
            start_new_session=True,  # Ctrl-C is the owner's to handle
        )
        self._pipe_in = cast(FileIO, self.process.stdin)
        self._pipe_out = cast(FileIO, self.process.stdout)
        os.set_blocking(self._pipe_in.fileno(), False)
        self._writable = _poll(self._pipe_in, select.POLLOUT)
        self._readable = _poll(self._pipe_out, select.POLLIN)
        self._buffer = ReplyBuffer()
        self._numbers = itertools.count(1)
        self._simulators = itertools.count(1)
        self._dropped: collections.deque[int] = collections.deque()
        self._batch = _Batch()
        self._waiting: dict[int, _Message] = {}
        self._lock = threading.Lock()  # of `_waiting`, and of writing
        self._reading = threading.Lock()
        self._owner_id = os.getpid()
        self._is_open = True

    @property
    def is_open(self) -> bool:
        """Whether it takes requests."""
        return self._is_open and self.process.poll() is None

    def new_simulator(self) -> int:
        """A number for a simulator; the server makes it when it loads its first task."""
        return next(self._simulators)

    def drop(self, simulator: int) -> None:
        """Let go of a simulator, with the next request: this may be called by a finalizer, which
        may run anywhere, also where a message is being written.
        """
        self._dropped.append(simulator)

    def call(self, simulator: int, texts: Sequence[str], timeout_s: float) -> list[str]:
        """Send a request and wait for its answer.

        Args:
            simulator: number of the simulator.
            texts: what to do, and its arguments.
            timeout_s: how long that may take, in seconds.

        Raises:
            SimulatorError: the simulator refused it.
            EnvFault: it was late, which ends the server; or the server has ended.
        """
        (answer,) = self.call_all([Request(simulator, texts)], timeout_s)
        return _told(answer)

    def begin(self, simulator: int, texts: Sequence[str]) -> Begun:
        """Note a request. It goes out, in one message with all others that this thread has begun,
        when one of them is finished.

        Args:
            simulator: number of the simulator.
            texts: what to do, and its arguments.
        """
        begun = Begun(Request(simulator, texts))
        self._batch.begun.append(begun)
        return begun

    def finish(self, begun: Begun, timeout_s: float) -> list[str]:
        """The answer to a request that this thread has begun.

        Raises:
            SimulatorError: the simulator refused it.
            EnvFault: it, or one that went out with it, was late, which ends the server; or the
                server has ended.
        """
        if begun.answer is None and not begun.fault:
            self._send_batch(begun, timeout_s)
        if begun.answer is None:
            raise EnvFault(begun.fault)
        return _told(begun.answer)

    def _send_batch(self, begun: Begun, timeout_s: float) -> None:
        """Send all that this thread has begun; each learns its answer, or why there is none."""
        batch = [other for other in self._batch.begun if other.is_wanted]
        self._batch.begun.clear()
        if begun not in batch:
            raise EnvFault("a request to SciWorld was finished by a thread that had not begun it")
        try:
            answers = self.call_all([other.request for other in batch], timeout_s)
        except BaseException as error:
            interrupted = f"a request to SciWorld went out with one that {error!r} interrupted"
            for other in batch:
                other.fault = str(error) if isinstance(error, EnvFault) else interrupted
            raise
        for other, answer in zip(batch, answers, strict=True):
            other.answer = answer

    def call_all(self, requests: Sequence[Request], timeout_s: float) -> list[Answer]:
        """Send requests in one message and wait for all answers.

        Args:
            requests: those of one simulator are done in their order, others at the same time.
            timeout_s: how long all of them together may take, in seconds.

        Returns:
            The answers, in the order of the requests.

        Raises:
            EnvFault: one was late, which ends the server; or the server has ended.
        """
        answers = self._exchange(requests, time.monotonic() + timeout_s)
        if answers is None:
            late = self._running() or [" ".join(texts) for _, texts in requests]
            self.close()
            names = " and ".join(repr(text[:_MAX_NAMED]) for text in late)
            raise EnvFault(
                f"SciWorld did not answer {names} within {timeout_s:g} s; "
                "its Java process was ended"
            )
        return answers

    def close(self) -> None:
        """End the process; requests on their way become faults. Closing twice does nothing."""
        if os.getpid() != self._owner_id:
            return
        self._is_open = False
        self.process.kill()
        self.process.wait()
        for message in self._all_waiting():
            message.awake.set()
        with self._reading, self._lock:  # who reads or writes there sees the end and lets go
            self._pipe_in.close()
            self._pipe_out.close()

    def abandon(self) -> None:
        """Let go of the pipes without a word to the process, which another process owns."""
        self._is_open = False
        self._lock = threading.Lock()  # another thread of the parent may have held it
        self._reading = threading.Lock()
        self._pipe_in.close()
        self._pipe_out.close()

    # ---------------------------------------------------------------------------------- inside

    def _exchange(self, requests: Sequence[Request], deadline: float) -> list[Answer] | None:
        """Send a message and wait for its answers; None if the time is over."""
        number, message = next(self._numbers), _Message()
        try:
            with self._lock:
                if not self._is_open:
                    raise EnvFault("the Java process of SciWorld has ended")
                self._waiting[number] = message
                whole = self._drops() + encode_message(number, requests)
                is_in_time = self._write(whole, deadline)
            while is_in_time and message.answers is None:
                if not self._is_open:
                    raise EnvFault("the Java process of SciWorld ended before it answered")
                is_in_time = self._receive(message, deadline)
        except EnvFault:
            self.close()
            raise
        finally:
            with self._lock:
                self._waiting.pop(number, None)
            self._wake_a_reader()
        return message.answers

    def _drops(self) -> bytes:
        """A message that lets go of what was dropped, if anything was; nobody waits for it."""
        drops = [Request(self._dropped.popleft(), ["drop"]) for _ in range(len(self._dropped))]
        return encode_message(next(self._numbers), drops) if drops else b""

    def _running(self) -> list[str]:
        """What simulators are doing now, as far as the process tells."""
        try:
            deadline = time.monotonic() + _NAMING_TIMEOUT_S
            answers = self._exchange([Request(_NO_SIMULATOR, ["running"])], deadline)
        except EnvFault:
            return []
        return answers[0].texts if answers else []

    def _write(self, message: bytes, deadline: float) -> bool:
        """Write a message; False if the process does not take it in time. The lock is held."""
        rest = memoryview(message)
        while rest:
            if not self._writable.poll(_milliseconds_until(deadline)):
                return False
            try:
                rest = rest[self._pipe_in.write(rest) or 0 :]
            except OSError as error:
                self._is_open = False
                raise EnvFault(f"the Java process of SciWorld has ended: {error}") from error
        return True

    def _receive(self, message: _Message, deadline: float) -> bool:
        """Wait for a message's answers, reading for all who wait if nobody else does.

        Returns:
            False if the time is over. If it is not, there may be answers, or the server has ended,
            or it is time to take over the reading.
        """
        if not self._reading.acquire(blocking=False):
            is_awake = message.awake.wait(max(0.0, deadline - time.monotonic()))
            message.awake.clear()
            return is_awake
        try:
            while message.answers is None and self._is_open:
                if not self._readable.poll(_milliseconds_until(deadline)):
                    return False
                self._hand_out(self._pipe_out.read(_CHUNK) or b"")
        finally:
            self._reading.release()
        return True

    def _hand_out(self, chunk: bytes) -> None:
        """Give the replies that `chunk` completes to those who wait for them."""
        if not chunk:
            self._is_open = False
            for message in self._all_waiting():
                message.awake.set()
        for reply in self._buffer.add(chunk):
            with self._lock:
                waiting = self._waiting.get(reply.message)
            if waiting is not None:
                waiting.answers = reply.answers
                waiting.awake.set()

    def _wake_a_reader(self) -> None:
        """Let one of those who wait look whether somebody reads."""
        if self._waiting and not self._reading.locked():
            for message in self._all_waiting():
                if message.answers is None:
                    message.awake.set()
                    return

    def _all_waiting(self) -> list[_Message]:
        with self._lock:
            return list(self._waiting.values())


def _told(answer: Answer) -> list[str]:
    if not answer.ok:
        raise SimulatorError("".join(answer.texts))
    return answer.texts


def _poll(pipe: FileIO, event: int) -> select.poll:
    poll = select.poll()
    poll.register(pipe.fileno(), event)
    return poll


def _milliseconds_until(deadline: float) -> float:
    return max(0.0, 1000 * (deadline - time.monotonic()))


class _Owner:
    """The server of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: Server | None = None

    def close(self) -> None:
        """End the server, if there is one."""
        if self.server is not None:
            self.server.close()
            self.server = None

    def after_fork(self) -> None:
        """In the child: forget the parent's server."""
        self.lock = threading.Lock()
        if self.server is not None:
            self.server.abandon()
            self.server = None


_owner = _Owner()
os.register_at_fork(after_in_child=_owner.after_fork)
atexit.register(_owner.close)


def server() -> Server:
    """The server of this process; starts it if there is none.

    Raises:
        Unsupported: Java or the simulator is not installed.
        EnvFault: it does not start.
    """
    with _owner.lock:
        if _owner.server is not None and not _owner.server.is_open:
            _owner.close()
        if _owner.server is None:
            _owner.server = Server()
        return _owner.server
