"""`CandidateActions`: the admissible commands as a masked `Discrete(k)`, for classic RL libraries.

What a slot holds changes with the state, and a policy that is not shown the commands cannot know
it. So by default a command goes to the slot that its hash names: it has the same slot in every
state, task, process and position of a vector, and a plain network over slots can learn what each
slot is good for. A vocabulary of commands would need fewer slots, but somebody must collect it
first and share it with every worker. Listed slots (the first command in slot 0, the second in
slot 1, …) waste none, but only a policy that reads the commands can use them, see
`CandidateFeatures`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from agentgym_envs.arguments import one_of, whole_number
from agentgym_envs.core import MAX_OBSERVATION, TextEnv
from agentgym_envs.errors import InvalidState, Unsupported
from agentgym_envs.wrappers.base import TextWrapper
from agentgym_envs.wrappers.hashing import stable_hash
from agentgym_envs.wrappers.space import SpaceWrapper


class CandidateActions(SpaceWrapper):
    """Actions are slots, 0 to k - 1; a slot holds an admissible command or is empty.

    To `info` come ``action_mask``, int8 (k,) as `gymnasium.spaces.Discrete.sample` takes it, and
    ``candidates_left_out``, the number of admissible commands that no slot holds. An empty slot
    costs a turn and is answered by an observation that says so.

    Where there are more than k admissible commands, k of them are offered, and in the next turn the
    k after these, round and round in the family's order: while the list stays the same, each is
    offered at least once in ceil(n / k) turns. None is out of reach, but it may take a turn to get
    to; choose k so large that ``candidates_left_out`` is 0.

    Args:
        env: a `TextEnv` or a `TextWrapper` that can list admissible commands.
        k: number of slots.
        slots: ``"hashed"``: a command goes to slot ``hash mod k``, or to the next free one if that
            is taken by a command earlier in the family's order. ``"listed"``: commands fill the
            slots from 0 on in the family's order.

    Raises:
        TypeError: `env` is something else.
        Unsupported: the family cannot list admissible commands.
        UnknownName, ValueError: no such slots, or k is less than 1.
    """

    def __init__(self, env: gymnasium.Env[str, str], k: int, slots: str = "hashed") -> None:
        if not isinstance(env, (TextEnv, TextWrapper)):
            raise TypeError(
                f"CandidateActions wraps a TextEnv or a TextWrapper, got {type(env).__name__}; "
                "wrappers that change spaces and Gymnasium's own go outside"
            )
        self.num_slots = whole_number("k", k, least=1)
        self._assign = _ASSIGNMENTS[one_of("slots", slots, _ASSIGNMENTS)]
        super().__init__(env, k=self.num_slots, slots=slots)
        if "admissible" not in self.capabilities:
            raise Unsupported(f"{env} cannot list admissible commands, so there are no candidates")
        self.action_space = gymnasium.spaces.Discrete(self.num_slots)
        self._turn = 0
        self._offered: tuple[str, ...] | None = None

    @property
    def candidates(self) -> tuple[str, ...]:
        """What the slots hold now: k bare commands, "" for an empty slot."""
        if self._offered is None:
            self._offered = self._fill(self.admissible())
        return self._offered

    def action_masks(self) -> np.ndarray:
        """Which slots hold a command: bool (k,), under the name that sb3-contrib asks for.

        All True where no command is admissible, as after the end of an episode: a distribution
        over nothing is undefined.
        """
        mask = np.array([bool(command) for command in self.candidates])
        return mask if mask.any() else ~mask

    def slot_of(self, command: str) -> int:
        """The slot that holds `command`, such as one that an oracle wants.

        Raises:
            ValueError: none does.
        """
        if not command or command not in self.candidates:
            held = ", ".join(candidate for candidate in self.candidates if candidate)
            raise ValueError(f"no slot holds {command!r}; the candidates are: {held or 'none'}")
        return self.candidates.index(command)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode; see `TextEnv.reset`."""
        self._offered = None
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._offer(info)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play the command of slot `action`, an `int` or a NumPy integer.

        Raises:
            ValueError: there is no such slot.
            TypeError: it is no whole number.
        """
        slot = self._check_slot(action)
        command = self.candidates[slot]
        refusal = "" if command else self._refusal(slot)
        reply = self.env.get_wrapper_attr("render_command")(command) if command else ""
        observation, reward, terminated, truncated, info = self.env.step(reply)
        observation = (refusal + observation)[:MAX_OBSERVATION]
        return observation, float(reward), terminated, truncated, self._offer(info)

    def _offer(self, info: dict[str, Any]) -> dict[str, Any]:
        """`info` of the turn just played, with what is offered in the next."""
        self._turn = info["turn"]
        commands = self.admissible()
        self._offered = self._fill(commands)
        return info | {
            "action_mask": self.action_masks().astype(np.int8),
            "candidates_left_out": max(0, len(commands) - self.num_slots),
        }

    def _fill(self, commands: Sequence[str]) -> tuple[str, ...]:
        if len(commands) > self.num_slots:
            start = self._turn * self.num_slots % len(commands)
            commands = [*commands[start:], *commands[:start]][: self.num_slots]
        return tuple(self._assign(commands, self.num_slots))

    def _check_slot(self, action: Any) -> int:
        try:
            if isinstance(action, (bool, np.bool_)):
                raise TypeError
            slot = operator.index(action)
        except TypeError:
            raise TypeError(f"an action is the number of a slot, got {action!r}") from None
        if not 0 <= slot < self.num_slots:
            raise ValueError(f"slots are numbered 0 to {self.num_slots - 1}, got {slot}")
        return slot

    def _refusal(self, slot: int) -> str:
        held = [str(number) for number, command in enumerate(self.candidates) if command]
        return f"Slot {slot} holds no command; these do: {', '.join(held) or 'none'}.\n"

    def _save_own(self) -> Any:
        return {"turn": self._turn}

    def _load_own(self, own: Any) -> None:
        try:
            self._turn = whole_number("turn", own["turn"], least=0)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidState(f"not what CandidateActions remembers: {error!r}") from error
        self._offered = None


def _listed(commands: Sequence[str], k: int) -> list[str]:
    return [*commands, *[""] * (k - len(commands))]


def _hashed(commands: Sequence[str], k: int) -> list[str]:
    slots = [""] * k
    for command in commands:
        slot = stable_hash(command) % k
        while slots[slot]:
            slot = (slot + 1) % k
        slots[slot] = command
    return slots


_ASSIGNMENTS: dict[str, Callable[[Sequence[str], int], list[str]]] = {
    "hashed": _hashed,
    "listed": _listed,
}
