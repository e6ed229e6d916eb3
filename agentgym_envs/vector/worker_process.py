"""What runs in a worker process: one environment that is driven by messages, see `wire`.

The process ends when the other end of its socket is closed, which the kernel does if the caller's
process dies. It ends without Python's own tidying up: what an environment holds, `close` releases.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import sys
import traceback

from agentgym_envs.errors import AgentGymError, EnvFault, WorkerFault
from agentgym_envs.vector.base import Failure, Request, Slot, describe, interrupted
from agentgym_envs.vector.wire import Receiver, encode, pickled

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def main(fd: int, launcher: int) -> None:
    """Serve requests until there can be no more; does not return.

    Args:
        fd: a stream socket. The first message is the index of the environment and a pickled
            function that makes it, the others are requests.
        launcher: id of the process that started this one.
    """
    os.set_inheritable(fd, False)  # processes that the environment starts must not keep it open
    _die_with(launcher)
    code = 1
    try:
        _serve(socket.socket(fileno=fd))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        flush()
        os._exit(code)


def flush() -> None:
    """Write out what was printed, if there is still somewhere to write it to."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, even if it hangs by then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _serve(sock: socket.socket) -> None:
    receiver = Receiver(sock)
    slot: Slot | None = None
    try:
        index, body = _next(receiver)
        factory = pickle.loads(body)
        # Unpickling is a part of building: if a module is missing here, that is how it is told.
        slot = Slot(index, lambda: pickle.loads(factory)())
        while True:
            number, body = _next(receiver)
            sock.sendall(_answer(number, index, slot, body))
    except (EOFError, ConnectionError):  # closed, or the caller died
        if slot is not None:
            slot.close()


def _next(receiver: Receiver) -> tuple[int, memoryview]:
    while (message := receiver.receive()) is None:
        pass
    return message


def _answer(number: int, index: int, slot: Slot, body: memoryview) -> bytes:
    """The message that carries what comes of a request."""
    try:
        request = Request(index, *pickle.loads(body))
    except Exception as error:  # pickle raises all kinds
        mistake = TypeError(f"what was sent cannot be read in the worker's process: {error}")
        return encode(number, Failure(mistake))
    try:
        outcome = slot.run(request)
    except BaseException as error:  # SystemExit too: it ends the episode, not this process
        outcome = interrupted(error)
    if isinstance(outcome, Failure):
        outcome = Failure(_portable(outcome.error))
    is_turn = request.method in ("reset", "step")
    try:
        return encode(number, outcome, by_value=is_turn or isinstance(outcome, Failure))
    except Exception as error:  # pickle raises all kinds
        text = f"the answer of {request.method}() cannot be sent from its process: {error}"
        if is_turn:
            return encode(number, slot.discard(WorkerFault(text)))
        return encode(number, Failure(TypeError(text)))


def _portable(error: Exception) -> Exception:
    """`error`, or what can be said of it if it cannot be pickled; with its traceback as a note."""
    note = "".join(["In a worker process:\n", *traceback.format_exception(error)])
    try:
        portable: Exception = pickle.loads(pickled(error, by_value=True))
    except Exception:  # pickle raises all kinds
        portable = (
            WorkerFault(describe(error), retryable=error.retryable)
            if isinstance(error, EnvFault)
            else AgentGymError(describe(error))
        )
    portable.add_note(note)  # not to `error`, which the environment may raise again
    return portable
