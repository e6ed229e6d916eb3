"""`Launcher`: the caller's handle of the process that starts workers and sees to their end.

`multiprocessing` has contexts called ``spawn`` and ``forkserver``, but they run the caller's main
module again in every child, which goes wrong in any script without a guard, and they leave two
helper processes behind. Here nothing of the caller's is run again, and one process holds all the
threads, see `agentgym_envs.vector.launcher_process`: it notices when the caller dies, however that
happens, and takes the workers along. It leads a process group of its own, so Ctrl-C in a terminal
reaches the caller alone, but no session: on Linux those compete for the processor as wholes.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import time

from agentgym_envs.vector.wire import connection

COMMAND = struct.Struct("<cI")
START, END, CLOSE = b"S", b"E", b"C"
STATUS = struct.Struct("<Ii")
LENGTH = struct.Struct("<Q")
NEVER_STARTED, TOO_LARGE = 1 << 16, 1 << 17  # in the place of an exit code

CLOSE_GRACE_S = 5.0
"""Seconds that environments have to close when they are asked to."""

_ANSWER_S = 10.0
_ENDED_WITH_LAUNCHER = "ended, and so did the process that started it"
_SIGNALS = {each.value: each.name for each in signal.Signals}


class Launcher:
    """Starts and ends worker processes.

    Args:
        method: ``"forkserver"`` or ``"spawn"``.
        factory: a pickled `EnvFactory`; a fork server imports what it needs before it forks.
        max_memory_mb: a worker with more resident memory, in MiB, is killed; None or infinity for
            no limit.
    """

    def __init__(self, method: str, factory: bytes, max_memory_mb: float | None) -> None:
        self._method = method
        limit_mb = math.inf if max_memory_mb is None else float(max_memory_mb)
        self._max_memory_mb = None if limit_mb == math.inf else limit_mb
        self._factory = factory
        self._exit_codes: dict[int, int] = {}
        self._launch(0)

    def _launch(self, first_serial: int) -> None:
        self._first_serial = first_serial
        self._control, theirs = connection()
        with theirs:
            arguments = (theirs.fileno(), os.getpid(), self._method, self._max_memory_mb)
            self._process = subprocess.Popen(
                python_command("agentgym_envs.vector.launcher_process", *arguments),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
                stdout=_output(1),
                stderr=_output(2),
            )
        self._control.sendall(LENGTH.pack(len(self._factory)) + self._factory)

    def start(self, serial: int, sock: socket.socket) -> None:
        """Start a worker that serves `sock`; waits for nothing.

        Args:
            serial: a number to call it by, larger than those before.
            sock: its end of a connection; the caller should close it.

        Raises:
            OSError: this machine can start no process.
        """
        if not self._is_running():  # somebody has killed it, and with it all workers
            self._control.close()
            self._kill()
            self._launch(serial)
        socket.send_fds(self._control, [COMMAND.pack(START, serial)], [sock.fileno()])

    def holds(self, serial: int) -> bool:
        """Whether the process that has started this worker is still there.

        If not, the worker ends too, however alive it may still look.
        """
        return serial >= self._first_serial and self._is_running()

    def end(self, serial: int) -> str:
        """Kill a worker, and what it has started, if it has not ended yet.

        Returns:
            How it ended, as the rest of a sentence.
        """
        if not self.holds(serial):
            return _ENDED_WITH_LAUNCHER
        end = time.monotonic() + _ANSWER_S
        try:
            self._control.sendall(COMMAND.pack(END, serial))
            while serial not in self._exit_codes:
                self._control.settimeout(max(0.001, end - time.monotonic()))
                ended, exit_code = STATUS.unpack(self._control.recv(STATUS.size))
                self._exit_codes[ended] = exit_code
        except (OSError, struct.error):  # it has died or hangs
            self._kill()
            return _ENDED_WITH_LAUNCHER
        finally:
            self._control.settimeout(None)
        exit_code = self._exit_codes.pop(serial)
        if exit_code == NEVER_STARTED:
            return "could not be started"
        if exit_code == TOO_LARGE:
            return f"used more than {self._max_memory_mb:g} MiB of memory and was killed"
        if exit_code < 0:
            return f"was killed by {_SIGNALS.get(-exit_code, f'signal {-exit_code}')}"
        return f"exited with code {exit_code}"

    def _is_running(self) -> bool:
        # Not `Popen.poll`: Ctrl-C in there can leave its lock locked for good.
        try:
            return bool(self._control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Wait until all workers have ended, which they do when their connections are closed."""
        with self._control, contextlib.suppress(OSError):
            self._control.sendall(COMMAND.pack(CLOSE, 0))
        try:
            self._process.wait(CLOSE_GRACE_S + _ANSWER_S)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _output(fd: int) -> int | None:
    """What `Popen` calls the caller's own stream, or a sink in the place of a closed one."""
    try:
        os.fstat(fd)
    except OSError:
        return subprocess.DEVNULL
    return None


def python_command(module: str, *arguments: object) -> list[str]:
    """The command that runs ``module.main(*arguments)`` in a fresh interpreter like this one."""
    path = [str(entry) for entry in sys.path]
    code = f"import sys; sys.path[:] = {path}; from {module} import main; main{arguments}"
    return [sys.executable, "-c", code]
