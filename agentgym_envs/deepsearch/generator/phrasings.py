"""How facts are put into words: sentences for passages, wordings for questions.

Everything here is our own text with slots; the facts fill the slots. The modules beside this one
(`phrasings_countries`, ...) hold the text for each kind of thing in a small format:

- ``## Section`` begins a passage; after a bar may stand another title than "name: section".
- ``say`` begins the wordings of one of its sentences, told if its facts are known.
- ``ask relation | query`` begins those of a question, with the search that finds its answer.
- ``link relation``: noun phrases for the thing that a relation leads to.
- ``inverse relation | query``: noun phrases for the thing that is found by this value of its.

A block ends at an empty line or at the next of these words, and has at least six wordings. Slots
are ``{e}``, the thing within a sentence ("the Netherlands"), ``{E}``, the same at its beginning,
``{name}``, its bare name, ``{value}``, and facts of the thing by name.

The last wording of each question is kept for the test split.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from string import Formatter

from agentgym_envs.deepsearch.generator import (
    phrasings_countries,
    phrasings_elements,
    phrasings_places,
)
from agentgym_envs.deepsearch.generator.facts import Entity

LEAST_WORDINGS = 6


@dataclasses.dataclass(frozen=True)
class Section:
    """One passage of a kind of thing.

    Attributes:
        title: of the section.
        shown: template of the passage's title.
        sentences: the wordings of each.
    """

    title: str
    shown: str
    sentences: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Wordings:
    """Wordings of one relation, and the query that finds the passage that states it."""

    section: str
    query: str
    texts: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Phrasings:
    """The words of one kind of thing: passages by section, the rest by relation."""

    sections: tuple[Section, ...]
    asks: Mapping[str, Wordings]
    links: Mapping[str, Wordings]
    inverses: Mapping[str, Wordings]

    def section_of(self, relation: str) -> str:
        """The title of the passage that states a relation."""
        if relation in self.asks:
            return self.asks[relation].section
        return next(
            section.title
            for section in self.sections
            if any(relation in slots(sentence[0]) for sentence in section.sentences)
        )


def parse(text: str) -> Phrasings:
    """Read the format that the docstring of the module tells."""
    sections: list[Section] = []
    words: dict[str, dict[str, Wordings]] = {"ask": {}, "link": {}, "inverse": {}}
    for chapter in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = chapter.partition("\n")
        title, _, shown = (part.strip() for part in heading.partition("|"))
        sentences = []
        for block in re.split(r"^(?=(?:say|ask|link|inverse)\b)", body.strip(), flags=re.M)[1:]:
            head, *lines = block.strip().split("\n")
            word, _, rest = head.partition(" ")
            relation, _, query = (part.strip() for part in rest.partition("|"))
            if word == "say":
                sentences.append(tuple(lines))
            else:
                words[word][relation] = Wordings(title, query, tuple(lines))
        sections.append(Section(title, shown or f"{{name}}: {title}", tuple(sentences)))
    return Phrasings(tuple(sections), words["ask"], words["link"], words["inverse"])


@cache
def phrasings_of(kind: str) -> Phrasings:
    """The words of one kind of thing, such as ``"country"``."""
    return parse(
        {
            "country": phrasings_countries.TEXT,
            "element": phrasings_elements.ELEMENTS,
            "isotope": phrasings_elements.ISOTOPES,
            "airport": phrasings_places.AIRPORTS,
            "town": phrasings_places.TOWNS,
            "region": phrasings_places.REGIONS,
        }[kind]
    )


def slots(template: str) -> set[str]:
    """Names of the facts that a template needs."""
    named = {name for _, name, _, _ in Formatter().parse(template) if name}
    return named - {"e", "E", "name", "value"}


def fill(template: str, entity: Entity, *, value: str = "", subject: str = "") -> str:
    """A template with its slots filled.

    Args:
        template: text with slots.
        entity: whose facts fill them.
        value: for ``{value}``.
        subject: stands for the entity in place of its own name, as in a question about
            "the country where ...".
    """
    phrase = subject or entity.phrase
    facts = {name: fact.text for name, fact in entity.facts.items()}
    words = {"e": phrase, "E": capitalize(phrase), "name": entity.name, "value": value}
    return template.format_map(facts | words).replace("the region the ", "the ")


def open_ended(texts: Sequence[str]) -> Sequence[str]:
    """Those of `texts` that end with the thing, so that a long description of it reads well.

    All of them if they are fewer than two.
    """
    ending = [text for text in texts if re.search(r"{e}(, in [\w /]+)?[?.]?$", text)]
    return ending if len(ending) > 1 else texts


def capitalize(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def choice(key: str, number: int) -> int:
    """A number below `number` that depends on `key` alone."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % number


def pick(texts: Sequence[str], key: str) -> str:
    """One of `texts`, chosen by `key` alone."""
    return texts[choice(key, len(texts))]
