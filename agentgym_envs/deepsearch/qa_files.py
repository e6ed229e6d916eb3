"""Questions from files: our own records, and the shapes of FlashRAG and of Search-R1.

A file is JSON lines (``.jsonl``, ``.jsonl.gz``), a JSON list (``.json``) or Parquet (``.parquet``,
which needs pyarrow). A row is

- a record of `questions`, which has an ``answers`` key; or
- FlashRAG's ``{"id", "question", "golden_answers", "metadata"}`` (arXiv 2405.13576); or
- Search-R1's, which adds ``data_source``, ``prompt``, ``reward_model`` and ``extra_info``.

Set and split of a row of the latter two are what it says itself, else what its place says, as in
``hotpotqa/dev.jsonl``. Their questions are numbered by set and split, in the order of the file, and
have no chain. One broken row is named, and nothing is loaded.
"""

from __future__ import annotations

import functools
import gzip
import importlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.deepsearch.public_sets import PUBLIC_SETS
from agentgym_envs.deepsearch.questions import FAMILY
from agentgym_envs.deepsearch.tasks import QuestionTasks
from agentgym_envs.errors import InvalidTask, Unsupported
from agentgym_envs.spaces import to_utf8
from agentgym_envs.tasks import check_split

DEFAULT_HOPS = 2
"""Hops of a question of a set that nobody knows."""

_SPLIT_NAMES = {
    **{"train": "train", "training": "train", "dev": "dev", "val": "dev", "valid": "dev"},
    **{"validation": "dev", "test": "test", "testing": "test", "eval": "test"},
}
_HOPS = {public.name: public.hops for public in PUBLIC_SETS}
_SET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ASKED = "Question:"

Files = str | Sequence[str]


def questions_of_files(files: Files | Mapping[str, Files]) -> QuestionTasks:
    """The questions of files; files that have not changed are not read again.

    Args:
        files: a path, a list of paths, or one of these for each split.

    Raises:
        InvalidTask: a file or one of its rows cannot be read, or does not say what is needed.
        UnknownName: there is no such split.
        Unsupported: a Parquet file needs a package that is not installed.
        TypeError: `files` is something else.
    """
    named: list[tuple[str | None, str]]
    if isinstance(files, Mapping):
        named = [(check_split(split), path) for split in files for path in _paths(files[split])]
    else:
        named = [(None, path) for path in _paths(files)]
    if not named:
        raise InvalidTask("questions= names no file")
    return _read(tuple((split, path, _stamp(path)) for split, path in named))


def _paths(files: Any) -> list[str]:
    paths = [files] if isinstance(files, str) else files
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise TypeError(
            "questions must be a path, a list of paths, or an object with one of these for each "
            f"split; got {files!r:.200}"
        )
    return list(paths)


def _stamp(path: str) -> tuple[int, int]:
    try:
        stat = Path(path).stat()
    except (OSError, ValueError) as error:
        raise InvalidTask(f"the questions {path!r} cannot be read: {error}") from None
    return stat.st_mtime_ns, stat.st_size


@functools.lru_cache(maxsize=8)
def _read(named: tuple[tuple[str | None, str, tuple[int, int]], ...]) -> QuestionTasks:
    counts: Counter[tuple[str, str]] = Counter()
    records = (record for split, path, _ in named for record in _records(path, split, counts))
    return QuestionTasks(records, ", ".join(path for _, path, _ in named))


def _records(
    path: str, split: str | None, counts: Counter[tuple[str, str]]
) -> Iterator[Mapping[str, Any]]:
    """The records of a file.

    Args:
        path: the file.
        split: the split of all rows, or None if they or the path say it.
        counts: how many of a split and set there were so far; it goes on counting.
    """
    for where, row in _rows(path):
        try:
            yield _record(row, Path(path), split, counts)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise InvalidTask(f"{path!r}, {where}: {error}") from None


def _record(
    row: Any, path: Path, split: str | None, counts: Counter[tuple[str, str]]
) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise ValueError(f"a row must be an object, got {row!r:.80}")
    if "answers" in row:
        if split not in (None, row.get("split")):
            raise ValueError(f"the record is of the split {row.get('split')!r}, not {split!r}")
        return row
    set_name = _set_of(row, path)
    split = split or _split_of(row, path)
    number = counts[split, set_name]
    counts[split, set_name] += 1
    return {
        "id": f"{FAMILY}/{split}/{set_name}/{number}",
        "set": set_name,
        "split": split,
        "question": _question_of(row),
        "answers": _answers_of(row),
        "hops": _HOPS.get(set_name, DEFAULT_HOPS),
        "type": "",
    }


def _set_of(row: Mapping[str, Any], path: Path) -> str:
    name = row.get("data_source") or path.absolute().parent.name
    if not isinstance(name, str) or not _SET_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r:.80} cannot name a set: expected letters, digits, dots, dashes and "
            "underscores, in data_source or as the name of the folder"
        )
    return name


def _split_of(row: Mapping[str, Any], path: Path) -> str:
    extra = row.get("extra_info")
    told = extra.get("split") if isinstance(extra, Mapping) else row.get("split")
    if told is None:
        told = path.name.partition(".")[0]
    split = _SPLIT_NAMES.get(str(told).lower())
    if split is None:
        raise ValueError(
            f"{told!r:.80} is no split; name the file train, dev or test, or give questions= as "
            'an object, {"test": "…"}'
        )
    return split


def _question_of(row: Mapping[str, Any]) -> str:
    question = row.get("question")
    if question is None and row.get("prompt"):
        *_, last = row["prompt"]
        question = last["content"].rpartition(_ASKED)[2]
    if not isinstance(question, str) or not question.strip():
        raise ValueError("the row has no question, a text")
    return to_utf8(question.strip())


def _answers_of(row: Mapping[str, Any]) -> list[str]:
    answers = row.get("golden_answers")
    if answers is None:
        answers = row.get("reward_model", {}).get("ground_truth", {}).get("target")
    if isinstance(answers, str):
        answers = [answers]
    if not isinstance(answers, list) or not answers or not all(map(_is_answer, answers)):
        raise ValueError(f"golden_answers must be a list of texts, got {answers!r:.80}")
    return [to_utf8(answer) for answer in answers]


def _is_answer(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _rows(path: str) -> Iterator[tuple[str, Any]]:
    """The rows of a file, each with where it stands, in words."""
    if path.lower().endswith(".parquet"):
        return ((f"row {number}", row) for number, row in enumerate(_parquet(path), start=1))
    if path.lower().endswith(".json"):
        return ((f"entry {number}", row) for number, row in enumerate(_json_list(path), start=1))
    return _json_lines(path)


def _json_lines(path: str) -> Iterator[tuple[str, Any]]:
    opened = gzip.open if path.lower().endswith(".gz") else open
    number = 0
    try:
        with opened(path, "rt", encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"line {number}", json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidTask(f"{path!r}, line {number} is no JSON: {error.msg}") from None
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise InvalidTask(f"{path!r}, line {number + 1} cannot be read: {error}") from None


def _json_list(path: str) -> list[Any]:
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTask(f"{path!r} is no JSON: {error}") from None
    if not isinstance(rows, list):
        raise InvalidTask(f"{path!r} must hold a list, it holds {rows!r:.80}")
    return rows


def _parquet(path: str) -> Iterable[Any]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise Unsupported(
            f"reading {path!r} needs pyarrow: pip install 'agentgym-suite[parquet]'"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise InvalidTask(f"{path!r} is no Parquet file: {error}") from None
