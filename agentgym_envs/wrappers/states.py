"""`WrapperState`: what a wrapper adds to the saved state of the environment inside it.

One line of JSON stands before the state inside, which is left as it is: a stack of wrappers makes a
state longer by its own lines, not by an encoding of an encoding.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidState


@dataclasses.dataclass(frozen=True)
class WrapperState:
    """The state of one wrapper and of what it wraps.

    Attributes:
        wrapper: name of the class.
        arguments: digest of those arguments that decide how an episode goes on.
        end_reason: why the wrapper has ended the episode; `RUNNING` if it has not.
        own: what else the wrapper remembers; JSON values.
        inner: the saved state of the wrapped environment.
    """

    wrapper: str
    arguments: str
    end_reason: EndReason
    own: Any
    inner: bytes

    def to_bytes(self) -> bytes:
        """One line of JSON, then the state inside."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        inner: bytes = fields.pop("inner")
        fields["end_reason"] = str(self.end_reason)
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n" + inner

    @classmethod
    def from_bytes(cls, state: bytes) -> WrapperState:
        """The state that `to_bytes` wrote.

        Raises:
            InvalidState: it did not write this.
        """
        try:
            line, _, inner = state.partition(b"\n")
            fields = json.loads(line)
            fields["end_reason"] = EndReason(fields["end_reason"])
            return cls(**fields, inner=inner)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidState(f"not a state saved by a wrapper: {error!r}") from error

    def check_origin(self, wrapper: str, arguments: str) -> None:
        """Refuse the state of another wrapper.

        Raises:
            InvalidState: another class, or other arguments.
        """
        if self.wrapper != wrapper:
            raise InvalidState(
                f"the state was saved by {self.wrapper!r}, this is {wrapper!r}; "
                "put the same wrappers around the environment, in the same order"
            )
        if self.arguments != arguments:
            raise InvalidState(
                f"the state was saved by a {wrapper} with other arguments; "
                "make the wrapper with the same arguments"
            )
