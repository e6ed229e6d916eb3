"""Every exception of the trainer, in one tree.

::

    TrainError
    ├── ConfigError                   settings that cannot work together; says what to change
    ├── ModelError (ValueError)       a model folder that cannot be used
    ├── CheckpointError (ValueError)  a checkpoint that is missing, broken or of another run
    ├── ContextError (ValueError)     a prompt that does not fit the model's context
    ├── Collapsed (RuntimeError)      the monitor saw training collapse and stopped it
    ├── NonFinite (ArithmeticError)   NaN or infinity where training needs a number
    ├── TokenError (RuntimeError)     token records that contradict each other: never trained on
    └── TooManyFaults (RuntimeError)  environments break more often than the budget allows

The command line shows the message of these, and of what the operating system refuses, on one line
and exits with 2; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TrainError(Exception):
    """The root of all errors raised by `agentgym_train`."""


class ConfigError(TrainError):
    """Settings that cannot work together.

    No `ValueError`: the parser of the command line would wrap it into a box of its own.
    """


def at_least(settings: object, section: str, smallest: float, *names: str) -> None:
    """Refuse settings whose fields called `names` are below `smallest`.

    Raises:
        ConfigError: says which, as ``section.name``, and their values.
    """
    low = [name for name in names if not getattr(settings, name) >= smallest]
    if low:
        found = ", ".join(str(getattr(settings, name)) for name in low)
        called = ", ".join(f"{section}.{name}" for name in low)
        raise ConfigError(f"{called} must be at least {smallest}, got {found}")


class ModelError(TrainError, ValueError):
    """A model folder that cannot be used."""


class CheckpointError(TrainError, ValueError):
    """A checkpoint that is missing, broken, or belongs to another run."""


class ContextError(TrainError, ValueError):
    """A prompt that does not fit the model's context."""


class Collapsed(TrainError, RuntimeError):
    """The monitor saw training collapse and stopped it; the best checkpoint is kept."""


class TokenError(TrainError, RuntimeError):
    """Token records that contradict each other."""


class NonFinite(TrainError, ArithmeticError):
    """NaN or infinity where training needs a number.

    Attributes:
        samples: what was to be learned from, as far as it was scored and credited.
    """

    def __init__(self, message: str, samples: Sequence[Any]) -> None:
        super().__init__(message)
        self.samples = samples


class TooManyFaults(TrainError, RuntimeError):
    """Environments break more often than the budget allows."""
