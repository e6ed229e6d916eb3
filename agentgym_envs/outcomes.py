"""What a turn came to: the outcome in the world, and the reward for it.

Families build an `Outcome`; its constructors allow only those that can be. A reward is a function
of one turn, chosen by name, so that a variant is a function and a spec stays JSON.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from agentgym_envs.episodes import EndReason


@dataclasses.dataclass(slots=True)
class Outcome:
    """What a command did: only `running`, `succeeded` and `failed` outcomes can be built.

    Attributes:
        observation: the text that answers the command.
        score: the family's score of the world as it is now, 0..1.
        end_reason: `RUNNING`, `SUCCESS` or `FAILURE`.
        measures: what else the family's rewards look at, by name, or None.
    """

    observation: str
    score: float
    end_reason: EndReason
    measures: Mapping[str, float] | None = None

    @classmethod
    def running(cls, observation: str, score: float = 0.0) -> Outcome:
        """The world goes on."""
        return cls(observation, float(score), EndReason.RUNNING)

    @classmethod
    def succeeded(cls, observation: str) -> Outcome:
        """The goal is reached; the score is 1."""
        return cls(observation, 1.0, EndReason.SUCCESS)

    @classmethod
    def failed(cls, observation: str, score: float = 0.0) -> Outcome:
        """The world ended and the goal was not reached."""
        return cls(observation, float(score), EndReason.FAILURE)


@dataclasses.dataclass(slots=True)
class RewardInput:
    """What a reward function may look at: one turn.

    Attributes:
        score_before: score before the turn, 0..1.
        score: score after it, 0..1.
        end_reason: whether and how the world ended in this turn.
        turn: number of this turn, from 1.
        horizon: most turns of the episode.
        action_valid: whether the reply was a command that the world carried out.
        measures: those of the outcome, or None.
    """

    score_before: float
    score: float
    end_reason: EndReason
    turn: int
    horizon: int
    action_valid: bool
    measures: Mapping[str, float] | None = dataclasses.field(default=None, kw_only=True)


RewardFunction = Callable[[RewardInput], float]


def score_gain(turn: RewardInput) -> float:
    """The gain in score, so that an episode's return is its final score."""
    return turn.score - turn.score_before
