"""``setup``: make the data of a family that the package does not bring.

``setup deepsearch --corpus FILE`` indexes passages of one's own: a file of JSON lines of any size,
read once. ``--wiki`` indexes the beginnings of 10,000 articles of Wikipedia, from a package that
the user has installed. What is printed last is the retriever to give to the environment.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from agentgym_envs.cache import cache_folder
from agentgym_envs.cli.environments import Figures
from agentgym_envs.deepsearch import wiki_leads
from agentgym_envs.deepsearch.retrievers import faiss, fts5, tantivy
from agentgym_envs.deepsearch.retrievers.corpus_files import read_lines
from agentgym_envs.deepsearch.retrievers.index_manifest import IndexManifest
from agentgym_envs.deepsearch.retrievers.passage_store import Progress

_MOST_SHOWN = 20
_BAR = 30


def add_setup_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("family", choices=["deepsearch"], help="whose data to make")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--corpus", type=Path, help="a file of passages, one JSON a line")
    source.add_argument(
        "--wiki",
        action="store_true",
        help=f"beginnings of 10,000 articles, with fts5; needs the package {wiki_leads.PACKAGE}",
    )
    parser.add_argument(
        "--engine",
        choices=["tantivy", "fts5", "faiss"],
        help="for --corpus; fts5 is for up to some 100,000 passages, faiss needs --encoder "
        "(default: tantivy)",
    )
    parser.add_argument(
        "--to", type=Path, help="where to write the index (default: in the user's cache)"
    )
    parser.add_argument(
        "--skip-bad-lines", action="store_true", help="leave out lines that hold no passage"
    )
    parser.add_argument("--encoder", help="package.module:function, from texts to vectors")
    parser.add_argument("--query-prefix", default="", help="what it wants in front of a query")
    parser.add_argument("--passage-prefix", default="", help="what it wants in front of a passage")
    parser.add_argument("--vectors", type=Path, help="a file of FAISS that holds them already")
    parser.add_argument("--factory", default="Flat", help="FAISS's word for the kind of index")


def setup(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    if options.wiki:
        return _setup_wiki(options)
    engine = options.engine or "tantivy"
    corpus: Path = options.corpus
    to: Path = options.to or index_folder() / f"{corpus.stem}-{engine}"
    skipped = _Skipped()
    skip = skipped.take if options.skip_bad_lines else None
    progress = _bar(corpus)
    if engine != "faiss" and (options.encoder or options.vectors):
        raise ValueError("--encoder and --vectors are for --engine faiss")
    to.parent.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {}
    if engine == "fts5":
        manifest = _build_fts5(to, corpus, skip, progress)
    elif engine == "tantivy":
        manifest = tantivy.build(to, corpus, skip=skip, progress=progress)
    else:
        manifest = _build_faiss(to, options, skip, progress)
        settings = {"encoder": options.encoder, "query_prefix": options.query_prefix}
    skipped.tell()
    return 0, {"skipped": skipped.number, **_told(manifest, to, settings)}


def _setup_wiki(options: argparse.Namespace) -> tuple[int, Figures]:
    if options.engine not in (None, "fts5"):
        raise ValueError(f"--wiki makes an index of fts5, not of {options.engine}")
    to: Path = options.to or index_folder() / "wiki-fts5"
    to.parent.mkdir(parents=True, exist_ok=True)
    manifest = fts5.build(to, wiki_leads.read())
    print("The texts are by the authors of Wikipedia, CC BY-SA 4.0.")
    return 0, _told(manifest, to, {})


def _told(manifest: IndexManifest, to: Path, settings: Figures) -> Figures:
    """Say what was made, and return it."""
    retriever = {"name": manifest.engine, "path": str(to.resolve()), **settings}
    print(f"{manifest.rows:,} passages, corpus {manifest.digest}")
    print(f"retriever: {json.dumps(retriever)}")
    return {"retriever": retriever, "rows": manifest.rows, "digest": manifest.digest}


def index_folder() -> Path:
    """Where indexes go if no place is named."""
    return cache_folder() / "deepsearch"


def _build_fts5(to: Path, corpus: Path, skip: Any, progress: Progress | None) -> IndexManifest:
    def passages() -> Any:
        for number, line in enumerate(read_lines(corpus, skip=skip), start=1):
            yield line.passage
            if progress and number % 10_000 == 0:
                progress(line.end, number)

    return fts5.build(to, passages())


def _build_faiss(
    to: Path, options: argparse.Namespace, skip: Any, progress: Progress | None
) -> IndexManifest:
    if not options.encoder:
        raise ValueError("--engine faiss needs --encoder, which also encodes the queries")
    return faiss.build(
        to,
        options.corpus,
        encoder=options.encoder,
        query_prefix=options.query_prefix,
        passage_prefix=options.passage_prefix,
        vectors=options.vectors,
        factory=options.factory,
        skip=skip,
        progress=progress,
    )


class _Skipped:
    """Counts the lines that were left out, and shows the first of them."""

    def __init__(self) -> None:
        self.number = 0

    def take(self, problem: str) -> None:
        """Take one in."""
        self.number += 1
        if self.number <= _MOST_SHOWN:
            print(f"skipped: {problem}", file=sys.stderr)

    def tell(self) -> None:
        """Say how many there were."""
        if self.number:
            print(f"{self.number:,} lines were skipped")


def _bar(corpus: Path) -> Progress | None:
    """A bar on the terminal; None where there is none."""
    if not sys.stderr.isatty() or not corpus.is_file():
        return None
    total = max(1, corpus.stat().st_size)
    begin = time.monotonic()

    def show(num_bytes: int, rows: int) -> None:
        share = num_bytes / total
        left_s = (time.monotonic() - begin) * (1 - share) / share
        full = "#" * round(_BAR * share)
        line = f"[{full:{_BAR}}] {share:4.0%}  {rows:,} passages, {left_s:,.0f} s left "
        print(f"\r{line}", end="\n" if share == 1 else "", file=sys.stderr, flush=True)

    return show
