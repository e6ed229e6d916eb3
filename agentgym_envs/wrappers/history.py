"""`History`: observations that hold the last turns, for policies that see one text at a time.

The first observation, which states the goal, always comes first and the newest one last, both
whole. What is given up when room is short are the oldest turns, then the end of the newest reply.
Left out: summaries. They need a model; one that writes them is a policy of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import gymnasium

from agentgym_envs.arguments import text_list, whole_number
from agentgym_envs.core import MAX_OBSERVATION
from agentgym_envs.spaces import to_utf8
from agentgym_envs.wrappers.base import TextWrapper

Pair = tuple[int, str, str]
"""Number of the turn, reply, observation."""


class History(TextWrapper):
    """Observations hold the first observation and the last `turns` replies with their answers.

    The text of turn 9 with ``turns=2``::

        the first observation

        [7 earlier turns are left out.]

        [Turn 8, your reply]
        go to red ball 1

        [Turn 8, observation]
        You walk to red ball 1.

        [Turn 9, your reply]
        pick up red ball 1

        [Turn 9, observation]
        You pick it up.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        turns: most turns to show, at least 1.
        max_characters: most characters of the whole text. The first and the newest observation
            stay whole even if they alone are longer. None allows what the space allows.

    Raises:
        ValueError: a number less than 1.
    """

    def __init__(
        self, env: gymnasium.Env[str, str], turns: int = 4, max_characters: int | None = None
    ) -> None:
        super().__init__(env, turns=turns, max_characters=max_characters)
        self._turns = whole_number("turns", turns, least=1)
        self._room = (
            MAX_OBSERVATION
            if max_characters is None
            else min(MAX_OBSERVATION, whole_number("max_characters", max_characters, least=1))
        )
        self._first = ""
        self._pairs: tuple[Pair, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode with an empty history, see `TextEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        self._first, self._pairs = observation, ()
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn; the observation holds the history."""
        observation, reward, terminated, truncated, info = super().step(action)
        pair = (info["turn"], to_utf8(action[: self._room]), observation)
        self._pairs = (*self._pairs, pair)[-self._turns :]
        text = layout(self._first, self._pairs, self._room)
        return text, reward, terminated, truncated, info

    def _save_own(self) -> Any:
        return {"first": self._first, "pairs": [list(pair) for pair in self._pairs]}

    def _load_own(self, own: Any) -> None:
        (self._first,) = text_list("the first observation", [own["first"]])
        self._pairs = tuple(_checked(*pair) for pair in own["pairs"])


def _checked(turn: Any, *texts: Any) -> Pair:
    reply, observation = text_list("a turn", texts)
    return whole_number("a turn", turn, least=1), reply, observation


def layout(first: str, pairs: Sequence[Pair], max_characters: int) -> str:
    """The observation with its history, see `History`.

    Args:
        first: the first observation.
        pairs: at least one turn, oldest first.
        max_characters: most characters of the whole, see `History`.
    """
    *older, (turn, reply, observation) = pairs
    blocks_before = [_block(pair) for pair in reversed(older)]
    room = max_characters - len(first) - len(_block((turn, "", observation)))
    shows_all = turn == len(pairs) and sum(map(len, blocks_before)) + len(reply) <= room
    if turn > 1 and not shows_all:
        room -= len(_left_out(turn - 1))
    reply = _shortened(reply, max(room, 0))
    blocks = [_block((turn, reply, observation))]
    blocks += _that_fit(blocks_before, room - len(reply))
    left_out = turn - len(blocks)
    parts = [first, _left_out(left_out) if left_out else "", *reversed(blocks)]
    return "".join(parts)[:MAX_OBSERVATION]


def _that_fit(blocks: Iterable[str], room: int) -> Iterator[str]:
    for block in blocks:
        room -= len(block)
        if room < 0:
            return
        yield block


def _block(pair: Pair) -> str:
    turn, reply, observation = pair
    return f"\n\n[Turn {turn}, your reply]\n{reply}\n\n[Turn {turn}, observation]\n{observation}"


def _left_out(count: int) -> str:
    return f"\n\n[{count} earlier turn{' is' if count == 1 else 's are'} left out.]"


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: max(length - 1, 0)]}…"
