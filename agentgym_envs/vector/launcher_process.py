"""What runs in the launcher's process: starting workers, watching their memory, ending them.

It forks them from itself, after importing what they need (``forkserver``), or starts a fresh
interpreter for each (``spawn``). As it is their parent, no process id can be reused before it has
waited for it. It ends when the caller closes the connection or dies, and no worker outlives it: it
kills those that do not end by themselves, and if it is killed itself, the kernel does so. Each
worker leads a process group, so that what its environment has started ends with it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import select
import signal
import socket
import sys
import warnings
from pathlib import Path

from agentgym_envs.vector import worker_process
from agentgym_envs.vector.launcher import (
    CLOSE,
    CLOSE_GRACE_S,
    COMMAND,
    END,
    LENGTH,
    NEVER_STARTED,
    START,
    STATUS,
    TOO_LARGE,
    python_command,
)

_logger = logging.getLogger(__name__)

_ORPHAN_GRACE_S = 1.0
_OWNER_CHECK_S = 1.0
_MEMORY_CHECK_S = 0.1
_MIB = 1 << 20


def main(fd: int, owner: int, method: str, max_memory_mb: float | None) -> None:
    """Carry out commands until the owner closes the connection or dies.

    Args:
        fd: a stream socket; `Launcher` is at the other end.
        owner: id of the process there.
        method: as for `Launcher`.
        max_memory_mb: as for `Launcher`.
    """
    os.set_inheritable(fd, False)
    control = socket.socket(fileno=fd)
    poll = select.poll()  # select() knows no descriptor above 1023
    poll.register(control, select.POLLIN)
    workers = _Workers(control, method, max_memory_mb)
    grace_s = _ORPHAN_GRACE_S
    with control, contextlib.suppress(EOFError, ConnectionError):
        factory = _receive_exactly(control, *LENGTH.unpack(_receive_exactly(control, LENGTH.size)))
        if method == "forkserver":
            _preload(factory)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whatever the owner or an import has chosen
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        check_s = _OWNER_CHECK_S if max_memory_mb is None else _MEMORY_CHECK_S
        while os.getppid() == owner:  # a fork of the owner may keep the connection open
            if max_memory_mb is not None:
                workers.kill_too_large()
            workers.reap()
            if not poll.poll(1000 * check_s):
                continue
            message, fds, _, _ = socket.recv_fds(control, COMMAND.size, 1)
            if not message:
                break
            name, serial = COMMAND.unpack(message)
            if name == START:
                workers.start(serial, fds[0])
            elif name == END:
                control.sendall(STATUS.pack(serial, workers.end(serial)))
            elif name == CLOSE:
                grace_s = CLOSE_GRACE_S
    workers.end_all(grace_s)
    _kill_group(os.getpid())  # and what the imported modules have started


class _Workers:
    """The worker processes by serial number.

    Args:
        control: the connection to the owner, which no worker may keep.
        method: as for `Launcher`.
        max_memory_mb: as for `Launcher`.
    """

    def __init__(self, control: socket.socket, method: str, max_memory_mb: float | None) -> None:
        self._control = control
        self._start = self._fork if method == "forkserver" else self._spawn
        self._max_memory_mb = max_memory_mb
        self._pids: dict[int, int] = {}
        self._exit_codes: dict[int, int] = {}  # of those that have ended
        self._too_large: set[int] = set()

    def start(self, serial: int, fd: int) -> None:
        """Start a worker that serves the socket `fd`, and close it here."""
        try:
            self._pids[serial] = self._start(fd)
        except OSError:
            _logger.warning("a worker process could not be started", exc_info=True)
        os.close(fd)

    def end(self, serial: int) -> int:
        """Kill a worker with all that it has started; its exit code."""
        if serial in self._pids:
            _kill(self._pids[serial])
            self._wait(serial, 0)
        exit_code = self._exit_codes.pop(serial, NEVER_STARTED)
        if serial in self._too_large:
            self._too_large.discard(serial)
            return TOO_LARGE
        return exit_code

    def reap(self) -> None:
        """End what workers that have died have left behind: it may hold their connections."""
        for serial in list(self._pids):
            self._wait(serial, os.WNOHANG)

    def end_all(self, grace_s: float) -> None:
        """Wait until the workers have ended, and kill those that take too long."""
        signal.signal(signal.SIGALRM, _raise_grace_over)
        signal.setitimer(signal.ITIMER_REAL, grace_s)
        with contextlib.suppress(_GraceOver):
            for serial in list(self._pids):
                self._wait(serial, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for pid in self._pids.values():
            _kill(pid)

    def kill_too_large(self) -> None:
        """Kill the workers that use too much memory; the owner will notice and end them."""
        assert self._max_memory_mb is not None
        for serial, pid in self._pids.items():
            if _resident_mb(pid) > self._max_memory_mb:
                self._too_large.add(serial)
                _kill(pid)

    def _wait(self, serial: int, options: int) -> None:
        pid, status = os.waitpid(self._pids[serial], options)
        if pid:
            _kill_group(pid)  # what it has left behind
            del self._pids[serial]
            self._exit_codes[serial] = os.waitstatus_to_exitcode(status)

    def _fork(self, fd: int) -> int:
        launcher = os.getpid()
        with warnings.catch_warnings():
            # Of the threads of numerical libraries, which provide for forks themselves.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                os.setpgid(0, 0)
                self._control.close()
                worker_process.main(fd, launcher)
            finally:
                os._exit(1)  # whatever happens, there is one launcher
        with contextlib.suppress(OSError):  # both sides do it, so that neither can be too early
            os.setpgid(pid, pid)
        return pid

    def _spawn(self, fd: int) -> int:
        os.set_inheritable(fd, True)
        command = python_command("agentgym_envs.vector.worker_process", fd, os.getpid())
        return os.posix_spawn(sys.executable, command, os.environ, setpgroup=0)


class _GraceOver(Exception):
    """Raised by the alarm."""


def _raise_grace_over(*_: object) -> None:
    raise _GraceOver


def _kill(pid: int) -> None:
    """Kill a worker, which may have left its group, and its group."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _kill_group(pid)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):  # nobody is left in it
        os.killpg(pid, signal.SIGKILL)


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def _preload(factory: bytes) -> None:
    """Import what the environments need, once for all workers that will be forked."""
    with contextlib.suppress(Exception):  # a worker that fails in the same way says so
        pickle.loads(factory).preload()
    worker_process.flush()  # or every worker would print it again


def _receive_exactly(control: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = control.recv(size - len(received))
        if not chunk:
            raise EOFError("the other end was closed")
        received += chunk
    return received
