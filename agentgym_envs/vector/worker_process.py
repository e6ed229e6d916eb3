"""What runs in a worker process: one environment that is driven by messages, see `wire`.

The process ends when the other end of its socket is closed, which the kernel does if the caller's
process dies. It ends without Python's own tidying up: what an environment holds, `close` releases.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import socket
import sys
import traceback

from agentgym_envs.errors import AgentGymError, EnvFault, WorkerFault
from agentgym_envs.vector.base import Failure, Request, Slot, interrupted
from agentgym_envs.vector.wire import Receiver, encode

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
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


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
    try:
        return encode(number, outcome)
    except Exception as error:  # pickle raises all kinds
        text = f"the answer of {request.method}() cannot be sent from its process: {error}"
        if request.method in ("reset", "step"):
            return encode(number, slot.discard(WorkerFault(text)))
        return encode(number, Failure(TypeError(text)))


def _portable(error: Exception) -> Exception:
    """`error`, or what can be said of it if it cannot be pickled; with its traceback as a note."""
    error.add_note("".join(["In a worker process:\n", *traceback.format_exception(error)]))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # pickle raises all kinds
        kind = WorkerFault if isinstance(error, EnvFault) else AgentGymError
        stand_in = kind(f"{type(error).__name__}: {error}")
        for note in error.__notes__:
            stand_in.add_note(note)
        return stand_in
    return error
