"""Scores and rewards of TextCraft.

A score is a function of the world, a reward one of a turn; rewards are the gain in score, so the
return of an episode is its final score.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentgym_envs.outcomes import RewardFunction, score_gain
from agentgym_envs.textcraft.world import TextCraftWorld

REWARDS: Mapping[str, RewardFunction] = {"default": score_gain}
"""The reward functions by name."""


def score(world: TextCraftWorld) -> float:
    """1 if the goal is made; else the share of the world's needs that have been met.

    A need is met once as much of it has been fetched or made, all told, as the plan of
    `trees.needs` takes; using it up later takes nothing back, so a score never falls. Items that
    the plan does not name count for nothing, and without needs there is no partial credit.
    """
    if world.is_done:
        return 1.0
    if not world.needs:
        return 0.0
    met = sum(had == need.amount for had, need in zip(world.progress, world.needs, strict=True))
    return met / len(world.needs)
