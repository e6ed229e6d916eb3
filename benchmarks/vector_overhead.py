"""What vector environments cost per environment step: `TextVectorEnv` beside Gymnasium's own.

All drive environments that do nothing, in lock-step or without, in turns within one process. The
time of a bare loop over the environments is taken off, so what is compared is what the vector
environments add. In-line workers and threads are set against `SyncVectorEnv`, processes against
`AsyncVectorEnv(shared_memory=False)`. The environments have an empty `info`, where the vector
environment is all there is, or that of a `TextEnv`; and short observations, or 12,000 characters.

Prints JSON lines {figure, value, unit, spread, versions}; value is the median over the repeats,
spread the least and greatest.

    python benchmarks/vector_overhead.py
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
from common import emit
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from agentgym_envs.spaces import UnicodeText
from agentgym_envs.vector import TextVectorEnv

WORKERS = ("inline", "threads", "forkserver")
TEXT_INFO = {
    "task_id": "nothing/train/0",
    "turn": 1,
    "score": 0.0,
    "success": False,
    "action_valid": True,
    "format_errors": 0,
    "end_reason": "",
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "empty_info": ("nothing", {}),
    "text_info": ("nothing", TEXT_INFO),
    "long": ("nothing at all " * 800, TEXT_INFO),
}
"""What the environments answer: observation and info."""


class DoNothing(gymnasium.Env[str, str]):
    """Answers at once; `info` is a fresh copy of `info`."""

    def __init__(self, observation: str, info: dict[str, Any]) -> None:
        self.observation_space = self.action_space = UnicodeText()
        self._observation = observation
        self._info = info

    def reset(self, **_: Any) -> tuple[str, dict[str, Any]]:
        return self._observation, dict(self._info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self._observation, 0.0, False, False, dict(self._info)


def without_lock_step(env: TextVectorEnv, actions: Sequence[str]) -> None:
    """A turn in every environment by `send` and `recv`."""
    env.send(range(env.num_envs), actions)
    received = 0
    while received < env.num_envs:
        received += len(env.recv())


def bare_loop(envs: Sequence[gymnasium.Env[str, str]], actions: Sequence[str]) -> None:
    """A turn in every environment with nothing around it."""
    for env, action in zip(envs, actions, strict=True):
        env.step(action)


def seconds_per_env_step(step: Callable[[], Any], num_envs: int, num_steps: int) -> float:
    gc.collect()
    start = time.perf_counter()
    for _ in range(num_steps):
        step()
    return (time.perf_counter() - start) / (num_steps * num_envs)


def steps_of(make: Callable[[], DoNothing], num_envs: int) -> dict[str, Callable[[], Any]]:
    """A function for each way to take a step in all of `num_envs` environments, by name."""
    actions = ("do nothing",) * num_envs
    vectors: dict[str, VectorEnv[Any, Any, Any]] = {
        "sync": SyncVectorEnv([make] * num_envs),
        "async": AsyncVectorEnv([make] * num_envs, shared_memory=False),
        **{workers: TextVectorEnv(make, num_envs, workers=workers) for workers in WORKERS},
    }
    steps = {"bare": partial(bare_loop, [make() for _ in range(num_envs)], actions)}
    for name, env in vectors.items():
        env.reset()
        steps[name] = partial(env.step, actions)
        if isinstance(env, TextVectorEnv):
            steps[f"{name}/send_recv"] = partial(without_lock_step, env, actions)
    return steps


def measure(num_envs: int, env_steps: int, repeats: int) -> dict[str, dict[str, list[float]]]:
    """Overhead in microseconds per environment step by case and name, one value a repeat."""
    steps = {
        case: steps_of(partial(DoNothing, observation, info), num_envs)
        for case, (observation, info) in CASES.items()
    }
    overheads: dict[str, dict[str, list[float]]] = {
        case: {name: [] for name in steps[case]} for case in CASES
    }
    for _ in range(repeats):
        for case in CASES:
            seconds = {}
            for name, step in steps[case].items():
                is_fast = name in ("bare", "sync") or name.startswith("inline")
                num_steps = max(1, env_steps // (1 if is_fast else 10) // num_envs)
                seconds[name] = seconds_per_env_step(step, num_envs, num_steps)
            for name, value in seconds.items():
                overheads[case][name].append((value - seconds["bare"]) * 1e6)
    return overheads


def report(figure: str, values: Sequence[float], unit: str) -> None:
    """Print the median of a figure."""
    spread = [round(min(values), 3), round(max(values), 3)]
    emit(f"vector_overhead/{figure}", round(statistics.median(values), 3), unit, spread=spread)


def ratios(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Quotients, repeat by repeat."""
    return [value / other for value, other in zip(values, others, strict=True)]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[8])
    parser.add_argument("--env-steps", type=int, default=40_000, help="per repeat; slow ones 1/10")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    for num_envs in options.num_envs:
        overheads = measure(num_envs, options.env_steps, options.repeats)
        for case, by_name in overheads.items():
            prefix = f"n{num_envs}/{case}"
            for name, values in by_name.items():
                if name != "bare":
                    report(f"{prefix}/{name}", values, "us per env step")
                if name.partition("/")[0] not in WORKERS:
                    continue
                stock = "async" if name.startswith("forkserver") else "sync"
                report(f"{prefix}/{name}_over_{stock}", ratios(values, by_name[stock]), "ratio")
                if case == "long":
                    short = overheads["text_info"][name]
                    report(f"{prefix}/{name}_over_short", ratios(values, short), "ratio")


if __name__ == "__main__":
    main()
