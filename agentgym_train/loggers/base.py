"""The logger protocol, and one logger that hands everything to several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

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
