"""A tiny real family: reach a number and say that you are done. With everything a family can have.

`CountingEnv` has all capabilities and randomness inside the episode (`roll`); `FaultyEnv` adds
commands that break the world; `BareEnv` has no capability at all; `PlainEnv` and `CoyEnv` leave
rendering to their base, and the tasks of `CoyEnv` are only named.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
import time
from typing import Any, ClassVar

import numpy as np

from agentgym_envs.actions import Command, Grammar, verb
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import CommandError, EnvFault
from agentgym_envs.outcomes import Outcome, RewardInput
from agentgym_envs.policies import PlannedPolicy, Policy
from agentgym_envs.tasks import ListSource, Task, TaskSet
from agentgym_envs.vector import vector_factory

make_vector = vector_factory("Test/Counting-v0")


class Counter:
    """The world."""

    def __init__(self, target: int, rng: np.random.Generator) -> None:
        self.target = target
        self.value = 0
        self.labels: dict[str, str] = {}
        self.done = False
        self.rng = rng

    @property
    def score(self) -> float:
        if self.value != self.target:
            return 0.0
        return 1.0 if self.done else 0.5


@verb("add {amount}", "plus {amount}", "increase the counter by {amount}")
def add(world: Counter, amount: int) -> str:
    """Add 1 to 9 to the counter.

    Examples:
        add 3
        plus 1
        increase the counter by 9
    """
    if not 1 <= amount <= 9:
        raise CommandError(f"You can add 1 to 9, not {amount}.")
    world.value += amount
    return f"You add {amount}."


@verb("take away {amount}")
def take_away(world: Counter, amount: int) -> str:
    """Take 1 to 9 from the counter, which cannot fall below 0.

    Examples:
        take away 2
    """
    if not 1 <= amount <= min(9, world.value):
        raise CommandError(f"You cannot take {amount} from {world.value}.")
    world.value -= amount
    return f"You take away {amount}."


@verb("roll")
def roll(world: Counter) -> str:
    """Add the pips of a die.

    Examples:
        roll
    """
    pips = int(world.rng.integers(1, 7))
    world.value += pips
    return f"You roll a {pips}."


@verb("put {what} next to {where}")
def put(world: Counter, what: str, where: str) -> str:
    """Put a label next to another.

    Examples:
        put red label next to blue label
    """
    if len(world.labels) >= 3:
        raise CommandError("There is no room for another label.")
    world.labels[what] = where
    return "You put it there."


@verb("done")
def done(world: Counter) -> str:
    """Say that the counter shows the right number. This ends the episode.

    Examples:
        done
    """
    world.done = True
    return "You say that you are done."


def double_reward(turn: RewardInput) -> float:
    return 2 * (turn.score - turn.score_before)


class CountingEnv(TextEnv):
    """Reach a number."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
    family = "counting"
    version = "1"
    capabilities = frozenset({"clone", "oracle", "admissible", "state_key"})
    rewards: ClassVar = {"default": TextEnv.rewards["default"], "double": double_reward}
    extra_info_keys: ClassVar = {"labels": list}
    verbs: ClassVar = (add, take_away, roll, put, done)

    def __init__(self, *, highest: int = 12, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.highest = highest
        self.world = Counter(0, self.np_random)

    def _load_tasks(self) -> TaskSet:
        remainder = ("train", "dev", "test").index(self.split)
        numbers = [n for n in range(3, self.highest + 1) if n % 3 == remainder]
        return TaskSet(ListSource([self._make_task(n) for n in numbers]))

    def _make_task(self, number: int) -> Task:
        return Task(
            family=self.family,
            id=f"{self.family}/{self.split}/{number}",
            split=self.split,
            goal=f"Make the counter show {number}, then say done.",
            category="small" if number < 8 else "large",
            seed=None,
            horizon=10,
            difficulty=-(-number // 9) + 1,
            payload={"number": number},
        )

    def _make_grammar(self) -> Grammar:
        return Grammar(self.verbs)

    def _rules(self) -> str:
        return "You have a counter."

    def _begin(self, task: Task) -> str:
        self.world = Counter(task.payload["number"], self.np_random)
        return f"{task.goal}\nThe counter shows 0."

    def _execute(self, command: Command) -> Outcome:
        world = self.world
        text = command.verb.run(world, **command.arguments)
        if world.done and world.score == 1.0:
            return Outcome.succeeded(f"{text} Right.")
        if world.done:
            return Outcome.failed(f"{text} Wrong.", world.score)
        return Outcome.running(f"{text} The counter shows {world.value}.", world.score)

    def _admissible(self) -> list[str]:
        commands = [f"add {amount}" for amount in (1, 2, 9)] + ["roll", "done"]
        return commands + (["take away 1"] if self.world.value else [])

    def _state_key(self) -> str:
        return hashlib.sha256(json.dumps(self._save_world()).encode()).hexdigest()

    def _extra_info(self) -> dict[str, Any]:
        return {"labels": sorted(self.world.labels)}

    def _save_world(self) -> Any:
        world = self.world
        return [world.target, world.value, dict(world.labels), world.done]

    def _load_world(self, task: Task, state: Any) -> None:
        target, value, labels, is_done = state
        world = Counter(target, self.np_random)
        world.value, world.labels, world.done = int(value), dict(labels), bool(is_done)
        self.world = world

    def _make_oracle(self) -> Policy:
        def next_command() -> str:
            missing = self.world.target - self.world.value
            if missing > 0:
                return f"add {min(9, missing)}"
            return f"take away {min(9, -missing)}" if missing else "done"

        return PlannedPolicy(next_command, self.render_command)

    def _render_ansi(self) -> str:
        return f"[{self.world.value}/{self.world.target}]"

    def _render_rgb_array(self) -> np.ndarray:
        return np.full((4, 6, 3), min(255, self.world.value), dtype=np.uint8)


@verb("break")
def break_world(world: Counter) -> str:
    """Break the world.

    Examples:
        break
    """
    raise EnvFault("the counter fell off the wall")


@verb("crash")
def crash(world: Counter) -> str:
    """Run into a bug.

    Examples:
        crash
    """
    raise ZeroDivisionError("a bug")


@verb("interrupt")
def interrupt(world: Counter) -> str:
    """What Ctrl-C does.

    Examples:
        interrupt
    """
    raise KeyboardInterrupt


@verb("hang {milliseconds}")
def hang(world: Counter, milliseconds: int) -> str:
    """Answer late.

    Examples:
        hang 100
    """
    time.sleep(milliseconds / 1000)
    world.value += 1
    return "You wait."


class FaultyEnv(CountingEnv):
    """Breaks when told to. What happened to every instance is kept in the class."""

    verbs: ClassVar = (*CountingEnv.verbs, break_world, crash, interrupt, hang)

    broken_resets: ClassVar[int] = 0
    """So many of the next resets raise `EnvFault`."""
    broken_builds: ClassVar[int] = 0
    """So many of the next constructions raise `OSError`."""
    built: ClassVar[list[FaultyEnv]] = []
    """All instances, in the order in which they were made."""

    def __init__(self, **kwargs: Any) -> None:
        if FaultyEnv.broken_builds:
            FaultyEnv.broken_builds -= 1
            raise OSError("no space left on the wall")
        super().__init__(**kwargs)
        self.calls: list[str] = []
        self.threads: set[int] = set()
        FaultyEnv.built.append(self)

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        self._note("reset")
        if FaultyEnv.broken_resets:
            FaultyEnv.broken_resets -= 1
            raise EnvFault("the wall is gone")
        return super().reset(**kwargs)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._note(action)
        return super().step(action)

    def close(self) -> None:
        self._note("close")

    def _note(self, call: str) -> None:
        self.calls.append(call)
        self.threads.add(threading.get_ident())


class BareEnv(CountingEnv):
    """Has no capability."""

    family = "bare"
    capabilities = frozenset()


class PlainEnv(CountingEnv):
    """Leaves rendering to its base."""

    metadata: ClassVar = TextEnv.metadata
    _render_ansi = TextEnv._render_ansi


class CoyEnv(PlainEnv):
    """The counter, with tasks that are only named: what they ask for is in the world's words."""

    def _make_task(self, number: int) -> Task:
        return dataclasses.replace(super()._make_task(number), goal=f"number {number}")

    @property
    def goal(self) -> str:
        return f"Count to {self.task.payload['number']}."

    def _begin(self, task: Task) -> str:
        super()._begin(task)
        return f"Count to {task.payload['number']}.\nThe counter shows 0."
