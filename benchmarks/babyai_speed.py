"""What BabyAI as text costs beside stock minigrid: the same worlds, the same primitives, one run.

Three figures, each the median over ten levels of ratios ours to stock:

- ``primitive``: `TextEnv.step` along the oracle's commands, per primitive that they carried out,
  to `env.step` of minigrid on the same primitives. A command is a walk of several primitives.
- ``command``: `TextEnv.step` on commands of one primitive each, to `env.step`.
- ``reset``: `TextEnv.reset` by task, with its observation, to ``env.reset(seed=…)``.

Stock is ``gymnasium.make(…).unwrapped``, its image observations included, without the wrappers
that check each call and would add to its time. What is done is recorded before it is timed, so
the oracle's planning is in no figure. Ours and stock take turns, episode by episode. Values are
CPU time, which other work on the machine disturbs least; wall time stands beside them. A spread
is the least and the greatest over repeats.

    python benchmarks/babyai_speed.py
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
from common import emit

import agentgym_envs  # noqa: F401
from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.generation import registered_levels
from agentgym_envs.babyai.view import FRONT
from agentgym_envs.errors import NoPlan

LEVELS = (
    "GoToRedBall",
    "GoToLocalS8N7",
    "GoToObjDoor",
    "Open",
    "PutNextLocalS6N4",
    "KeyCorridorS6R3",
    "OneRoomS20",
    "SynthS5R2",
    "MiniBossLevel",
    "BossLevel",
)
BARS = {"primitive": 1.0, "command": 2.0, "reset": 1.6}
"""The greatest median ratio that will do."""
COMMANDS = ("turn left", "turn right", "move forward", "pick up {}", "drop", "toggle")
"""What says one primitive, by its number; ``{}`` is what lies in front."""
MAX_TURNS = 10_000


@dataclass
class Script:
    """What is done in one episode: commands, and the primitives that they carry out."""

    task: str
    seed: int
    commands: list[str] = field(default_factory=list)
    primitives: list[int] = field(default_factory=list)


@dataclass
class Clock:
    """Time spent on one side, in seconds, and how many things were done in it."""

    cpu: float = 0.0
    wall: float = 0.0
    count: int = 0

    @contextlib.contextmanager
    def doing(self, count: int) -> Iterator[None]:
        """Add the time of a block that does `count` things."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall
        self.count += count


@dataclass
class Race:
    """Both sides over one level in one repeat."""

    ours: Clock = field(default_factory=Clock)
    stock: Clock = field(default_factory=Clock)

    def ratio(self, kind: str) -> float:
        """Ours to stock, per thing done; `kind` is ``"cpu"`` or ``"wall"``."""
        return self.microseconds("ours", kind) / self.microseconds("stock", kind)

    def microseconds(self, side: str, kind: str = "cpu") -> float:
        """Time per thing done."""
        clock: Clock = getattr(self, side)
        seconds: float = getattr(clock, kind)
        return 1e6 * seconds / clock.count


@contextlib.contextmanager
def primitives_of(env: BabyAIEnv) -> Iterator[list[int]]:
    """The primitives that minigrid is given inside the block."""
    level, seen = env.world.minigrid, []
    step = level.step

    def listen(primitive: int) -> Any:
        seen.append(primitive)
        return step(primitive)

    level.step = listen
    try:
        yield seen
    finally:
        del level.step


def walks(env: BabyAIEnv, script: Script) -> Script:
    """The oracle's episode of a task."""
    observation, info = env.reset(options={"task": script.task, "horizon": MAX_TURNS})
    oracle = env.oracle()
    while not info["end_reason"]:
        command = oracle.reply(observation, info)
        with primitives_of(env) as seen:
            observation, *_, info = env.step(command)
        script.commands.append(command)
        script.primitives += seen
    return script


def single_steps(env: BabyAIEnv, walk: Script) -> Script:
    """The same episode in commands of one primitive; those that would do nothing are left out."""
    script = Script(walk.task, walk.seed)
    _, info = env.reset(options={"task": walk.task, "horizon": MAX_TURNS})
    for primitive in walk.primitives:
        sights = env.world.view().sights
        front = next((sight.name for sight in sights if sight.place == FRONT), "")
        command = COMMANDS[primitive].format(front)
        with primitives_of(env) as seen:
            _, _, _, _, info = env.step(command)
        if info["action_valid"]:
            assert seen == [primitive], (command, seen)
            script.commands.append(command)
            script.primitives.append(primitive)
    assert info["success"], f"{walk.task} was not solved by {script.commands}"
    return script


def record(env: BabyAIEnv, level: str, num_episodes: int) -> tuple[list[Script], list[Script]]:
    """Solved episodes of a level, as the oracle plays them and in single steps."""
    episodes, seed = [], 0
    while len(episodes) < num_episodes:
        with contextlib.suppress(NoPlan):
            episodes.append(walks(env, Script(f"babyai/any/{level}/{seed}", seed)))
        seed += 1
    return episodes, [single_steps(env, walk) for walk in episodes]


def race_steps(env: BabyAIEnv, stock: Any, scripts: Sequence[Script], *, per_command: bool) -> Race:
    """Play scripts in turns on both sides; what is counted is commands or primitives."""
    race = Race()

    def play_ours(script: Script) -> None:
        env.reset(options={"task": script.task, "horizon": MAX_TURNS})
        with race.ours.doing(len(script.commands if per_command else script.primitives)):
            for command in script.commands:
                env.step(command)

    def play_stock(script: Script) -> None:
        stock.reset(seed=script.seed)
        with race.stock.doing(len(script.primitives)):
            for primitive in script.primitives:
                stock.step(primitive)

    take_turns(play_ours, play_stock, scripts)
    return race


def race_resets(env: BabyAIEnv, stock: Any, scripts: Sequence[Script]) -> Race:
    """Reset both sides to the worlds of scripts in turns."""
    race = Race()

    def reset_ours(script: Script) -> None:
        options = {"task": script.task}
        with race.ours.doing(1):
            env.reset(options=options)

    def reset_stock(script: Script) -> None:
        with race.stock.doing(1):
            stock.reset(seed=script.seed)

    take_turns(reset_ours, reset_stock, scripts)
    return race


def take_turns(
    ours: Callable[[Script], None], stock: Callable[[Script], None], scripts: Sequence[Script]
) -> None:
    """Do each script on both sides; who begins alternates."""
    gc.collect()
    for number, script in enumerate(scripts):
        for play in (ours, stock) if number % 2 else (stock, ours):
            play(script)


def report(figure: str, races: Mapping[str, Sequence[Race]]) -> None:
    """Print a figure from the races of each level, one a repeat."""
    medians = {
        kind: [
            statistics.median(race.ratio(kind) for race in repeat)
            for repeat in zip(*races.values(), strict=True)
        ]
        for kind in ("cpu", "wall")
    }
    value = statistics.median(medians["cpu"])
    emit(
        f"babyai_speed/{figure}",
        round(value, 3),
        "ratio of CPU time to stock minigrid, median over levels",
        bar=BARS[figure],
        reached=value <= BARS[figure],
        spread=spread(medians["cpu"]),
        wall=round(statistics.median(medians["wall"]), 3),
        wall_spread=spread(medians["wall"]),
        levels={level: by_level(repeats) for level, repeats in races.items()},
    )


def by_level(repeats: Sequence[Race]) -> dict[str, Any]:
    """The ratio of a level and the times behind it."""
    ratios = [race.ratio("cpu") for race in repeats]
    sides = {
        f"{side}_us": round(statistics.median(race.microseconds(side) for race in repeats), 1)
        for side in ("ours", "stock")
    }
    return {"ratio": round(statistics.median(ratios), 3), "spread": spread(ratios), **sides}


def spread(values: Sequence[float]) -> list[float]:
    """The least and the greatest."""
    return [round(min(values), 3), round(max(values), 3)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--levels", nargs="+", default=LEVELS)
    parser.add_argument("--episodes", type=int, default=20, help="a level, in each repeat")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    races: dict[str, dict[str, list[Race]]] = {figure: {} for figure in BARS}
    with contextlib.redirect_stdout(io.StringIO()):  # stock minigrid prints while it generates
        env = gymnasium.make("AgentGym/BabyAI-v0").unwrapped
        assert isinstance(env, BabyAIEnv)
        stocks = {name: gymnasium.make(registered_levels()[name].id) for name in options.levels}
        scripts = {name: record(env, name, options.episodes) for name in options.levels}
        for _ in range(options.repeats):
            for name, (episodes, singles) in scripts.items():
                stock = stocks[name].unwrapped
                for figure, race in {
                    "primitive": race_steps(env, stock, episodes, per_command=False),
                    "command": race_steps(env, stock, singles, per_command=True),
                    "reset": race_resets(env, stock, episodes),
                }.items():
                    races[figure].setdefault(name, []).append(race)
    for figure, by_name in races.items():
        report(figure, by_name)


if __name__ == "__main__":
    main()
