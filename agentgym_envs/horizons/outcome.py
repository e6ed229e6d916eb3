"""`EpisodeOutcome`: what a schedule learns from, whoever played the episode and however."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from agentgym_envs.episodes import EndReason, Episode


class EpisodeOutcome(NamedTuple):
    """How an episode ended.

    Attributes:
        end_reason: why it ended.
        success: whether the goal was reached.
        turns: how many turns it took.
        horizon: the horizon that the schedule gave it.
        invalid: share of its turns whose reply could not be parsed or done, 0..1.
    """

    end_reason: EndReason
    success: bool
    turns: int
    horizon: int
    invalid: float = 0.0

    @property
    def is_evidence(self) -> bool:
        """Whether it says anything about the policy: not where the world broke or was stopped."""
        return self.end_reason not in (EndReason.RUNNING, EndReason.FAULT, EndReason.STOPPED)

    @classmethod
    def from_episode(cls, episode: Episode) -> Self:
        """The outcome of a record."""
        invalid = sum(not turn.action_valid for turn in episode.turns)
        return cls(
            episode.end_reason,
            episode.success,
            len(episode.turns),
            episode.horizon,
            invalid / max(len(episode.turns), 1),
        )

    @classmethod
    def from_info(cls, info: Mapping[str, Any], *, horizon: int, num_invalid: int = 0) -> Self:
        """The outcome that the last `info` of an episode tells.

        Args:
            info: of the step that ended it; without an end reason, as under Gymnasium's
                `TimeLimit`, it ended by the horizon.
            horizon: the horizon that the schedule gave it.
            num_invalid: turns whose ``info["action_valid"]`` was false.
        """
        turns = int(info["turn"])
        return cls(
            EndReason(info["end_reason"] or EndReason.HORIZON),
            bool(info["success"]),
            turns,
            horizon,
            num_invalid / max(turns, 1),
        )
