"""`PassageStore`: passages by row or id, read from the corpus file itself.

The texts are stored once, in the user's file of JSON lines, whatever engine indexes it. Beside the
index lie three files of 8-byte numbers: where each line begins, and for looking ids up a sorted
list of their hashes with the row of each. They are mapped into memory, so that opening costs
nothing and processes share them.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.retrievers.base import CorpusDigest
from agentgym_envs.deepsearch.retrievers.corpus_files import CorpusLine, passage_of_line
from agentgym_envs.errors import EnvFault, InvalidCorpus

_ABOUT, _STARTS, _HASHES, _ROWS = "passages.json", "starts.i64", "id_hashes.i64", "id_rows.i64"

Progress = Callable[[int, int], None]
"""Is told now and then how many bytes of the corpus are done, and how many passages."""


class PassageStore:
    """The passages of a corpus file.

    Args:
        folder: where a `StoreWriter` has written.
        corpus: the corpus file, if it has been moved.

    Raises:
        InvalidCorpus: there is no store, or the corpus file is missing or another.
    """

    def __init__(self, folder: Path, corpus: str | os.PathLike[str] | None = None) -> None:
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            self._path = Path(corpus or about["corpus"])
            self._num_bytes = int(about["num_bytes"])
            self._starts, self._hashes, self._rows = (
                _mapped(folder / name) for name in (_STARTS, _HASHES, _ROWS)
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidCorpus(f"{folder} holds no index of a corpus: {error!r:.200}") from error
        try:
            self._file = os.open(self._path, os.O_RDONLY)
        except OSError as error:
            raise InvalidCorpus(
                f"the corpus of the index {folder} cannot be read: {error}; "
                "if it has been moved, name it as 'corpus'"
            ) from error
        if os.fstat(self._file).st_size != self._num_bytes:
            size = os.fstat(self._file).st_size
            self.close()
            raise InvalidCorpus(
                f"{self._path} is not the corpus of the index {folder}: {self._num_bytes:,} bytes "
                f"expected, got {size:,}; name the right one, or build the index again"
            )

    def __len__(self) -> int:
        return len(self._starts)

    def at(self, row: int) -> Passage:
        """The passage of a row.

        Raises:
            EnvFault: the corpus file cannot be read any more.
        """
        start = int(self._starts[row])
        end = int(self._starts[row + 1]) if row + 1 < len(self) else self._num_bytes
        try:
            line, _, _ = os.pread(self._file, end - start, start).partition(b"\n")
            return passage_of_line(line)
        except (OSError, ValueError) as error:
            raise EnvFault(f"row {row} of the corpus {self._path} is broken: {error}") from error

    def by_id(self, passage_id: str) -> Passage:
        """The passage with this id.

        Raises:
            KeyError: there is none.
        """
        wanted = id_hash(passage_id)
        first = int(np.searchsorted(self._hashes, wanted))
        while first < len(self) and self._hashes[first] == wanted:
            passage = self.at(int(self._rows[first]))
            if passage.id == passage_id:
                return passage
            first += 1
        raise KeyError(f"the corpus {self._path} has no passage {passage_id!r}")

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)


class StoreWriter:
    """Writes what a `PassageStore` reads, line by line; of the texts nothing stays in memory.

    Args:
        folder: an empty folder.
        corpus: the file that is read.
    """

    def __init__(self, folder: Path, corpus: Path) -> None:
        self._folder = folder
        self._corpus = corpus.resolve()
        self._digest = CorpusDigest()
        self._starts, self._hashes = array("q"), array("q")
        self.rows = 0

    def add(self, line: CorpusLine) -> None:
        """Take the next line in."""
        self._digest.add(line.passage)
        self._starts.append(line.start)
        self._hashes.append(id_hash(line.passage.id))
        self.rows += 1

    def finish(self) -> str:
        """Write the files; the digest of the corpus.

        Raises:
            InvalidCorpus: there are no passages, or two have one id.
        """
        if not self.rows:
            raise InvalidCorpus(f"{self._corpus} holds no passage")
        hashes = np.frombuffer(self._hashes, np.int64)
        rows = np.argsort(hashes, kind="stable")
        _write(self._folder / _STARTS, np.frombuffer(self._starts, np.int64))
        _write(self._folder / _HASHES, hashes[rows])
        _write(self._folder / _ROWS, rows)
        about = {"corpus": str(self._corpus), "num_bytes": self._corpus.stat().st_size}
        (self._folder / _ABOUT).write_text(json.dumps(about) + "\n", encoding="utf-8")
        self._refuse_doubles(hashes[rows], rows)
        return self._digest.hexdigest()

    def _refuse_doubles(self, hashes: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        store = PassageStore(self._folder)
        try:
            for place in np.flatnonzero(hashes[1:] == hashes[:-1]):
                one, other = (store.at(int(rows[place + step])).id for step in (0, 1))
                if one == other:
                    raise InvalidCorpus(
                        f"two passages of {self._corpus} have the id {one!r}: "
                        f"number {rows[place] + 1} and number {rows[place + 1] + 1}"
                    )
        finally:
            store.close()


def id_hash(passage_id: str) -> int:
    """A hash of an id, 64 bits with sign."""
    digest = hashlib.blake2b(passage_id.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _mapped(path: Path) -> NDArray[np.int64]:
    return np.memmap(path, "<i8", "r")


def _write(path: Path, numbers: NDArray[np.int64]) -> None:
    numbers.astype("<i8", copy=False).tofile(path)
