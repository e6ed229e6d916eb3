"""Folders that hold an index: written aside and put in place whole, with a manifest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentgym_envs.deepsearch.retrievers.index_manifest import IndexManifest
from agentgym_envs.errors import InvalidCorpus

MANIFEST = "manifest.json"


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to write an index to, which takes the place of `folder` at the end.

    If the writing fails, `folder` stays as it was.

    Raises:
        InvalidCorpus: `folder` holds something that is no index.
    """
    if folder.exists() and not (folder / MANIFEST).is_file() and not _is_empty(folder):
        raise InvalidCorpus(f"{folder} holds something else than an index; name another folder")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Put the manifest into the folder."""
    (folder / MANIFEST).write_text(manifest.to_json() + "\n", encoding="utf-8")


def read_manifest(folder: Path, engine: str) -> IndexManifest:
    """Read the manifest of a folder.

    Raises:
        InvalidCorpus: there is none, or not of this engine.
    """
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidCorpus(f"there is no index of passages in {folder}: {error}") from error
    return IndexManifest.from_json(text, of=folder, engine=engine)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
