"""The world of a run: which environments it plays in, and which tasks it uses for what.

Splits, tasks and demonstrations are asked for through the contract of `TextEnv`: the trainer knows
no family.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

from agentgym_envs.curricula import TaskCurriculum
from agentgym_envs.demonstrations import demonstrate
from agentgym_envs.episodes import Episode
from agentgym_envs.errors import UnknownName
from agentgym_envs.seeds import stable_seed
from agentgym_envs.splits import Splits
from agentgym_train.config import TrainConfig, config_to_dict
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.demonstrations import DemonstrationConfig


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """The environments of a run and the tasks it uses.

    Attributes:
        splits: tasks to learn from, and held-out ones.
        curriculum: which tasks a step learns from.
        seed: of the run.
    """

    splits: Splits
    curriculum: TaskCurriculum
    seed: int

    @functools.cache  # noqa: B019 - a run has one world, and it lives as long as the run
    def demonstrations(self, config: DemonstrationConfig) -> list[Episode]:
        """Demonstrations on training tasks, without tokens; made once.

        Raises:
            Unsupported: the environment cannot demonstrate.
            NoPlan: too few are solved.
        """
        return demonstrate(
            self.splits.env,
            self.splits.train,
            config.episodes,
            noise=config.noise,
            horizon=config.horizon,
            seed=stable_seed(self.seed, "demonstrations") % 2**32,
        )


def build_world(config: TrainConfig) -> World:
    """Choose the tasks.

    Raises:
        ConfigError: an argument does not exist, or tasks are too few for the curriculum.
        AgentGymError: as for `Splits.of`.
    """
    env, seed = config.env, config.run.seed
    try:
        splits = Splits.of(env.id, env.arguments, num_held_out=config.eval.tasks, files=env.tasks)
    except UnknownName as error:
        if error.name not in env.arguments:
            raise
        raise ConfigError(
            f"env.arguments: {error}; those of a preset are replaced as a whole, --env.arguments "
            "'{}' gives none"
        ) from None
    curriculum = config.curriculum.build(
        splits.train,
        per_step=config.batch.tasks_per_step,
        seed=stable_seed(seed, "tasks") % 2**32,
    )
    return World(splits, curriculum, seed)


def fingerprint(config: TrainConfig, world: World) -> dict[str, Any]:
    """What must be the same for a run to go on: settings and tasks.

    Settings that only say how long the run is, what is written and what is warned of are left out.
    """
    # JSON knows no infinity, which some settings may be.
    settings = json.loads(json.dumps(config_to_dict(config)), parse_constant=str)
    del settings["monitor"]
    for name in ("dir", "steps", "checkpoint_every", "keep_checkpoints", "save_episodes_every"):
        del settings["run"][name]
    return {"settings": settings, "world": world.splits.fingerprint()}
