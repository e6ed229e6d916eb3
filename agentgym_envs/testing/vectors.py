"""Checks in vector environments: ours and Gymnasium's give what a single environment gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from agentgym_envs.testing.base import (
    ConformanceError,
    MakeEnv,
    Script,
    Transcript,
    conformance_check,
    made,
    play_all,
    require,
    require_equal,
    write_scripts,
)
from agentgym_envs.testing.child import play_in_child
from agentgym_envs.vector import WORKERS, TextVectorEnv

_NUM_ENVS = 3
_QUICK_WORKERS = tuple(workers for workers in WORKERS if workers != "spawn")
"""Spawned workers take a second to start and do what forked ones do."""


@conformance_check
def check_text_vector(make: MakeEnv) -> None:
    """In `TextVectorEnv`, at every position and with all workers, episodes are the same."""
    scripts = write_scripts(make, max_turns=5)
    expected = play_all(make, scripts)
    with made(make) as single:
        spec = single.spec
    for workers in _QUICK_WORKERS:
        is_here = workers in ("inline", "threads")
        if not is_here and spec is None:
            raise ConformanceError("Another process can only make what gymnasium.make has made.")
        env = TextVectorEnv(make if is_here or spec is None else spec, _NUM_ENVS, workers=workers)
        try:
            for start in range(len(scripts)):
                turned = [(start + position) % len(scripts) for position in range(_NUM_ENVS)]
                found = _play_without_lock_step(env, [scripts[number] for number in turned])
                wanted = [expected[number] for number in turned]
                require_equal(found, wanted, f"with {workers} workers, turned by {start}")
        finally:
            env.close()


def _play_without_lock_step(env: TextVectorEnv, scripts: Sequence[Script]) -> list[Transcript]:
    transcripts: list[Transcript] = [[] for _ in scripts]
    env.send_reset(
        range(len(scripts)),
        tasks=[script.task_id for script in scripts],
        seeds=[script.seed for script in scripts],
        horizons=[script.horizon for script in scripts],
    )
    while results := env.recv():
        for index, result in results:
            require(not result.fault, f"A fault: {result.fault}")
            info = {key: value for key, value in result.info.items() if key != "fault"}
            entry: list[Any] = [result.observation, info]
            if not result.is_reset:
                entry[1:1] = [result.reward, result.terminated, result.truncated]
            transcripts[index].append(entry)
            played = len(transcripts[index]) - 1
            if played < len(scripts[index].replies) and not (result.terminated or result.truncated):
                env.send([index], [scripts[index].replies[played]])
    return transcripts


@conformance_check
def check_stock_vector(make: MakeEnv) -> None:
    """In Gymnasium's own vector environments episodes are the same."""
    scripts = write_scripts(make, num_tasks=1, max_turns=5)
    expected = play_all(make, scripts)
    one_by_one = SyncVectorEnv([make] * 2, autoreset_mode=AutoresetMode.DISABLED)
    try:
        for script, transcript in zip(scripts, expected, strict=True):
            found = play_in_lock_step(one_by_one, script)
            require_equal(found, [transcript] * 2, "in SyncVectorEnv")
    finally:
        one_by_one.close()
    with made(make) as env:
        # In another process: workers import the main module again, and ours may not like that.
        in_processes = play_in_child(env, scripts, in_async_vector=True).transcripts
    require_equal(in_processes, expected, "in AsyncVectorEnv(shared_memory=False)")


def async_vector(make_one: Callable[[], gymnasium.Env[str, str]]) -> AsyncVectorEnv[Any, Any]:
    """Two processes, the only way in which Gymnasium's own are fit for text."""
    return AsyncVectorEnv(
        [make_one] * 2,
        shared_memory=False,
        context="spawn",
        autoreset_mode=AutoresetMode.DISABLED,
    )


def play_in_lock_step(env: VectorEnv[Any, Any, Any], script: Script) -> list[Transcript]:
    """The transcripts of one script played at every position at once."""
    options = {"task": script.task_id, "horizon": script.horizon}
    seeds: Any = [script.seed] * env.num_envs
    observations, infos = env.reset(seed=seeds, options=options)
    transcripts: list[Transcript] = [
        [[observations[index], _own_info(infos, index)]] for index in range(env.num_envs)
    ]
    for reply in script.replies:
        observations, *numbers, infos = env.step((reply,) * env.num_envs)
        for index, transcript in enumerate(transcripts):
            values = [array[index].item() for array in numbers]
            transcript.append([observations[index], *values, _own_info(infos, index)])
        if numbers[1].any() or numbers[2].any():
            break
    return transcripts


def _own_info(infos: dict[str, Any], index: int) -> dict[str, Any]:
    columns = {key: infos[key][index] for key in infos if not key.startswith("_")}
    return {
        key: value.item() if hasattr(value, "item") else value for key, value in columns.items()
    }
