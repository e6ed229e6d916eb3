"""`TextVectorEnv`: many text environments behind one `gymnasium.vector.VectorEnv`.

Two ways to drive it. In lock-step, `reset` and `step` take and give one entry an environment, as
Gymnasium defines them. Without lock-step, `send`, `send_reset` and `recv` let every episode run at
its own pace, which is what language models need: their replies differ in length a hundredfold.

An environment that breaks does not stop the others: its episode ends as a truncated step with
``info["fault"]``, and the next reset builds a fresh one. A fault is never a reward.

Left out: shared memory (it hands out stale text) and copies of observations (text cannot change).
"""

from __future__ import annotations

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
from agentgym_envs.vector.base import Request, WorkerLimits, make_workers
from agentgym_envs.vector.driver import Driver
from agentgym_envs.vector.making import MakeEnv, WrapEnv, env_factory, vector_spec
from agentgym_envs.vector.results import (
    Info,
    Row,
    StepResult,
    batch_infos,
)

_PER_ENV_OPTIONS = ("tasks", "seeds", "horizons")


class TextVectorEnv(VectorEnv[tuple[str, ...], Sequence[str], np.ndarray]):
    """N environments over text.

    Observations are a tuple of N `str`, rewards float64 (N,), terminations and truncations bool
    (N,), infos Gymnasium's dict of arrays with ``_key`` masks. To what the environments put into
    `info` comes ``fault``: what broke, or "".

    Args:
        env: an id, a spec, or a function that makes one environment.
        num_envs: N.
        workers: who runs the environments, one of `agentgym_envs.vector.WORKERS`. In-line
            workers are reproducible to the bit, but cannot interrupt a world that hangs.
        autoreset_mode: an `AutoresetMode` or its name. Disabled by default: an autoreset wastes
            an action or hides the last observation in `info`, and it cannot choose a task.
        env_wrappers: functions that wrap one environment, applied in order.
        step_timeout_s: seconds after which a step counts as hung; needs threads.
        reset_timeout_s: seconds after which a reset counts as hung; needs threads.
        max_threads: most threads; needs threads.
        max_episode_steps: a limit on the horizon of every episode.
        **env_kwargs: arguments of the environments.

    Raises:
        UnknownName: no such workers or autoreset mode.
        ValueError: a limit that these workers cannot keep.
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
        max_episode_steps: int | None = None,
        **env_kwargs: Any,
    ) -> None:
        self.num_envs = arguments.positive_int("num_envs", num_envs)
        self.autoreset_mode = arguments.autoreset_mode(autoreset_mode)
        max_horizon = (
            None
            if max_episode_steps is None
            else arguments.positive_int("max_episode_steps", max_episode_steps)
        )
        if max_threads is not None:
            max_threads = arguments.positive_int("max_threads", max_threads)
        limits = WorkerLimits(step_timeout_s, reset_timeout_s, max_threads)
        wrappers = tuple(env_wrappers)
        factory = env_factory(env, env_kwargs, wrappers)
        self._pool = make_workers(workers, factory, self.num_envs, limits)
        self._driver = Driver(self._pool, self.num_envs, max_horizon)
        self._observations = [""] * self.num_envs

        try:
            self._ask_first_env()
        except BaseException:
            self.close()
            raise
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
        shared = dict(options or {})
        indices = arguments.masked_indices(shared.pop("reset_mask", None), self.num_envs)
        given = {name: shared.pop(name, None) for name in _PER_ENV_OPTIONS}
        if seed is not None:
            if given["seeds"] is not None:
                raise ValueError('give either seed= or options["seeds"], not both')
            given["seeds"] = (
                [seed + i for i in range(self.num_envs)]
                if isinstance(seed, (int, np.integer))
                else seed
            )
        tasks, seeds, horizons = (
            arguments.entries(name, given[name], self.num_envs) for name in _PER_ENV_OPTIONS
        )
        rows = self._driver.rows(
            [
                self._driver.reset_request(i, tasks[i], seeds[i], horizons[i], shared)
                for i in indices
            ]
        )
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
            rows = self._reset_ended(rows)
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
            for name, values in zip(_PER_ENV_OPTIONS, (tasks, seeds, horizons), strict=True)
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
            self._pool.close()

    # ---------------------------------------------------------------------------------- inside

    def _reset_ended(self, rows: Sequence[Row]) -> list[Row]:
        """`rows` where what has ended shows the next episode, and its last turn in `info`."""
        merged = list(rows)
        fresh = self._driver.rows(
            [self._driver.reset_request(i) for i in sorted(self._driver.ended)]
        )
        for index, (observation, _, _, _, info) in fresh.items():
            last_observation, reward, terminated, truncated, last_info = merged[index]
            info = info | {"final_obs": last_observation, "final_info": last_info}
            merged[index] = (observation, reward, terminated, truncated, info)
        return merged

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
