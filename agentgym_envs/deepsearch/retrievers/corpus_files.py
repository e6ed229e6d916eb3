"""Passages from files of JSON lines, one at a time, whatever the size of the file.

Two shapes are read, those of FlashRAG, Search-R1, Pyserini and BEIR: a line with ``id`` or ``_id``,
and either ``title`` and ``text``, or ``contents``, whose first line is the title.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.errors import InvalidCorpus

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")


class CorpusLine(NamedTuple):
    """A line of a corpus: its first byte, the first byte after it, and the passage."""

    start: int
    end: int
    passage: Passage


def read_lines(
    path: str | os.PathLike[str], *, skip: Callable[[str], None] | None = None
) -> Iterator[CorpusLine]:
    """Read a corpus line by line; empty lines are passed over.

    Args:
        path: the file.
        skip: is told of each line that holds no passage, which is then left out; None refuses it.

    Raises:
        InvalidCorpus: the file cannot be read, or a line holds no passage.
    """
    path = Path(path)
    if path.suffix in _COMPRESSED:
        raise InvalidCorpus(
            f"{path} is compressed, but passages are read from anywhere in it: "
            "decompress it first and keep it beside its index"
        )
    try:
        with path.open("rb") as file:
            yield from _read(file, path, skip)
    except OSError as error:
        raise InvalidCorpus(f"cannot read the corpus {path}: {error}") from error


def _read(file: Any, path: Path, skip: Callable[[str], None] | None) -> Iterator[CorpusLine]:
    end = 0
    for number, line in enumerate(file, start=1):
        start, end = end, end + len(line)
        if line.isspace():
            continue
        try:
            passage = passage_of_line(line)
        except ValueError as error:
            problem = f"{path}, line {number}: {error}"
            if skip is None:
                raise InvalidCorpus(f"{problem}; mend it, or skip such lines") from error
            skip(problem)
            continue
        yield CorpusLine(start, end, passage)


def passage_of_line(line: bytes) -> Passage:
    """The passage in a line of a corpus.

    Raises:
        ValueError: there is none.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a JSON object, got {line[:60]!r}") from error
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, got {line[:60]!r}")
    return passage_of(record)


def passage_of(record: dict[str, Any]) -> Passage:
    """The passage that a record in one of the two shapes holds.

    Raises:
        ValueError: it has another shape.
    """
    passage_id = record.get("id", record.get("_id"))
    if isinstance(passage_id, int) and not isinstance(passage_id, bool):
        passage_id = str(passage_id)
    if not isinstance(passage_id, str) or not passage_id:
        raise ValueError(f"expected an 'id', a text or whole number, got {passage_id!r:.60}")
    title, text = record.get("title"), record.get("text")
    if isinstance(contents := record.get("contents"), str) and not isinstance(text, str):
        title, text = split_contents(contents)
    if not isinstance(text, str) or not isinstance(title, str | None):
        raise ValueError(
            f"expected 'contents', or 'title' and 'text', got the keys {sorted(record)!r:.120}"
        )
    return Passage(_writable(passage_id), _writable(title or ""), _writable(text))


def split_contents(contents: str) -> tuple[str, str]:
    r"""Title and text of ``contents``: the first line, without quotation marks, and the others.

    >>> split_contents('"Bolivia"\nA country.')
    ('Bolivia', 'A country.')
    >>> split_contents("One line alone is a text.")
    ('', 'One line alone is a text.')
    """
    title, newline, text = contents.partition("\n")
    return (title.strip().strip('"'), text) if newline else ("", contents)


def _writable(text: str) -> str:
    """The text without halves of characters, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
