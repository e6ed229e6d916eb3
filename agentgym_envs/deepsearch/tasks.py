"""Tasks of Deep Search: the questions of a file.

Ids are ``deepsearch/<split>/<set>/<n>``; the set is the category. The package's own questions are
a file of records (`questions`); other files are turned into such records when they are read
(`qa_files`). Records are kept as the bytes of their lines and read again when a task is asked for:
two hundred thousand of them as objects would take a gigabyte.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np

from agentgym_envs.deepsearch.questions import FAMILY as FAMILY
from agentgym_envs.deepsearch.questions import check_record, task_of_record
from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.manifests import Manifest
from agentgym_envs.tasks import Task, TaskSet, check_split


class QuestionTasks:
    """All questions of one source, as a `TaskSource`.

    Args:
        records: see `questions`, in order; every one is checked.
        source: what they are from, for messages.

    Raises:
        InvalidTask: a record is none, or two have one id.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]], source: str) -> None:
        ends: list[int] = []
        self._text = bytearray()
        self._row_of: dict[str, int] = {}
        self._groups: dict[tuple[str, str], list[int]] = {}
        for row, record in enumerate(records):
            try:
                check_record(record)
            except (ValueError, TypeError) as error:
                raise InvalidTask(f"{source}: record {row + 1} is no question: {error}") from None
            if self._row_of.setdefault(record["id"], row) != row:
                raise InvalidTask(f"{source}: two questions have the id {record['id']!r}")
            self._groups.setdefault((record["split"], record["set"]), []).append(row)
            self._text += json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
            ends.append(len(self._text))
        self.source = source
        self._ends = np.array(ends, dtype=np.int64)

    @property
    def sets(self) -> tuple[str, ...]:
        """The names of the sets, sorted."""
        return tuple(sorted({name for _, name in self._groups}))

    def count(self, split: str, name: str) -> int:
        """How many questions of a set are in a split."""
        return len(self._groups.get((split, name), ()))

    def of_split(self, split: str, sets: Sequence[str] | None = None) -> TaskSet:
        """The tasks of a split, in the order of the source; there may be none.

        Args:
            split: name of the split.
            sets: names of sets; None for all.

        Raises:
            UnknownName: there is no such split or set.
        """
        check_split(split)
        for name in sets or ():
            if name not in self.sets:
                raise UnknownName("question set", name, self.sets)
        rows = [
            row
            for (of_split, name), group in self._groups.items()
            if of_split == split and (sets is None or name in sets)
            for row in group
        ]
        return TaskSet(self, np.array(sorted(rows), dtype=np.int64))

    def of_id(self, task_id: str) -> Task:
        """The task with this id, of whatever split.

        Raises:
            UnknownName: there is none.
        """
        row = self.row(task_id)
        if row is None:
            raise UnknownName("task", task_id, self.near_ids(task_id), examples=True)
        return self.task(row)

    def __len__(self) -> int:
        return len(self._ends)

    def task(self, row: int) -> Task:
        start = self._ends[row - 1] if row else 0
        return task_of_record(json.loads(self._text[start : self._ends[row]]))

    def row(self, task_id: str) -> int | None:
        return self._row_of.get(task_id)

    def near_ids(self, task_id: str) -> Sequence[str]:
        """Ids of the same split and set, or of all if the id names none; at most a few hundred."""
        folder = task_id.rpartition("/")[0]
        same = [known for known in self._row_of if known.startswith(f"{folder}/")]
        return (same or list(self._row_of))[:_MOST_NEAR]


_MOST_NEAR = 300
"""Comparing an unknown id with each of a hundred thousand would take minutes."""


@functools.cache
def default_questions() -> QuestionTasks:
    """The package's own questions.

    Raises:
        InvalidTask: the data cannot be read.
    """
    try:
        with _data("questions.jsonl.gz").open("rb") as packed, gzip.open(packed) as lines:
            return QuestionTasks(map(json.loads, lines), "the package's questions")
    except (OSError, EOFError) as error:
        raise InvalidTask(f"the questions of {FAMILY} cannot be read: {error}") from error


def certified_tasks(split: str) -> TaskSet:
    """The package's own tasks of a split.

    Raises:
        UnknownName: there is no such split.
    """
    return default_questions().of_split(split)


@functools.cache
def manifest() -> Manifest:
    """What is certified.

    Raises:
        InvalidTask: the manifest is missing or cannot be read.
    """
    return Manifest.read(_data("manifest.json"))


def _data(name: str) -> Traversable:
    return resources.files("agentgym_envs.deepsearch") / "data" / name
