"""Playing scripts in another process, see `agentgym_envs.testing.replay`."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentgym_envs.core import TextEnv
from agentgym_envs.testing.base import ConformanceError, Script, Transcript

_TIMEOUT_S = 120.0


@dataclasses.dataclass(frozen=True)
class ChildRun:
    """What another process did: transcripts, and what it wrote to stdout and stderr."""

    transcripts: list[Transcript]
    output: str


def play_in_child(
    env: TextEnv,
    scripts: Sequence[Script],
    *,
    hash_seed: int | None = None,
    in_async_vector: bool = False,
) -> ChildRun:
    """Play scripts in a fresh process.

    Args:
        env: an environment whose spec says how to make another.
        scripts: what to play.
        hash_seed: PYTHONHASHSEED of the process; None leaves it.
        in_async_vector: play in an `AsyncVectorEnv` of that process instead of a single
            environment; the transcripts are those of the first position.

    Raises:
        ConformanceError: it hung, or ended with an error.
    """
    if env.spec is None:
        raise ConformanceError("Another process can only make what gymnasium.make has made.")
    job = {
        "spec": env.spec.to_json(),
        "scripts": [dataclasses.asdict(script) for script in scripts],
        "in_async_vector": in_async_vector,
    }
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if hash_seed is not None:
        environment["PYTHONHASHSEED"] = str(hash_seed)
    with tempfile.TemporaryDirectory() as folder:
        job_path, result_path = Path(folder, "job.json"), Path(folder, "result.jsonl")
        job_path.write_text(json.dumps(job), encoding="utf-8")
        try:
            done = _run_replay(job_path, result_path, environment)
        except subprocess.TimeoutExpired:
            raise ConformanceError(
                f"Another process hung for {_TIMEOUT_S} s at {_next_reply(scripts, result_path)}."
            ) from None
        if done.returncode:
            raise ConformanceError(
                f"Another process ended with code {done.returncode} "
                f"at {_next_reply(scripts, result_path)}:\n{done.stdout[-2000:]}"
            )
        return ChildRun(_read(result_path, len(scripts)), done.stdout)


def _run_replay(
    job_path: Path, result_path: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"{__package__}.replay", str(job_path), str(result_path)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )


def _read(result_path: Path, num_scripts: int) -> list[Transcript]:
    transcripts: list[Transcript] = [[] for _ in range(num_scripts)]
    for line in result_path.read_text(encoding="utf-8").splitlines():
        number, entry = json.loads(line)
        transcripts[number].append(entry)
    return transcripts


def _next_reply(scripts: Sequence[Script], result_path: Path) -> str:
    """The reply that a process which ended early was playing."""
    if not result_path.exists():
        return "the start"
    transcripts = _read(result_path, len(scripts))
    number = max((index for index, entries in enumerate(transcripts) if entries), default=0)
    script = scripts[number]
    played = len(transcripts[number]) - (script.state is None)
    if not 0 <= played < len(script.replies):
        return f"the end of script {number}"
    reply = script.replies[played]
    return f"reply {played} of script {number}, {len(reply)} characters: {reply[:60]!r}"
