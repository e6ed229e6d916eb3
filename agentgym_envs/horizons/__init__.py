"""Horizon schedules: how many turns an episode may take at a given training step.

A schedule says the horizon of a step, is shown how the step's episodes ended, and may be told to go
lower. It is plain Python and knows nothing of any trainer:

>>> schedule = AdaptiveHorizon([5, 10, 20])
>>> for step in range(1000):
...     episodes = collect(policy, horizon=schedule.horizon(step))
...     schedule.observe(step, [EpisodeOutcome.from_episode(episode) for episode in episodes])

All that it remembers is in `state_dict`, as JSON values, so a run that was killed goes on with the
horizons that it would have had. `HorizonTracker` counts the steps for loops that have no schedule
of their own.
"""

from __future__ import annotations

from agentgym_envs.horizons.adaptive import AdaptiveHorizon, AdaptiveRules, HorizonChange
from agentgym_envs.horizons.base import HorizonSchedule
from agentgym_envs.horizons.named import horizon_schedule
from agentgym_envs.horizons.outcome import EpisodeOutcome
from agentgym_envs.horizons.staged import FixedHorizon, StagedHorizon
from agentgym_envs.horizons.tracker import HorizonTracker
from agentgym_envs.horizons.vector import VectorHorizons

__all__ = [
    "AdaptiveHorizon",
    "AdaptiveRules",
    "EpisodeOutcome",
    "FixedHorizon",
    "HorizonChange",
    "HorizonSchedule",
    "HorizonTracker",
    "StagedHorizon",
    "VectorHorizons",
    "horizon_schedule",
]
