"""The other process: makes an environment from its spec, plays scripts, writes what came of it.

``python -m agentgym_envs.testing.replay JOB RESULT``: two paths. The job is JSON with a spec and
scripts. The result is one JSON line a turn, ``[script, entry]``, each written before the next turn
begins, so that a process that hangs leaves behind how far it came. Nothing goes to stdout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import gymnasium
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.core import TextEnv
from agentgym_envs.testing.base import Script, begin, turns
from agentgym_envs.testing.vectors import async_vector, play_in_lock_step


def main(job_path: str, result_path: str) -> None:
    """Play the job."""
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    spec = EnvSpec.from_json(job["spec"])
    scripts = [Script(**fields) for fields in job["scripts"]]
    entries = _in_async_vector(spec, scripts) if job["in_async_vector"] else _alone(spec, scripts)
    with open(result_path, "w", encoding="utf-8") as result:
        for entry in entries:
            result.write(json.dumps(entry) + "\n")
            result.flush()


def _alone(spec: EnvSpec, scripts: list[Script]) -> Iterator[tuple[int, list[Any]]]:
    env = cast(TextEnv, gymnasium.make(spec))
    for number, script in enumerate(scripts):
        for entry in begin(env, script):
            yield number, entry
        for entry in turns(env, script.replies):
            yield number, entry
    env.close()


def _in_async_vector(spec: EnvSpec, scripts: list[Script]) -> Iterator[tuple[int, list[Any]]]:
    env = async_vector(partial(gymnasium.make, spec))
    for number, script in enumerate(scripts):
        first, second = play_in_lock_step(env, script)
        if first != second:
            raise AssertionError(f"two positions differ: {first} {second}")
        for entry in first:
            yield number, entry
    env.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
