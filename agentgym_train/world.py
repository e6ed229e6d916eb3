"""The world of a run: which environments it plays in, and which tasks it uses for what.

Splits, tasks and demonstrations all come from one probe environment, asked through the contract of
`TextEnv`: the trainer knows no family.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from agentgym_envs.core import TextEnv
from agentgym_envs.curricula import TaskCurriculum
from agentgym_envs.demonstrations import demonstrate
from agentgym_envs.episodes import Episode
from agentgym_envs.errors import UnknownName
from agentgym_envs.evaluation.plan import make_env
from agentgym_envs.policies import package_versions
from agentgym_envs.seeds import stable_seed
from agentgym_envs.tasks import SPLITS, ListSource, Task, TaskSet
from agentgym_train.config import EnvConfig, TrainConfig, config_to_dict
from agentgym_train.errors import ConfigError
from agentgym_train.rollout.collector import EpisodeContext
from agentgym_train.rollout.demonstrations import DemonstrationConfig

_BEGUN = 4
"""How many tasks of each split are begun for the fingerprint: what a task only names, as a level or
a book of recipes, shows in its first observation."""


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """The environments of a run and the tasks it uses.

    Attributes:
        probe: one environment that is asked for tasks, instructions and oracles.
        train: tasks to learn from.
        dev: held-out tasks for choices and curves.
        test: held-out tasks for the figures before and after.
        curriculum: which tasks a step learns from.
        seed: of the run.
    """

    probe: TextEnv
    train: TaskSet
    dev: list[Task]
    test: list[Task]
    curriculum: TaskCurriculum
    seed: int

    @functools.cache  # noqa: B019 - a run has one world, and it lives as long as the run
    def demonstrations(self, config: DemonstrationConfig) -> list[Episode]:
        """Demonstrations on training tasks, without tokens; made once.

        Raises:
            ConfigError: the environment cannot demonstrate, or too few are solved.
        """
        needed = {"oracle", "admissible"} if config.noise else {"oracle"}
        if lacking := ", ".join(sorted(needed - self.probe.capabilities)):
            raise ConfigError(
                f"demonstrations cannot be made: {self.probe.family} lacks {lacking}; set their "
                "noise to 0 if an oracle is left, else start from a trained model, with "
                "model.path, and set warmup.steps to 0"
            )
        seed = stable_seed(self.seed, "demonstrations") % 2**32
        return demonstrate(
            self.probe,
            self.train,
            config.episodes,
            noise=config.noise,
            horizon=config.horizon,
            seed=seed,
        )

    def context(self) -> EpisodeContext:
        """What every episode record of the run has in common."""
        return EpisodeContext.of(self.probe)


def build_world(config: TrainConfig) -> World:
    """Make the probe and choose the tasks.

    Raises:
        ConfigError: the id is not of a text environment, an argument does not exist, files of
            tasks share one, or there are too few tasks.
        UnknownName: an id, level or other name does not exist.
    """
    probe, *others = (_probe(config.env, split) for split in SPLITS)
    held_out = {env.split: list(env.tasks.head(config.eval.tasks)) for env in others}
    if config.env.tasks:
        _require_apart({"train": probe.tasks, **held_out})
    for split, tasks in held_out.items():
        if len(tasks) < config.eval.tasks:
            raise ConfigError(
                f"eval.tasks = {config.eval.tasks}, but the {split} split holds {len(tasks)} "
                "tasks; lower eval.tasks or choose more tasks"
            )
    curriculum = config.curriculum.build(
        probe.tasks,
        per_step=config.batch.tasks_per_step,
        seed=stable_seed(config.run.seed, "tasks") % 2**32,
    )
    return World(probe, probe.tasks, **held_out, curriculum=curriculum, seed=config.run.seed)


def _probe(config: EnvConfig, split: str) -> TextEnv:
    arguments = {**config.arguments, "split": split, "tasks": config.tasks.get(split)}
    try:
        env = make_env(config.id, arguments).unwrapped
    except UnknownName as error:
        if error.name not in config.arguments:
            raise
        raise ConfigError(
            f"env.arguments: {error}; those of a preset are replaced as a whole, --env.arguments "
            "'{}' gives none"
        ) from None
    assert isinstance(env, TextEnv)
    return env


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

    Settings that only say how long the run is, what is written and what is warned of are left out.
    """
    settings = config_to_dict(config)
    del settings["monitor"]
    for name in ("dir", "steps", "checkpoint_every", "keep_checkpoints", "save_episodes_every"):
        del settings["run"][name]
    tasks = [*world.train.head(_BEGUN), *world.dev[:_BEGUN], *world.test[:_BEGUN]]
    first = [world.probe.reset(seed=0, options={"task": task})[0] for task in tasks]
    return {
        "settings": settings,
        "data": {
            "train": world.train.digest(),
            "dev": TaskSet(ListSource(world.dev)).digest(),
            "test": TaskSet(ListSource(world.test)).digest(),
            "beginnings": hashlib.sha256("\x1f".join(first).encode()).hexdigest(),
            "instructions": world.probe.instructions,
            "versions": package_versions(),
        },
    }
