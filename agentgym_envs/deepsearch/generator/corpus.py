"""The passages: one group of facts about one thing each, in our own sentences."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from agentgym_envs.deepsearch.generator import countries, elements, places
from agentgym_envs.deepsearch.generator.facts import Entity
from agentgym_envs.deepsearch.generator.phrasings import (
    Section,
    capitalize,
    fill,
    phrasings_of,
    pick,
    slots,
)
from agentgym_envs.deepsearch.passages import Passage

NUM_TOWNS = 18_000


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Everything that is known.

    Attributes:
        entities: by id.
        passages: by id.
    """

    entities: Mapping[str, Entity]
    passages: Mapping[str, Passage]

    def of_kind(self, kind: str) -> list[Entity]:
        """The things of one kind."""
        return [entity for entity in self.entities.values() if entity.kind == kind]

    def passage_of(self, entity: Entity, relation: str) -> Passage | None:
        """The passage that states a relation of a thing; None if none does."""
        section = phrasings_of(entity.kind).section_of(relation)
        passage = self.passages.get(passage_id(entity, section))
        stated = passage and entity.facts[relation].text.lower() in passage.text.lower()
        return passage if stated else None


def read_corpus() -> Corpus:
    """All facts, and the passages that tell them."""
    nations = countries.read()
    found = [*nations, *elements.read(), *places.read(nations, num_towns=NUM_TOWNS)]
    entities = {entity.id: entity for entity in found}
    passages = {p.id: p for entity in found for p in passages_of(entity)}
    return Corpus(entities, passages)


def passages_of(entity: Entity) -> Iterator[Passage]:
    """One passage a section whose first sentence, or a later one, has its facts."""
    for section in phrasings_of(entity.kind).sections:
        sentences = list(_sentences(entity, section))
        if sentences:
            title = capitalize(fill(section.shown, entity))
            yield Passage(passage_id(entity, section.title), title, " ".join(sentences))


def _sentences(entity: Entity, section: Section) -> Iterator[str]:
    begun = False
    for number, wordings in enumerate(section.sentences):
        if not slots(wordings[0]) <= entity.facts.keys():
            continue
        names_it = re.search(r"{[eE]}", wordings[0]) is not None
        if not names_it and not begun:
            continue
        begun = True
        template = pick(wordings, f"{entity.id} {section.title} {number}")
        yield _end(" ".join(capitalize(fill(template, entity)).split()))


def _end(sentence: str) -> str:
    """A sentence with one full stop, even after an abbreviation."""
    return re.sub(r"\.\.$", ".", sentence)


def passage_id(entity: Entity, section: str) -> str:
    """The id of a passage."""
    return f"{entity.id}/{re.sub(r'[^a-z0-9]+', '-', section.lower())}"


def names_of(entity: Entity) -> Sequence[str]:
    """What answers a question for a thing."""
    if entity.kind == "country":
        return countries.names_of(entity)
    if entity.kind == "element":
        return elements.names_of(entity)
    return (entity.name,)
