"""Scores, endings and rewards of SciWorld.

The simulator's score is the share of the goals that are reached, in hundredths, or -100 where the
task has failed. Ours is between 0 and 1: a failed task has the score 0, whatever had been reached.
Rewards are the gain in score, so the return of an episode is its final score and nothing counts
twice; failing takes back what was gained.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentgym_envs.episodes import EndReason
from agentgym_envs.outcomes import Outcome, RewardFunction, RewardInput, score_gain
from agentgym_envs.sciworld.session import StepResult


def no_loss(turn: RewardInput) -> float:
    """The gain in score, but failing takes nothing back.

    Any other loss counts, such as that of the simulator's ``reset task``: its goals could be
    reached, and paid for, again and again.
    """
    gain = score_gain(turn)
    return max(0.0, gain) if turn.end_reason is EndReason.FAILURE else gain


REWARDS: Mapping[str, RewardFunction] = {"default": score_gain, "no_loss": no_loss}
"""The reward functions by name."""


def outcome_of(result: StepResult, observation: str, failure: str) -> Outcome:
    """What a turn came to.

    Args:
        result: what the simulator says about it.
        observation: what the policy is told about it.
        failure: what it is told if the task has failed.
    """
    if result.score < 0.0:
        return Outcome.failed(failure)
    score = round(result.score, 2)
    if result.is_completed and score >= 1.0:
        return Outcome.succeeded(observation)
    return Outcome.running(observation, score)
