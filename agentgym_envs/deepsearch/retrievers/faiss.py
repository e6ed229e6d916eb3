"""Vectors on this machine: FAISS, with an index of one's own or one that somebody else has made.

The file of vectors is mapped, flat ones too, so that opening 60 GB costs nothing and processes
share them. Row n of the vectors is passage n of the corpus file; that is checked by number, and by
a test query. FAISS runs on one thread, since its threads do not survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_envs import arguments
from agentgym_envs.deepsearch.passages import Hit, Passage
from agentgym_envs.deepsearch.retrievers import index_folder
from agentgym_envs.deepsearch.retrievers.base import check_search
from agentgym_envs.deepsearch.retrievers.corpus_files import read_lines
from agentgym_envs.deepsearch.retrievers.encoders import Encoder, Vectors
from agentgym_envs.deepsearch.retrievers.index_manifest import IndexManifest, choose_test
from agentgym_envs.deepsearch.retrievers.optional import load
from agentgym_envs.deepsearch.retrievers.passage_store import PassageStore, Progress, StoreWriter
from agentgym_envs.deepsearch.retrievers.remote import sendable
from agentgym_envs.errors import EnvFault, InvalidCorpus

NAME = "faiss"

_VECTORS = "vectors.faiss"
_TESTED = 20
_BATCH = 256
_TRAINING_ROWS = 100_000


class FaissRetriever:
    """Searches a folder that `build` wrote.

    Args:
        path: the folder.
        encoder: of queries, see `encoders`.
        query_prefix: what the encoder wants in front of a query.
        nprobe: how many cells of an IVF index are searched; None takes what is in the file.
        corpus: the file of passages, if it has been moved since.
        digest: of the corpus that the index must be of; None takes any.

    Raises:
        InvalidCorpus: the folder is missing, no such index, of another corpus or not working with
            this encoder.
        Unsupported: the package faiss or the encoder is not installed.
    """

    name = NAME

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoder: str | Mapping[str, Any],
        query_prefix: str = "",
        nprobe: int | None = None,
        corpus: str | os.PathLike[str] | None = None,
        digest: str | None = None,
    ) -> None:
        folder = Path(path).resolve()
        self.manifest = index_folder.read_manifest(folder, NAME)
        self.digest = self.manifest.digest
        self._encoder = Encoder(encoder, query_prefix)
        self._vectors = _MappedVectors(folder / _VECTORS, self._encoder, nprobe)
        self._store = PassageStore(folder, corpus)
        try:
            self.manifest.check(
                lambda query, k: self.search([query], k)[0], of=folder, digest=digest
            )
        except (InvalidCorpus, EnvFault):
            self.close()
            raise

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_search(queries, k)
        return _hits(self._vectors, self._store, queries, k)

    def passage(self, passage_id: str) -> Passage:
        """See `Retriever.passage`."""
        return self._store.by_id(passage_id)

    def close(self) -> None:
        """See `Retriever.close`."""
        self._store.close()
        self._encoder.close()


def build(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str],
    *,
    encoder: str | Mapping[str, Any],
    query_prefix: str = "",
    passage_prefix: str = "",
    vectors: str | os.PathLike[str] | None = None,
    factory: str = "Flat",
    skip: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> IndexManifest:
    """Index a corpus file by the vectors of its passages.

    Args:
        path: the folder to write; an index in it is replaced when the new one is whole.
        corpus: the file of passages; it must stay where it is.
        encoder: of queries and passages, see `encoders`.
        query_prefix: what the encoder wants in front of a query.
        passage_prefix: what it wants in front of a passage.
        vectors: a file of FAISS with a vector for each passage, which is then used where it is
            instead of encoding them; they must be the encoder's.
        factory: FAISS's word for the kind of index to make, such as ``"IVF4096,SQ8"``.
        skip: is told of lines that hold no passage; None refuses them.
        progress: is told how far it is.

    Raises:
        InvalidCorpus: the corpus cannot be read, the vectors are not its, or the folder holds
            something else.
        Unsupported: the package faiss or the encoder is not installed.
    """
    faiss = _load()
    encode_query, encode_passage = Encoder(encoder, query_prefix), Encoder(encoder, passage_prefix)
    corpus = Path(corpus)
    with index_folder.new_folder(Path(path)) as folder:
        store = StoreWriter(folder, corpus)
        if vectors is None:
            encoded = _Spool(folder / "spool.f32")
            for texts in _batches(store, corpus, skip, progress):
                encoded.add(encode_passage.encode(texts))
            faiss.write_index(encoded.index(faiss, factory), str(folder / _VECTORS))
            encoded.delete()
        else:
            for _ in _batches(store, corpus, skip, progress):
                pass
            (folder / _VECTORS).symlink_to(Path(vectors).resolve())
        digest = store.finish()
        test = _test(folder, encode_query)
        manifest = IndexManifest(NAME, faiss.__version__, digest, store.rows, str(encoder), *test)
        index_folder.write_manifest(folder, manifest)
    return manifest


def _batches(
    store: StoreWriter,
    corpus: Path,
    skip: Callable[[str], None] | None,
    progress: Progress | None,
) -> Iterator[list[str]]:
    texts: list[str] = []
    for line in read_lines(corpus, skip=skip):
        store.add(line)
        texts.append(f"{line.passage.title}\n{line.passage.text}".strip())
        if len(texts) == _BATCH:
            yield texts
            texts = []
            if progress:
                progress(line.end, store.rows)
    if texts:
        yield texts


def _test(folder: Path, encoder: Encoder) -> tuple[str, str]:
    store = PassageStore(folder)
    try:
        vectors = _MappedVectors(folder / _VECTORS, encoder, None)
        if len(vectors) != len(store):
            raise InvalidCorpus(
                f"there are {len(vectors):,} vectors for {len(store):,} passages; "
                "they must be of this corpus, one for each line"
            )
        some = map(store.at, range(min(_TESTED, len(store))))
        return choose_test(lambda query, k: _hits(vectors, store, [query], k)[0], some)
    finally:
        store.close()


def _hits(
    vectors: _MappedVectors, store: PassageStore, queries: Sequence[str], k: int
) -> list[list[Hit]]:
    sent = {place: text for place, query in enumerate(queries) if (text := sendable(query))}
    found = vectors.find(list(sent.values()), k) if sent else []
    hits = {
        place: [Hit(store.at(row), score) for row, score in rows]
        for place, rows in zip(sent, found, strict=True)
    }
    return [hits.get(place, []) for place in range(len(queries))]


class _MappedVectors:
    """The vectors of the passages, by row."""

    def __init__(self, path: Path, encoder: Encoder, nprobe: int | None) -> None:
        faiss = _load()
        faiss.omp_set_num_threads(1)
        self._encoder = encoder
        try:
            self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise InvalidCorpus(f"FAISS cannot read the vectors {path}: {error}") from error
        self._sign = 1.0 if self._index.metric_type == faiss.METRIC_INNER_PRODUCT else -1.0
        if nprobe is not None:
            arguments.whole_number("nprobe", nprobe, least=1)
            faiss.extract_index_ivf(self._index).nprobe = nprobe

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def find(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """Rows and scores for each text, best first."""
        queries = self._encoder.encode(texts)
        if queries.shape[1] != self._index.d:
            raise InvalidCorpus(
                f"the encoder gives vectors of {queries.shape[1]} numbers, the index has "
                f"{self._index.d}: it was made with another encoder"
            )
        distances, rows = self._index.search(queries, k)
        return [
            [
                (int(row), self._sign * float(distance))
                for row, distance in zip(*pair, strict=True)
                if row >= 0  # FAISS fills up with -1
            ]
            for pair in zip(rows, distances, strict=True)
        ]


class _Spool:
    """Vectors on disk until all are there, so that memory does not grow with them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._width = 0

    def add(self, vectors: Vectors) -> None:
        """Take the next vectors in."""
        self._width = vectors.shape[1]
        with self._path.open("ab") as file:
            vectors.tofile(file)

    def index(self, faiss: Any, factory: str) -> Any:
        """An index of all vectors, trained on some of them."""
        if not self._width:
            raise InvalidCorpus("the corpus holds no passage")
        vectors = np.memmap(self._path, np.float32, "r").reshape(-1, self._width)
        index = faiss.index_factory(self._width, factory, faiss.METRIC_INNER_PRODUCT)
        if not index.is_trained:
            size = min(len(vectors), _TRAINING_ROWS)
            rows = np.random.default_rng(0).choice(len(vectors), size, replace=False)
            index.train(np.ascontiguousarray(vectors[np.sort(rows)]))
        for start in range(0, len(vectors), 10_000):
            index.add(np.ascontiguousarray(vectors[start : start + 10_000]))
        return index

    def delete(self) -> None:
        """Remove the file."""
        self._path.unlink()


def _load() -> Any:
    return load("faiss", engine=NAME, extra="faiss")
