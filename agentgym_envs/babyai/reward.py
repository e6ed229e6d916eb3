"""Rewards of BabyAI by name. Each is paid once, in the turn that reaches the goal."""

from __future__ import annotations

from collections.abc import Mapping

from agentgym_envs.episodes import EndReason
from agentgym_envs.outcomes import RewardFunction, RewardInput, score_gain

DISCOUNT = 0.9
"""How much of the reward is lost by using the whole horizon; minigrid's own constant."""


def time_discounted(turn: RewardInput) -> float:
    """``1 - 0.9 * turn / horizon`` at success, as minigrid has it, with turns for primitives."""
    if turn.end_reason is not EndReason.SUCCESS:
        return 0.0
    return 1.0 - DISCOUNT * turn.turn / turn.horizon


REWARDS: Mapping[str, RewardFunction] = {
    "default": score_gain,
    "time_discounted": time_discounted,
}
"""The reward functions by name; the default is 1 at success."""
