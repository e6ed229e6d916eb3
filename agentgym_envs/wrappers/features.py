"""Observations as arrays of fixed shape, with nothing to download and nothing to fit.

Policies of classic libraries see one observation at a time, and the goal is stated in the first
only. So each wrapper here puts the goal of the task before every observation. What else must be
remembered is the business of a `History` inside.

Left out: sentence embeddings, which need a model; a `TextFeatures` of one's own can add them.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agentgym_envs.arguments import flag, whole_number
from agentgym_envs.core import MAX_OBSERVATION
from agentgym_envs.spaces import UnicodeText
from agentgym_envs.wrappers.hashing import hashed_ngrams, stable_hash, words
from agentgym_envs.wrappers.space import SpaceWrapper

PADDING = 0
"""The id that fills up what a text leaves free."""
SEPARATOR = 1
"""The id between goal and text."""


class TextFeatures(SpaceWrapper, abc.ABC):
    """Base of the wrappers that turn goal and text into an array.

    Args:
        env: a `TextEnv` or one of this package's wrappers, with texts as observations.
        arguments: see `SpaceWrapper`.

    Raises:
        TypeError: `env` is something else.
    """

    def __init__(self, env: gymnasium.Env[str, Any], **arguments: Any) -> None:
        super().__init__(env, **arguments)
        if not isinstance(env.observation_space, UnicodeText):
            raise TypeError(
                f"{type(self).__name__} reads texts, but the observations of {env} are "
                f"{env.observation_space}; use one wrapper of this kind"
            )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode; see `TextEnv.reset`."""
        text, info = self.env.reset(seed=seed, options=options)
        return self.encode(self.goal, text), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play one turn; see the wrapped environment."""
        text, reward, terminated, truncated, info = self.env.step(action)
        return self.encode(self.goal, text), float(reward), terminated, truncated, info

    @abc.abstractmethod
    def encode(self, goal: str, text: str) -> np.ndarray:
        """The observation for a goal and what the wrapped environment says: a new array."""


class HashedText(TextFeatures):
    """Bags of words and n-grams: float32 (2 D,), the goal in the first half, the text after it.

    Each half is hashed and normalized by itself, so that a long text does not drown the goal. Hash
    functions are fixed: arrays are the same in every process and under every `PYTHONHASHSEED`.

    Args:
        env: a `TextEnv` or one of this package's wrappers, with texts as observations.
        dimension: places of each half, D. Terms that share one cannot be told apart.
        ngrams: longest n-grams, in words. With 1, "red ball" and "ball red" look the same.
        normalize: divide each half by its Euclidean norm, so that values lie in [-1, 1]; else
            they are signed counts.

    Raises:
        ValueError, TypeError: a number less than 1, or a value of another kind.
    """

    def __init__(
        self,
        env: gymnasium.Env[str, Any],
        dimension: int = 256,
        ngrams: int = 2,
        normalize: bool = True,
    ) -> None:
        self._dimension = whole_number("dimension", dimension, least=1)
        self._ngrams = whole_number("ngrams", ngrams, least=1)
        self._normalize = flag("normalize", normalize)
        super().__init__(
            env, dimension=self._dimension, ngrams=self._ngrams, normalize=self._normalize
        )
        bound = 1.0 if normalize else float(MAX_OBSERVATION * self._ngrams)
        shape = (2 * self._dimension,)
        self.observation_space = gymnasium.spaces.Box(-bound, bound, shape, np.float32)

    def encode(self, goal: str, text: str) -> np.ndarray:
        """Both texts, hashed."""
        halves = [
            hashed_ngrams(part, self._dimension, self._ngrams, normalize=self._normalize)
            for part in (goal, text)
        ]
        return np.concatenate(halves)


class TokenIds(TextFeatures):
    """Ids of words, for embedding layers: int64 (length,), in 0..vocabulary_size - 1.

    The words of the goal, `SEPARATOR`, and the words of the text; then `PADDING`. A text that is
    too long loses its beginning, since the newest is said last; a goal that is too long its end. A
    word's id is its hash, so there is no vocabulary to build, and two words may share an id.

    Args:
        env: a `TextEnv` or one of this package's wrappers, with texts as observations.
        length: ids in an observation.
        vocabulary_size: number of ids, at least 3; two of them stand for no word.

    Raises:
        ValueError: a number that is too small.
    """

    def __init__(
        self, env: gymnasium.Env[str, Any], length: int = 128, vocabulary_size: int = 4096
    ) -> None:
        self._length = whole_number("length", length, least=1)
        num_ids = whole_number("vocabulary_size", vocabulary_size, least=3)
        super().__init__(env, length=self._length, vocabulary_size=num_ids)
        self._num_words = num_ids - 2
        self.observation_space = _id_space(self._length, num_ids)

    def encode(self, goal: str, text: str) -> np.ndarray:
        """Both texts as ids of words."""
        return _laid_out(self._ids(goal), self._ids(text), self._length)

    def _ids(self, text: str) -> list[int]:
        return [2 + stable_hash(word) % self._num_words for word in words(text)]


class ByteIds(TextFeatures):
    """Texts as they stand, byte by byte: int64 (length,), in 0..257.

    The bytes of the goal in UTF-8, each plus 2, `SEPARATOR`, and those of the text; then
    `PADDING`. What is too long is cut as in `TokenIds`.

    Args:
        env: a `TextEnv` or one of this package's wrappers, with texts as observations.
        length: ids in an observation.

    Raises:
        ValueError: a length less than 1.
    """

    def __init__(self, env: gymnasium.Env[str, Any], length: int = 512) -> None:
        self._length = whole_number("length", length, least=1)
        super().__init__(env, length=self._length)
        self.observation_space = _id_space(self._length, 258)

    def encode(self, goal: str, text: str) -> np.ndarray:
        """Both texts as ids of bytes."""
        ids_of_goal = [2 + byte for byte in goal.encode()]
        ids_of_text = [2 + byte for byte in text.encode()]
        return _laid_out(ids_of_goal, ids_of_text, self._length)


def _id_space(length: int, num_ids: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(0, num_ids - 1, (length,), np.int64)


def _laid_out(goal: Sequence[int], text: Sequence[int], length: int) -> np.ndarray:
    head = [*goal, SEPARATOR][:length]
    tail = text[max(0, len(text) - (length - len(head))) :]
    row = np.full(length, PADDING, dtype=np.int64)
    row[: len(head) + len(tail)] = [*head, *tail]
    return row
