"""Putting a run together: model, engine, collector, learner, from its settings.

Everything here is construction; what happens step by step is in `agentgym_train.loop`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import gymnasium
import torch

from agentgym_envs.demonstrations import transcripts
from agentgym_envs.episodes import Episode
from agentgym_envs.seeds import stable_seed
from agentgym_envs.vector import TextVectorEnv
from agentgym_train import checkpoint as checkpoints
from agentgym_train.algorithms import Algorithm
from agentgym_train.algorithms.sft import SFT
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.config import RunConfig, SupervisedConfig, TrainConfig, write_config
from agentgym_train.critic import Critic
from agentgym_train.engines.torch import TorchEngine
from agentgym_train.errors import ConfigError, ModelError
from agentgym_train.learner import Learner, frozen_copy
from agentgym_train.model import create_model, load_model, load_tokenizer
from agentgym_train.rollout.collector import Collector, EpisodeContext
from agentgym_train.rollout.demonstrations import DemonstrationConfig, with_tokens
from agentgym_train.runs import Progress, RunFolder, create_run_folder
from agentgym_train.world import World, build_world, fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_PROMPTS_CHECKED = 50
"""How many tasks of a held-out split are begun to see whether their prompts fit."""


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """The model and how text becomes its tokens."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    template: ChatTemplate


def load_policy(path: str, run: RunConfig) -> Policy:
    """The model in a folder, with fp32 weights; sets torch's threads.

    Args:
        path: as for `load_model`.
        run: says where the model lives.

    Raises:
        ConfigError: a GPU is wanted and there is none.
        ModelError: the folder is no usable model.
    """
    device = _prepare_device(run)
    tokenizer = load_tokenizer(path)
    model = load_model(path, dtype=torch.float32, device=device)
    largest = max(tokenizer.get_vocab().values())
    embeddings: Any = model.get_input_embeddings()
    num_embeddings = embeddings.weight.shape[0]
    if largest >= num_embeddings:
        raise ModelError(
            f"the tokenizer in {path} gives ids up to {largest}, but the model there has only "
            f"{num_embeddings} embeddings; they belong to different models"
        )
    return Policy(model, tokenizer, ChatTemplate(tokenizer))


def build_policy(config: TrainConfig, world: World) -> Policy:
    """The model at ``model.path``, or a new small one whose tokenizer reads demonstrations.

    Raises:
        ConfigError, ModelError: as for `load_policy`.
        AgentGymError: there are no demonstrations.
    """
    settings = config.model
    if settings.path:
        return load_policy(settings.path, config.run)
    device = _prepare_device(config.run)
    texts = transcripts(world.demonstrations(config.warmup.demonstrations))
    tokenizer = train_tokenizer(texts, settings.vocab_size)
    names = ("architecture", "hidden_size", "num_layers", "num_heads", "max_context")
    sizes: dict[str, Any] = {name: getattr(settings, name) for name in names}
    seed = stable_seed(config.run.seed, "weights") % 2**32
    model = create_model(len(tokenizer), **sizes, seed=seed)
    torch.nn.Module.to(model, device)  # in place; transformers' own `to` has a wrong signature
    return Policy(model, tokenizer, ChatTemplate(tokenizer))


def _prepare_device(run: RunConfig) -> torch.device:
    torch.set_num_threads(run.threads or len(os.sched_getaffinity(0)))
    if run.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if run.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("run.device is 'cuda' but torch sees no GPU; use 'auto' or 'cpu'")
    return torch.device(run.device)


def build_collector(config: TrainConfig, env: gymnasium.Env[str, str], policy: Policy) -> Collector:
    """Environments like `env`, and an engine around the policy's own module."""
    envs = TextVectorEnv(
        config.env.id,
        config.env.num_envs,
        workers=config.env.workers,
        info_keys=("state_key",) if config.run.algorithm == "gigpo" else (),
        **config.env.arguments,
    )
    engine = TorchEngine(
        policy.model,
        stop_ids=policy.template.stop_ids,
        max_streams=config.env.num_envs,
        max_context=config.model.max_context,
    )
    return Collector(
        envs,
        engine,
        policy.template,
        sampling=config.sampling,
        context=EpisodeContext.of(env),
        seed=config.run.seed,
        show_instructions=config.model.instructions,
    )


class Parts:
    """Everything a run is made of.

    The learner and the algorithm belong to a phase (warm-up, then the run's algorithm) and are
    made anew when it begins; the model lives on.

    Args:
        config: the settings.
        folder: the files of the run.
        world: environments and tasks.
        policy: the model at the state of the run.

    Attributes:
        progress: how far the run is.
        supervised: the settings of the phase, if it clones demonstrations.
    """

    learner: Learner
    supervised: SupervisedConfig | None

    def __init__(
        self, config: TrainConfig, folder: RunFolder, world: World, policy: Policy
    ) -> None:
        self.config = config
        self.folder = folder
        self.world = world
        self.policy = policy
        self.progress = Progress()
        self.collector = build_collector(config, world.splits.env, policy)
        self.horizon = config.horizon.build()
        self.monitor = config.monitor.build()
        self.phase = ""
        self._fingerprint = fingerprint(config, world)
        self._stateful: dict[str, Any] = {
            "horizon": self.horizon,
            "curriculum": world.curriculum,
            "monitor": self.monitor,
        }

    def enter_phase(self, phase: str) -> None:
        """Make learner and algorithm of `phase`, unless the run is in it already."""
        if phase == self.phase:
            return
        self.supervised = {"warmup": self.config.warmup, "sft": self.config.sft}.get(phase)
        seed = stable_seed(self.config.run.seed, phase) % 2**32
        model, learner, critic = self.policy.model, self.config.learner, None
        if self.supervised:
            self.algorithm: Algorithm = SFT()
            rate = self.supervised.learning_rate
            learner = dataclasses.replace(learner, learning_rate=rate, updates_per_step=1)
        else:
            self.algorithm = self.config.build_algorithm(seed=seed)
            if self.config.critic.learning_rate > 0:
                critic = Critic(model, self.config.critic)
        reference = frozen_copy(model) if self.algorithm.needs_reference else None
        version = self.learner.weights_version if self.phase else 0
        self.learner = Learner(model, learner, seed, reference=reference, critic=critic)
        self.learner.weights_version = version  # goes on counting through the phases
        self.phase = phase

    @functools.cache  # noqa: B019 - one for each run
    def demonstrations(self, config: DemonstrationConfig) -> list[Episode]:
        """Demonstrations with the tokens a policy would have had to sample; made once.

        Those that are longer than the model's context are left out.

        Raises:
            ConfigError: none is short enough.
        """
        show, longest = self.config.model.instructions, self.config.model.max_context
        encoded = [
            with_tokens(episode, self.policy.template, episode.instructions if show else "")
            for episode in self.world.demonstrations(config)
        ]
        if fitting := [episode for episode in encoded if len(episode.token_ids) <= longest]:
            return fitting
        raise ConfigError(
            f"none of {len(encoded)} demonstrations fits the context of {longest} tokens; "
            "raise model.max_context or lower demonstrations.horizon"
        )

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        progress = self.progress
        return progress.step >= self.config.total_steps and "after" in progress.reports

    def save(self) -> None:
        """Write a checkpoint of the run as it is now.

        Raises:
            CheckpointError: it cannot be written; the last one is still there.
        """
        tensors, counters = self.learner.state_dict()
        state = {
            "step": self.progress.step,
            "best": self.progress.best,
            "progress": dataclasses.asdict(self.progress),
            "phase": self.phase,
            "learner": counters,
            "fingerprint": self._fingerprint,
            **{name: part.state_dict() for name, part in self._stateful.items()},
        }
        checkpoints.save_checkpoint(
            self.folder.checkpoints,
            model=self.policy.model,
            tokenizer=self.policy.tokenizer,
            tensors=tensors | checkpoints.random_states(),
            state=state,
            keep=self.config.run.keep_checkpoints,
        )

    def restore(self, checkpoint: checkpoints.Checkpoint) -> None:
        """Take over everything but the model, which is the checkpoint's own.

        Raises:
            CheckpointError: the checkpoint lacks something.
        """
        state, tensors = checkpoint.state, checkpoint.tensors
        self.enter_phase(state["phase"])
        self.learner.load_state_dict(tensors, state["learner"])
        for name, part in self._stateful.items():
            part.load_state_dict(state[name])
        self.collector.engine.load_weights(None, self.learner.weights_version)
        checkpoints.restore_random_states(tensors)
        self.progress = Progress(**state["progress"])

    def close(self) -> None:
        """End the environments' workers."""
        self.collector.envs.close()


def start_run(config: TrainConfig) -> Parts:
    """A new run at step 0; nothing is left of one that cannot be started.

    Raises:
        ConfigError: settings that do not work, or a folder that is taken.
        ContextError: the model's context is too short for a first prompt.
        UnknownName: a name in the settings does not exist.
    """
    started = time.perf_counter()
    folder = create_run_folder(config.run.dir, config.preset)
    try:
        write_config(config, folder.config)
        world = build_world(config)
        parts = Parts(config, folder, world, build_policy(config, world))
        parts.enter_phase("warmup" if config.warmup.steps else config.run.algorithm)
        _check_first_prompts(parts)
        if parts.supervised:
            parts.demonstrations(parts.supervised.demonstrations)  # some fit the context
    except BaseException:
        shutil.rmtree(folder.path)
        if not config.run.dir:
            with contextlib.suppress(OSError):  # other runs are there
                folder.path.parent.rmdir()
        raise
    parts.progress.seconds = time.perf_counter() - started
    return parts


def _check_first_prompts(parts: Parts) -> None:
    """Refuse a context that is too short for tasks which the run will come to."""
    splits = parts.world.splits
    held_out = [*splits.test[:_PROMPTS_CHECKED], *splits.dev[:_PROMPTS_CHECKED]]
    tasks = [*held_out, *parts.world.curriculum.step(0)]
    first = [(splits.env.reset(seed=0, options={"task": task})[0], task) for task in tasks]
    first.sort(key=lambda pair: -len(pair[0]))  # the longest is the one to be told of
    for observation, task in first:
        parts.collector.first_prompt(task, observation)


def resume_run(config: TrainConfig, folder: RunFolder, which: str = "last") -> Parts:
    """A run at the state of one of its checkpoints, see `find_checkpoint`.

    Raises:
        CheckpointError: there is none, or it belongs to other settings or tasks.
    """
    started = time.perf_counter()
    world = build_world(config)
    path = checkpoints.find_checkpoint(folder.checkpoints, which)
    checkpoint = checkpoints.load_checkpoint(path, fingerprint=fingerprint(config, world))
    policy = load_policy(str(checkpoint.model_folder), config.run)
    parts = Parts(config, folder, world, policy)
    parts.restore(checkpoint)
    parts.progress.seconds += time.perf_counter() - started
    return parts
