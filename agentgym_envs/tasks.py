"""Tasks and task sets.

A `Task` is frozen data that alone fixes the world at the start. A `TaskSet` is a lazy, sized view
of tasks: it holds row numbers into a `TaskSource` and makes a `Task` when one is asked for, so a
set of a hundred thousand tasks costs an array. Families implement `TaskSource`; splits are named,
never index arithmetic.

Left out: weights. They belong to whoever samples tasks.
"""

from __future__ import annotations

import bisect
import dataclasses
import hashlib
import itertools
import json
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, overload

import numpy as np

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.spaces import is_utf8

SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class Task:
    """What a family needs to build one world, and what is known about it.

    Attributes:
        family: the family's name, ``"babyai"``.
        id: stable and unique in the family, ``"babyai/test/GoToRedBall/10"``.
        split: ``"train"``, ``"dev"``, ``"test"``, or ``"any"`` for a task outside the manifests.
        goal: the goal in words; where the words are the simulator's, the name of the task, see
            `TextEnv.goal`.
        category: the group in which results are reported.
        seed: the world seed, or None where the family generates nothing.
        horizon: hint: how many turns an episode may take when nobody says otherwise.
        difficulty: turns that the oracle needs, or None if it has not solved the task.
        payload: what else the family needs; JSON values.

    Raises:
        InvalidTask: a field is of a wrong kind.
    """

    family: str
    id: str
    split: str
    goal: str
    category: str
    seed: int | None
    horizon: int
    difficulty: int | None = None
    payload: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("family", "id", "split", "goal", "category"):
            value = getattr(self, name)
            self._require(name, "a text", isinstance(value, str))
            self._require(name, "a text without lone surrogates", is_utf8(value))
        self._require("seed", "None or at least 0", self.seed is None or _is_count(self.seed, 0))
        self._require("horizon", "at least 1", _is_count(self.horizon, 1))
        known = self.difficulty
        self._require("difficulty", "None or at least 0", known is None or _is_count(known, 0))
        self._require("payload", "a mapping", isinstance(self.payload, Mapping))
        object.__setattr__(self, "payload", MappingProxyType(dict(self.payload)))

    def _require(self, name: str, what: str, holds: bool) -> None:
        if not holds:
            value = getattr(self, name)
            raise InvalidTask(f"task {self.id!r}: {name} must be {what}, got {value!r}")

    def __hash__(self) -> int:
        return hash((self.family, self.id))

    def __reduce__(self) -> tuple[Any, ...]:
        return Task.from_json, (self.to_json(),)

    def to_json(self) -> dict[str, Any]:
        """The task as JSON values."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return fields | {"payload": dict(self.payload)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        """The task that `to_json` described.

        Raises:
            InvalidTask: a field is missing, unknown or of a wrong kind.
        """
        if not isinstance(data, Mapping):
            raise InvalidTask(f"not a task: expected a mapping, got {type(data).__name__}")
        try:
            return cls(**data)
        except (TypeError, ValueError) as error:
            raise InvalidTask(f"not a task: {error}; got keys {sorted(data)}") from None


class TaskSource(Protocol):
    """Where a task set gets its tasks: rows of one split of one family."""

    def __len__(self) -> int:
        """Number of tasks."""
        ...

    def task(self, row: int) -> Task:
        """The task of row `row`, 0 <= row < len."""
        ...

    def row(self, task_id: str) -> int | None:
        """The row of the task with this id, or None."""
        ...

    def near_ids(self, task_id: str) -> Sequence[str]:
        """A few existing ids to suggest for an id that does not exist."""
        ...


class TaskSet(Sequence[Task]):
    """A lazy view of some tasks of a `TaskSource`, in a fixed order.

    `len`, iteration, ``[]`` with integers, slices and ids, `head`, `shuffle` and `filter`; each
    returns a new view and copies no task.

    Args:
        source: the rows.
        rows: which rows, in which order; all of them if None.
    """

    def __init__(self, source: TaskSource, rows: np.ndarray | None = None) -> None:
        self._source = source
        self._rows = np.arange(len(source)) if rows is None else np.asarray(rows, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, key: int | str) -> Task: ...
    @overload
    def __getitem__(self, key: slice) -> TaskSet: ...
    def __getitem__(self, key: int | str | slice) -> Task | TaskSet:
        if isinstance(key, slice):
            return TaskSet(self._source, self._rows[key])
        if isinstance(key, str):
            row = self._source.row(key)
            if row is None:
                raise UnknownName("task", key, self._source.near_ids(key), examples=True)
            if row not in self._rows:
                raise UnknownName("task of this set", key, self.head(5).ids, examples=True)
            return self._source.task(row)
        try:
            row = int(self._rows[operator.index(key)])
        except IndexError:
            raise IndexError(f"task index {key} is out of range; there are {len(self)}") from None
        return self._source.task(row)

    def __iter__(self) -> Iterator[Task]:
        return (self._source.task(int(row)) for row in self._rows)

    def __contains__(self, item: object) -> bool:
        task_id = item.id if isinstance(item, Task) else item
        return isinstance(task_id, str) and self.position(task_id) is not None

    def position(self, task_id: str) -> int | None:
        """Where in this set the task with this id is, or None."""
        row = self._source.row(task_id)
        if row is None:
            return None
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    def near_ids(self, task_id: str) -> Sequence[str]:
        """A few ids to suggest for one that does not exist."""
        return self._source.near_ids(task_id)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, in order."""
        return tuple(task.id for task in self)

    def head(self, n: int) -> TaskSet:
        """The first `n` tasks, or all if there are fewer.

        Raises:
            ValueError: `n` is negative.
        """
        if n < 0:
            raise ValueError(f"head() takes a number of tasks, at least 0; got {n}")
        return self[:n]

    def shuffle(self, seed: int) -> TaskSet:
        """The same tasks in an order that depends on `seed` alone."""
        return TaskSet(self._source, np.random.default_rng(seed).permutation(self._rows))

    def filter(self, keep: Callable[[Task], bool]) -> TaskSet:
        """The tasks for which `keep` is true, in the same order."""
        rows = [int(row) for row in self._rows if keep(self._source.task(int(row)))]
        return TaskSet(self._source, np.array(rows, dtype=np.int64))

    def categories(self) -> dict[str, int]:
        """Number of tasks by category, sorted by name."""
        return dict(sorted(Counter(task.category for task in self).items()))

    def digest(self) -> str:
        """SHA-256 over the tasks in order, as hex digits: equal sets have equal digests."""
        digest = hashlib.sha256()
        for task in self:
            digest.update(json.dumps(task.to_json(), sort_keys=True).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"TaskSet({len(self)} tasks)"


class ListSource:
    """A `TaskSource` over tasks that are held in memory.

    Args:
        tasks: the tasks; their ids must differ.

    Raises:
        InvalidTask: two tasks have the same id.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        self._row_of = {task.id: row for row, task in enumerate(self._tasks)}
        if len(self._row_of) < len(self._tasks):
            twice = [name for name, n in Counter(t.id for t in self._tasks).items() if n > 1]
            raise InvalidTask(f"task ids must differ; more than once: {twice[:5]}")

    def __len__(self) -> int:
        return len(self._tasks)

    def task(self, row: int) -> Task:
        return self._tasks[row]

    def row(self, task_id: str) -> int | None:
        return self._row_of.get(task_id)

    def near_ids(self, task_id: str) -> Sequence[str]:
        return tuple(self._row_of)


class _JoinedSource:
    """The tasks of several sets, one after the other."""

    def __init__(self, sets: Sequence[TaskSet]) -> None:
        self._sets = sets
        self._starts = [0, *itertools.accumulate(len(tasks) for tasks in sets)]

    def __len__(self) -> int:
        return self._starts[-1]

    def task(self, row: int) -> Task:
        which = bisect.bisect_right(self._starts, row) - 1
        return self._sets[which][row - self._starts[which]]

    def row(self, task_id: str) -> int | None:
        for start, tasks in zip(self._starts, self._sets, strict=False):
            if (position := tasks.position(task_id)) is not None:
                return start + position
        return None

    def near_ids(self, task_id: str) -> Sequence[str]:
        return [near for tasks in self._sets for near in tasks.near_ids(task_id)]


def join(sets: Sequence[TaskSet]) -> TaskSet:
    """The tasks of `sets` in turns, so that the first few are of all sets; copies no task.

    The first task of each set comes first, then the second of each, and so on; when a set has come
    to its end the others go on.

    Args:
        sets: sets that share no id.
    """
    turns = np.concatenate([np.arange(len(tasks)) for tasks in sets])
    return TaskSet(_JoinedSource(sets), np.argsort(turns, kind="stable"))


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def check_split(split: str, known: Sequence[str] = SPLITS) -> str:
    """Return `split` if it is known.

    Raises:
        UnknownName: it is not.
    """
    if split not in known:
        raise UnknownName("split", split, known)
    return split
