"""The engine for big corpora: Tantivy, which keeps its index in mapped files.

A query is built from its words, never parsed: the parser of Tantivy has a language of its own, in
which an apostrophe is an error. The index has one field, in which the title stands three times, and
no positions; texts are read from the corpus file, see `PassageStore`. One thread writes, so that
the same corpus gives the same order. Scores are rounded and ties go by row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers import index_folder
from agentgym_envs.deepsearch.retrievers.base import check_search
from agentgym_envs.deepsearch.retrievers.corpus_files import read_lines
from agentgym_envs.deepsearch.retrievers.index_manifest import IndexManifest, choose_test
from agentgym_envs.deepsearch.retrievers.optional import load
from agentgym_envs.deepsearch.retrievers.passage_store import PassageStore, Progress, StoreWriter
from agentgym_envs.deepsearch.retrievers.terms import terms_of
from agentgym_envs.errors import EnvFault, InvalidCorpus

NAME = "tantivy"
TOKENIZER = "simple lowercase ascii_fold stemmer=english"
TITLE_TIMES = 3

_WORDS, _ROW = "words", "row"
_ANALYZER = "agentgym"
_FOLDER = "tantivy"
_TESTED = 100
_TELLS_EVERY = 10_000


class TantivyRetriever:
    """Searches a folder that `build` wrote.

    Args:
        path: the folder.
        corpus: the file of passages, if it has been moved since.
        digest: of the corpus that the index must be of; None takes any.

    Raises:
        InvalidCorpus: the folder is missing, no such index, of another corpus or not working.
        Unsupported: the package tantivy is not installed.
    """

    name = NAME

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        corpus: str | os.PathLike[str] | None = None,
        digest: str | None = None,
    ) -> None:
        folder = Path(path).resolve()
        self.manifest = index_folder.read_manifest(folder, NAME)
        self.digest = self.manifest.digest
        self._index = _Index(folder / _FOLDER)
        self._store = PassageStore(folder, corpus)
        try:
            self.manifest.check(self._find, of=folder, digest=digest)
        except InvalidCorpus:
            self.close()
            raise

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_search(queries, k)
        return [self._find(query, k) for query in queries]

    def passage(self, passage_id: str) -> Passage:
        """See `Retriever.passage`."""
        return self._store.by_id(passage_id)

    def close(self) -> None:
        """See `Retriever.close`."""
        self._store.close()

    def _find(self, query: str, k: int) -> list[Hit]:
        return _hits(self._index, self._store, query, k)


def build(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str],
    *,
    skip: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    memory_mb: int = 256,
) -> IndexManifest:
    """Index a corpus file; memory does not grow with it, but for some 40 bytes a passage.

    Args:
        path: the folder to write; an index in it is replaced when the new one is whole.
        corpus: the file of passages, see `corpus_files`; it must stay where it is.
        skip: is told of lines that hold no passage; None refuses them.
        progress: is told how far it is.
        memory_mb: for words that wait to be written.

    Raises:
        InvalidCorpus: the corpus cannot be read, or the folder holds something else.
        Unsupported: the package tantivy is not installed.
    """
    corpus = Path(corpus)
    with index_folder.new_folder(Path(path)) as folder:
        store = StoreWriter(folder, corpus)
        with _Writer(folder / _FOLDER, memory_mb) as writer:
            for line in read_lines(corpus, skip=skip):
                writer.add(store.rows, line.passage)
                store.add(line)
                if progress and store.rows % _TELLS_EVERY == 0:
                    progress(line.end, store.rows)
        digest = store.finish()
        manifest = IndexManifest(
            NAME, _load().__version__, digest, store.rows, TOKENIZER, *_test(folder)
        )
        index_folder.write_manifest(folder, manifest)
    return manifest


def _test(folder: Path) -> tuple[str, str]:
    index, store = _Index(folder / _FOLDER), PassageStore(folder)
    try:
        some = map(store.at, range(min(_TESTED, len(store))))
        return choose_test(lambda query, k: _hits(index, store, query, k), some)
    finally:
        store.close()


def _hits(index: _Index, store: PassageStore, query: str, k: int) -> list[Hit]:
    return [Hit(store.at(row), score) for row, score in index.find(query, k)]


class _Index:
    """The words of the passages by row.

    Raises:
        InvalidCorpus: the files are not there, or of another version of Tantivy.
    """

    def __init__(self, folder: Path) -> None:
        self._tantivy = _load()
        try:
            index = self._tantivy.Index.open(str(folder))
            self._analyzer = _analyzer(self._tantivy)
            self._schema = index.schema
            self._searcher = index.searcher()
        except ValueError as error:
            raise InvalidCorpus(
                f"Tantivy cannot open its files in {folder}: {error}; build the index again"
            ) from error

    def find(self, query: str, k: int) -> list[tuple[int, float]]:
        """Rows and scores, best first."""
        words = [word for term in terms_of(query) for word in self._analyzer.analyze(term)]
        if not words:
            return []
        tantivy = self._tantivy
        any_of_them = tantivy.Query.boolean_query(
            [
                (
                    tantivy.Occur.Should,
                    tantivy.Query.term_query(self._schema, _WORDS, word, index_option="freq"),
                )
                for word in dict.fromkeys(words)
            ]
        )
        try:
            found = self._searcher.search(any_of_them, limit=k, count=False).hits
            rows = self._searcher.fast_field_values(_ROW, [address for _, address in found])
        except ValueError as error:
            raise EnvFault(f"Tantivy cannot search: {error}") from error
        scores = [round(score, 4) for score, _ in found]
        return sorted(zip(rows, scores, strict=True), key=lambda hit: (-hit[1], hit[0]))


class _Writer:
    """Writes what `_Index` opens; to be used in a ``with``, which ends the writing."""

    def __init__(self, folder: Path, memory_mb: int) -> None:
        tantivy = _load()
        schema = tantivy.SchemaBuilder()
        schema.add_text_field(_WORDS, tokenizer_name=_ANALYZER, index_option="freq")
        schema.add_integer_field(_ROW, fast=True)
        folder.mkdir()
        index = tantivy.Index(schema.build(), path=str(folder))
        index.register_tokenizer(_ANALYZER, _analyzer(tantivy))
        self._make_document = tantivy.Document
        self._writer = index.writer(heap_size=memory_mb << 20, num_threads=1)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self._writer.commit()
            self._writer.wait_merging_threads()

    def add(self, row: int, passage: Passage) -> None:
        """Take the words of a passage in."""
        document = self._make_document()
        document.add_text(_WORDS, " ".join([*[passage.title] * TITLE_TIMES, passage.text]))
        document.add_integer(_ROW, row)
        self._writer.add_document(document)


def _analyzer(tantivy: Any) -> Any:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("english"),
    ):
        builder = builder.filter(step)
    return builder.build()


def _load() -> Any:
    """The package.

    Raises:
        Unsupported: it is not installed.
    """
    return load("tantivy", engine=NAME, extra="deepsearch")
