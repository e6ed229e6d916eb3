"""Files and lists that name tasks.

A file holds ids one a line, or is JSON: a list whose entries are ids or objects with an
``item_id``, as AgentGym publishes them (arXiv 2406.04151). What else an object holds, such as a
conversation, is kept: a family may need it to find the task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import InvalidTask

TaskEntry = str | Mapping[str, Any]
"""An id, or an object whose ``item_id`` is one."""


def entry_id(entry: TaskEntry) -> str:
    """The id in `entry`."""
    return entry if isinstance(entry, str) else str(entry["item_id"])


def read_task_entries(path: str | Path) -> list[TaskEntry]:
    """The entries of a file.

    Args:
        path: ``.json`` is one list, ``.jsonl`` one value a line; any other file is text with one
            id a line, where empty lines and lines that start with # are skipped.

    Returns:
        The entries in order. An object whose id has come before is left out: files of
        trajectories list a task once for each.

    Raises:
        InvalidTask: the file cannot be read, holds no id, or an entry is none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidTask(
            f"cannot read task ids from the file {str(path)!r}: {error}; "
            "ids themselves are given in a list"
        ) from None
    source = f"the task file {str(path)!r}"
    read = _READERS.get(Path(path).suffix.lower(), _ids_of_lines)
    try:
        entries = check_entries(source, read(text))
    except _BrokenJSON as error:
        raise InvalidTask(f"{source} is broken: {error}") from None
    except TypeError as error:
        raise InvalidTask(str(error)) from None
    if not entries:
        raise InvalidTask(f"{source} holds no task id")
    return _without_repeated_objects(entries)


def check_entries(name: str, values: Any) -> list[TaskEntry]:
    """`values`, a list or tuple of entries, as a list.

    Raises:
        TypeError: it is anything else; `name` says what it is.
    """
    expected = f"{name} must be a list of ids or of objects with an 'item_id'"
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{expected}, got {values!r:.200}")
    for number, value in enumerate(values):
        task_id = value.get("item_id") if isinstance(value, Mapping) else value
        if not isinstance(task_id, str):
            raise TypeError(f"{expected}, but entry {number} is {value!r:.200}")
    return list(values)


def _ids_of_lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


class _BrokenJSON(Exception):
    """What is wrong, and where."""


def _parse(text: str, first_line: int = 1) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise _BrokenJSON(f"{error.msg} at line {line} column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise _BrokenJSON(f"{error}, from line {first_line} on") from None


def _parse_lines(text: str) -> list[Any]:
    lines = enumerate(text.split("\n"), start=1)
    return [_parse(line, number) for number, line in lines if line.strip()]


_READERS: Mapping[str, Callable[[str], Any]] = {".json": _parse, ".jsonl": _parse_lines}


def _without_repeated_objects(entries: list[TaskEntry]) -> list[TaskEntry]:
    seen: set[str] = set()
    kept: list[TaskEntry] = []
    for entry in entries:
        name = entry_id(entry)
        if isinstance(entry, str) or name not in seen:
            kept.append(entry)
        seen.add(name)
    return kept
