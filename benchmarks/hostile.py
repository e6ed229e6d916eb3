"""A million replies meant to do harm, in every in-process family, format and strictness.

Replies are made from a seed: valid ones, the texts of the conformance kit, pieces of the grammar,
deep JSON, odd calls, random Unicode and absurd numbers, and mutations of all of these. Required of
every turn: nothing is raised, the observation lies in its space, `info` has its keys and types,
and the turn is counted. Required of the run: nothing on stdout or stderr, warnings included, and
resident memory that stays within `MAX_GROWTH_MIB` of what it was halfway, when every environment
has built what it keeps.

Prints JSON lines {figure, value, unit, …, versions}; exit code 1 if anything is not as required.

    python benchmarks/hostile.py
    python benchmarks/hostile.py --actions 50000
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import math
import os
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
from attacker import Attacker
from common import emit

from agentgym_envs.actions import ACTION_FORMATS
from agentgym_envs.core import INFO_TYPES
from agentgym_envs.errors import Unsupported
from agentgym_envs.registration import registered_ids

MAX_GROWTH_MIB = 16.0
MAX_HORIZON = 40


class Target:
    """One environment under attack.

    Args:
        env_id: its id.
        arguments: of the environment.
        rng: for the attacker.
    """

    def __init__(self, env_id: str, arguments: dict[str, Any], rng: random.Random) -> None:
        self.name = f"{env_id} {json.dumps(arguments)}"
        self.env: Any = gymnasium.make(env_id, **arguments)
        self._attacker = Attacker(self.env, rng)
        self.counts: Counter[str] = Counter()

    def play(self, seed: int, max_turns: int) -> Iterator[str]:
        """Play one episode; gives for each turn what is wrong with it, or ""."""
        self.env.reset(seed=seed, options={"horizon": MAX_HORIZON})
        for turn in range(1, max_turns + 1):
            reply = self._attacker.reply()
            try:
                result = self.env.step(reply)
            except Exception as error:
                yield f"{self.name}, seed {seed}, {reply[:300]!r}: {type(error).__name__}: {error}"
                return
            self.counts["actions"] += 1
            self.counts["carried_out"] += result[4].get("action_valid") is True
            wrong = self._wrong(turn, *result)
            yield f"{self.name}, seed {seed}, {reply[:300]!r}: {wrong}" if wrong else ""
            if result[2] or result[3]:
                return

    def _wrong(
        self, turn: int, observation: Any, reward: Any, terminated: Any, truncated: Any, info: Any
    ) -> str:
        if observation not in self.env.observation_space:
            return f"the observation {observation!r:.300} is not in its space"
        kinds = {name: type(info.get(name)) for name in INFO_TYPES}
        if kinds != dict(INFO_TYPES):
            return f"info has the types {kinds}"
        if info["turn"] != turn:
            return f"turn {turn} is counted as {info['turn']}"
        if type(reward) is not float or not math.isfinite(reward):
            return f"the reward is {reward!r}"
        if truncated and (terminated or turn != self.env.horizon):
            return f"terminated {terminated}, truncated {truncated} at turn {turn}"
        return ""


def make_targets(seed: int) -> tuple[list[Target], list[str]]:
    """Every environment to attack, of each id one in turn, and the ids whose extras are not
    installed.
    """
    found: list[list[Target]] = []
    missing = []
    for env_id in registered_ids():
        try:
            with contextlib.closing(gymnasium.make(env_id)) as env:
                env.reset()
                env.unwrapped.tasks.categories()  # reads what would be read task by task
                compat_modes = env.unwrapped.compat_modes
        except (ImportError, Unsupported):
            missing.append(env_id)
            continue
        ways = itertools.product(ACTION_FORMATS, (False, True), (None, *compat_modes))
        found.append([])
        for number, (action_format, strict, compat) in enumerate(ways):
            arguments = {"action_format": action_format, "strict": strict, "compat": compat}
            rng = random.Random(f"{seed} {env_id} {number}")
            found[-1].append(Target(env_id, arguments, rng))
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(*found))
    return [target for target in in_turn if target], missing


def attack(targets: Sequence[Target], num_actions: int) -> tuple[list[str], float]:
    """Send replies to the targets in turn, an episode each time.

    Returns:
        What went wrong, and by how many MiB memory has grown in the second half.
    """
    problems: list[str] = []
    num_done, before = 0, math.nan
    episodes = enumerate(itertools.cycle(targets))
    while num_done < num_actions:
        seed, target = next(episodes)
        for problem in target.play(seed, min(MAX_HORIZON, num_actions - num_done)):
            num_done += 1
            if problem:
                problems.append(problem)
        if math.isnan(before) and num_done >= num_actions / 2:
            before = resident_mib()
    return problems, resident_mib() - before


def resident_mib() -> float:
    """Resident memory of this process, after collecting garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextlib.contextmanager
def silence_watched() -> Iterator[Callable[[], str]]:
    """Catch what the process writes to stdout and stderr, also from outside Python."""
    with tempfile.TemporaryFile() as file:
        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        sys.stdout.flush()
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield lambda: os.pread(file.fileno(), 2_000, 0).decode(errors="replace")
        finally:
            sys.stdout.flush()
            for descriptor, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, descriptor)
                os.close(copy)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("always")
    with silence_watched() as written:
        targets, missing = make_targets(options.seed)
        start = time.perf_counter()
        problems, growth = attack(targets, options.actions)
        seconds = time.perf_counter() - start
        sys.stdout.flush()
        output = written()
    counts = sum((target.counts for target in targets), Counter[str]())
    emit(
        "hostile/actions",
        counts["actions"],
        "count",
        carried_out=counts["carried_out"],
        environments=len(targets),
        not_installed=missing,
        seed=options.seed,
        seconds=round(seconds, 1),
    )
    emit("hostile/problems", len(problems), "count", first=problems[:5])
    emit("hostile/output", len(output), "characters", first=output[:500])
    emit("hostile/memory_growth", round(growth, 2), "MiB", bound=MAX_GROWTH_MIB)
    return int(bool(problems or output or growth > MAX_GROWTH_MIB))


if __name__ == "__main__":
    sys.exit(main())
