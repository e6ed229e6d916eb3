"""`TextWrapper`: a wrapper that keeps the whole contract of `TextEnv`.

Gymnasium's `Wrapper` forwards no attributes. This one forwards what `TextEnv` adds, and nests the
wrapper's own state into saved states: a subclass that remembers anything between steps returns it
from `_save_own` and takes it back in `_load_own`.

A wrapper may also end an episode before the world does, see `_end`. What lies inside then knows
nothing of it, so the wrapper keeps the rest of the contract itself: no step before the next reset,
nothing admissible, and the end in the saved state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidState, Unsupported
from agentgym_envs.states import digest_of
from agentgym_envs.wrappers.states import WrapperState

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
        TypeError: `env` is neither, or an argument is no JSON value.
    """

    added_info_keys: ClassVar[Mapping[str, type]] = {}
    """Keys that the wrapper adds to every `info`, with their types."""
    neutral_arguments: ClassVar[frozenset[str]] = frozenset()
    """Arguments that play no part in how an episode goes on: saved states ignore them."""

    def __init__(self, env: gymnasium.Env[str, str], **arguments: Any) -> None:
        if not isinstance(env, (TextEnv, TextWrapper)):
            raise TypeError(
                f"{type(self).__name__} wraps a TextEnv or a TextWrapper, "
                f"got {type(env).__name__}; put Gymnasium's own wrappers outside"
            )
        _check_json(type(self).__name__, arguments)
        RecordConstructorArgs.__init__(self, **arguments)
        super().__init__(env)
        self._arguments = arguments
        self._end_reason = EndReason.RUNNING

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
    def goal(self) -> str:
        """What the task being played asks for, in words."""
        return self.inner.goal

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
    def tools(self) -> list[dict[str, Any]]:
        """The verbs as the ``tools`` of OpenAI's chat API."""
        return self.inner.tools

    @property
    def instructions(self) -> str:
        """The rules of world and action format."""
        return self.inner.instructions

    @property
    def instructions_by_family(self) -> dict[str, str]:
        """The instructions for the tasks of each family that is played here."""
        return self.inner.instructions_by_family

    def render_command(self, command: str, thought: str = "") -> str:
        """The reply that carries `command`."""
        return self.inner.render_command(command, thought)

    def oracle(self) -> Policy:
        """A policy that solves the current task."""
        return self.inner.oracle()

    def admissible(self) -> list[str]:
        """All commands that the world would carry out now; none after the end."""
        return [] if self._end_reason else self.inner.admissible()

    def state_key(self) -> str:
        """A hash of the world without turn, history and random state."""
        return self.inner.state_key()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode, see `TextEnv.reset`."""
        begun = self.inner.reset(seed=seed, options=options)
        self._end_reason = EndReason.RUNNING
        return begun

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn, see `TextEnv.step`.

        Raises:
            ResetNeeded: also if this wrapper has ended the episode.
        """
        if self._end_reason:
            raise gymnasium.error.ResetNeeded(
                f"{type(self).__name__} ended the episode ({self._end_reason}); "
                "call reset() before step()"
            )
        return self.inner.step(action)

    def save_state(self) -> bytes:
        """The state of the wrapped environment and of this wrapper."""
        inner = self.inner.save_state()
        return WrapperState(
            type(self).__name__, self._digest(), self._end_reason, self._save_own(), inner
        ).to_bytes()

    def load_state(self, state: bytes) -> None:
        """Continue where `save_state` was called.

        Raises:
            InvalidState: the state was saved by other wrappers, other arguments or another
                environment. Everything is as it was before.
            Unsupported: the family cannot load.
        """
        if "clone" not in self.capabilities:
            raise Unsupported(f"{self} cannot load a state: its family has no 'clone'")
        saved = WrapperState.from_bytes(state)
        saved.check_origin(type(self).__name__, self._digest())
        before = dict(vars(self))
        try:
            self._end_reason = saved.end_reason
            self._take_own(saved.own)
            self.inner.load_state(saved.inner)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def clone(self) -> Self:
        """A second, independent environment with the same wrappers in the same state."""
        twin = type(self)(self.inner.clone(), **self._arguments)
        twin._end_reason = self._end_reason
        twin._load_own(self._save_own())
        return twin

    def _end(self, info: dict[str, Any], reason: EndReason) -> None:
        """End the episode with this step, whose `info` is to say so."""
        self._end_reason = reason
        info["end_reason"] = str(reason)
        if "admissible" in info:
            info["admissible"] = []

    def _save_own(self) -> Any:
        """What the wrapper remembers between steps, as fresh JSON values."""
        return None

    def _load_own(self, own: Any) -> None:
        """Take back what `_save_own` gave, by giving attributes new values.

        Called before the wrapped environment is loaded. What cannot be read may raise anything:
        the attributes then get their old values again.
        """

    def _take_own(self, own: Any) -> None:
        try:
            self._load_own(own)
        except InvalidState:
            raise
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            name = type(self).__name__
            raise InvalidState(f"not what {name} remembers: {error!r}") from error

    def _digest(self) -> str:
        names = self._arguments.keys() - self.neutral_arguments
        return digest_of({name: self._arguments[name] for name in names})


def _check_json(wrapper: str, arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        try:
            survives = json.loads(json.dumps(value)) == value
        except (TypeError, ValueError, RecursionError):
            survives = False
        if not survives:
            raise TypeError(
                f"arguments of wrappers are JSON values, so that specs and saved states can hold "
                f"them; {wrapper} got {name}={value!r}"
            )
