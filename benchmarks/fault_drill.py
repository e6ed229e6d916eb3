"""A fault drill: workers are killed, hang and raise while episodes run; nothing else may change.

Environments in worker processes play jobs without lock-step. In every 100 of an environment's
steps one worker is killed by SIGKILL, one hangs and one raises; whose turn it is rotates. The same
jobs are then played undisturbed by a single environment in this process. The drill passes if every
episode that was not hit has the same transcript to the letter, every fault was reported once and as
what it was, and no process is left. Prints JSON lines; ends with code 1 if it did not pass.

    python benchmarks/fault_drill.py
    python benchmarks/fault_drill.py --env agentgym_envs:AgentGym/BabyAI-v0 --workers spawn
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from common import emit

from agentgym_envs.vector import StepResult, TextVectorEnv

KILL_IDLE, KILL_BUSY, HANG, RAISE = "kill idle", "kill busy", "hang", "raise"
PERIOD = 100  # steps of an environment
NUM_TASKS, HORIZON = 50, 25
MARK = "AGENTGYM_FAULT_DRILL"


class Saboteur(gymnasium.Wrapper[str, str, str, str]):
    """Hangs or raises when a reply says so; tells the id of its process at a reset."""

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        return observation, info | {"pid": os.getpid()}

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        if action in (HANG, KILL_BUSY):
            time.sleep(3600)
        if action == RAISE:
            raise ArithmeticError("sabotage")
        return self.env.step(action)


@dataclasses.dataclass
class Job:
    """An episode: its number says which, and which replies it gets.

    Attributes:
        transcript: observation, reward, terminated, truncated and info, of the reset and each step.
        hit: the sabotage that ended it, or "".
    """

    number: int
    transcript: list[tuple[Any, ...]] = dataclasses.field(default_factory=list)
    hit: str = ""

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.number)

    @property
    def task(self) -> int:
        return self.number % NUM_TASKS

    def reply(self) -> str:
        """A command that can be done, or now and then none at all."""
        commands = self.transcript[-1][-1]["admissible"]
        if not commands or self._rng.random() < 0.1:
            return "this is no command"
        return str(commands[int(self._rng.integers(len(commands)))])


def plan_hits(num_envs: int, steps: int) -> dict[tuple[int, int], str]:
    """What is done to whom: (environment, number of its step) to a kind of sabotage."""
    plan = {}
    for period in range(steps // PERIOD):
        kill = KILL_BUSY if period % 2 else KILL_IDLE
        for position, kind in enumerate((kill, HANG, RAISE)):
            victim = (period + 3 * position) % num_envs
            plan[victim, period * PERIOD + 30 * position + 10] = kind
    return plan


class Drill:
    """Environment i of N plays the jobs i, i + N, i + 2 N and so on, for so many steps."""

    def __init__(self, env: TextVectorEnv, steps: int) -> None:
        self.jobs: list[Job] = []
        self.faults: Counter[str] = Counter()
        self._env = env
        self._steps = steps
        self._plan = plan_hits(env.num_envs, steps)
        self._current: dict[int, Job] = {}
        self._taken = [0] * env.num_envs
        self._pids = [0] * env.num_envs

    def play(self) -> None:
        """Play until every environment has taken its steps."""
        for index in range(self._env.num_envs):
            self._begin(index, index)
        while self._current:
            for index, result in self._env.recv():
                self._take(index, result)

    def _begin(self, index: int, number: int) -> None:
        job = self._current[index] = Job(number)
        self.jobs.append(job)
        self._env.send_reset([index], [job.task], [number], [HORIZON])

    def _take(self, index: int, result: StepResult) -> None:
        job = self._current[index]
        fault = result.info.pop("fault")
        if result.is_reset:
            self._pids[index] = result.info.pop("pid", 0)
        else:
            self._taken[index] += 1
        if fault:
            self.faults[kind_of(fault)] += 1
        else:
            job.transcript.append(tuple(result[:5]))
        if self._taken[index] == self._steps:
            del self._current[index]
        elif result.terminated or result.truncated:
            self._begin(index, job.number + self._env.num_envs)
        else:
            self._act(index, job)

    def _act(self, index: int, job: Job) -> None:
        reply = job.reply()
        job.hit = self._plan.get((index, self._taken[index]), "")
        if job.hit == KILL_IDLE:
            os.kill(self._pids[index], signal.SIGKILL)
        self._env.send([index], [reply if job.hit in ("", KILL_IDLE) else job.hit])
        if job.hit == KILL_BUSY:
            os.kill(self._pids[index], signal.SIGKILL)


def kind_of(fault: str) -> str:
    """The sabotage that a fault reports."""
    if "was killed by SIGKILL" in fault:
        return "kill"
    if "took longer than" in fault:
        return HANG
    return RAISE if fault == "ArithmeticError: sabotage" else fault


def num_differing(env: gymnasium.Env[str, str], jobs: Iterable[Job]) -> int:
    """How many jobs have another transcript when `env` plays them undisturbed.

    Of a job that was hit, what was played before is compared.
    """
    differing = 0
    for job in jobs:
        again = Job(job.number)
        observation, info = env.reset(
            seed=job.number, options={"task": job.task, "horizon": HORIZON}
        )
        again.transcript.append((observation, 0.0, False, False, info))
        while len(again.transcript) < len(job.transcript):
            again.transcript.append(env.step(again.reply()))
        differing += again.transcript != job.transcript
    return differing


def processes_left(mark: str) -> int:
    """Processes that were started after this one had put `mark` into its environment."""
    left = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            left += f"{MARK}={mark}".encode() in (folder / "environ").read_bytes()
        except OSError:  # it has just ended
            continue
    return left


def main() -> int:
    """Run the drill; 0 if it passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="agentgym_envs:AgentGym/TextCraft-v0")
    parser.add_argument("--workers", default="forkserver")
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=2000, help="of each environment")
    parser.add_argument("--deadline", type=float, default=5.0, help="of a step, in seconds")
    options = parser.parse_args()

    logging.getLogger("agentgym_envs").setLevel(logging.ERROR)  # there is a warning for each fault
    mark = os.environ[MARK] = uuid.uuid4().hex
    start = time.perf_counter()
    env = TextVectorEnv(
        options.env,
        options.num_envs,
        workers=options.workers,
        step_timeout_s=options.deadline,
        env_wrappers=[Saboteur],
        info_keys=["admissible"],
    )
    drill = Drill(env, options.steps)
    drill.play()
    env.close()
    seconds = time.perf_counter() - start
    left = processes_left(mark)

    alone = gymnasium.make(options.env, info_keys=["admissible"])
    differing = num_differing(alone, drill.jobs)
    num_hits = options.steps // PERIOD
    expected = {"kill": num_hits, HANG: num_hits, RAISE: num_hits}
    hit = sum(bool(job.hit) for job in drill.jobs)
    details = {"env": options.env, "workers": options.workers, "num_envs": options.num_envs}
    emit("fault_drill/episodes", len(drill.jobs), "episodes", hit=hit, **details)
    emit("fault_drill/differing", differing, "episodes", **details)
    emit("fault_drill/faults", dict(drill.faults), "faults", expected=expected, **details)
    emit("fault_drill/processes_left", left, "processes", **details)
    emit("fault_drill/time", round(seconds, 1), "s", steps=options.steps, **details)
    passed = (differing, drill.faults, left) == (0, expected, 0) and hit == 3 * num_hits
    emit("fault_drill/passed", passed, "bool", **details)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
