"""`CandidateFeatures`: how well each candidate fits goal and text, in four numbers a slot."""

from __future__ import annotations

import functools
import re
from collections import Counter
from math import sqrt
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agentgym_envs.wrappers.candidates import CandidateActions
from agentgym_envs.wrappers.features import TextFeatures
from agentgym_envs.wrappers.hashing import ngram_counts

NUM_FEATURES = 4
"""Numbers a slot."""

_LONG = 200
"""Characters of a text that is not worth remembering: it will hardly come again."""
_LINE_END = re.compile(r"\n+|(?<=[.!?]) ")


class CandidateFeatures(TextFeatures):
    """How each candidate relates to goal and text: float32 (4 k,), four numbers in 0..1 a slot.

    They do not say which words a command has, so what is learned from them holds for words never
    seen before; features of learning to rank are of this kind. With words and pairs of words as
    terms, and cosines of their counts:

    0. whether the slot holds a command;
    1. the cosine of command and goal;
    2. the share of the command's terms that occur in the text;
    3. how well a line or sentence of the text ties the command to the goal, as a recipe does: the
       greatest product, over lines, of the cosines of line and goal and of line and command.

    Made for ``slots="listed"``. ``observation.reshape(-1, NUM_FEATURES)`` has a row a slot.

    Args:
        env: a `CandidateActions`.

    Raises:
        TypeError: `env` is something else.
    """

    def __init__(self, env: gymnasium.Env[str, Any]) -> None:
        if not isinstance(env, CandidateActions):
            raise TypeError(f"CandidateFeatures wraps CandidateActions, got {type(env).__name__}")
        super().__init__(env)
        shape = (env.num_slots * NUM_FEATURES,)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, shape, np.float32)

    def encode(self, goal: str, text: str) -> np.ndarray:
        """The features of all slots, one after the other."""
        wanted = _terms(goal)
        there = _terms(text).counts
        lines = map(_terms, _LINE_END.split(text))
        ties = [(line, tie) for line in lines if (tie := _cosine(line, wanted))]
        rows = np.zeros((len(self.candidates), NUM_FEATURES), dtype=np.float32)
        for row, command in zip(rows, self.candidates, strict=True):
            if command:
                own = _terms(command)
                said = sum(count for term, count in own.counts.items() if term in there)
                tied = max((tie * _cosine(line, own) for line, tie in ties), default=0.0)
                row[:] = 1.0, _cosine(own, wanted), said / max(1, own.counts.total()), tied
        return rows.reshape(-1)


class _Terms(NamedTuple):
    """Words and pairs of words of a text, and the Euclidean norm of their counts."""

    counts: Counter[str]
    norm: float


def _terms(text: str) -> _Terms:
    return _counted(text) if len(text) > _LONG else _remembered(text)


def _counted(text: str) -> _Terms:
    counts = ngram_counts(text, 2)
    return _Terms(counts, sqrt(sum(count * count for count in counts.values())))


_remembered = functools.lru_cache(maxsize=4096)(_counted)


def _cosine(one: _Terms, other: _Terms) -> float:
    """The cosine of two vectors of counts; 0 if one is empty."""
    shared = one.counts.keys() & other.counts.keys()
    product = sum(one.counts[term] * other.counts[term] for term in shared)
    return product / (one.norm * other.norm) if product else 0.0
