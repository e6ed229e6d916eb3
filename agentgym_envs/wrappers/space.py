"""`SpaceWrapper`: a wrapper that gives a text environment other spaces, for libraries of numbers.

`TextWrapper` is text in, text out; these are not, so they cannot be one. What `TextEnv` adds to
Gymnasium stays reachable all the same (`task`, `oracle`, `save_state`, …), and Gymnasium's own
wrappers and vector environments go outside, where ``get_wrapper_attr`` finds it.
"""

from __future__ import annotations

from typing import Any, Self

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason
from agentgym_envs.states import digest_of
from agentgym_envs.wrappers.base import TextWrapper
from agentgym_envs.wrappers.states import WrapperState

_FORWARDED = frozenset(
    {
        "capabilities",
        "split",
        "tasks",
        "task",
        "goal",
        "horizon",
        "action_format",
        "grammar",
        "tools",
        "instructions",
        "render_command",
        "oracle",
        "admissible",
        "state_key",
        "candidates",
        "action_masks",
        "slot_of",
    }
)


class SpaceWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Base of the wrappers that turn texts into numbers or numbers into texts.

    Args:
        env: a `TextEnv`, a `TextWrapper` or another `SpaceWrapper`.
        arguments: the subclass's own constructor arguments; JSON values. They let
            ``EnvSpec.to_json`` round-trip and `clone` rebuild the wrapper.

    Raises:
        TypeError: `env` is none of these.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], **arguments: Any) -> None:
        if not isinstance(env, (TextEnv, TextWrapper, SpaceWrapper)):
            raise TypeError(
                f"{type(self).__name__} wraps a TextEnv or one of this package's wrappers, "
                f"got {type(env).__name__}; put Gymnasium's own wrappers outside"
            )
        RecordConstructorArgs.__init__(self, **arguments)
        super().__init__(env)
        self._arguments = arguments

    def __getattr__(self, name: str) -> Any:
        """What `TextEnv` adds to Gymnasium's interface, from the wrapped environment."""
        if name in _FORWARDED:
            return getattr(self.env, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def save_state(self) -> bytes:
        """The state of the wrapped environment and of this wrapper."""
        inner = self.env.get_wrapper_attr("save_state")()
        name, digest = self._origin()
        return WrapperState(name, digest, EndReason.RUNNING, self._save_own(), inner).to_bytes()

    def load_state(self, state: bytes) -> None:
        """Continue where `save_state` was called.

        Raises:
            InvalidState: the state was saved by other wrappers, other arguments or another
                environment. Everything is as it was before.
        """
        saved = WrapperState.from_bytes(state)
        saved.check_origin(*self._origin())
        before = self._save_own()
        self._load_own(saved.own)
        try:
            self.env.get_wrapper_attr("load_state")(saved.inner)
        except BaseException:
            self._load_own(before)
            raise

    def clone(self) -> Self:
        """A second, independent environment with the same wrappers in the same state."""
        twin = type(self)(self.env.get_wrapper_attr("clone")(), **self._arguments)
        twin._load_own(self._save_own())
        return twin

    def _save_own(self) -> Any:
        """What the wrapper remembers between steps, as fresh JSON values."""
        return None

    def _load_own(self, own: Any) -> None:
        """Take back what `_save_own` gave, before the wrapped environment is loaded.

        Raises:
            InvalidState: it did not give this; nothing is changed.
        """

    def _origin(self) -> tuple[str, str]:
        return type(self).__name__, digest_of(self._arguments)
