"""Players that guess: what can be had without searching, or with one search and no reading.

A figure of a policy says nothing about search unless it is above these. They learn from training
tasks and see of a test task what a policy sees: the question, its set, and what a search shows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from agentgym_envs.deepsearch.actions import subject_of
from agentgym_envs.deepsearch.matching import exact_match, normalize
from agentgym_envs.tasks import Task

NEIGHBORS = 25
"""How many of the nearest training questions vote."""

_DOC = re.compile(r"^Doc \d+ ?\(Title: \"?(?P<title>.*?)\"?\) (?P<text>.*)$", re.MULTILINE)
_NAME_OR_NUMBER = re.compile(
    r"\d[\d.,]*\d|\d|[A-Z][\w'’-]*(?: (?:(?:of|the|de|da) )*[A-Z][\w'’-]*)*"
)
_CLOSED = frozenset({"is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can"})
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_QUESTION = "Question: "

Render = Callable[[str], str]
"""Makes a command into a reply, as `TextEnv.render_command` does."""


class MajorityGuess:
    """Gives the commonest answer of the set in training.

    Args:
        tasks: the training tasks.
        render: makes a command into a reply.
    """

    def __init__(self, tasks: Iterable[Task], render: Render = str) -> None:
        answers: dict[str, Counter[str]] = defaultdict(Counter)
        for task in tasks:
            answers[task.category][task.payload["answers"][0]] += 1
        self._commonest = {name: _commonest(counter) for name, counter in answers.items()}
        self._render = render

    def start(self, instructions: str) -> None:
        pass

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        """The answer, whatever is asked."""
        set_name = info["task_id"].split("/")[2]
        return self._render(f"answer {self._commonest.get(set_name, 'yes')}")


class QuestionGuess:
    """Answers as the training questions that share most words with it were answered, by a vote.

    Where the answers of most of these stand in their own questions ("A or B"), so does the guess:
    at the place, among the names in the question, where theirs stand most often.

    Args:
        tasks: the training tasks.
        render: makes a command into a reply.
    """

    def __init__(self, tasks: Iterable[Task], render: Render = str) -> None:
        self._answers: list[str] = []
        self._places: list[int] = []  # -1 if the answer is not in the question
        rows_of: dict[str, list[int]] = defaultdict(list)
        for row, task in enumerate(tasks):
            self._answers.append(task.payload["answers"][0])
            self._places.append(_place(task.goal, task.payload["answers"]))
            for word in _words(task.goal):
                rows_of[word].append(row)
        self._rows_of = {word: np.array(rows) for word, rows in rows_of.items()}
        self._render = render

    def start(self, instructions: str) -> None:
        pass

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        """The answer of the vote."""
        return self._render(f"answer {self.guess(observation.removeprefix(_QUESTION))}")

    def guess(self, question: str) -> str:
        """What the nearest questions were answered with most often; of equals, the nearest's."""
        likeness = np.zeros(len(self._answers))
        for word in _words(question):
            rows = self._rows_of.get(word)
            if rows is not None:
                likeness[rows] += 1.0
        nearest: list[int] = np.argsort(-likeness, kind="stable")[:NEIGHBORS].tolist()
        ((place, _),) = Counter(self._places[row] for row in nearest).most_common(1)
        names = _names(question)
        if 0 <= place < len(names):
            return names[place]
        return _commonest(Counter(self._answers[row] for row in nearest))


class OneSearchGuess:
    """Searches for the question as it is, then gives a name or number of the likeliest sentence.

    That is the one with the most words in common with the question, of equals the first; of what
    it names, the first that is neither in the question nor the subject of the passage. Closed
    questions are answered with yes.

    Args:
        render: makes a command into a reply.
    """

    def __init__(self, render: Render = str) -> None:
        self._render = render
        self._question = ""

    def start(self, instructions: str) -> None:
        self._question = ""

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        """The search, then the answer."""
        if not self._question:
            self._question = observation.removeprefix(_QUESTION)
            return self._render(f"search {self._question}")
        return self._render(f"answer {self.guess(observation)}")

    def guess(self, observation: str) -> str:
        """The first new name or number of the sentence that is most like the question."""
        if self._question.split()[0].lower() in _CLOSED:
            return "yes"
        asked = _words(self._question)
        best, guess = -1, "yes"
        for doc in _DOC.finditer(observation):
            known = normalize(f"{self._question} {subject_of(doc['title'])}")
            for sentence in _SENTENCE_END.split(doc["text"]):
                told = [name for name in _names(sentence) if not _is_in(name, known)]
                likeness = len(asked & _words(f"{doc['title']} {sentence}"))
                if told and likeness > best:
                    best, guess = likeness, told[0]
        return guess


def _commonest(counter: Counter[str]) -> str:
    """The commonest of `counter`, of equals the first that was counted."""
    return max(counter, key=counter.__getitem__, default="yes")


def _names(text: str) -> list[str]:
    """The names and numbers of a text; a name in front is what it is without its first word."""
    first, _, rest = text.partition(" ")
    return _NAME_OR_NUMBER.findall(rest if first.istitle() and not first[:1].isdigit() else text)


def _place(question: str, answers: Sequence[str]) -> int:
    """Where an answer stands among the names in its question, or -1."""
    names = _names(question)
    return next((at for at, name in enumerate(names) if exact_match(name, answers)), -1)


def _is_in(name: str, known: str) -> bool:
    return f" {normalize(name)} " in f" {known} "


def _words(text: str) -> set[str]:
    return set(normalize(text).split())
