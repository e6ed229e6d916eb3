"""Questions by following facts from one thing to the next, with the searches that answer them.

A path starts at a thing, named by itself or by one of its values ("the country whose capital is
..."), follows links, and ends in a question about the last thing. Every step is one fact and one
passage; all facts of a question are in one split.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from agentgym_envs.deepsearch.generator.corpus import Corpus, names_of
from agentgym_envs.deepsearch.generator.facts import Entity
from agentgym_envs.deepsearch.generator.phrasings import (
    Wordings,
    capitalize,
    choice,
    fill,
    open_ended,
    phrasings_of,
    pick,
)
from agentgym_envs.deepsearch.generator.splits import fact_id, split_of
from agentgym_envs.deepsearch.matching import sub_em
from agentgym_envs.deepsearch.retrievers.terms import terms_of

NEXT = "next"
BEFORE = "before"
"""Steps from an element to its neighbors by atomic number; no facts of their own."""

_BESIDE = {
    NEXT: (
        1,
        (
            "the element that comes right after {e} in the periodic table",
            "the element whose atomic number is one higher than that of {e}",
            "the element next after {e} by atomic number",
            "the element with one proton more than {e}",
            "the element that follows {e} directly in order of atomic number",
            "the element numbered one above {e}",
        ),
    ),
    BEFORE: (
        -1,
        (
            "the element that comes right before {e} in the periodic table",
            "the element whose atomic number is one lower than that of {e}",
            "the element last before {e} by atomic number",
            "the element with one proton less than {e}",
            "the element that precedes {e} directly in order of atomic number",
            "the element numbered one below {e}",
        ),
    ),
}


@dataclasses.dataclass(frozen=True)
class Step:
    """One search: `query` finds the passage that tells `answer`, a form of the fact `fact`."""

    query: str
    passage_id: str
    answer: str
    fact: str


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A question that may be kept, see `checks`.

    Attributes:
        type: the path or comparison that it is made by.
        led: whether its steps lead from one thing to another.
    """

    set: str
    split: str
    type: str
    question: str
    answers: tuple[str, ...]
    steps: tuple[Step, ...]
    led: bool = False

    @property
    def gold_passages(self) -> list[str]:
        """Ids of the passages of all steps, none twice."""
        return list(dict.fromkeys(step.passage_id for step in self.steps))


@dataclasses.dataclass(frozen=True)
class Path:
    """What a family of questions looks like.

    Attributes:
        kind: of the thing where it starts.
        links: relations that it follows; `NEXT` and `BEFORE` for elements.
        inverse: whether the start is named by a value instead of by its name.
        finals: relations asked for at the end; all that can be if empty.
        least, most: bounds on the weight of the start.
    """

    kind: str
    links: tuple[str, ...] = ()
    inverse: bool = False
    finals: tuple[str, ...] = ()
    least: float = 0.0
    most: float = float("inf")

    @property
    def type(self) -> str:
        """The name of the family."""
        start = f"{self.kind} by value" if self.inverse else self.kind
        return " > ".join([start, *self.links, "fact"])


AIRPORT_FACTS = ("iata", "icao", "elevation")

PATHS: dict[str, tuple[tuple[Path, int], ...]] = {
    "atlas-simple": (
        (Path("country"), 66),
        (Path("element"), 24),
        (Path("town", least=150_000), 10),
    ),
    "atlas-rare": (
        (Path("airport"), 35),
        (Path("town", most=150_000), 30),
        (Path("isotope"), 20),
        (Path("region", finals=("code", "country", "largest")), 15),
    ),
    "atlas-bridge": (
        (Path("airport", ("country",)), 28),
        (Path("town", ("country",)), 28),
        (Path("region", ("country",)), 16),
        (Path("town", ("airport",), finals=AIRPORT_FACTS), 20),
        (Path("town", ("region",), finals=("code", "largest")), 6),
        (Path("element", ("discovery_place",)), 2),
    ),
    "atlas-compose": (
        (Path("country", inverse=True), 28),
        (Path("country", ("neighbor",)), 16),
        (Path("country", ("neighbor",), inverse=True), 12),
        (Path("airport", ("country",), inverse=True), 16),
        (Path("region", ("country",), inverse=True), 10),
        (Path("element", inverse=True), 6),
        (Path("element", (NEXT,)), 6),
        (Path("element", (BEFORE,)), 6),
    ),
    "atlas-chain": (
        (Path("airport", ("country", "neighbor")), 20),
        (Path("town", ("country", "neighbor")), 20),
        (Path("region", ("country", "neighbor")), 8),
        (Path("town", ("country", "capital"), finals=("region", "airport")), 6),
        (Path("airport", ("country", "capital", "airport"), finals=AIRPORT_FACTS), 12),
        (Path("town", ("country", "capital", "airport"), finals=AIRPORT_FACTS), 12),
        (Path("airport", ("country", "neighbor"), inverse=True), 10),
        (Path("country", ("capital", "airport"), finals=AIRPORT_FACTS), 6),
        (Path("country", ("capital", "airport"), inverse=True, finals=AIRPORT_FACTS), 6),
        (Path("region", ("country", "capital", "airport"), finals=AIRPORT_FACTS), 6),
        (Path("country", ("neighbor", "capital"), finals=("region", "airport")), 3),
        (Path("element", (NEXT, "discovery_place")), 3),
    ),
}
"""By set: the families, and their shares in percent."""


class PathMaker:
    """Makes the questions of one family in one split.

    Args:
        corpus: all facts.
        name: of the set.
        path: what the questions look like.
        split: name of the split.
    """

    def __init__(self, corpus: Corpus, name: str, path: Path, split: str) -> None:
        self._corpus = corpus
        self._set = name
        self._path = path
        self._split = split
        self._by_number = {
            entity.facts["number"].text: entity for entity in corpus.of_kind("element")
        }

    def candidates(self) -> Iterator[Candidate]:
        """Questions in random order, the same each time; rounds of one a start."""
        path = self._path
        starts = [
            entity
            for entity in self._corpus.of_kind(path.kind)
            if entity.asked and path.least <= entity.weight < path.most
        ]
        starts.sort(key=lambda entity: choice(f"{self._set} {path.type} {entity.id}", 2**60))
        waiting = [self._from(start) for start in starts]
        while waiting:
            going = []
            for questions in waiting:
                question = next(questions, None)
                if question:
                    yield question
                    going.append(questions)
            waiting = going

    def _from(self, start: Entity) -> Iterator[Candidate]:
        """The questions that start at one thing."""
        for subject, steps in self._beginnings(start):
            led = self._follow(start, subject, steps)
            if led:
                yield from self._ask(start, *led)

    def _beginnings(self, start: Entity) -> Iterator[tuple[str, list[Step]]]:
        if not self._path.inverse:
            yield "", []
            return
        for relation in self._shuffled(list(phrasings_of(start.kind).inverses), start.id):
            wordings = phrasings_of(start.kind).inverses[relation]
            fact = start.facts.get(relation)
            if not fact or not fact.answers or not _can_be_searched(fact.text):
                continue
            query = wordings.query.format(value=fact.text)
            step = self._step(start, relation, query, start.name)
            if step:
                phrase = pick(wordings.texts, f"{self._set} {start.id} {relation}")
                yield fill(phrase, start, value=fact.text), [step]

    def _follow(
        self, start: Entity, subject: str, steps: list[Step]
    ) -> tuple[Entity, str, list[Step]] | None:
        """Where the links lead: the last thing, the words for it, and the steps so far."""
        entity, seen = start, {start.id}
        for link in self._path.links:
            if link in _BESIDE:
                led = self._beside(entity, link, subject)
            else:
                led = self._along(entity, link, subject)
            if led is None or led[0].id in seen:
                return None
            entity, subject, more = led
            seen.add(entity.id)
            steps = [*steps, *more]
        return entity, subject, steps

    def _along(
        self, entity: Entity, link: str, subject: str
    ) -> tuple[Entity, str, list[Step]] | None:
        fact = entity.facts.get(link)
        target = self._corpus.entities.get(fact.link) if fact and fact.answers else None
        if fact is None or target is None or not (target.asked or target.kind == "town"):
            return None
        ask = phrasings_of(entity.kind).asks[link]
        step = self._step(entity, link, ask.query.format(name=entity.name), fact.answers[0])
        if step is None:
            return None
        texts = phrasings_of(entity.kind).links[link].texts
        phrase = pick(open_ended(texts) if subject else texts, f"{self._set} {subject} {entity.id}")
        return target, fill(phrase, entity, subject=subject), [step]

    def _beside(
        self, entity: Entity, link: str, subject: str
    ) -> tuple[Entity, str, list[Step]] | None:
        offset, phrases = _BESIDE[link]
        number = int(entity.facts["number"].text)
        target = self._by_number.get(str(number + offset))
        if target is None:
            return None
        asks = phrasings_of("element")
        first = self._step(
            entity, "number", asks.asks["number"].query.format(name=entity.name), str(number)
        )
        query = asks.inverses["number"].query.format(value=number + offset)
        second = self._step(target, "number", query, target.name)
        if first is None or second is None:
            return None
        phrase = pick(phrases, f"{self._set} {entity.id}")
        return target, fill(phrase, entity, subject=subject), [first, second]

    def _ask(
        self, start: Entity, entity: Entity, subject: str, steps: list[Step]
    ) -> Iterator[Candidate]:
        phrasings = phrasings_of(entity.kind)
        taken = {step.passage_id for step in steps}
        for relation in self._shuffled(list(phrasings.asks), f"{start.id} {subject}"):
            wordings = phrasings.asks[relation]
            fact = entity.facts.get(relation)
            if not fact or not fact.answers:
                continue
            if self._path.finals and relation not in self._path.finals:
                continue
            if any(fact.link == step.fact.split(" ")[0] for step in steps):
                continue
            step = self._step(
                entity, relation, wordings.query.format(name=entity.name), fact.answers[0]
            )
            if step is None or step.passage_id in taken:
                continue
            question = self._word(wordings, entity, subject, f"{start.id} {subject} {relation}")
            if sub_em(question, fact.answers) or any(
                sub_em(question, [name]) for name in names_of(entity) if subject
            ):
                continue
            yield Candidate(
                self._set,
                self._split,
                self._path.type,
                question,
                fact.answers,
                (*steps, step),
                led=bool(steps),
            )

    def _word(self, wordings: Wordings, entity: Entity, subject: str, key: str) -> str:
        """A wording of a question; the last one is for the test split only."""
        texts: Sequence[str] = wordings.texts if self._split == "test" else wordings.texts[:-1]
        if subject:
            texts = open_ended(texts)
        return capitalize(fill(pick(texts, f"{self._set} {key}"), entity, subject=subject))

    def _step(self, entity: Entity, relation: str, query: str, answer: str) -> Step | None:
        """A step, if its fact belongs to the split and a passage tells it."""
        if split_of(self._corpus.entities, entity, relation) != self._split:
            return None
        passage = self._corpus.passage_of(entity, relation)
        return Step(query, passage.id, answer, fact_id(entity, relation)) if passage else None

    def _shuffled(self, relations: Sequence[str], key: str) -> list[str]:
        return sorted(
            relations, key=lambda relation: choice(f"{self._set} {key} {relation}", 2**60)
        )


def _can_be_searched(value: str) -> bool:
    """Whether an index of words can tell a value from others.

    It cannot if the value is a stop word, is taken for a plural, or has a part that stands in
    thousands of passages.
    """
    misread = re.fullmatch("[A-Z]{1,4}S|[NEW]|[A-Z]{2}-([A-Z]|\\d+)", value)
    return len(terms_of(f"{value} region")) > 1 and not misread
