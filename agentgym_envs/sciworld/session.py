"""`Session`: one simulator on the server, and what is asked of it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.actions import Command
from agentgym_envs.errors import EnvFault, InvalidTask
from agentgym_envs.sciworld.actions import lines_of
from agentgym_envs.sciworld.backend import Begun, Server, SimulatorError, server
from agentgym_envs.sciworld.java_runtime import HEAP_VARIABLE, heap_mb

STEP_TIMEOUT_S = 45.0
"""Deadline of a request, in seconds."""
LOAD_TIMEOUT_S = 120.0
GOLD_TIMEOUT_S = 280.0

_MAX_SHOWN = 200
_SAY = "say"
_STEP = "step"


class StepResult(NamedTuple):
    """What a line did.

    Attributes:
        observation: the simulator's text.
        score: progress 0..1, or less than 0 where the task has failed.
        is_completed: whether the goal is reached.
        moves: units of time so far.
        is_understood: whether the line named an action; if not, nothing has changed.
        num_choices: among how many actions the simulator asks to choose; 0 if it asks nothing.
        error: what broke inside the simulator, or "".
    """

    observation: str
    score: float
    is_completed: bool
    moves: int
    is_understood: bool
    num_choices: int
    error: str


class Session:
    """A world on the server of this process. Making one starts nothing; `load` does."""

    def __init__(self) -> None:
        self._server: Server | None = None
        self._simulator = 0
        self._release: weakref.finalize[[int], Session] | None = None
        self._begun: Begun | None = None

    def load(self, experiment: str, variation: int, simplifications: str) -> tuple[str, str]:
        """Build a world.

        Args:
            experiment: its name.
            variation: which of its variations.
            simplifications: their names with commas.

        Returns:
            What the first room looks like, and the task in words; both as the simulator has them.

        Raises:
            InvalidTask: the simulator has no such task.
            Unsupported: Java or the simulator is not installed.
            EnvFault: the server broke.
        """
        self._forget_begun()
        if self._server is None or not self._server.is_open:
            self.close()
            self._server = server()
            self._simulator = self._server.new_simulator()
            self._release = weakref.finalize(self, self._server.drop, self._simulator)
        request = ["load", experiment, str(variation), simplifications]
        look, description = self._ask(request, LOAD_TIMEOUT_S)
        return look, description

    def do(self, command: Command, *, is_official: bool = False) -> StepResult:
        """Carry out a command, told in the first way that is understood.

        Args:
            command: of our grammar.
            is_official: use `say` in place of `step`.

        Raises:
            EnvFault: the server broke, or did not answer in time.
        """
        tell = self.say if is_official else self.step
        first, *others = lines_of(command)
        result = tell(first)
        for line in others:
            if result.is_understood:
                break
            result = tell(line)
        return result

    def step(self, line: str) -> StepResult:
        """Do what a line says. A line that is no answer drops the simulator's question, if any.

        Raises:
            EnvFault: the server broke, or did not answer in time.
        """
        return self._played(_STEP, line)

    def say(self, line: str) -> StepResult:
        """Hand a line to the simulator's official interface.

        It takes any line for the answer to its question, and drops the question where it is none.

        Raises:
            EnvFault: the server broke, or did not answer in time.
        """
        return self._played(_SAY, line)

    def begin(self, command: Command, *, is_official: bool = False) -> None:
        """Let `do(command)`, which must come next, go out with what other sessions have begun."""
        if self._server is not None and self._begun is None:
            request = [_SAY if is_official else _STEP, lines_of(command)[0]]
            self._begun = self._server.begin(self._simulator, request)

    def _forget_begun(self) -> None:
        if self._begun is not None:
            self._begun.is_wanted = False
            self._begun = None

    def _played(self, how: str, line: str) -> StepResult:
        text, score, is_completed, moves, is_understood, num_choices, error = self._ask(
            [how, line], STEP_TIMEOUT_S
        )
        return StepResult(
            text,
            float(score),
            is_completed == "true",
            int(moves),
            is_understood == "true",
            int(num_choices),
            error,
        )

    def valid_actions(self) -> list[str]:
        """All lines that the world would carry out now, sorted."""
        return self._ask(["valid"], STEP_TIMEOUT_S)

    def text(self, what: str) -> str:
        """``look``, ``inventory``, ``progress``, ``tree`` (JSON) or ``state`` (a hash)."""
        return self._ask([what], STEP_TIMEOUT_S)[0].strip()

    def templates(self) -> list[str]:
        """How every action may be written, ``(activate|turn on) OBJ``."""
        return self._ask(["templates"], STEP_TIMEOUT_S)

    def close(self) -> None:
        """Let go of the world. Closing twice does nothing."""
        self._forget_begun()
        if self._release is not None:
            self._release()
        self._server = self._release = None

    def _ask(self, request: list[str], timeout_s: float) -> list[str]:
        if self._server is None:
            raise EnvFault("this world of SciWorld was closed")
        try:
            if self._begun is None:
                return self._server.call(self._simulator, request, timeout_s)
            begun, self._begun = self._begun, None
            if begun.request.texts != request:
                raise EnvFault(f"{begun.request.texts} was begun in SciWorld, not {request}")
            return self._server.finish(begun, timeout_s)
        except SimulatorError as error:
            what = " ".join(request)[:_MAX_SHOWN]
            if request[0] == "load" and "IllegalArgumentException" in str(error):
                raise InvalidTask(f"the simulator refuses {what!r}: {error}") from None
            self.close()
            raise _broken(what, error) from None
        except BaseException:
            self.close()  # nobody knows whether it was done
            raise


def _broken(what: str, error: SimulatorError) -> EnvFault:
    """The fault of a simulator that broke while it did `what`."""
    text = f"SciWorld broke at {what!r}: {error}"
    if "OutOfMemoryError" in str(error):
        text += (
            f"; the heap of {heap_mb()} MB is full: set {HEAP_VARIABLE}, or let go of some worlds"
        )
    return EnvFault(text)


def gold_actions(experiment: str, variation: int, simplifications: str) -> list[str]:
    """The gold actions of the simulator's own agent, computed in a world of their own.

    Raises:
        EnvFault: the server broke, or did not answer in time.
    """
    host = server()
    simulator = host.new_simulator()
    try:
        request = ["gold", experiment, str(variation), simplifications]
        return host.call(simulator, request, GOLD_TIMEOUT_S)
    except SimulatorError as error:
        raise _broken(f"the gold actions of {experiment} {variation}", error) from None
    finally:
        host.drop(simulator)


def lines_that_count(
    lines: Sequence[str], experiment: str, variation: int, simplifications: str
) -> list[str]:
    """Those of `lines` that are understood when all are played, up to the end of the task.

    The gold agent answers questions that are not always asked and names things by names that do
    not always hold; such lines do nothing.
    """
    session = Session()
    session.load(experiment, variation, simplifications)
    counting = []
    try:
        for line in lines:
            result = session.step(line)
            if result.is_understood:
                counting.append(line)
            if result.is_completed or result.score < 0:
                break
        return counting
    finally:
        session.close()
