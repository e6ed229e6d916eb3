"""Who is told the numbers of a step: a file, TensorBoard, and (`console`) a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from agentgym_envs.evaluation.folder import write_atomically
from agentgym_train.errors import TrainError
from agentgym_train.metrics import check_names


class Logger(Protocol):
    """Takes the numbers of one step at a time."""

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        """Record `values` of step `step`; names are those of `agentgym_train.metrics`."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class Loggers:
    """Several loggers as one; refuses names that no table defines."""

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self._loggers = list(loggers)

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        check_names(values)
        for logger in self._loggers:
            logger.log(step, phase, values)

    def close(self) -> None:
        for logger in self._loggers:
            logger.close()


class JsonlLogger:
    """Appends ``{"step", "phase", "<metric>": value, …}`` lines to a file.

    Args:
        path: the file.
        resume_at: lines of this step and later ones are dropped first: they will come again.
    """

    def __init__(self, path: Path, *, resume_at: int = 0) -> None:
        kept = [line for line in read_metrics(path) if line["step"] < resume_at]
        write_atomically(path, "".join(map(_line, kept)))
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open for the whole run

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        self._file.write(_line({"step": step, "phase": phase, **values}))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record) + "\n"


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a metrics file; a last line that a crash cut short is left out.

    Raises:
        TrainError: a line is no record.
    """
    if not path.exists():
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if line.endswith("\n"):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise TrainError(f"{path}, line {number}, is no record: {error}") from None


class TensorBoardLogger:
    """Writes scalars under their metric names; ``tensorboard --logdir RUN`` shows them.

    Args:
        folder: where the event files go.
        resume_at: events of this step and later ones are hidden: they will come again.
    """

    def __init__(self, folder: Path, *, resume_at: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder), purge_step=resume_at or None)

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()
