"""One JSON object a step, in a file that a resumed run continues without doubles."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class JsonlLogger:
    """Appends ``{"step", "phase", "<metric>": value, …}`` lines.

    Args:
        path: the file.
        resume_at: lines of this step and later ones are dropped first: they will come again.
    """

    def __init__(self, path: Path, *, resume_at: int = 0) -> None:
        kept = [line for line in read_metrics(path) if line["step"] < resume_at]
        temporary = path.with_suffix(".tmp")
        temporary.write_text("".join(map(_line, kept)), encoding="utf-8")
        os.replace(temporary, path)
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open for the whole run

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        self._file.write(_line({"step": step, "phase": phase, **values}))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record) + "\n"


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a metrics file; a last line that a crash cut short is left out."""
    if not path.exists():
        return
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)
