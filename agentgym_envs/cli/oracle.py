"""``oracle``: watch the oracle play an episode; exit code 1 if it does not solve the task."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from agentgym_envs.cli.environments import Figures, made
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import NoPlan
from agentgym_envs.policies import run_episode


def watch_oracle(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    with made(options.id, **dict(options.arg)) as env:
        shown = _Shown(env, options.delay)
        try:
            episode = run_episode(
                env, shown, task=options.task, seed=options.seed, horizon=options.horizon
            )
        except NoPlan as error:
            print(f"The oracle finds no way: {error}")
            return 1, {"id": options.id, "task_id": env.task.id, "success": False}
    print(episode.turns[-1].observation)
    figures = {
        "id": options.id,
        "task_id": episode.task.id,
        "turns": len(episode.turns),
        "horizon": episode.horizon,
        "return": episode.return_,
        "score": episode.score,
        "success": episode.success,
        "end_reason": str(episode.end_reason),
        "replies": [turn.reply for turn in episode.turns],
    }
    told = {name: value for name, value in figures.items() if name != "replies"}
    print(", ".join(f"{name} {value}" for name, value in told.items()))
    return int(not episode.success), figures


class _Shown:
    """The oracle of an environment, as a policy that shows what it sees and does."""

    def __init__(self, env: TextEnv, delay_s: float) -> None:
        self._env = env
        self._delay_s = delay_s

    def start(self, instructions: str) -> None:
        self._oracle = self._env.oracle()
        self._oracle.start(instructions)

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        print(observation, flush=True)
        reply = self._oracle.reply(observation, info)
        time.sleep(self._delay_s)
        print(f"[{info['turn']}/{self._env.horizon}] > {reply}", flush=True)
        return reply
