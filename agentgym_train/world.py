"""The world of a run: which environments it plays in, and which tasks it uses for what.

Splits, tasks and demonstrations all come from one probe environment, asked through the contract of
`TextEnv`: the trainer knows no family.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium

from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import Episode
from agentgym_envs.errors import UnknownName
from agentgym_envs.policies import package_versions
from agentgym_envs.registration import require_id
from agentgym_envs.tasks import ListSource, Task, TaskSet
from agentgym_train.config import EnvConfig, TrainConfig, config_to_dict
from agentgym_train.curriculum.order import TaskOrder
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.collector import EpisodeContext, stable_seed
from agentgym_train.rollout.demonstrations import DemonstrationConfig, demonstrate


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """The environments of a run and the tasks it uses.

    Attributes:
        probe: one environment that is asked for tasks, instructions and oracles.
        train: tasks to learn from.
        dev: held-out tasks for choices and curves.
        test: held-out tasks for the figures before and after.
        order: which tasks a step learns from.
        seed: of the run.
    """

    probe: TextEnv
    train: TaskSet
    dev: list[Task]
    test: list[Task]
    order: TaskOrder
    seed: int

    @functools.cache  # noqa: B019 - a run has one world, and it lives as long as the run
    def demonstrations(self, config: DemonstrationConfig) -> list[Episode]:
        """Demonstrations on training tasks, without tokens; made once.

        Raises:
            ConfigError: the environment cannot demonstrate, or too few are solved.
        """
        needed = {"oracle"} | ({"admissible"} if config.noise else set())
        if lacking := sorted(needed - self.probe.capabilities):
            way_out = (
                "set noise of the demonstrations to 0"
                if lacking == ["admissible"]
                else "start from a trained model, with model.path, and set warmup.steps to 0"
            )
            raise ConfigError(
                f"demonstrations need the capabilities {', '.join(sorted(needed))}, "
                f"{self.probe.family} lacks {', '.join(lacking)}; {way_out}"
            )
        seed = stable_seed(self.seed, "demonstrations") % 2**32
        return demonstrate(self.probe, self.train, config, seed=seed)

    def context(self) -> EpisodeContext:
        """What every episode record of the run has in common."""
        spec = self.probe.spec
        return EpisodeContext(
            env_id=spec.id if spec else "",
            action_format=self.probe.action_format,
            instructions=self.probe.instructions,
            versions=package_versions(),
        )


def build_world(config: TrainConfig) -> World:
    """Make the probe and choose the tasks.

    Raises:
        ConfigError: the id is not of a text environment, an argument does not exist, files of
            tasks share one, or there are too few tasks.
        UnknownName: an id, level or other name does not exist.
    """
    probe = _make(config.env, "train")
    held_out = {
        split: list(tasks_of(config, split).head(config.eval.tasks)) for split in ("dev", "test")
    }
    if config.env.tasks:
        _require_apart({"train": probe.tasks, **held_out})
    for split, tasks in held_out.items():
        if len(tasks) < config.eval.tasks:
            raise ConfigError(
                f"eval.tasks = {config.eval.tasks}, but the {split} split holds {len(tasks)} "
                "tasks; lower eval.tasks or choose more tasks"
            )
    order = TaskOrder(
        probe.tasks,
        per_step=config.batch.tasks_per_step,
        seed=stable_seed(config.run.seed, "tasks") % 2**32,
    )
    return World(probe, probe.tasks, **held_out, order=order, seed=config.run.seed)


def tasks_of(config: TrainConfig, split: str) -> TaskSet:
    """The tasks of a split, under the settings of the environments."""
    return _make(config.env, split).tasks


def _make(config: EnvConfig, split: str) -> TextEnv:
    try:
        require_id(config.id)
        env = gymnasium.make(
            config.id, split=split, tasks=config.tasks.get(split), **config.arguments
        )
    except UnknownName as error:
        if error.name not in config.arguments:
            raise
        raise ConfigError(
            f"env.arguments: {error}; those of a preset are replaced as a whole, --env.arguments "
            "'{}' gives none"
        ) from None
    except (gymnasium.error.Error, ModuleNotFoundError, TypeError) as error:
        raise ConfigError(f"env.id {config.id!r}: {error}") from None
    if not isinstance(env.unwrapped, TextEnv):
        raise ConfigError(f"env.id {config.id!r} is no text environment: {env.unwrapped}")
    return env.unwrapped


def _require_apart(splits: Mapping[str, Iterable[Task]]) -> None:
    split_of: dict[str, str] = {}
    for split, tasks in splits.items():
        for task in tasks:
            other = split_of.setdefault(task.id, split)
            if other != split:
                raise ConfigError(
                    f"task {task.id!r} is in {other} and in {split}; give env.tasks files for all "
                    "of train, dev and test that share no task"
                )


def fingerprint(config: TrainConfig, world: World) -> dict[str, Any]:
    """What must be the same for a run to go on: settings and tasks.

    Settings that only say how long the run is and what is written are left out.
    """
    settings = config_to_dict(config)
    for name in ("dir", "steps", "checkpoint_every", "keep_checkpoints", "save_episodes_every"):
        del settings["run"][name]
    return {
        "settings": settings,
        "tasks": {
            "train": world.train.digest(),
            "dev": TaskSet(ListSource(world.dev)).digest(),
            "test": TaskSet(ListSource(world.test)).digest(),
        },
    }
