"""Tasks of SciWorld: an experiment and one of its variations, certified by its gold actions.

Certified tasks stand in one compressed text file, one line a task: ``experiment variation turns
moves stated``, with the turns and the units of time that the gold actions take, and a digest of the
task in the package's own words, which are not stored. The splits are the package's. Ids are
``sciworld/<split>/<experiment>/<variation>``.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
import zlib
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.manifests import Manifest
from agentgym_envs.sciworld.experiments import NAMES, experiment, split_of, variations
from agentgym_envs.tasks import SPLITS, Task, TaskSet

FAMILY = "sciworld"
_ID = re.compile(r"sciworld/([a-z]+)/([a-z0-9-]+)/(0|[1-9][0-9]{0,8})", re.ASCII)
_SHORTEST_HORIZON = 20


def digest_of(statement: str) -> str:
    """A short digest of a task in words, whatever its blanks: 12 hexadecimal digits of SHA-256."""
    return hashlib.sha256(" ".join(statement.split()).encode()).hexdigest()[:12]


class Row(NamedTuple):
    """One certified task.

    Attributes:
        experiment: its name.
        variation: its number.
        turns: how many gold actions reach the goal.
        moves: how many units of time they take.
        stated: `digest_of` the task in the simulator's words.
    """

    experiment: str
    variation: int
    turns: int
    moves: int
    stated: str

    def __str__(self) -> str:
        return " ".join(map(str, self))

    @classmethod
    def parse(cls, line: str) -> Row:
        """The row that a line holds.

        Raises:
            InvalidTask: it holds none.
        """
        try:
            name, variation, turns, moves, stated = line.split(" ")
            return cls(name, int(variation), int(turns), int(moves), stated)
        except ValueError as error:
            raise InvalidTask(f"not a task of {FAMILY}: {line!r}") from error

    def task(self) -> Task:
        """The row as a task."""
        return Task(
            family=FAMILY,
            id=_id_of(self.experiment, self.variation),
            split=split_of(self.experiment, self.variation),
            goal=f"{self.experiment}, variation {self.variation}",
            category=self.experiment,
            seed=None,
            horizon=max(_SHORTEST_HORIZON, 2 * self.turns + 5),
            difficulty=self.turns,
            payload={
                "experiment": self.experiment,
                "variation": self.variation,
                "stated": self.stated,
            },
        )


class RowSource:
    """The rows of one split and some experiments, in turn one of each experiment.

    Args:
        split: name of the split.
        names: of experiments.
        max_moves: most units of time that the gold actions take; None for no limit.
    """

    def __init__(self, split: str, names: Sequence[str], max_moves: int | None = None) -> None:
        order = [name for name in NAMES if name in names]
        by_turn = sorted(
            (turn, order.index(name), row)
            for name in order
            for turn, row in enumerate(
                row
                for row in certified_rows(name).values()
                if row.variation in variations(name, split)
                and (max_moves is None or row.moves <= max_moves)
            )
        )
        self._rows = [row for _, _, row in by_turn]
        self._split = split
        self._index_of = {
            (row.experiment, row.variation): index for index, row in enumerate(self._rows)
        }

    def __len__(self) -> int:
        return len(self._rows)

    def task(self, row: int) -> Task:
        return self._rows[row].task()

    def row(self, task_id: str) -> int | None:
        match = _ID.fullmatch(task_id)
        if match is None or match[1] != self._split:
            return None
        return self._index_of.get((match[2], int(match[3])))

    def near_ids(self, task_id: str) -> Sequence[str]:
        match = re.match(r"sciworld/[a-z]+/([a-z0-9-]+)", task_id)
        same = [row for row in self._rows if match and row.experiment == match[1]]
        return [row.task().id for row in same or self._rows[: len(NAMES)]]


def _id_of(name: str, variation: int) -> str:
    """The id of a variation."""
    return f"{FAMILY}/{split_of(name, variation)}/{name}/{variation}"


def certified_tasks(
    split: str, names: Sequence[str] = NAMES, max_moves: int | None = None
) -> TaskSet:
    """The certified tasks of some experiments.

    Args:
        split: name of the split.
        names: of experiments.
        max_moves: most units of time that the gold actions take; None for no limit.

    Raises:
        InvalidTask: these experiments have none in this split, or the data cannot be read.
    """
    source = RowSource(split, names, max_moves)
    if len(source) == 0:
        raise InvalidTask(f"no task of {FAMILY}/{split} is certified for {', '.join(names)}")
    return TaskSet(source)


def certified_task(task_id: str) -> Task:
    """The certified task with this id.

    Raises:
        UnknownName: there is no such task, split or experiment.
        InvalidTask: there is no such variation, or it is not certified; the text says why.
    """
    match = _ID.fullmatch(task_id)
    if match is None or match[1] not in SPLITS:
        first = [_id_of("boil", variations("boil", split).start) for split in SPLITS]
        raise UnknownName("task", task_id, first, examples=True)
    split, name, variation = match[1], match[2], int(match[3])
    total = experiment(name).num_variations
    if variation >= total:
        valid = variations(name, split)
        raise InvalidTask(
            f"{name} has the variations 0 to {total - 1}, {split} those from {valid.start} to "
            f"{valid.stop - 1}; got {variation}"
        )
    if split != split_of(name, variation):
        raise UnknownName("task", task_id, [_id_of(name, variation)])
    row = certified_rows(name).get(variation)
    if row is None:
        reason = manifest().notes["unsolved"].get(f"{name} {variation}", "nobody has tried it yet")
        raise InvalidTask(f"{task_id!r} is not certified: {reason}")
    return row.task()


def certified_variation(name: str, variation: int) -> Task:
    """The certified task of a variation, of whatever split.

    Raises:
        InvalidTask: it is not certified.
    """
    return certified_task(_id_of(name, variation))


@functools.cache
def manifest() -> Manifest:
    """What is certified.

    Raises:
        InvalidTask: the manifest is missing or cannot be read.
    """
    return Manifest.read(_data("manifest.json"))


@functools.cache
def _all_rows() -> dict[str, dict[int, Row]]:
    try:
        text = gzip.decompress(_data("tasks.txt.gz").read_bytes()).decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InvalidTask(f"cannot read the tasks of {FAMILY}: {error}") from error
    rows: dict[str, dict[int, Row]] = {name: {} for name in NAMES}
    for line in text.splitlines():
        row = Row.parse(line)
        rows[row.experiment][row.variation] = row
    return rows


def certified_rows(name: str) -> dict[int, Row]:
    """The certified rows of an experiment by variation, in order."""
    return _all_rows()[name]


def _data(name: str) -> Traversable:
    return resources.files("agentgym_envs.sciworld") / "data" / name
