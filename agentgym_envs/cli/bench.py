"""``bench``: how many steps and resets a second.

What is played is recorded before it is timed, so that no policy's thinking is in the figures: the
oracle's replies, or random admissible commands. One environment is timed by itself, resets and
steps apart; ``--num-envs`` times a vector of them as a whole, where every environment begins its
next episode as soon as one has ended. A figure is the median over the repeats, its spread the
least and the greatest.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.cli.environments import Figures, made
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import EnvFault, Unsupported
from agentgym_envs.policies import RandomPolicy, package_versions, run_episode
from agentgym_envs.vector import TextVectorEnv

POLICIES = ("oracle", "random")
_NEEDS = {"oracle": "oracle", "random": "admissible"}


@dataclasses.dataclass(frozen=True)
class Script:
    """The replies of one episode."""

    task_id: str
    seed: int
    replies: tuple[str, ...]


def bench(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    arguments = dict(options.arg)
    workers = options.workers or "inline"
    if options.workers and not options.num_envs:
        raise ValueError("--workers needs --num-envs: one environment needs no workers")
    figures: Figures = {"id": options.id, "arguments": arguments, "policies": {}}
    if options.num_envs:
        figures |= {"num_envs": options.num_envs, "workers": workers}
    for policy in _policies(options.id, arguments, options.policy):
        scripts = record(options.id, arguments, policy, options.episodes, options.seed)
        runs = (
            _time_vector(options.id, arguments, scripts, options.num_envs, workers, options.repeats)
            if options.num_envs
            else _time_single(options.id, arguments, scripts, options.repeats)
        )
        rates = {name: _summary([run[name] for run in runs]) for name in runs[0]}
        counts = {"episodes": len(scripts), "steps": sum(len(one.replies) for one in scripts)}
        figures["policies"][policy] = {**rates, **counts, "repeats": options.repeats}
        told = ", ".join(f"{name} {_readable(rate)}" for name, rate in rates.items())
        print(f"{policy}: {told}; {counts['episodes']} episodes of {counts['steps']} steps in all")
    return 0, figures | {"versions": package_versions()}


def record(
    env_id: str, arguments: Mapping[str, Any], policy: str, episodes: int, seed: int
) -> list[Script]:
    """Play episodes of tasks that the seeds `seed`, `seed` + 1, … draw."""
    player = None
    if policy == "random":
        info_keys = {"admissible", *arguments.get("info_keys", ())}
        arguments = {**arguments, "info_keys": sorted(info_keys)}
    scripts = []
    with made(env_id, **arguments) as env:
        if policy == "random":
            player = RandomPolicy(seed, env.render_command)
        for number in range(seed, seed + episodes):
            episode = run_episode(env, player, seed=number)
            replies = tuple(turn.reply for turn in episode.turns)
            scripts.append(Script(episode.task.id, number, replies))
    return scripts


def _policies(env_id: str, arguments: Mapping[str, Any], wanted: str | None) -> list[str]:
    with made(env_id, **arguments) as env:
        found = [name for name in POLICIES if _NEEDS[name] in env.capabilities]
        if not found or wanted not in (None, *found):
            has = ", ".join(sorted(env.capabilities)) or "none"
            needs = _NEEDS[wanted] if wanted else " or ".join(_NEEDS.values())
            raise Unsupported(f"this needs the capability {needs}; {env_id} has: {has}")
    return [wanted] if wanted else found


def _time_single(
    env_id: str, arguments: Mapping[str, Any], scripts: Sequence[Script], repeats: int
) -> list[dict[str, float]]:
    with made(env_id, **arguments) as env:
        return [_time_once(env, scripts) for _ in range(repeats)]


def _time_once(env: TextEnv, scripts: Sequence[Script]) -> dict[str, float]:
    resets_s = steps_s = 0.0
    for script in scripts:
        start = time.perf_counter()
        env.reset(seed=script.seed, options={"task": script.task_id})
        begun = time.perf_counter()
        for reply in script.replies:
            env.step(reply)
        steps_s += time.perf_counter() - begun
        resets_s += begun - start
    num_steps = sum(len(script.replies) for script in scripts)
    return {"steps_per_s": num_steps / steps_s, "resets_per_s": len(scripts) / resets_s}


def _time_vector(
    env_id: str,
    arguments: Mapping[str, Any],
    scripts: Sequence[Script],
    num_envs: int,
    workers: str,
    repeats: int,
) -> list[dict[str, float]]:
    envs = TextVectorEnv(env_id, num_envs, workers=workers, **arguments)
    try:
        runs = []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            play_all(envs, scripts)
            seconds = time.perf_counter() - start
            num_steps = sum(len(script.replies) for script in scripts)
            runs.append(
                {"steps_per_s": num_steps / seconds, "episodes_per_s": len(scripts) / seconds}
            )
        return runs[1:]  # the first one builds the environments
    finally:
        envs.close()


def play_all(envs: TextVectorEnv, scripts: Sequence[Script]) -> None:
    """Play all scripts, each in the environment that is free next.

    Raises:
        EnvFault: a world broke.
    """
    waiting = deque(scripts)
    replies: dict[int, deque[str]] = {}

    def begin(indices: Sequence[int]) -> None:
        chosen = [(index, waiting.popleft()) for index in indices[: len(waiting)]]
        if chosen:
            replies.update({index: deque(script.replies) for index, script in chosen})
            envs.send_reset(
                [index for index, _ in chosen],
                tasks=[script.task_id for _, script in chosen],
                seeds=[script.seed for _, script in chosen],
            )

    begin(range(envs.num_envs))
    while replies:
        free: list[int] = []
        ready: list[int] = []
        for index, result in envs.recv():
            if result.fault:
                raise EnvFault(result.fault)
            (ready if replies[index] else free).append(index)
        envs.send(ready, [replies[index].popleft() for index in ready])
        for index in free:
            del replies[index]
        begin(free)


def _summary(rates: Sequence[float]) -> Figures:
    return {
        "value": round(statistics.median(rates), 1),
        "spread": [round(min(rates), 1), round(max(rates), 1)],
    }


def _readable(rate: Figures) -> str:
    low, high = rate["spread"]
    return f"{rate['value']:,.0f} [{low:,.0f} to {high:,.0f}]"
