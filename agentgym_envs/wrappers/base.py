"""`TextWrapper`: a wrapper that keeps the whole contract of `TextEnv`.

Gymnasium's `Wrapper` forwards no attributes. This one forwards what `TextEnv` adds, and nests the
wrapper's own state into saved states: a subclass that remembers anything between steps returns it
from `_save_own` and takes it back in `_load_own`.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Self, cast

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import InvalidState

if TYPE_CHECKING:
    from agentgym_envs.actions import Grammar
    from agentgym_envs.policies import Policy
    from agentgym_envs.tasks import Task, TaskSet


class TextWrapper(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Base of all wrappers over text environments. By itself it changes nothing.

    Args:
        env: a `TextEnv` or another `TextWrapper`.
        arguments: the subclass's own constructor arguments; JSON values. They let
            ``EnvSpec.to_json`` round-trip and `clone` rebuild the wrapper.

    Raises:
        TypeError: `env` is neither.
    """

    def __init__(self, env: gymnasium.Env[str, str], **arguments: Any) -> None:
        if not isinstance(env, (TextEnv, TextWrapper)):
            raise TypeError(
                f"{type(self).__name__} wraps a TextEnv or a TextWrapper, "
                f"got {type(env).__name__}; put Gymnasium's own wrappers outside"
            )
        RecordConstructorArgs.__init__(self, **arguments)
        super().__init__(env)
        self._arguments = arguments

    @property
    def inner(self) -> TextEnv:
        """The wrapped environment, typed as what it behaves like."""
        return cast(TextEnv, self.env)

    @property
    def capabilities(self) -> frozenset[str]:
        """Which of the calls below the family has."""
        return self.inner.capabilities

    @property
    def split(self) -> str:
        """Name of the split."""
        return self.inner.split

    @property
    def tasks(self) -> TaskSet:
        """The tasks that `reset` draws from."""
        return self.inner.tasks

    @property
    def task(self) -> Task:
        """The task being played."""
        return self.inner.task

    @property
    def horizon(self) -> int:
        """Most turns of the episode being played."""
        return self.inner.horizon

    @property
    def action_format(self) -> str:
        """Name of the action format."""
        return self.inner.action_format

    @property
    def grammar(self) -> Grammar:
        """The verbs of the world."""
        return self.inner.grammar

    @property
    def instructions(self) -> str:
        """The rules of world and action format."""
        return self.inner.instructions

    def render_command(self, command: str, thought: str = "") -> str:
        """The reply that carries `command`."""
        return self.inner.render_command(command, thought)

    def oracle(self) -> Policy:
        """A policy that solves the current task."""
        return self.inner.oracle()

    def admissible(self) -> list[str]:
        """All commands that the world would carry out now."""
        return self.inner.admissible()

    def state_key(self) -> str:
        """A hash of the world without turn, history and random state."""
        return self.inner.state_key()

    def save_state(self) -> bytes:
        """The state of the wrapped environment and of this wrapper."""
        state = {
            "wrapper": type(self).__name__,
            "own": self._save_own(),
            "inner": base64.b85encode(self.inner.save_state()).decode(),
        }
        return json.dumps(state, separators=(",", ":")).encode()

    def load_state(self, state: bytes) -> None:
        """Continue where `save_state` was called.

        Raises:
            InvalidState: the state was saved by other wrappers or another environment.
        """
        try:
            data = json.loads(state)
            name, own, inner = data["wrapper"], data["own"], base64.b85decode(data["inner"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidState(f"not a state saved by {type(self).__name__}: {error!r}") from error
        if name != type(self).__name__:
            raise InvalidState(f"the state was saved by {name}, this is {type(self).__name__}")
        self.inner.load_state(inner)
        self._load_own(own)

    def clone(self) -> Self:
        """A second, independent environment with the same wrappers in the same state."""
        twin = type(self)(self.inner.clone(), **self._arguments)
        twin._load_own(self._save_own())
        return twin

    def _save_own(self) -> Any:
        """What the wrapper remembers between steps, as fresh JSON values."""
        return None

    def _load_own(self, own: Any) -> None:
        """Take back what `_save_own` gave."""
