"""`IndexManifest`: what an index was made from, how, and a search that shows that it works."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import Any

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.errors import InvalidCorpus

SCHEMA = 1

_TEST_WORDS = 20

Search = Callable[[str, int], list[Hit]]


@dataclasses.dataclass(frozen=True)
class IndexManifest:
    """What an index says of itself.

    Attributes:
        engine: that reads it, such as ``"fts5"``.
        engine_version: that wrote it.
        digest: of the corpus, see `CorpusDigest`.
        rows: how many passages there are.
        tokenizer: how texts were taken apart; the engine's own words.
        test_query: a query that must find `test_passage` before all others.
        test_passage: the id of a passage.
    """

    engine: str
    engine_version: str
    digest: str
    rows: int
    tokenizer: str
    test_query: str
    test_passage: str

    def to_json(self) -> str:
        """The manifest as a line of JSON."""
        return json.dumps({"schema": SCHEMA} | dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, *, of: object, engine: str) -> IndexManifest:
        """Read what `to_json` wrote.

        Args:
            text: the line.
            of: the file it is of, for messages.
            engine: that wants to read the index.

        Raises:
            InvalidCorpus: it is no manifest, or one of another schema or engine.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            schema = data.pop("schema")
            if schema != SCHEMA:
                raise InvalidCorpus(
                    f"the index {of} has schema {schema!r}, this version reads {SCHEMA}; "
                    "build it again"
                )
            manifest = cls(**data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidCorpus):
                raise
            raise InvalidCorpus(f"{of} holds no manifest of an index: {error!r:.200}") from error
        if manifest.engine != engine:
            raise InvalidCorpus(
                f"{of} is an index of the engine {manifest.engine!r}, not {engine!r}"
            )
        return manifest

    def check(self, search: Search, *, of: object, digest: str | None = None) -> None:
        """Check that an opened index is of the corpus that is wanted, and that it finds something.

        Args:
            search: in the opened index.
            of: the file it is in, for messages.
            digest: of the corpus that is wanted; None takes any.

        Raises:
            InvalidCorpus: it is of another corpus, or the test query finds something else.
        """
        if digest is not None and digest != self.digest:
            raise InvalidCorpus(
                f"the index {of} is of the corpus {self.digest}, not of {digest}; "
                "name the right index, or build it again"
            )
        hits = search(self.test_query, 1)
        found = hits[0].passage.id if hits else None
        if found != self.test_passage:
            raise InvalidCorpus(
                f"the index {of} does not work with this version of {self.engine}: its test query "
                f"{self.test_query!r} finds {found!r} instead of {self.test_passage!r}; "
                "build it again"
            )


def choose_test(search: Search, passages: Iterable[Passage]) -> tuple[str, str]:
    """A query that finds one passage and says clearly that it is the best, and its id.

    Args:
        search: in the new index.
        passages: some of its passages, at least one.

    Raises:
        InvalidCorpus: there is none, so that the index does not work or cannot be tested.
    """
    for passage in passages:
        query = " ".join([passage.title, *passage.text.split()[:_TEST_WORDS]])
        hits = search(query, 2)
        is_clear = len(hits) == 1 or (len(hits) == 2 and hits[0].score > hits[1].score)
        if is_clear and hits[0].passage.id == passage.id:
            return query, passage.id
    raise InvalidCorpus(
        "no passage of this corpus is found by its own words before all others: "
        "there are no words in it, or every passage comes several times"
    )
