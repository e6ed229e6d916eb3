"""A hundred questions of two steps, written one by one and checked against their passages.

They are all in the test split, and so are their facts. A line of the file holds a question and its
two steps, divided by bars: a thing and a relation; ``=`` before the relation says that the question
names the thing by this value; a third part is the answer where no fact says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentgym_envs.deepsearch.generator.corpus import Corpus, names_of
from agentgym_envs.deepsearch.generator.facts import Entity
from agentgym_envs.deepsearch.generator.makers import Candidate, Step
from agentgym_envs.deepsearch.generator.phrasings import phrasings_of
from agentgym_envs.deepsearch.generator.splits import fact_id, split_of

SET = "atlas-hand"

FILE = Path(__file__).parents[1] / "data" / "hand.txt"


def candidates(corpus: Corpus) -> Iterator[Candidate]:
    """The questions.

    Raises:
        ValueError: a line names what is not in the corpus, or a fact of another split.
    """
    for line in FILE.read_text(encoding="utf-8").splitlines():
        question, first, second, *said = (part.strip() for part in line.split("|"))
        steps = (_step(corpus, first), _step(corpus, second))
        entity, relation = _thing(corpus, second)
        answers = entity.facts[relation].answers
        if said:
            answers = _answers(said[0], [_thing(corpus, part)[0] for part in (first, second)])
        kind = "comparison" if said else "two steps"
        yield Candidate(SET, "test", kind, question, answers, steps, led=not said)


def _answers(said: str, entities: list[Entity]) -> tuple[str, ...]:
    """What is right: the names of the thing that is said, or just what is said."""
    named = [entity for entity in entities if entity.name == said]
    return tuple(names_of(named[0])) if named else (said,)


def _thing(corpus: Corpus, part: str) -> tuple[Entity, str]:
    identity, relation = part.split(" ")
    return corpus.entities[identity], relation.removeprefix("=")


def _step(corpus: Corpus, part: str) -> Step:
    entity, relation = _thing(corpus, part)
    fact, phrasings = entity.facts[relation], phrasings_of(entity.kind)
    split = split_of(corpus.entities, entity, relation)
    passage = corpus.passage_of(entity, relation)
    if split != "test" or passage is None or not fact.answers:
        raise ValueError(f"{part!r} is a fact of the split {split}, or is never asked for")
    if " =" in part:
        query, answer = phrasings.inverses[relation].query.format(value=fact.text), entity.name
    else:
        query, answer = phrasings.asks[relation].query.format(name=entity.name), fact.answers[0]
    return Step(query, passage.id, answer, fact_id(entity, relation))
