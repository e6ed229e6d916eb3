"""Saved states: an episode in progress as plain data, never a pickle.

A state names its origin (family, version of the rules, digest of the constructor's arguments) and
is refused by any other environment: what it holds would mean something else there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidState
from agentgym_envs.tasks import Task

STATE_SCHEMA = 2

_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclasses.dataclass(frozen=True)
class SavedState:
    """All that an episode's future depends on.

    Attributes:
        origin: family, version and digest of arguments of the environment that saved it.
        task: what is played.
        horizon: most turns.
        turn: turns so far.
        score: score so far, 0..1.
        format_errors: replies so far that held no command in the expected format.
        end_reason: whether and how the episode has ended.
        generator: the environment's random state.
        seed: what it was seeded with.
        world: the family's own part; JSON values.
    """

    origin: Mapping[str, str]
    task: Task
    horizon: int
    turn: int
    score: float
    format_errors: int
    end_reason: EndReason
    generator: np.random.Generator
    seed: int
    world: Any

    def to_bytes(self) -> bytes:
        """The state as UTF-8 JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["task"] = self.task.to_json()
        fields["end_reason"] = str(self.end_reason)
        fields["generator"] = _plain(self.generator.bit_generator.state)
        return json.dumps({"schema": STATE_SCHEMA} | fields, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, state: bytes) -> SavedState:
        """The state that `to_bytes` wrote.

        Raises:
            InvalidState: it did not write this.
        """
        try:
            fields = json.loads(state)
            schema = fields.pop("schema")
        except _UNREADABLE as error:
            raise InvalidState(f"not a state saved by save_state(): {error!r}") from error
        if schema != STATE_SCHEMA:
            raise InvalidState(f"state schema {STATE_SCHEMA} expected, got {schema!r}")
        try:
            return cls(
                origin=dict(fields.pop("origin")),
                task=Task.from_json(fields.pop("task")),
                horizon=int(fields.pop("horizon")),
                turn=int(fields.pop("turn")),
                score=_share(fields.pop("score")),
                format_errors=int(fields.pop("format_errors")),
                end_reason=EndReason(fields.pop("end_reason")),
                generator=_restored(fields.pop("generator")),
                **fields,
            )
        except _UNREADABLE as error:
            raise InvalidState(f"not a state saved by save_state(): {error!r}") from error

    def check_origin(self, expected: Mapping[str, str]) -> None:
        """Refuse a state of another environment.

        Raises:
            InvalidState: the origins differ.
        """
        if self.origin != expected:
            raise InvalidState(
                f"the state was saved by another environment: expected {expected}, got "
                f"{self.origin}; make the environment with the same arguments"
            )


def _share(value: Any) -> float:
    if not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"a score is between 0 and 1, got {value!r}")
    return float(value)


def digest_of(arguments: Mapping[str, Any]) -> str:
    """A short digest of constructor arguments, which are JSON values."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Generator states hold numpy integers; JSON wants plain ones."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _restored(state: dict[str, Any]) -> np.random.Generator:
    generator, _ = seeding.np_random(0)
    generator.bit_generator.state = state
    return generator
