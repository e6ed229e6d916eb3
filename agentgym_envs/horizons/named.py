"""Schedules by name, for settings files and command lines."""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs import arguments
from agentgym_envs.horizons.adaptive import AdaptiveHorizon, AdaptiveRules
from agentgym_envs.horizons.base import HorizonSchedule
from agentgym_envs.horizons.staged import FixedHorizon, StagedHorizon

SCHEDULES = ("fixed", "staged", "adaptive")


def horizon_schedule(
    name: str,
    stages: Sequence[int],
    *,
    steps: Sequence[int] = (),
    rules: AdaptiveRules | None = None,
) -> HorizonSchedule:
    """The schedule called `name`.

    Args:
        name: ``"fixed"``, which has one stage; ``"staged"``; ``"adaptive"``.
        stages: the horizon of each stage, in turns.
        steps: how many steps each stage lasts, for ``"staged"``; one number stands for all.
        rules: when to move, for ``"adaptive"``.

    Raises:
        UnknownName: there is none.
        ValueError: it cannot be made of these; says what to change.
    """
    arguments.one_of("horizon schedule", name, SCHEDULES)
    if name == "adaptive":
        return AdaptiveHorizon(stages, rules)
    if name == "staged":
        return StagedHorizon(stages, steps[0] if len(steps) == 1 else steps)
    if len(stages) != 1:
        raise ValueError(
            f"a fixed horizon takes one number of turns, got stages {list(stages)}; give one "
            "number or choose 'staged'"
        )
    return FixedHorizon(stages[0])
