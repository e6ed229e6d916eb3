"""Tasks of BabyAI: a level and a seed, certified by the oracle or not.

Certified tasks stand in one compressed text file a level, one line a task:
``split seed oracle_turns digest8 goal``. A split is a function of the layout, so no layout is in
two splits. The manifest counts the tasks by level, so the size of a task set is known without
opening a file, and a file is read when a task of its level is wanted. Ids are
``babyai/<split>/<level>/<seed>``; the split ``any`` stands for every world of every level, whose
goal is only known once it is built.
"""

from __future__ import annotations

import functools
import gzip
import re
import zlib
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

import numpy as np

from agentgym_envs.babyai.levels import check_level
from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.manifests import Manifest
from agentgym_envs.tasks import SPLITS, Task, TaskSet

FAMILY = "babyai"
ANY = "any"
DIGEST_LENGTH = 8
"""How many hex digits of a layout's digest a row holds."""

_ID = re.compile(r"babyai/(\w+)/(\w+)/(0|[1-9][0-9]{0,17})", re.ASCII)
_SHORTEST_ANY_HORIZON = 16


class TaskName(NamedTuple):
    """The parts of a task id."""

    split: str
    level: str
    seed: int

    def __str__(self) -> str:
        return f"{FAMILY}/{self.split}/{self.level}/{self.seed}"


def parse_task_id(task_id: str) -> TaskName:
    """The parts of `task_id`.

    Raises:
        UnknownName: it has another form, or there is no such split or level.
    """
    match = _ID.fullmatch(task_id)
    if match is None:
        examples = [str(TaskName(split, "GoToRedBall", 0)) for split in (*SPLITS, ANY)]
        raise UnknownName("task", task_id, examples, examples=True)
    split, level, seed = match.groups()
    if split not in (*SPLITS, ANY):
        raise UnknownName("split", split, (*SPLITS, ANY))
    return TaskName(split, check_level(level), int(seed))


def split_of(digest: str) -> str:
    """The split that a layout belongs to: 80 % train, 8 % dev, 12 % test.

    Args:
        digest: hex digits, at least 8, of `BabyAIWorld.layout`.
    """
    share = int(digest[:DIGEST_LENGTH], 16) % 25
    return "train" if share < 20 else "dev" if share < 22 else "test"


def certified_tasks(split: str, levels: Sequence[str], turns_factor: int = 1) -> TaskSet:
    """The certified tasks of some levels, in turn one of each level.

    Args:
        split: name of the split.
        levels: names of levels.
        turns_factor: `Dialect.turns_factor`, for the horizons.

    Raises:
        InvalidTask: these levels have none, or the data cannot be read.
    """
    source = LevelSource(split, levels, turns_factor)
    if len(source) == 0:
        raise InvalidTask(
            f"no task of {FAMILY}/{split} is certified for {', '.join(levels)}; uncertified "
            f"worlds have ids such as '{TaskName(ANY, levels[0], 0)}'"
        )
    return TaskSet(source)


def certified_task(name: TaskName, turns_factor: int = 1) -> Task:
    """The certified task called `name`.

    Raises:
        UnknownName: there is none.
    """
    source = LevelSource(name.split, [name.level], turns_factor)
    row = source.row(str(name))
    if row is None:
        raise UnknownName("task", str(name), source.near_ids(str(name)), examples=True)
    return source.task(row)


def certified_task_of_world(level: str, seed: int, turns_factor: int = 1) -> Task | None:
    """The certified task of whatever split that plays this world, or None."""
    for split in SPLITS:
        source = LevelSource(split, [level], turns_factor)
        row = source.row(str(TaskName(split, level, seed)))
        if row is not None:
            return source.task(row)
    return None


def uncertified_task(level: str, seed: int, goal: str, max_steps: int, turns_factor: int) -> Task:
    """The task of any world, with a horizon from minigrid's own limit.

    Args:
        level: name of the level.
        seed: world seed.
        goal: the mission of that world.
        max_steps: minigrid's limit in primitives; a high-level command takes about four.
        turns_factor: `Dialect.turns_factor`.
    """
    turns = min(max_steps, turns_factor * max_steps // 4)
    return Task(
        family=FAMILY,
        id=str(TaskName(ANY, level, seed)),
        split=ANY,
        goal=goal,
        category=level,
        seed=seed,
        horizon=max(_SHORTEST_ANY_HORIZON, turns),
        payload={"level": level},
    )


class LevelSource:
    """The certified tasks of one split and some levels, as a `TaskSource`.

    Args:
        split: name of the split.
        levels: names of levels; those without certified tasks add none.
        turns_factor: `Dialect.turns_factor`, for the horizons.
    """

    def __init__(self, split: str, levels: Sequence[str], turns_factor: int = 1) -> None:
        counts = manifest().splits[split].categories
        self._split = split
        self._levels = [level for level in levels if counts.get(level)]
        self._turns_factor = turns_factor
        sizes = [counts[level] for level in self._levels]
        level_of = np.repeat(np.arange(len(sizes)), sizes)
        turn_of = np.concatenate([np.arange(size) for size in sizes] or [np.arange(0)])
        order = np.lexsort((level_of, turn_of))
        self._level_of, self._turn_of = level_of[order], turn_of[order]
        self._row_of = np.argsort(order)
        self._first = dict(zip(self._levels, np.cumsum([0, *sizes]).tolist(), strict=False))

    def __len__(self) -> int:
        return len(self._level_of)

    def task(self, row: int) -> Task:
        level = self._levels[self._level_of[row]]
        line = _rows(level, self._split)[self._turn_of[row]]
        try:
            _, seed, turns, digest, goal = line.split(" ", 4)
            return Task(
                family=FAMILY,
                id=str(TaskName(self._split, level, int(seed))),
                split=self._split,
                goal=goal,
                category=level,
                seed=int(seed),
                horizon=2 * self._turns_factor * int(turns) + 5,
                difficulty=int(turns),
                payload={"level": level, "digest": digest},
            )
        except ValueError as error:
            raise InvalidTask(f"not a task of {level}: {line!r}") from error

    def row(self, task_id: str) -> int | None:
        split, level, seed = match.groups() if (match := _ID.fullmatch(task_id)) else ("", "", "")
        if split != self._split or level not in self._first:
            return None
        turn = _turn_of_seed(level, split).get(seed)
        return None if turn is None else int(self._row_of[self._first[level] + turn])

    def near_ids(self, task_id: str) -> Sequence[str]:
        level = match[2] if (match := _ID.fullmatch(task_id)) else ""
        if level in self._first:
            seeds = list(_turn_of_seed(level, self._split))
            return [str(TaskName(self._split, level, int(seed))) for seed in seeds]
        return [self.task(row).id for row in range(min(len(self), len(self._levels)))]


@functools.cache
def manifest() -> Manifest:
    """What is certified.

    Raises:
        InvalidTask: the manifest is missing or cannot be read.
    """
    return Manifest.read(_data("manifest.json"))


def _data(name: str) -> Traversable:
    return resources.files("agentgym_envs.babyai") / "data" / name


@functools.lru_cache(maxsize=256)
def _rows(level: str, split: str) -> list[str]:
    """The lines of one level and split, in the order of the file."""
    try:
        lines = gzip.decompress(_data(f"{level}.txt.gz").read_bytes()).decode().splitlines()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InvalidTask(f"cannot read the tasks of {level}: {error}") from error
    rows = [line for line in lines if line.startswith(f"{split} ")]
    expected = manifest().splits[split].categories[level]
    if len(rows) != expected:
        raise InvalidTask(
            f"the manifest counts {expected} tasks of {level} in {split}, "
            f"the file has {len(rows)}; the data files do not belong together"
        )
    return rows


@functools.lru_cache(maxsize=256)
def _turn_of_seed(level: str, split: str) -> dict[str, int]:
    return {row.split(" ", 2)[1]: turn for turn, row in enumerate(_rows(level, split))}
