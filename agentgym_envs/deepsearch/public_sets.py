"""The seven public question sets that Search-R1 (arXiv 2503.09516) and AgentGym-RL are judged on.

Neither is part of this package. Here stand their names and sizes, and AgentGym's numbering: one
range of ids over all of them, those for tests first. A number stands for a question only if the
set is there in full, in its published order; so a file of another size is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.deepsearch.questions import FAMILY
from agentgym_envs.deepsearch.tasks import QuestionTasks
from agentgym_envs.errors import InvalidTask
from agentgym_envs.tasks import Task


@dataclass(frozen=True)
class PublicSet:
    """One set.

    Attributes:
        name: as the files name it, ``"hotpotqa"``.
        title: as papers write it.
        num_test: questions for tests. Sets that publish no answers to their tests are judged on
            their development part, and count as ``test`` where the files say so.
        num_train: questions for training, 0 where none are used.
        hops: searches that a question takes, more or less; for the horizon.
    """

    name: str
    title: str
    num_test: int
    num_train: int
    hops: int


PUBLIC_SETS = (
    PublicSet("nq", "Natural Questions", 3_610, 79_168, 1),
    PublicSet("triviaqa", "TriviaQA", 11_313, 0, 1),
    PublicSet("popqa", "PopQA", 14_267, 0, 1),
    PublicSet("hotpotqa", "HotpotQA", 7_405, 90_447, 2),
    PublicSet("2wikimultihopqa", "2WikiMultihopQA", 12_576, 0, 2),
    PublicSet("musique", "MuSiQue", 2_417, 0, 3),
    PublicSet("bamboogle", "Bamboogle", 125, 0, 2),
)
"""In AgentGym's order."""

NUM_ITEMS = sum(one.num_test + one.num_train for one in PUBLIC_SETS)
"""How many numbers AgentGym has: 221,328."""


@dataclass(frozen=True)
class Place:
    """Where one of AgentGym's numbers leads.

    Attributes:
        of: the set.
        is_test: whether it is a question for tests.
        row: its place among those, from 0.
    """

    of: PublicSet
    is_test: bool
    row: int

    @property
    def size(self) -> int:
        """How many questions are where it stands."""
        return self.of.num_test if self.is_test else self.of.num_train


def place_of(number: int) -> Place:
    """Where a number of AgentGym leads.

    Raises:
        InvalidTask: there is no such number.
    """
    row = number
    for is_test in (True, False):
        for public in PUBLIC_SETS:
            place = Place(public, is_test, row)
            if 0 <= row < place.size:
                return place
            row -= place.size
    raise InvalidTask(f"AgentGym's numbers of questions go from 0 to {NUM_ITEMS - 1}, not {number}")


def task_of_item(tasks: QuestionTasks, item: AgentGymItem) -> Task:
    """The question that an item of AgentGym stands for.

    Args:
        tasks: all questions that there are.
        item: with the name ``searchqa``.

    Raises:
        InvalidTask: there is no such number, or its set is not among the questions in full.
    """
    place = place_of(item.number)
    name = place.of.name
    counts = {split: tasks.count(split, name) for split in _SPLITS[place.is_test]}
    for split, count in counts.items():
        if count == place.size:
            return tasks.of_id(f"{FAMILY}/{split}/{name}/{place.row}")
    part = "tests" if place.is_test else "training"
    raise InvalidTask(
        f"{item.id!r} is question {place.row} of the {place.size:,} for {part} of {place.of.title} "
        f"({name!r}), which must be among the questions in full; {tasks.source} has "
        f"{max(counts.values()):,} of them. Name its file in questions="
    )


_SPLITS = {True: ("test", "dev"), False: ("train",)}
