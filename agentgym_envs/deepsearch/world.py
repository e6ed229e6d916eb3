"""`DeepSearchWorld`: one question, what was searched and seen so far, and what was answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.deepsearch.matching import Grades, grade
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.questions import Question


class DeepSearchWorld:
    """A question and a corpus to search for its answer.

    Args:
        question: what is asked.
        find: the passages that a query finds, best first.
        match: the rule of what is the same answer, see `matching`.
        max_answers: how many answers may be given.

    Attributes:
        queries: all searches, in order.
        seen: titles of the passages that were found, by id, in the order in which they came.
        answers: all answers, in order.
        grades: of each answer.
    """

    def __init__(
        self,
        question: Question,
        find: Callable[[str], Sequence[Passage]],
        *,
        match: str,
        max_answers: int,
    ) -> None:
        self.question = question
        self.match = match
        self.max_answers = max_answers
        self._find = find
        self.queries: list[str] = []
        self.seen: dict[str, str] = {}
        self.answers: list[str] = []
        self.grades: list[Grades] = []

    @property
    def is_right(self) -> bool:
        """Whether the last answer is right."""
        return bool(self.grades) and self.grades[-1].em == 1.0

    @property
    def is_done(self) -> bool:
        """Whether no more can be done: the answer is right, or was the last that may be given."""
        return self.is_right or len(self.answers) >= self.max_answers

    @property
    def num_gold_found(self) -> int:
        """How many of the gold passages were seen."""
        return sum(passage_id in self.seen for passage_id in self.question.gold_passages)

    def search(self, query: str) -> Sequence[Passage]:
        """Search once; what is found counts as seen.

        Raises:
            EnvFault: the search engine broke; nothing has changed.
        """
        found = self._find(query)
        self.queries.append(query)
        for passage in found:
            self.seen.setdefault(passage.id, passage.title)
        return found

    def answer(self, text: str) -> None:
        """Give an answer."""
        self.answers.append(text)
        self.grades.append(grade(text, self.question.answers, match=self.match))

    def best_grades(self, num_answers: int) -> Grades:
        """The best by each measure of the first so many answers."""
        return Grades(*map(max, zip(Grades(), *self.grades[:num_answers], strict=True)))

    def state_key(self) -> str:
        """A hash of the question, the passages seen and the answers given, as hex digits."""
        state = [self.question.text, sorted(self.seen), sorted(self.answers)]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """What changes in an episode, as JSON values."""
        return {
            "queries": list(self.queries),
            "seen": [list(pair) for pair in self.seen.items()],
            "answers": list(self.answers),
        }

    def load_json(self, state: Mapping[str, Any]) -> None:
        """Take over what `to_json` gave.

        Raises:
            ValueError, KeyError, TypeError: it gave nothing like this.
        """
        queries = arguments.text_list("queries", state["queries"])
        answers = arguments.text_list("answers", state["answers"])
        seen = dict(arguments.text_list("seen", pair) for pair in state["seen"])
        if len(answers) > self.max_answers:
            raise ValueError(f"{len(answers)} answers; {self.max_answers} may be given")
        self.queries, self.seen = queries, seen
        self.answers, self.grades = [], []
        for text in answers:
            self.answer(text)
