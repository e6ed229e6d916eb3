"""The settings of a run: one frozen dataclass a component, and TOML in and out.

Each component defines the settings it reads beside its code and never sees the others'; this
module only puts them together, so it stands below the components and above the loop. Presets are
TOML files in the package; the command line overrides them; what came out is saved with the run.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal

import tomli_w

from agentgym_envs.errors import UnknownName
from agentgym_envs.tasks import SPLITS
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
        taken = {"split", "tasks", "horizon", "info_keys"} & set(self.arguments)
        if taken:
            raise ConfigError(
                f"env.arguments must not hold {sorted(taken)}: the trainer chooses splits, tasks "
                "and horizons itself; env.tasks takes files of task ids by split"
            )
        for split, path in self.tasks.items():
            if split not in SPLITS or not isinstance(path, str):
                raise ConfigError(
                    f"env.tasks holds files by split, {', '.join(SPLITS)}; got {split!r}: {path!r}"
                )


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
        at_least(self, "model", 1, "hidden_size", "num_layers", "num_heads")
        at_least(self, "model", 1, "vocab_size", "max_context")
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

    section: ClassVar[str] = "sft"
    episodes_per_step: int = 32
    """Demonstrations of a step, which is one optimizer step."""
    learning_rate: float = 1e-3
    """Instead of `learner.learning_rate`; it rises as that one does."""
    demonstrations: DemonstrationConfig = DemonstrationConfig()

    def __post_init__(self) -> None:
        at_least(self, self.section, 1, "episodes_per_step")
        if self.episodes_per_step > self.demonstrations.episodes:
            raise ConfigError(
                f"a step wants {self.episodes_per_step} different demonstrations, but only "
                f"{self.demonstrations.episodes} are made; lower episodes_per_step or raise "
                "demonstrations.episodes"
            )


@dataclasses.dataclass(frozen=True)
class WarmupConfig(SupervisedConfig):
    """Supervised fine-tuning before everything else."""

    section: ClassVar[str] = "warmup"
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
        if name == "sft" or not self.run.steps:
            return
        found = self.build_algorithm()
        self.refill.check(found)
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
        if name != "ppo" and has_critic:
            raise ConfigError(
                f"{name} has no use for a critic; set critic.learning_rate to 0 or choose ppo"
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

    def build_algorithm(self, *, seed: int = 0) -> Algorithm:
        """The algorithm of the run, with its own settings and those that all share."""
        own = getattr(self, self.run.algorithm, None)  # rloo has no settings of its own
        return algorithm(self.run.algorithm, own, loss=self.loss, credit=self.credit, seed=seed)


def preset_names() -> list[str]:
    """Names of the presets in the package, sorted."""
    folder = resources.files("agentgym_train") / "presets"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def preset_summary(name: str) -> str:
    """What a preset is for: the first line of its file."""
    return _preset_text(name).splitlines()[0].removeprefix("# ")


def load_preset(name: str) -> TrainConfig:
    """The preset called `name`.

    Raises:
        UnknownName: there is none.
    """
    if name not in preset_names():
        raise UnknownName("preset", name, preset_names())
    return config_from_dict({**tomllib.loads(_preset_text(name)), "preset": name})


def _preset_text(name: str) -> str:
    return (resources.files("agentgym_train") / "presets" / f"{name}.toml").read_text("utf-8")


def read_config(path: str | Path) -> TrainConfig:
    """The settings in a TOML file.

    Raises:
        ConfigError: the file is missing, no TOML, or holds settings that do not exist.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # no such file, no UTF-8, no TOML
        raise ConfigError(f"cannot read the settings in {path}: {error}") from None
    return config_from_dict(data)


def write_config(config: TrainConfig, path: str | Path) -> None:
    """Write settings as TOML; `read_config` gives equal ones back."""
    Path(path).write_text(tomli_w.dumps(config_to_dict(config)), encoding="utf-8")


def config_to_dict(config: TrainConfig) -> dict[str, Any]:
    """The settings as nested plain values."""
    return dataclasses.asdict(config)


def setting_names(config: TrainConfig) -> list[str]:
    """Dotted names of all settings, in order: ``"run.steps"``."""
    return list(_dotted(config, ""))


def _dotted(config: Any, prefix: str) -> Iterator[str]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from _dotted(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


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
    names = [field.name for field in dataclasses.fields(default)]
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in names:
            raise UnknownName("setting", prefix + name, [prefix + known for known in names])
        if dataclasses.is_dataclass(inner := getattr(default, name)) and isinstance(value, Mapping):
            values[name] = _build(inner, value, f"{prefix}{name}.")
        else:
            values[name] = _convert(hints[name], value, prefix + name)
    return dataclasses.replace(default, **values)


def _convert(hint: Any, value: Any, name: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal and value in arguments:
        return value
    if origin is tuple and isinstance(value, list | tuple):
        kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        if len(kinds) == len(value):
            return tuple(_convert(*pair, name) for pair in zip(kinds, value, strict=True))
    if origin is types.UnionType and any(type(value) is option for option in arguments):
        return value
    if hint is float and type(value) in (int, float):
        return float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    if origin is collections.abc.Mapping and isinstance(value, Mapping):
        return dict(value)
    raise ConfigError(f"{name} must be {_readable(hint)}, got {value!r}")


def _readable(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(option) for option in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return f"a list of the kind {hint}"
    if dataclasses.is_dataclass(hint) or typing.get_origin(hint) is collections.abc.Mapping:
        return "a table"
    return getattr(hint, "__name__", str(hint))
