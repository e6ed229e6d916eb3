"""The settings of a run: one frozen dataclass a component, and TOML in and out.

Each component defines the settings it reads beside its code and never sees the others'; this
module only puts them together, so it stands below the components and above the loop. Presets are
TOML files in the package; the command line overrides them; what came out is saved with the run.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import tomllib
import typing
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import tomli_w

from agentgym_envs.errors import UnknownName
from agentgym_train.algorithms import Algorithm, algorithm
from agentgym_train.algorithms.dpo import DPOConfig
from agentgym_train.algorithms.evolve import EvolveConfig
from agentgym_train.algorithms.gigpo import GiGPOConfig
from agentgym_train.algorithms.grpo import GRPOConfig
from agentgym_train.algorithms.ppo import PPOConfig
from agentgym_train.algorithms.refill import RefillConfig
from agentgym_train.algorithms.reinforce_pp import ReinforcePPConfig
from agentgym_train.algorithms.settings import CreditConfig, LossConfig
from agentgym_train.critic import CriticConfig
from agentgym_train.curriculum import CurriculumConfig, HorizonConfig
from agentgym_train.errors import ConfigError, at_least
from agentgym_train.evaluate import EvalConfig
from agentgym_train.learner import LearnerConfig
from agentgym_train.monitor import MonitorConfig
from agentgym_train.rollout.collector import SamplingConfig
from agentgym_train.rollout.demonstrations import DemonstrationConfig

DEFAULT_PRESET = "first-run"

_TOO_LARGE = 2**31
_MAY_BE_LARGE = (
    "run.seed",
    "loss.clip_high",
    "loss.dual_clip",
    "loss.importance_cap",
    "critic.clip",
    "learner.max_grad_norm",
    "monitor.",
)
"""Beginnings of the names of settings in which a large number, or infinity, makes sense."""


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """What is run and where its files go."""

    dir: str = ""
    """Folder of the run; empty: `runs/<preset>`, or with -2, -3, … behind it if that is taken."""
    seed: int = 0
    """Seed of everything that is random."""
    algorithm: Literal["grpo", "rloo", "reinforce_pp", "ppo", "gigpo", "dpo", "evolve", "sft"] = (
        "grpo"
    )
    """How the policy learns after the warm-up."""
    steps: int = 120
    """Training steps after the warm-up."""
    checkpoint_every: int = 20
    """Steps between checkpoints; one is always written at the end and at Ctrl-C."""
    keep_checkpoints: int = 2
    """How many of the newest checkpoints are kept."""
    save_episodes_every: int = 20
    """Steps between those whose episodes are written; 0 for none."""
    threads: int = 0
    """CPU threads of torch; 0 takes one a core."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model lives; auto takes a GPU where there is one."""

    def __post_init__(self) -> None:
        at_least(self, "run", 0, "steps", "save_episodes_every", "threads")
        at_least(self, "run", 1, "checkpoint_every", "keep_checkpoints")
        if self.threads > 1024:
            raise ConfigError(f"run.threads must be at most 1024, got {self.threads}")


@dataclasses.dataclass(frozen=True)
class EnvConfig:
    """The environments."""

    id: str = "agentgym_envs:AgentGym/BabyAI-v0"
    """Gymnasium id, with the module that registers it in front."""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Arguments of the environment's constructor; on the command line a JSON object."""
    tasks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Files of task ids by the split that they stand for, such as AgentGym's files of item ids;
    other splits are the environment's own. On the command line a JSON object."""
    num_envs: int = 128
    """Environments that run side by side."""
    workers: Literal["inline", "threads", "forkserver", "spawn"] = "inline"
    """Who steps them. In-line workers make a CPU run repeatable bit for bit; threads help
    environments that wait, processes (`forkserver`, `spawn`) those that compute much or crash."""

    def __post_init__(self) -> None:
        at_least(self, "env", 1, "num_envs")


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The policy. With `path` the other sizes are the model's own."""

    path: str = ""
    """Folder or hub id of a Hugging Face chat model, or `smollm2`; empty: a new small model with
    its own tokenizer."""
    architecture: Literal["llama", "qwen2"] = "llama"
    """Class of a new model."""
    hidden_size: int = 128
    """Width of a new model."""
    num_layers: int = 2
    """Depth of a new model."""
    num_heads: int = 4
    """Attention heads of a new model."""
    vocab_size: int = 512
    """Size of a new model's vocabulary."""
    max_context: int = 512
    """Most tokens of an episode; a longer one ends with reason `context`."""
    instructions: bool = False
    """Whether the rules stand in front of the conversation. A small new model learns them from
    demonstrations and is faster without."""

    def __post_init__(self) -> None:
        sizes = ("hidden_size", "num_layers", "num_heads", "vocab_size", "max_context")
        at_least(self, "model", 1, *sizes)
        if self.hidden_size % (2 * self.num_heads):
            raise ConfigError(
                f"model.hidden_size must be an even multiple of model.num_heads, got "
                f"{self.hidden_size} and {self.num_heads}"
            )


@dataclasses.dataclass(frozen=True)
class BatchConfig:
    """How many episodes a reinforcement learning step plays."""

    tasks_per_step: int = 16
    """Different tasks of a step."""
    group_size: int = 8
    """Episodes of each task; they are compared with one another."""

    def __post_init__(self) -> None:
        at_least(self, "batch", 1, "tasks_per_step", "group_size")


@dataclasses.dataclass(frozen=True)
class SupervisedConfig:
    """Supervised fine-tuning on demonstrations."""

    section = "sft"
    episodes_per_step: int = 32
    """Demonstrations of a step, which is one optimizer step."""
    learning_rate: float = 1e-3
    """Instead of `learner.learning_rate`; it rises as that one does."""
    demonstrations: DemonstrationConfig = DemonstrationConfig()

    def __post_init__(self) -> None:
        at_least(self, self.section, 1, "episodes_per_step")
        at_least(self, self.section, 0, "learning_rate")
        if self.episodes_per_step > self.demonstrations.episodes:
            raise ConfigError(
                f"a step wants {self.episodes_per_step} different demonstrations, but only "
                f"{self.demonstrations.episodes} are made; lower episodes_per_step or raise "
                "demonstrations.episodes"
            )


@dataclasses.dataclass(frozen=True)
class WarmupConfig(SupervisedConfig):
    """Supervised fine-tuning before everything else."""

    section = "warmup"
    steps: int = 20
    """How many steps; 0 for no warm-up."""

    def __post_init__(self) -> None:
        at_least(self, "warmup", 0, "steps")
        super().__post_init__()


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """Everything that a run is made of."""

    preset: str = DEFAULT_PRESET
    """Name of the preset the run started from."""
    run: RunConfig = RunConfig()
    env: EnvConfig = EnvConfig()
    model: ModelConfig = ModelConfig()
    sampling: SamplingConfig = SamplingConfig()
    warmup: WarmupConfig = WarmupConfig()
    """Before everything else: clone demonstrations until the policy can do something."""
    sft: SupervisedConfig = SupervisedConfig()
    """What `run.algorithm = "sft"` goes on with, for `run.steps` steps."""
    credit: CreditConfig = CreditConfig()
    loss: LossConfig = LossConfig()
    grpo: GRPOConfig = GRPOConfig()
    reinforce_pp: ReinforcePPConfig = ReinforcePPConfig()
    ppo: PPOConfig = PPOConfig()
    gigpo: GiGPOConfig = GiGPOConfig()
    dpo: DPOConfig = DPOConfig()
    evolve: EvolveConfig = EvolveConfig()
    refill: RefillConfig = RefillConfig()
    critic: CriticConfig = CriticConfig()
    batch: BatchConfig = BatchConfig()
    learner: LearnerConfig = LearnerConfig()
    horizon: HorizonConfig = HorizonConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    eval: EvalConfig = EvalConfig()
    monitor: MonitorConfig = MonitorConfig()

    def __post_init__(self) -> None:
        name, has_critic = self.run.algorithm, self.critic.learning_rate > 0
        for key, value in all_settings(self).items():
            if isinstance(value, int | float) and not _is_sane(key, value):
                raise ConfigError(f"{key} must be a number below {_TOO_LARGE:,}, got {value}")
        if name != "ppo" and has_critic:
            raise ConfigError(
                f"{name} has no use for a critic; set critic.learning_rate to 0 or choose ppo"
            )
        if self.credit.permute_rewards and (name == "sft" or self.batch.group_size < 2):
            raise ConfigError(
                "credit.permute_rewards shuffles returns within groups of episodes; set "
                f"batch.group_size to 2 or more, got {self.batch.group_size} with {name}"
            )
        if name == "sft" or not self.run.steps:
            return
        found = self.build_algorithm()
        self.refill.check(found)
        most = self.batch.tasks_per_step * self.refill.rounds
        if self.refill.groups > most:
            raise ConfigError(
                f"refill.groups = {self.refill.groups} can never be reached: batch.tasks_per_step "
                f"times refill.rounds is {most}"
            )
        if self.learner.updates_per_step > most * self.batch.group_size:
            raise ConfigError(
                f"learner.updates_per_step = {self.learner.updates_per_step} cannot be made of "
                f"the {most * self.batch.group_size} episodes of a step; lower it"
            )
        if self.refill.groups and len(self.curriculum.mix) > 1:
            raise ConfigError(
                "refill.groups with several families in curriculum.mix would be biased: every "
                "round has fixed numbers of tasks of each; set refill.groups to 0"
            )
        if found.compares_groups and self.batch.group_size < 2:
            raise ConfigError(
                f"{name} compares the episodes of a group; set batch.group_size to 2 or more (8 is "
                f"usual), got {self.batch.group_size}"
            )
        if name == "ppo" and not has_critic:
            raise ConfigError(
                "ppo needs a critic, a second model as large as the policy; set "
                "critic.learning_rate above 0 (several times learner.learning_rate is usual)"
            )
        if name != "ppo" and self.credit.bootstraps:
            raise ConfigError(
                f"{name} has no critic to bootstrap with; let credit.on_horizon, credit.on_context "
                "and credit.on_budget be 'keep', 'mask' or 'drop', or choose ppo"
            )
        longest = max(self.horizon.stages)
        if longest > self.eval.horizon:
            raise ConfigError(
                f"training goes up to {longest} turns but evaluation stops at "
                f"{self.eval.horizon}; raise eval.horizon or lower horizon.stages"
            )

    @property
    def total_steps(self) -> int:
        """Steps of the whole run, warm-up included."""
        return self.warmup.steps + self.run.steps

    def build_algorithm(self, *, seed: int = 0) -> Algorithm:
        """The algorithm of the run, with its own settings and those that all share."""
        own = getattr(self, self.run.algorithm, None)  # rloo has no settings of its own
        return algorithm(self.run.algorithm, own, loss=self.loss, credit=self.credit, seed=seed)


def _is_sane(name: str, value: float) -> bool:
    return abs(value) < _TOO_LARGE or (value == value and name.startswith(_MAY_BE_LARGE))


def presets() -> dict[str, str]:
    """The presets in the package by name, as TOML; the first line says what each is for."""
    folder = resources.files("agentgym_train") / "presets"
    texts = {each.name: each.read_text("utf-8") for each in folder.iterdir()}
    return {name.removesuffix(".toml"): text for name, text in sorted(texts.items())}


def load_preset(name: str) -> TrainConfig:
    """The preset called `name`.

    Raises:
        UnknownName: there is none.
    """
    if name not in (known := presets()):
        raise UnknownName("preset", name, known)
    return config_from_dict({**tomllib.loads(known[name]), "preset": name})


def read_config(path: str | Path) -> TrainConfig:
    """The settings in a TOML file.

    Raises:
        ConfigError: the file is missing, no TOML, or holds settings that do not exist.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # no such file, no UTF-8, no TOML
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the settings in {path}: {reason}") from None
    return config_from_dict(data)


def write_config(config: TrainConfig, path: str | Path) -> None:
    """Write settings as TOML; `read_config` gives equal ones back.

    Raises:
        ConfigError: they hold what TOML cannot, such as null among the environment's arguments.
    """
    try:
        Path(path).write_text(tomli_w.dumps(config_to_dict(config)), encoding="utf-8")
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the settings cannot be written as TOML: {error}; leave out arguments that are null"
        ) from None


def config_to_dict(config: TrainConfig) -> dict[str, Any]:
    """The settings as nested plain values."""
    return dataclasses.asdict(config)


def all_settings(settings: Any, prefix: str = "") -> dict[str, Any]:
    """All settings by their dotted names, in order: ``"run.steps"``."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value, name = getattr(settings, field.name), prefix + field.name
        found |= (
            all_settings(value, f"{name}.") if dataclasses.is_dataclass(value) else {name: value}
        )
    return found


def config_from_dict(data: Mapping[str, Any]) -> TrainConfig:
    """Settings from nested plain values; what is left out keeps its default.

    Raises:
        ConfigError: a value is of the wrong kind or the settings do not fit together.
        UnknownName: a setting does not exist.
    """
    config = _build(TrainConfig(), data, "")
    assert isinstance(config, TrainConfig)
    return config


def _build(default: Any, data: Mapping[str, Any], prefix: str) -> Any:
    """The settings `default` with those in `data` instead; tables within them likewise."""
    hints = typing.get_type_hints(type(default))
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in hints:
            raise UnknownName("setting", prefix + name, [prefix + known for known in hints])
        inner = getattr(default, name)
        if dataclasses.is_dataclass(inner) and isinstance(value, Mapping):
            values[name] = _build(inner, value, f"{prefix}{name}.")
        else:
            values[name] = _converted(value, hints[name], prefix + name)
    return dataclasses.replace(default, **values)


def _converted(value: Any, hint: Any, name: str) -> Any:
    """A setting as its type wants it: TOML has no tuples, and what is whole is written as int."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and isinstance(value, list | tuple):
        kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        if len(kinds) == len(value):
            return tuple(_converted(*pair, name) for pair in zip(value, kinds, strict=True))
    if origin is Literal:
        expected, fits = f"one of {', '.join(map(repr, arguments))}", value in arguments
    elif origin is collections.abc.Mapping or dataclasses.is_dataclass(hint):
        expected, fits = "a table", origin is not None and isinstance(value, Mapping)
    else:
        expected = str(hint).replace("tuple", "list") if arguments else hint.__name__
        fits = type(value) is hint or (hint is float and type(value) is int)
    if not fits:
        raise ConfigError(f"{name} must be {expected}, got {value!r}")
    return float(value) if hint is float else value
