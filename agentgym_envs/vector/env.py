"""`TextVectorEnv`: many text environments behind one `gymnasium.vector.VectorEnv`.

Two ways to drive it. In lock-step, `reset` and `step` take and give one entry an environment, as
Gymnasium defines them. Without lock-step, `send`, `send_reset` and `recv` let every episode run at
its own pace, which is what language models need: their replies differ in length a hundredfold.

An environment that breaks does not stop the others: its episode ends as a truncated step with
``info["fault"]``, and the next reset builds a fresh one. A fault is never a reward.

Left out: shared memory (it hands out stale text) and copies of observations (text cannot change).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from agentgym_envs.errors import Unsupported
from agentgym_envs.tasks import Task
from agentgym_envs.vector import arguments
from agentgym_envs.vector.base import Request, WorkerLimits, close_once, make_workers
from agentgym_envs.vector.driver import Driver
from agentgym_envs.vector.making import EnvFactory, MakeEnv, WrapEnv, vector_spec
from agentgym_envs.vector.results import Info, StepResult, batch_infos


class TextVectorEnv(VectorEnv[tuple[str, ...], Sequence[str], np.ndarray]):
    """N environments over text.

    Observations are a tuple of N `str`, rewards float64 (N,), terminations and truncations bool
    (N,), infos Gymnasium's dict of arrays with ``_key`` masks. To what the environments put into
    `info` comes ``fault``: what broke, or "".

    Args:
        env: an id, a spec, or a function that makes one environment.
        num_envs: N.
        workers: who runs the environments, one of `agentgym_envs.vector.WORKERS`: ``"inline"``,
            in the caller's thread, which cannot interrupt a world that hangs; ``"threads"``;
            ``"forkserver"`` and ``"spawn"``, processes.
        autoreset_mode: an `AutoresetMode` or its name. Disabled by default: an autoreset wastes
            an action or hides the last observation in `info`, and it cannot choose a task.
        env_wrappers: functions that wrap one environment, applied in order.
        step_timeout_s: seconds after which a step counts as hung; None takes what the
            environment names in an attribute of the same name, infinity is no limit. Not in-line.
        reset_timeout_s: the same for a reset, with building the environment.
        max_threads: most threads; needs threads.
        max_memory_mb: most resident memory of a worker process, in MiB; needs processes. It is
            looked at ten times a second, and what the process starts does not count.
        max_episode_steps: a limit on the horizon of every episode.
        **env_kwargs: arguments of the environments.

    Raises:
        UnknownName: no such workers or autoreset mode.
        ValueError: a limit that these workers cannot keep.
        TypeError: an environment that cannot be sent to another process.
    """

    def __init__(
        self,
        env: str | EnvSpec | MakeEnv,
        num_envs: int = 1,
        *,
        workers: str = "inline",
        autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
        env_wrappers: Iterable[WrapEnv] = (),
        step_timeout_s: float | None = None,
        reset_timeout_s: float | None = None,
        max_threads: int | None = None,
        max_memory_mb: float | None = None,
        max_episode_steps: int | None = None,
        **env_kwargs: Any,
    ) -> None:
        self.num_envs = arguments.positive_int("num_envs", num_envs)
        self.autoreset_mode = arguments.autoreset_mode(autoreset_mode)
        if max_episode_steps is not None:
            max_episode_steps = arguments.positive_int("max_episode_steps", max_episode_steps)
        if max_threads is not None:
            max_threads = arguments.positive_int("max_threads", max_threads)
        limits = WorkerLimits(step_timeout_s, reset_timeout_s, max_threads, max_memory_mb)
        wrappers = tuple(env_wrappers)
        factory = EnvFactory(env, env_kwargs, wrappers)
        self._pool = make_workers(workers, factory, self.num_envs, limits)
        self._close_pool = close_once(self, self._pool.close)
        self._driver = Driver(self._pool, self.num_envs, max_episode_steps)
        self._observations = [""] * self.num_envs

        try:
            self._ask_first_env()
            self._pool.limits = limits.with_timeouts(
                self._timeout_of_family("step_timeout_s"),
                self._timeout_of_family("reset_timeout_s"),
            )
            if not callable(env):
                self.spec = vector_spec(
                    env,
                    num_envs=self.num_envs,
                    workers=workers,
                    autoreset_mode=self.autoreset_mode.value,
                    env_wrappers=wrappers or None,
                    max_episode_steps=max_episode_steps,
                    **dataclasses.asdict(limits),
                    **env_kwargs,
                )
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------------------- lock-step

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Start an episode in every environment, or in those of a mask.

        Args:
            seed: a number s gives environment i the seed s + i; or one entry an environment.
            options: ``reset_mask``: bool (N,), which environments; ``tasks``, ``seeds``,
                ``horizons``: one entry an environment, None for no choice; anything else goes to
                every environment as it is.

        Returns:
            Observations and infos. A fault is in ``infos["fault"]``; that environment needs
            another reset.

        Raises:
            UnknownName: no such task or option. The other environments have been reset.
            AlreadyPendingCallError: requests of `send` are pending.
        """
        self._require_idle("reset")
        calls = arguments.reset_calls(seed, options or {}, self.num_envs)
        rows = self._driver.rows([self._driver.reset_request(*call) for call in calls])
        infos: list[Info | None] = [None] * self.num_envs
        for index, row in rows.items():
            self._observations[index] = row[0]
            infos[index] = row[4]
        return tuple(self._observations), batch_infos(infos)

    def step(
        self, actions: Sequence[str]
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one turn in every environment.

        With autoreset, an environment whose episode has ended is reset instead of stepped
        (`NEXT_STEP`, and after a reset that failed), or reset at once, with the last observation
        and info in ``infos["final_obs"]`` and ``infos["final_info"]`` (`SAME_STEP`).

        Args:
            actions: one reply an environment.

        Returns:
            observations, rewards, terminations, truncations, infos. A fault is a truncation with
            reward 0 and ``infos["fault"]``.

        Raises:
            ResetNeeded: an environment was never reset, or has ended and autoreset is disabled.
            AlreadyPendingCallError: requests of `send` are pending.
        """
        self._require_idle("step")
        texts = arguments.texts(actions, self.num_envs)
        autoreset = self.autoreset_mode is not AutoresetMode.DISABLED
        self._driver.require_running(range(self.num_envs), autoreset=autoreset)
        rows = self._driver.step_all(texts)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._driver.ended:
            rows = self._driver.reset_ended(rows)
        observations, rewards, terminations, truncations, infos = zip(*rows, strict=True)
        self._observations = list(observations)
        return (
            observations,
            np.array(rewards, dtype=np.float64),
            np.array(terminations, dtype=np.bool_),
            np.array(truncations, dtype=np.bool_),
            batch_infos(infos),
        )

    # ------------------------------------------------------------------------ without lock-step

    def send(self, indices: Iterable[int], actions: Sequence[str]) -> None:
        """Ask for one turn in some environments; `recv` gives the results.

        Args:
            indices: which environments; none of them may have a request pending.
            actions: one reply for each of `indices`.

        Raises:
            ResetNeeded: one of them has ended its episode or was never reset.
            AlreadyPendingCallError: one of them has a request pending.
            Unsupported: autoreset is not disabled.
        """
        chosen = self._free_indices("send", indices)
        texts = arguments.texts(actions, len(chosen))
        self._driver.require_running(chosen, autoreset=False)
        self._driver.submit(
            Request(i, "step", (text,)) for i, text in zip(chosen, texts, strict=True)
        )

    def send_reset(
        self,
        indices: Iterable[int],
        tasks: Sequence[Task | str | int | None] | None = None,
        seeds: Sequence[int | None] | None = None,
        horizons: Sequence[int | None] | None = None,
    ) -> None:
        """Ask for new episodes in some environments; `recv` gives the results.

        Args:
            indices: which environments; none of them may have a request pending. Episodes that
                have not ended are dropped.
            tasks: a task for each of `indices`; None lets the environment draw one.
            seeds: a seed for each.
            horizons: most turns for each.

        Raises:
            AlreadyPendingCallError: one of them has a request pending.
            Unsupported: autoreset is not disabled.
        """
        chosen = self._free_indices("send_reset", indices)
        columns = [
            arguments.entries(name, values, len(chosen))
            for name, values in (("tasks", tasks), ("seeds", seeds), ("horizons", horizons))
        ]
        self._driver.submit(
            self._driver.reset_request(*row) for row in zip(chosen, *columns, strict=True)
        )

    def recv(self, timeout: float | None = None) -> list[tuple[int, StepResult]]:
        """Results that are ready, after waiting until there is at least one.

        In-line workers do all pending work now, in the order in which it was sent.

        Args:
            timeout: longest time to wait in seconds; None for no limit.

        Returns:
            (index, result) in the order in which they became ready; [] when the time is over or
            nothing is pending.

        Raises:
            UnknownName: a task of `send_reset` does not exist. Results that were ready before
                come from the calls before, those after from the calls after.
            Unsupported: autoreset is not disabled.
        """
        self._require_disabled("recv")
        return self._driver.results(timeout)

    def fork(self, source: int, into: int | Iterable[int]) -> dict[int, tuple[str, Info]]:
        """Copy an episode into other environments: all of them continue from where it is now.

        What others have pending does not matter. The random state is copied too: the same replies
        get the same answers.

        Args:
            source: the environment whose episode is copied.
            into: indices of other environments, whose episodes are dropped; or how many, which
                takes the first that play none.

        Returns:
            For each copy, by index, the latest observation and info of the source.

        Raises:
            ResetNeeded: the source plays no episode.
            AlreadyPendingCallError: one of them has a request pending.
            ValueError: the source is among the targets, or there are too few.
            Unsupported: the family cannot save its state.
            Exception: what an environment raised; all of `into` need a reset.
        """
        self._require_open("fork")
        self._driver.finish_interrupted()
        if not isinstance(into, Iterable):
            into = self._driver.idle(arguments.positive_int("how many copies", into))
        (source,) = arguments.distinct_indices([source], self.num_envs)
        targets = arguments.distinct_indices(into, self.num_envs)
        if source in targets:
            raise ValueError(f"environment {source} cannot be forked into itself, got {targets}")
        self._driver.require_free("fork", [source, *targets])
        self._driver.require_running([source], autoreset=False)
        observation, info = self._driver.fork(source, targets)
        for target in targets:
            self._observations[target] = observation
        return {target: (observation, copy.deepcopy(info)) for target in targets}

    # --------------------------------------------------------------------------- as Gymnasium

    @property
    def envs(self) -> tuple[gymnasium.Env[str, str], ...]:
        """The environments; only in-line workers hand them out.

        Raises:
            AttributeError: the workers keep them to themselves.
            ClosedEnvironmentError: after `close`.
        """
        self._require_open("envs")
        pool: Any = self._pool
        if not hasattr(type(pool), "envs"):
            raise AttributeError(
                f"{type(pool).__name__} keep their environments to themselves; "
                "use call(), get_attr() or set_attr()"
            )
        return tuple(pool.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call the method `name` of every environment, or read the attribute; wrappers included.

        Raises:
            ValueError: `name` is one of those that this class has to know about.
            Exception: what the first environment in trouble raised.
        """
        if name in ("reset", "step", "close"):
            raise ValueError(f"call({name!r}) would go unnoticed; use {name}() itself")
        self._require_idle(name)
        return self._driver.call_each(name, [args] * self.num_envs, kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The attribute `name` of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment.

        Args:
            name: which.
            values: a list or tuple with one value an environment, or one value for all.
        """
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} values, one an env; got {len(values)}")
        self._require_idle("set_attr")
        self._driver.call_each("set_wrapper_attr", [(name, value) for value in values], {})

    def render(self) -> tuple[Any, ...] | None:
        """What every environment renders."""
        return self.call("render")

    def close_extras(self, **kwargs: Any) -> None:
        """Give up what is pending and close the environments."""
        if hasattr(self, "_driver"):  # Gymnasium 1.2 also closes what could not be made
            self._driver.clear()
            self._close_pool()

    # ---------------------------------------------------------------------------------- inside

    def _ask_first_env(self) -> None:
        """Build the first environment and read from it what all have in common."""
        names = ("observation_space", "action_space", "render_mode", "metadata")
        single_observation, single_action, render_mode, metadata = (
            self._driver.call_each(name, [()], {})[0] for name in names
        )
        self.single_observation_space = single_observation
        self.single_action_space = single_action
        self.observation_space = batch_space(single_observation, self.num_envs)
        self.action_space = batch_space(single_action, self.num_envs)
        self.render_mode = render_mode
        self.metadata = metadata | {"autoreset_mode": self.autoreset_mode}

    def _timeout_of_family(self, name: str) -> float | None:
        try:
            (timeout_s,) = self._driver.call_each(name, [()], {})
        except AttributeError:
            return None  # no TextEnv
        return float(timeout_s)

    def _free_indices(self, call: str, indices: Iterable[int]) -> list[int]:
        self._require_disabled(call)
        chosen = arguments.distinct_indices(indices, self.num_envs)
        self._driver.require_free(call, chosen)
        return chosen

    def _require_disabled(self, call: str) -> None:
        self._require_open(call)
        if self.autoreset_mode is not AutoresetMode.DISABLED:
            raise Unsupported(
                f"{call}() needs autoreset_mode=DISABLED, this is {self.autoreset_mode.name}: "
                "without lock-step the caller says when an episode begins"
            )
        self._driver.finish_interrupted()

    def _require_idle(self, call: str) -> None:
        self._require_open(call)
        self._driver.finish_interrupted()
        self._driver.require_idle(call)

    def _require_open(self, call: str) -> None:
        if self.closed:
            raise ClosedEnvironmentError(f"{call}() after close()")
