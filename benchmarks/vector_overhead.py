"""What `TextVectorEnv` with in-line workers costs per environment step, beside `SyncVectorEnv`.

Both drive the same environments in lock-step, in turns within one process. The time of a bare loop
over the environments is taken off, so what is compared is what the vector environments add. Two
environments that do nothing: one with an empty `info`, where the vector environment is all there
is, and one with the `info` of a `TextEnv`.

Prints JSON lines {figure, value, unit, spread, versions}; value is the median over the repeats,
spread the least and greatest.

    python benchmarks/vector_overhead.py
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

import agentgym_envs
from agentgym_envs.spaces import UnicodeText
from agentgym_envs.vector import TextVectorEnv


class DoNothing(gymnasium.Env[str, str]):
    """Answers at once; `info` is a fresh copy of `info`."""

    def __init__(self, info: dict[str, Any]) -> None:
        self.observation_space = self.action_space = UnicodeText()
        self._info = info

    def reset(self, **_: Any) -> tuple[str, dict[str, Any]]:
        return "nothing", dict(self._info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "nothing", 0.0, False, False, dict(self._info)


TEXT_INFO = {
    "task_id": "nothing/train/0",
    "turn": 1,
    "score": 0.0,
    "success": False,
    "action_valid": True,
    "end_reason": "",
}


def seconds_per_env_step(step: Callable[[], Any], num_envs: int, num_steps: int) -> float:
    gc.collect()
    start = time.perf_counter()
    for _ in range(num_steps):
        step()
    return (time.perf_counter() - start) / (num_steps * num_envs)


def measure(
    info: dict[str, Any], num_envs: int, num_steps: int, repeats: int
) -> dict[str, list[float]]:
    """Overhead in microseconds per environment step, one value a repeat."""
    make = partial(DoNothing, info)
    envs = [make() for _ in range(num_envs)]
    stock = SyncVectorEnv([make] * num_envs)
    ours = TextVectorEnv(make, num_envs)
    stock.reset()
    ours.reset()
    actions = ("do nothing",) * num_envs
    indices = list(range(num_envs))

    def bare_loop() -> None:
        for env, action in zip(envs, actions, strict=True):
            env.step(action)

    def without_lock_step() -> None:
        ours.send(indices, actions)
        ours.recv()

    steps = {
        "bare": bare_loop,
        "stock": partial(stock.step, actions),
        "step": partial(ours.step, actions),
        "send_recv": without_lock_step,
    }
    overheads: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        times = {
            name: seconds_per_env_step(step, num_envs, num_steps) for name, step in steps.items()
        }
        for name, seconds in times.items():
            overheads[name].append((seconds - times["bare"]) * 1e6)
    return overheads


def report(figure: str, values: Sequence[float], unit: str) -> None:
    versions = {
        "agentgym-suite": agentgym_envs.__version__,
        "gymnasium": gymnasium.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    line = {
        "figure": figure,
        "value": round(statistics.median(values), 3),
        "unit": unit,
        "spread": [round(min(values), 3), round(max(values), 3)],
        "versions": versions,
    }
    print(json.dumps(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--env-steps", type=int, default=40_000, help="per repeat")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    for name, info in {"empty_info": {}, "text_info": TEXT_INFO}.items():
        for num_envs in options.num_envs:
            num_steps = options.env_steps // num_envs
            overheads = measure(info, num_envs, num_steps, options.repeats)
            prefix = f"vector_overhead/{name}/n{num_envs}"
            for kind in ("stock", "step", "send_recv"):
                report(f"{prefix}/{kind}", overheads[kind], "us per env step")
            for kind in ("step", "send_recv"):
                ratios = [
                    ours / stock
                    for ours, stock in zip(overheads[kind], overheads["stock"], strict=True)
                ]
                report(f"{prefix}/{kind}_over_stock", ratios, "ratio")


if __name__ == "__main__":
    main()
