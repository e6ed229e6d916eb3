"""In-line workers: everything runs in the caller's thread, in the order in which it was asked for.

Nothing overlaps, so a run is reproducible to the bit, and nothing is handed over, so this is the
fastest for worlds that compute. Bare environments may start what their steps will wait for
(`TextEnv.begin_step`): worlds of another process then work at the same time. It cannot interrupt a
world that hangs: time limits that the caller gives are refused, those that a family names are for
other workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import gymnasium

from agentgym_envs.vector.base import Request, Slot, WorkerLimits, interrupted
from agentgym_envs.vector.making import EnvFactory


class InlineWorkers:
    """A pool that works while `collect` is called; see `WorkerPool`.

    Args:
        factory: builds an environment.
        num_envs: number of environments.
        limits: must be the default ones.

    Raises:
        ValueError: limits are given.
    """

    def __init__(self, factory: EnvFactory, num_envs: int, limits: WorkerLimits) -> None:
        limits.require_only("in-line workers run in the caller's thread")
        self.limits = limits
        self._slots = [Slot(index, factory) for index in range(num_envs)]
        self._requests: deque[Request] = deque()
        self._outcomes: list[tuple[Request, Any]] = []

    @property
    def envs(self) -> tuple[gymnasium.Env[str, str], ...]:
        """The environments, in order."""
        return tuple(slot.env for slot in self._slots)

    def submit(self, request: Request) -> None:
        self._requests.append(request)

    def collect(self, timeout: float | None) -> list[tuple[Request, Any]]:
        """Do everything that is pending; `timeout` has no meaning here."""
        for request in self._requests:
            if request.method == "step":
                self._slots[request.index].begin_step(*request.args)
        while self._requests:
            request = self._requests.popleft()
            try:
                self._outcomes.append((request, self._slots[request.index].run(request)))
            except BaseException as error:
                self._outcomes.append((request, interrupted(error)))
                raise
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def pending(self) -> set[int]:
        return {each.index for each in self._requests} | {each.index for each, _ in self._outcomes}

    def step_all(self, texts: Sequence[str]) -> list[Any]:
        """The outcomes of a step of every environment; a short cut past `submit` and `collect`.

        Raises:
            KeyboardInterrupt: some environments have been stepped and others have not.
        """
        for slot, text in zip(self._slots, texts, strict=True):
            slot.begin_step(text)
        return [slot.step(text) for slot, text in zip(self._slots, texts, strict=True)]

    def close(self) -> None:
        self._requests.clear()
        for slot in self._slots:
            slot.close()
