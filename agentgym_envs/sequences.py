"""Episodes as arrays to train on, whoever trains: one sequence of tokens an episode.

Numbers of tokens are *compressed*: for n sampled tokens, arrays of n numbers in order. Context
tokens have no slot in them, so no reward, value, advantage or ratio can land on one. A record that
contradicts itself is refused rather than repaired.

Letters: T tokens of an episode, n sampled ones among them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.episodes import Episode, Turn
from agentgym_envs.errors import InvalidRecord

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TokenSequence:
    """The tokens of an episode.

    Attributes:
        token_ids: all tokens up to the last turn's, and the final observation's if asked for: (T,).
        sampled_mask: True on the tokens that the policy sampled: (T,), n of them.
        turn_index: the turn of each sampled token, counted from 0: (n,).
        rewards: see `Episode.token_rewards`: (n,).
        old_logprobs: log-probability of each sampled token under the distribution it was drawn
            from: (n,), or None where a teacher wrote the tokens or the likeliest were taken.
        temperature: what logits were divided by when the tokens were drawn; 1 where a teacher wrote
            them.
        state_keys: for each turn the key of the state it was taken in, or () if not recorded.
        origin: which episode it is, for messages.

    Raises:
        InvalidRecord: the lengths differ, nothing was sampled, or the first token was.
    """

    token_ids: IntArray
    sampled_mask: NDArray[np.bool_]
    turn_index: IntArray
    rewards: FloatArray
    old_logprobs: FloatArray | None = None
    temperature: float = 1.0
    state_keys: tuple[str, ...] = ()
    origin: str = "an unnamed episode"

    def __post_init__(self) -> None:
        if len(self.sampled_mask) != len(self.token_ids):
            raise InvalidRecord(
                f"{len(self.token_ids)} tokens need a mask of that length, got "
                f"{len(self.sampled_mask)}"
            )
        if not self.num_sampled:
            raise InvalidRecord("no token was sampled, so there is nothing to train on")
        if self.sampled_mask[0]:
            raise InvalidRecord(
                "the first token is a sampled one and nothing predicts it; a prompt needs at least "
                "one token"
            )
        self.require_one_each("turn_index", "rewards", "old_logprobs")

    def require_one_each(self, *names: str) -> None:
        """Refuse compressed arrays that have not one number for each sampled token.

        Raises:
            InvalidRecord: names the array, the numbers expected and what came.
        """
        for name in names:
            values = getattr(self, name)
            if values is not None and values.shape != (self.num_sampled,):
                raise InvalidRecord(
                    f"{name} must have one number for each of the {self.num_sampled} sampled "
                    f"tokens, got shape {values.shape}"
                )

    @property
    def num_tokens(self) -> int:
        """T: tokens, context included."""
        return len(self.token_ids)

    @property
    def num_sampled(self) -> int:
        """n: sampled tokens."""
        return int(self.sampled_mask.sum())


def token_sequence(episode: Episode, *, with_tail: bool = False) -> TokenSequence:
    """The sequence of an episode.

    Args:
        episode: its record, with tokens.
        with_tail: put the final observation behind, so that a critic can value it.

    Raises:
        InvalidRecord: the token record is missing, contradicts itself or holds no sampled token; or
            the final observation is wanted and was not recorded.
    """
    origin = f"episode of task {episode.task.id!r}, member {episode.member}"
    try:
        for index, turn in enumerate(episode.turns):
            _check_turn(index, turn)
        tail = episode.tail_ids if with_tail else []
        if tail is None:
            raise InvalidRecord("its final observation was not recorded, so it has no value")
        temperature = _temperature(episode.turns)
        keys = [turn.state_key for turn in episode.turns]
        counts = [len(turn.sampled_ids or ()) for turn in episode.turns]
        return TokenSequence(
            token_ids=np.array(episode.token_ids + tail, dtype=np.int64),
            sampled_mask=np.array(episode.sampled_mask + [False] * len(tail), dtype=np.bool_),
            turn_index=np.repeat(np.arange(len(counts)), counts),
            rewards=np.array(episode.token_rewards, dtype=np.float64),
            old_logprobs=_logprobs(episode.turns) if temperature else None,
            temperature=temperature or 1.0,
            state_keys=() if None in keys else tuple(map(str, keys)),
            origin=origin,
        )
    except InvalidRecord as error:
        raise InvalidRecord(f"{origin}: {error}") from None


def _check_turn(index: int, turn: Turn) -> None:
    if turn.sampled_ids is None:
        raise InvalidRecord(
            f"turn {index} has no token ids; only episodes of a token-level policy can be trained "
            "on"
        )
    if turn.logprobs is not None and len(turn.logprobs) != len(turn.sampled_ids):
        raise InvalidRecord(
            f"turn {index} has {len(turn.sampled_ids)} sampled tokens but {len(turn.logprobs)} "
            "log-probabilities"
        )
    if not math.isfinite(turn.reward):
        raise InvalidRecord(
            f"turn {index} has the reward {turn.reward}; an environment must give finite numbers"
        )


def _temperature(turns: Sequence[Turn]) -> float:
    found = {turn.temperature for turn in turns if turn.temperature is not None}
    if len(found) > 1:
        raise InvalidRecord(f"its turns were sampled at temperatures {sorted(found)}; one expected")
    return found.pop() if found else 1.0


def _logprobs(turns: Sequence[Turn]) -> FloatArray | None:
    written = [turn.logprobs for turn in turns if turn.sampled_ids]
    known = [logprobs for logprobs in written if logprobs is not None]
    if not known:
        return None
    if len(known) < len(written):
        raise InvalidRecord(
            f"{len(known)} of {len(written)} turns have log-probabilities; all or none expected"
        )
    return np.concatenate([np.asarray(logprobs, dtype=np.float64) for logprobs in known])
