"""`VectorHorizons`: a tracker for a vector environment whose workers cannot share it.

What runs in other processes cannot look at the trainer's schedule. So the horizon of each episode
goes there as the reset option `horizons`, and how it ended is read from the infos that come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from agentgym_envs import arguments
from agentgym_envs.horizons.outcome import EpisodeOutcome
from agentgym_envs.horizons.tracker import HorizonTracker


class VectorHorizons:
    """Hands out horizons at resets of N environments and reports how their episodes ended.

    Needs autoreset disabled: an autoreset chooses no horizon.

    Args:
        tracker: who knows the horizon.
        num_envs: N.

    Raises:
        ValueError: a number less than 1.
    """

    def __init__(self, tracker: HorizonTracker, num_envs: int) -> None:
        count = arguments.whole_number("num_envs", num_envs, least=1)
        self._tracker = tracker
        self._horizons = np.zeros(count, dtype=np.int64)
        self._num_invalid = np.zeros(count, dtype=np.int64)

    def options(self, reset_mask: np.ndarray | None = None) -> dict[str, Any]:
        """Options of the reset that is to be made now.

        Args:
            reset_mask: bool (N,), which environments; None for all.
        """
        mask = np.ones(len(self._horizons), dtype=np.bool_) if reset_mask is None else reset_mask
        self._horizons[mask] = self._tracker.horizon
        self._num_invalid[mask] = 0
        return {"reset_mask": mask, "horizons": self._horizons.tolist()}

    def watch(self, infos: Mapping[str, Any], ended: np.ndarray) -> None:
        """Take note of a step of all environments.

        Args:
            infos: Gymnasium's dict of arrays (N,).
            ended: bool (N,), whose episode ended with it: ``terminations | truncations``.

        Raises:
            RuntimeError: an environment was reset by the step, at a horizon of its own.
        """
        if not np.all(infos["turn"]):
            raise RuntimeError(
                "an environment is at turn 0 after a step, so the vector resets by itself, and "
                "not to the schedule's horizon; make it with autoreset_mode='Disabled', or give "
                "its environments HorizonCurriculum"
            )
        self._num_invalid += ~infos["action_valid"]
        self._tracker.ended(
            EpisodeOutcome.from_info(
                {key: infos[key][index] for key in ("turn", "end_reason", "success")},
                horizon=int(self._horizons[index]),
                num_invalid=int(self._num_invalid[index]),
            )
            for index in np.flatnonzero(ended).tolist()
        )
