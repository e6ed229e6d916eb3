"""Tasks of TextCraft: craft one item of a recipe book.

A task is named by its goal, ``textcraft/<split>/<item>`` with underscores for blanks, and has a
rank: its place among all goals of the book in the order (depth, name). The tasks of the package's
own book stand in a text file, one line a goal in the order of rank: ``split depth steps item``,
with the steps that the oracle took (`certify`). For any other book the same rules give the splits,
and the planner counts the steps of a goal when its task is asked for. Where variants are held out
(`families`) an id says so, ``textcraft/<split>/variants/<item>``: one id is never in two splits.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

import numpy as np

from agentgym_envs.errors import InvalidTask, NoPlan, UnknownName
from agentgym_envs.manifests import Manifest
from agentgym_envs.tasks import Task, TaskSet, check_split
from agentgym_envs.textcraft.families import category_of, split_of, variant_split_of
from agentgym_envs.textcraft.planner import MAX_STEPS, Planner, planner_of
from agentgym_envs.textcraft.recipes import RecipeBook, default_book

FAMILY = "textcraft"
DIGEST_LENGTH = 8
"""How many hex digits of a book's digest a task holds."""

_SHORTEST_HORIZON = 15


class Goal(NamedTuple):
    """One goal of a book; its rank is its place in the list of them."""

    item: str
    depth: int
    split: str


class BookTasks:
    """All tasks of a recipe book, as a `TaskSource` whose rows are the ranks.

    Args:
        book: the recipes.
        goals: the goals in the order of rank.
        num_steps: gives the steps of the oracle from an empty inventory.
        holdout: what their splits hold out, one of `families.HOLDOUTS`; it is part of the ids.

    Raises:
        InvalidTask: two goals would have the same id.
    """

    def __init__(
        self,
        book: RecipeBook,
        goals: Iterable[Goal],
        num_steps: Callable[[str], int],
        holdout: str = "families",
    ) -> None:
        self.book = book
        self._goals = tuple(goals)
        self._num_steps = num_steps
        self._folder = "" if holdout == "families" else f"{holdout}/"
        self._rank_of = {goal.item: rank for rank, goal in enumerate(self._goals)}
        self._rank_of_id: dict[str, int] = {}
        for rank, goal in enumerate(self._goals):
            first = self._rank_of_id.setdefault(self._id(goal), rank)
            if first != rank:
                names = f"{self._goals[first].item!r} and {goal.item!r}"
                raise InvalidTask(f"{names} would have the same id; rename one of them")

    @functools.cached_property
    def by_variants(self) -> BookTasks:
        """The same goals in the splits that hold out variants."""
        goals = [goal._replace(split=variant_split_of(goal.item)) for goal in self._goals]
        return BookTasks(self.book, goals, self._num_steps, "variants")

    def of_split(self, split: str, max_depth: int | None = None) -> TaskSet:
        """The tasks of a split, in the order of rank; a small book may have none.

        Args:
            split: name of the split.
            max_depth: leaves out deeper goals; None leaves out none.

        Raises:
            UnknownName: there is no such split.
        """
        check_split(split)
        rows = [
            rank
            for rank, goal in enumerate(self._goals)
            if goal.split == split and (max_depth is None or goal.depth <= max_depth)
        ]
        return TaskSet(self, np.array(rows, dtype=np.int64))

    def of_goal(self, item: str) -> Task:
        """The task of making `item`, of whatever split.

        Raises:
            UnknownName: it is no goal.
        """
        if item not in self._rank_of:
            raise UnknownName("goal", item, self._rank_of)
        return self.task(self._rank_of[item])

    def of_id(self, task_id: str) -> Task:
        """The task with this id.

        Raises:
            UnknownName: there is none.
        """
        rank = self.row(task_id)
        if rank is None:
            raise UnknownName("task", task_id, self.near_ids(task_id), examples=True)
        return self.task(rank)

    def __len__(self) -> int:
        return len(self._goals)

    def task(self, row: int) -> Task:
        goal = self._goals[row]
        steps = self._num_steps_if_planned(goal.item)
        task_id = self._id(goal)
        return Task(
            family=FAMILY,
            id=task_id,
            split=goal.split,
            goal=f"craft {goal.item}",
            category=category_of(goal.depth),
            seed=int(hashlib.sha256(task_id.encode()).hexdigest()[:8], 16),
            horizon=max(_SHORTEST_HORIZON, 2 * (MAX_STEPS if steps is None else steps) + 5),
            difficulty=steps,
            payload={
                "item": goal.item,
                "rank": row,
                "book": self.book.digest[:DIGEST_LENGTH],
            },
        )

    def _num_steps_if_planned(self, item: str) -> int | None:
        try:
            return self._num_steps(item)
        except NoPlan:
            return None

    def row(self, task_id: str) -> int | None:
        return self._rank_of_id.get(task_id)

    def near_ids(self, task_id: str) -> Sequence[str]:
        return tuple(self._rank_of_id)

    def _id(self, goal: Goal) -> str:
        return f"{FAMILY}/{goal.split}/{self._folder}{goal.item.replace(' ', '_')}"


def goals_of(book: RecipeBook) -> list[Goal]:
    """The goals of a book in the order of rank, with their splits by the rule of `families`."""
    return [Goal(item, book.depth[item], split_of(item)) for item in book.goals]


def tasks_of_book(book: RecipeBook, planner: Planner | None = None) -> BookTasks:
    """The tasks of any book; steps are counted when a task is asked for.

    Args:
        book: the recipes.
        planner: counts the steps; None for the planner of our own rules.
    """
    return BookTasks(book, goals_of(book), (planner or planner_of(book)).num_steps)


def tasks_of_lines(book: RecipeBook, lines: Iterable[str]) -> BookTasks:
    """The tasks whose goals stand in `lines`, ``split depth steps item``, in the order of rank.

    Raises:
        InvalidTask: a line has another form.
    """
    goals: list[Goal] = []
    steps_of: dict[str, int] = {}
    for line in lines:
        try:
            split, depth, steps, item = line.split(" ", 3)
            goals.append(Goal(item, int(depth), split))
            steps_of[item] = int(steps)
        except ValueError as error:
            raise InvalidTask(f"not a goal of {FAMILY}: {line!r}") from error
    return BookTasks(book, goals, steps_of.__getitem__)


@functools.cache
def default_tasks() -> BookTasks:
    """The certified tasks of the package's own book.

    Raises:
        InvalidTask: the data cannot be read.
    """
    lines = _data("goals.txt").read_text(encoding="utf-8").splitlines()
    return tasks_of_lines(default_book(), lines)


def certified_tasks(split: str) -> TaskSet:
    """The certified tasks of a split, in the order of rank.

    Raises:
        UnknownName: there is no such split.
    """
    return default_tasks().of_split(split)


@functools.cache
def manifest() -> Manifest:
    """What is certified.

    Raises:
        InvalidTask: the manifest is missing or cannot be read.
    """
    return Manifest.read(_data("manifest.json"))


def _data(name: str) -> Traversable:
    return resources.files("agentgym_envs.textcraft") / "data" / name
