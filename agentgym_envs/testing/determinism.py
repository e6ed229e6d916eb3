"""Checks that task, seed and replies alone decide the transcript, wherever it is played."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from agentgym_envs.testing.base import (
    MakeEnv,
    conformance_check,
    made,
    play_all,
    require,
    require_equal,
    write_scripts,
)
from agentgym_envs.testing.child import play_in_child

_HASH_SEEDS = (0, 4242)


@conformance_check
def check_fresh_instances(make: MakeEnv) -> None:
    """Fresh and used environments give the same transcript."""
    scripts = write_scripts(make)
    expected = play_all(make, scripts)
    require_equal(play_all(make, scripts), expected, "in a fresh environment")
    require_equal(play_all(make, [*scripts, *scripts])[len(scripts) :], expected, "in a used one")
    backwards = play_all(make, scripts[::-1])[::-1]
    require_equal(backwards, expected, "in another order")


@conformance_check
def check_drawn_tasks(make: MakeEnv) -> None:
    """The seed decides which task is drawn; task and seed then give the same episode again."""
    with made(make) as env:
        for seed in range(3):
            drawn = env.reset(seed=seed)
            state = env.unwrapped.np_random.bit_generator.state
            require_equal(env.reset(seed=seed), drawn, f"reset(seed={seed}) twice")
            require_equal(
                env.reset(seed=seed, options={"task": env.task.id}), drawn, "the task by name"
            )
            require_equal(
                env.unwrapped.np_random.bit_generator.state, state, "the random state by name"
            )
        if len(env.tasks) > 20:
            ids = {env.reset(seed=seed)[1]["task_id"] for seed in range(8)}
            require(len(ids) > 1, f"Eight seeds draw the same task {ids}.")


@conformance_check
def check_threads(make: MakeEnv) -> None:
    """Environments in several threads at a time do not disturb each other."""
    scripts = write_scripts(make)
    expected = play_all(make, scripts)
    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(play_all, make, scripts) for _ in range(4)]
        for future in futures:
            require_equal(future.result(), expected, "in one of four threads")


@conformance_check
def check_processes(make: MakeEnv) -> None:
    """Other processes with other hash seeds give the same transcript."""
    scripts = write_scripts(make)
    expected = play_all(make, scripts)
    with made(make) as env:
        for hash_seed in _HASH_SEEDS:
            found = play_in_child(env, scripts, hash_seed=hash_seed).transcripts
            require_equal(found, expected, f"with PYTHONHASHSEED={hash_seed}")


@conformance_check
def check_silence(make: MakeEnv) -> None:
    """Making, resetting, stepping and closing write nothing to stdout or stderr."""
    with made(make) as env:
        output = play_in_child(env, write_scripts(make)).output
    require(not output, f"It writes: {output[:500]!r}")
