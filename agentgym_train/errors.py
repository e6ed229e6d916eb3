"""Every exception of the trainer, in one tree.

::

    TrainError
    ├── ConfigError                   settings that cannot work together; says what to change
    ├── ModelError (ValueError)       a model folder that cannot be used
    ├── CheckpointError (ValueError)  a checkpoint that is missing, broken or of another run
    ├── ContextError (ValueError)     a prompt that does not fit the model's context
    ├── TokenError (RuntimeError)     token records that contradict each other: never trained on
    └── TooManyFaults (RuntimeError)  environments break more often than the budget allows

The command line shows the message of these, and of what the operating system refuses, on one line
and exits with 2; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations


class TrainError(Exception):
    """The root of all errors raised by `agentgym_train`."""


class ConfigError(TrainError):
    """Settings that cannot work together.

    No `ValueError`: the parser of the command line would wrap it into a box of its own.
    """


class ModelError(TrainError, ValueError):
    """A model folder that cannot be used."""


class CheckpointError(TrainError, ValueError):
    """A checkpoint that is missing, broken, or belongs to another run."""


class ContextError(TrainError, ValueError):
    """A prompt that does not fit the model's context."""


class TokenError(TrainError, RuntimeError):
    """Token records that contradict each other."""


class TooManyFaults(TrainError, RuntimeError):
    """Environments break more often than the budget allows."""
