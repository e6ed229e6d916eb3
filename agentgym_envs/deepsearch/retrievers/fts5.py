"""The embedded engine: one SQLite file with its full-text index FTS5, from the standard library.

The file is opened read-only and as immutable, so that no process waits for another, and all share
what the system keeps of it in memory. It must have been built with ``detail=full`` and must hold
the texts' sizes: without them `bm25` gives every passage the same score, and says nothing. Ranks
are rounded and ties go by row, so that the order is the same on every machine.

Good for up to some 100,000 passages: a search scores every passage that has one of its words.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.parse import quote

from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers.base import CorpusDigest, check_search
from agentgym_envs.deepsearch.retrievers.index_manifest import IndexManifest, choose_test
from agentgym_envs.deepsearch.retrievers.terms import terms_of
from agentgym_envs.errors import EnvFault, InvalidCorpus, Unsupported

NAME = "fts5"
EMBEDDED = Path(__file__).parents[1] / "data" / "passages.sqlite"
TOKENIZER = "porter unicode61 remove_diacritics 2"
TITLE_WEIGHT = 8.0

_TABLES = """
CREATE TABLE passages (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
    text TEXT NOT NULL);
CREATE TABLE manifest (json TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(title, text, content=passages, content_rowid=row,
    detail=full, tokenize='{tokenizer}');
"""
_SEARCH = f"""
SELECT id, title, text, score FROM (
    SELECT rowid AS best, round(-bm25(words, {TITLE_WEIGHT}, 1.0), 9) AS score
    FROM words WHERE words MATCH ? ORDER BY score DESC, rowid LIMIT ?
) JOIN passages ON row = best ORDER BY score DESC, row
"""
_ALL = "SELECT id, title, text FROM passages"
_TESTED = 100


class Fts5Retriever:
    """Searches a file that `build` wrote.

    Args:
        path: the file; the package's own corpus if left out.
        digest: of the corpus that the file must be of; None takes any.

    Raises:
        InvalidCorpus: the file is missing, no such index, of another corpus or not working.
        Unsupported: the SQLite of this Python has no FTS5.
    """

    name = NAME

    def __init__(self, path: str | os.PathLike[str] = EMBEDDED, *, digest: str | None = None):
        self._path = Path(path).resolve()
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        weakref.finalize(self, _close_all, self._idle)
        self._is_closed = False
        _check_fts5()
        if not self._path.is_file():
            raise InvalidCorpus(f"there is no index of passages at {self._path}")
        self.manifest = self._read_manifest()
        self.digest = self.manifest.digest
        with self._connection() as connection:
            self.manifest.check(
                lambda query, k: _find(connection, query, k), of=self._path, digest=digest
            )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_search(queries, k)
        with self._connection() as connection:
            return [_find(connection, query, k) for query in queries]

    def passage(self, passage_id: str) -> Passage:
        """See `Retriever.passage`."""
        with self._connection() as connection:
            row = connection.execute(f"{_ALL} WHERE id = ?", [passage_id]).fetchone()
        if row is None:
            raise KeyError(f"the corpus {self.digest} has no passage {passage_id!r}")
        return Passage(*row)

    def passages(self) -> Iterator[Passage]:
        """All passages, in the order of the corpus."""
        with self._connection() as connection:
            yield from itertools.starmap(Passage, connection.execute(f"{_ALL} ORDER BY row"))

    def close(self) -> None:
        """See `Retriever.close`."""
        self._is_closed = True
        _close_all(self._idle)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection of one's own, for as long as it is needed."""
        connection = self._take_connection()
        try:
            yield connection
        except sqlite3.Error as error:
            raise EnvFault(f"the index {self._path} cannot be read: {error}") from error
        finally:
            if self._is_closed:
                connection.close()
            else:
                self._idle.put(connection)

    def _take_connection(self) -> sqlite3.Connection:
        if self._is_closed:
            raise ValueError(f"the index {self._path} has been closed")
        try:
            return self._idle.get_nowait()
        except Empty:
            return _connect(self._path)

    def _read_manifest(self) -> IndexManifest:
        try:
            with self._connection() as connection:
                ((text,),) = connection.execute("SELECT json FROM manifest")
        except (EnvFault, ValueError) as error:
            raise InvalidCorpus(
                f"{self._path} is no index of passages of the engine {NAME}: {error}"
            ) from error
        return IndexManifest.from_json(text, of=self._path, engine=NAME)


def build(
    path: str | os.PathLike[str], passages: Iterable[Passage], *, tokenizer: str = TOKENIZER
) -> IndexManifest:
    """Write an index of passages; the same passages give the same bytes with one SQLite.

    Args:
        path: the file; one that exists is replaced when the new one is whole.
        passages: in the order in which ties are shown.
        tokenizer: of FTS5; the default takes English word endings and accents off.

    Raises:
        InvalidCorpus: there are no passages, two have one id, or a text cannot be written.
        Unsupported: the SQLite of this Python has no FTS5.
    """
    _check_fts5()
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(part, isolation_level=None)) as connection:
            connection.executescript(_TABLES.format(tokenizer=tokenizer.replace("'", "''")))
            digest, rows = _fill(connection, passages)
            tested = [Passage(*row) for row in connection.execute(f"{_ALL} LIMIT {_TESTED}")]
            test = choose_test(lambda query, k: _find(connection, query, k), tested)
            manifest = IndexManifest(NAME, sqlite3.sqlite_version, digest, rows, tokenizer, *test)
            connection.execute("INSERT INTO manifest VALUES (?)", [manifest.to_json()])
            connection.execute("VACUUM")
        os.replace(part, path)
    except sqlite3.Error as error:
        raise InvalidCorpus(f"the index {path} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def _fill(connection: sqlite3.Connection, passages: Iterable[Passage]) -> tuple[str, int]:
    """Write all passages and their words; the digest of the corpus, and how many there are."""
    digest = CorpusDigest()

    def rows() -> Iterator[tuple[str, str, str]]:
        for passage in passages:
            digest.add(passage)
            yield passage.id, passage.title, passage.text

    connection.execute("BEGIN")
    try:
        connection.executemany("INSERT INTO passages (id, title, text) VALUES (?, ?, ?)", rows())
    except sqlite3.IntegrityError as error:
        raise InvalidCorpus(f"two passages have one id: {error}") from error
    connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("COMMIT")
    ((number,),) = connection.execute("SELECT count(*) FROM passages")
    return digest.hexdigest(), number


def _find(connection: sqlite3.Connection, query: str, k: int) -> list[Hit]:
    terms = terms_of(query)
    if not terms:
        return []
    any_of_them = " OR ".join(f'"{term}"' for term in terms)
    rows = connection.execute(_SEARCH, [any_of_them, k])
    return [Hit(Passage(*passage), score) for *passage, score in rows]


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"file:{quote(str(path))}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)


def _close_all(idle: SimpleQueue[sqlite3.Connection]) -> None:
    with suppress(Empty):
        while True:
            idle.get_nowait().close()


def _check_fts5() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
        except sqlite3.Error as error:
            raise Unsupported(
                "the SQLite of this Python is built without FTS5; take a Python that has it, or "
                "the engine tantivy: pip install 'agentgym-suite[deepsearch]'"
            ) from error
