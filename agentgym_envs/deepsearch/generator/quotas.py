"""How many questions of which family, and how often one answer may be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agentgym_envs.deepsearch.generator.makers import Candidate
from agentgym_envs.deepsearch.matching import normalize

SIZES = {
    "atlas-simple": {"train": 3000, "dev": 300, "test": 500},
    "atlas-rare": {"train": 2000, "dev": 200, "test": 400},
    "atlas-bridge": {"train": 3000, "dev": 300, "test": 500},
    "atlas-compare": {"train": 1000, "dev": 100, "test": 300},
    "atlas-compose": {"train": 2000, "dev": 200, "test": 400},
    "atlas-chain": {"train": 1000, "dev": 100, "test": 300},
}
"""Questions by set and split."""

LARGEST_SHARE = 0.03
"""Of one answer among the questions of a family, and of a whole set; yes and no aside."""

CLOSED = ("yes", "no")


class Selection:
    """The questions of one set in one split.

    Args:
        size: how many there may be.
        asked: normalized questions that are taken already, here or elsewhere; grows.
    """

    def __init__(self, size: int, asked: set[str]) -> None:
        self.size = size
        self.chosen: list[Candidate] = []
        self._asked = asked
        self._answers: Counter[str] = Counter()
        self._of_family: Counter[tuple[str, str]] = Counter()

    def fill(self, candidates: Iterator[Candidate], quota: int) -> int:
        """Take up to `quota` candidates of one family; how many were taken."""
        taken = 0
        while taken < quota and len(self.chosen) < self.size:
            candidate = next(candidates, None)
            if candidate is None:
                break
            taken += self._take(candidate, quota)
        return taken

    def accepts(self, candidate: Candidate, quota: int) -> bool:
        """Whether a candidate of a family with this quota may still be taken."""
        answer = normalize(candidate.answers[0])
        of_family = self._of_family[candidate.type, answer]
        if normalize(candidate.question) in self._asked:
            return False
        if answer in CLOSED:
            return of_family < quota // 2
        return of_family < _most(quota) and self._answers[answer] < _most(self.size)

    def _take(self, candidate: Candidate, quota: int) -> bool:
        if not self.accepts(candidate, quota):
            return False
        answer = normalize(candidate.answers[0])
        self._asked.add(normalize(candidate.question))
        self._answers[answer] += 1
        self._of_family[candidate.type, answer] += 1
        self.chosen.append(candidate)
        return True


def _most(size: int) -> int:
    """How many of `size` questions may have one answer."""
    return max(1, int(LARGEST_SHARE * size))
