"""`Driver`: sends requests to a `WorkerPool` and keeps account of every environment.

Each environment is new, running or ended, and has at most one request on its way. A step or reset
that broke its environment, or was asked for by mistake, leaves it ended. So does a call of many
environments that Ctrl-C cut short: what came of it was never seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gymnasium.error import AlreadyPendingCallError, ResetNeeded

from agentgym_envs.errors import AgentGymError
from agentgym_envs.tasks import Task
from agentgym_envs.vector.base import Failure, Request, WorkerPool, interrupted
from agentgym_envs.vector.results import Info, Row, StepResult, is_mistake, reset_row, step_row


class Driver:
    """Between `TextVectorEnv` and the pool that runs its environments.

    Args:
        pool: who does the work.
        num_envs: number of environments.
        max_horizon: a limit on the horizon of every episode, or None.
    """

    def __init__(self, pool: WorkerPool, num_envs: int, max_horizon: int | None) -> None:
        self.ended: set[int] = set()
        """Environments whose episode is over."""
        self._never_reset = set(range(num_envs))
        self._pool = pool
        self._max_horizon = max_horizon
        self._pending: dict[int, Request] = {}  # sent, and the outcome not taken yet
        self._outcomes: deque[tuple[Request, Any]] = deque()
        self._unseen: set[int] = set()  # pending in a call that waits for all its outcomes
        self._last_rows: list[Row] = [("", 0.0, False, False, {})] * num_envs

    # --------------------------------------------------------------------------------- refusals

    def require_idle(self, call: str) -> None:
        """Refuse `call` while anything is pending.

        Raises:
            AlreadyPendingCallError: something is.
        """
        if self._pending:
            raise AlreadyPendingCallError(
                f"{call}() needs all environments, but requests are pending for "
                f"{sorted(self._pending)}; call recv() until they are answered",
                call,
            )

    def require_free(self, call: str, indices: Sequence[int]) -> None:
        """Refuse `call` for environments that have a request pending.

        Raises:
            AlreadyPendingCallError: one of them has.
        """
        if busy := sorted(self._pending.keys() & indices):
            raise AlreadyPendingCallError(
                f"{call}() to environments {busy}, which have a request pending; "
                "call recv() until it is answered",
                call,
            )

    def require_running(self, indices: Iterable[int], *, autoreset: bool) -> None:
        """Refuse to step what was never reset, or has ended where nobody resets it.

        Raises:
            ResetNeeded: there is such an environment.
        """
        waiting = self._never_reset if autoreset else self._never_reset | self.ended
        if waiting and (needed := sorted(waiting.intersection(indices))):
            raise ResetNeeded(
                f"environments {needed} have ended their episodes or were never reset; reset "
                'them first, with send_reset() or reset(options={"reset_mask": ...})'
            )

    def idle(self, count: int) -> list[int]:
        """The first `count` environments that play no episode and have nothing pending.

        Raises:
            ValueError: there are fewer.
        """
        found = sorted((self._never_reset | self.ended) - self._pending.keys())
        if len(found) < count:
            raise ValueError(
                f"{count} environments without an episode are needed, but only {found} have none"
            )
        return found[:count]

    # --------------------------------------------------------------------------------- requests

    def reset_request(
        self,
        index: int,
        task: Task | str | int | None = None,
        seed: int | None = None,
        horizon: int | None = None,
        shared: Mapping[str, Any] = MappingProxyType({}),
    ) -> Request:
        """A reset of environment `index`; `shared` are further options."""
        own = {"task": task, "horizon": horizon, "max_horizon": self._max_horizon}
        options = {**shared, **{key: value for key, value in own.items() if value is not None}}
        return Request(index, "reset", kwargs={"seed": seed, "options": options or None})

    def finish_interrupted(self) -> None:
        """Wait for what an interrupted call left on its way, and drop it."""
        while self._unseen and self._collect_unseen({}):
            continue
        for index in self._unseen:  # never sent
            self._pending.pop(index, None)
        self._unseen.clear()

    def submit(self, requests: Iterable[Request]) -> None:
        """Send requests and wait for nothing."""
        for request in requests:
            self._pending[request.index] = request
            self._pool.submit(request)

    def results(self, timeout: float | None) -> list[tuple[int, StepResult]]:
        """Results of steps and resets that are ready, see `TextVectorEnv.recv`."""
        if not self._outcomes:
            self._outcomes.extend(self._pool.collect(timeout) or self._lost())
        results: list[tuple[int, StepResult]] = []
        while self._outcomes:
            request, outcome = self._outcomes[0]
            if results and is_mistake(outcome):
                break  # raised by the next call, after what was ready before it
            self._outcomes.popleft()
            self._pending.pop(request.index, None)
            observation, reward, terminated, truncated, info = self._settle(request, outcome)
            result = StepResult(
                observation,
                reward,
                terminated,
                truncated,
                info.copy(),  # ours is needed as it is if the next step breaks the world
                request.method == "reset",
                info["fault"],
                outcome.error.retryable if info["fault"] else True,
            )
            results.append((request.index, result))
        return results

    def rows(self, requests: Sequence[Request]) -> dict[int, Row]:
        """Rows of steps and resets by index, in the order of `requests`; waits for all.

        Raises:
            AgentGymError: a reset asked for something impossible; all others have been done.
        """
        outcomes = self._round_trip(requests)
        rows = {}
        mistake: AgentGymError | None = None
        for request in requests:
            try:
                rows[request.index] = self._settle(request, outcomes[request.index])
            except AgentGymError as error:
                mistake = mistake or error
        if mistake is not None:
            raise mistake
        return rows

    def step_all(self, texts: Sequence[str]) -> list[Row]:
        """Rows of a step of every environment; the ended ones are reset instead."""
        if hasattr(self._pool, "step_all") and not self.ended:
            return self._step_all_inline(texts)
        requests = [
            self.reset_request(index) if index in self.ended else Request(index, "step", (text,))
            for index, text in enumerate(texts)
        ]
        return list(self.rows(requests).values())

    def reset_ended(self, rows: Sequence[Row]) -> list[Row]:
        """`rows` where what has ended shows the next episode, and its last turn in `info`."""
        merged = list(rows)
        fresh = self.rows([self.reset_request(index) for index in sorted(self.ended)])
        for index, (observation, _, _, _, info) in fresh.items():
            last_observation, reward, terminated, truncated, last_info = merged[index]
            info = info | {"final_obs": last_observation, "final_info": last_info}
            merged[index] = (observation, reward, terminated, truncated, info)
        return merged

    def call_each(
        self, name: str, args_each: Sequence[tuple[Any, ...]], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """What the method or attribute `name` of the first environments returns.

        Raises:
            Exception: what the first of them in trouble raised.
        """
        return self._values(
            [Request(index, name, args, kwargs) for index, args in enumerate(args_each)]
        )

    def fork(self, source: int, targets: Sequence[int]) -> tuple[str, Info]:
        """Copy the state of `source` into `targets`; its latest observation and info.

        Raises:
            Exception: what the first environment in trouble raised; the targets need a reset.
        """
        (state,) = self._values([Request(source, "save_state")])
        self.ended.update(targets)
        self._values([Request(target, "load_state", (state,)) for target in targets])
        for target in targets:
            self._last_rows[target] = self._last_rows[source]
        self._never_reset.difference_update(targets)
        self.ended.difference_update(targets)
        observation, _, _, _, info = self._last_rows[source]
        return observation, info

    def clear(self) -> None:
        """Forget what is pending."""
        self._unseen.clear()
        self._pending.clear()
        self._outcomes.clear()

    # ----------------------------------------------------------------------------------- inside

    def _step_all_inline(self, texts: Sequence[str]) -> list[Row]:
        self.ended.update(range(len(texts)))  # what holds if Ctrl-C comes between
        outcomes = self._pool.step_all(texts)  # type: ignore[attr-defined]
        self.ended.clear()
        rows = []
        for index, outcome in enumerate(outcomes):
            row = step_row(index, outcome, self._last_rows[index][4])
            self._last_rows[index] = row
            if row[2] or row[3]:
                self.ended.add(index)
            rows.append(row)
        return rows

    def _values(self, requests: Sequence[Request]) -> tuple[Any, ...]:
        """What calls return; raises what the first environment in trouble raised."""
        outcomes = self._round_trip(requests)
        failures = {i: outcome for i, outcome in outcomes.items() if isinstance(outcome, Failure)}
        self.ended.update(i for i, failure in failures.items() if failure.is_fault)
        for failure in failures.values():
            raise failure.error
        return tuple(outcomes.values())

    def _round_trip(self, requests: Sequence[Request]) -> dict[int, Any]:
        """Outcomes by index, in the order of `requests`; those of other requests are kept."""
        indices = {request.index for request in requests}
        was_ended = self.ended & indices
        self._unseen |= indices
        self.ended |= indices  # what holds if Ctrl-C comes between
        self.submit(requests)
        outcomes: dict[int, Any] = {}
        while self._unseen:
            self._collect_unseen(outcomes)
        self.ended -= indices - was_ended
        return {request.index: outcomes[request.index] for request in requests}

    def _collect_unseen(self, outcomes: dict[int, Any]) -> bool:
        """Put what has come of a round trip into `outcomes`; False if nothing more can come."""
        collected = self._pool.collect(None)
        for request, outcome in collected:
            if request.index in self._unseen:
                self._unseen.discard(request.index)
                self._pending.pop(request.index, None)
                outcomes[request.index] = outcome
            else:
                self._outcomes.append((request, outcome))
        return bool(collected)

    def _lost(self) -> list[tuple[Request, Any]]:
        """Outcomes of requests that Ctrl-C has lost between here and the pool."""
        lost = self._pending.keys() - self._pool.pending()
        return [(self._pending[index], interrupted(KeyboardInterrupt())) for index in sorted(lost)]

    def _settle(self, request: Request, outcome: Any) -> Row:
        """The row of a reset or step; raises a mistake."""
        index = request.index
        self._never_reset.discard(index)
        self.ended.add(index)
        if is_mistake(outcome):
            raise outcome.error
        row = (
            reset_row(outcome, request)
            if request.method == "reset"
            else step_row(index, outcome, self._last_rows[index][4])
        )
        self._last_rows[index] = row
        if not (row[2] or row[3]):
            self.ended.discard(index)
        return row
