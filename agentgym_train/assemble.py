"""Putting a run together: model, engine, collector, learner, from its settings.

Everything here is construction; what happens step by step is in `agentgym_train.loop`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from agentgym_envs.demonstrations import transcripts
from agentgym_envs.episodes import Episode
from agentgym_envs.seeds import stable_seed
from agentgym_envs.vector import TextVectorEnv
from agentgym_train.algorithms import Algorithm
from agentgym_train.algorithms.sft import SFT
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.checkpoint import (
    Checkpoint,
    find_checkpoint,
    load_checkpoint,
    random_states,
    restore_random_states,
    save_checkpoint,
)
from agentgym_train.config import TrainConfig, write_config
from agentgym_train.critic import Critic
from agentgym_train.engines.torch import TorchEngine
from agentgym_train.errors import ConfigError, ModelError
from agentgym_train.learner import Learner, frozen_copy
from agentgym_train.model import create_model, load_model, load_tokenizer
from agentgym_train.monitor import Monitor
from agentgym_train.rollout.collector import Collector, EpisodeContext
from agentgym_train.rollout.demonstrations import DemonstrationConfig, with_tokens
from agentgym_train.runs import Progress, RunFolder, choose_run_folder, create_run_folder
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


def build_policy(config: TrainConfig, demonstrations: Sequence[Episode] = ()) -> Policy:
    """A new small model with its own tokenizer, or the one at ``model.path``; sets torch's threads.

    Args:
        config: which model, and where it lives; fp32 weights everywhere.
        demonstrations: texts to train a new tokenizer on.

    Raises:
        ConfigError: a GPU is wanted and there is none.
        ModelError: the folder is no usable model.
    """
    torch.set_num_threads(config.run.threads or len(os.sched_getaffinity(0)))
    settings, device = config.model, _device_of(config.run.device)
    if settings.path:
        tokenizer = load_tokenizer(settings.path)
        model = load_model(settings.path, dtype=torch.float32, device=device)
        _check_vocabulary(model, tokenizer, settings.path)
    else:
        tokenizer = train_tokenizer(transcripts(demonstrations), settings.vocab_size)
        model = create_model(
            len(tokenizer),
            architecture=settings.architecture,
            hidden_size=settings.hidden_size,
            num_layers=settings.num_layers,
            num_heads=settings.num_heads,
            max_context=settings.max_context,
            seed=stable_seed(config.run.seed, "weights") % 2**32,
        )
        torch.nn.Module.to(model, device)  # in place; transformers' own `to` has a wrong signature
    return Policy(model, tokenizer, ChatTemplate(tokenizer))


def _device_of(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("run.device is 'cuda' but torch sees no GPU; use 'auto' or 'cpu'")
    return torch.device(name)


def _check_vocabulary(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, path: str
) -> None:
    largest = max(tokenizer.get_vocab().values())
    embeddings: Any = model.get_input_embeddings()
    num_embeddings = embeddings.weight.shape[0]
    if largest >= num_embeddings:
        raise ModelError(
            f"the tokenizer in {path} gives ids up to {largest}, but the model there has only "
            f"{num_embeddings} embeddings; they belong to different models"
        )


def build_collector(config: TrainConfig, context: EpisodeContext, policy: Policy) -> Collector:
    """Environments and engine around the policy's own module."""
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
        context=context,
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
    """

    algorithm: Algorithm
    learner: Learner

    def __init__(
        self, config: TrainConfig, folder: RunFolder, world: World, policy: Policy
    ) -> None:
        self.config = config
        self.folder = folder
        self.world = world
        self.policy = policy
        self.collector = build_collector(config, world.context(), policy)
        self.engine = self.collector.engine
        self.horizon = config.horizon.build()
        self.curriculum = world.curriculum
        self.monitor = Monitor(config.monitor)
        self.phase = ""

    def enter_phase(self, phase: str) -> None:
        """Make learner and algorithm of `phase`, unless the run is in it already."""
        if phase == self.phase:
            return
        supervised = {"warmup": self.config.warmup, "sft": self.config.sft}.get(phase)
        seed = stable_seed(self.config.run.seed, phase) % 2**32
        self.algorithm = SFT() if supervised else self.config.build_algorithm(seed=seed)
        learner = self.config.learner
        if supervised:
            learner = dataclasses.replace(
                learner, learning_rate=supervised.learning_rate, updates_per_step=1
            )
        reference = frozen_copy(self.policy.model) if self.algorithm.needs_reference else None
        has_critic = self.config.critic.learning_rate > 0 and not supervised
        critic = Critic(self.policy.model, self.config.critic) if has_critic else None
        version = self.learner.weights_version if self.phase else 0
        self.learner = Learner(self.policy.model, learner, seed, reference=reference, critic=critic)
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

    def save(self, progress: Progress) -> None:
        """Write a checkpoint of the run as it is now.

        Raises:
            CheckpointError: it cannot be written; the last one is still there.
        """
        tensors, counters = self.learner.state_dict()
        state = {
            "step": progress.step,
            "best": progress.best,
            "progress": progress.to_json(),
            "phase": self.phase,
            "learner": counters,
            "fingerprint": fingerprint(self.config, self.world),
            **{name: part.state_dict() for name, part in self._stateful().items()},
        }
        save_checkpoint(
            self.folder.checkpoints,
            model=self.policy.model,
            tokenizer=self.policy.tokenizer,
            tensors=tensors | random_states(),
            state=state,
            keep=self.config.run.keep_checkpoints,
        )

    def restore(self, checkpoint: Checkpoint) -> Progress:
        """Take over everything but the model, which is the checkpoint's own.

        Raises:
            CheckpointError: the checkpoint lacks something.
        """
        state, tensors = checkpoint.state, checkpoint.tensors
        self.enter_phase(state["phase"])
        self.learner.load_state_dict(tensors, state["learner"])
        for name, part in self._stateful().items():
            part.load_state_dict(state[name])
        self.engine.load_weights(None, self.learner.weights_version)
        restore_random_states(tensors)
        return Progress.from_json(state["progress"])

    def _stateful(self) -> dict[str, Any]:
        """What learns from results."""
        return {"horizon": self.horizon, "curriculum": self.curriculum, "monitor": self.monitor}

    def close(self) -> None:
        """End the environments' workers."""
        self.collector.envs.close()


def start_run(config: TrainConfig) -> tuple[Parts, Progress]:
    """A new run at step 0; its folder is made once everything else has worked.

    Raises:
        ConfigError: settings that do not work, or a folder that is taken.
        ContextError: the model's context is too short for a first prompt.
        UnknownName: a name in the settings does not exist.
    """
    started = time.perf_counter()
    folder = choose_run_folder(config.run.dir, config.preset)
    world = build_world(config)
    texts = () if config.model.path else world.demonstrations(config.warmup.demonstrations)
    parts = Parts(config, folder, world, build_policy(config, texts))
    parts.enter_phase("warmup" if config.warmup.steps else config.run.algorithm)
    _check_first_prompts(parts)
    if config.warmup.steps:
        parts.demonstrations(config.warmup.demonstrations)  # refuses a context too short for them
    parts.folder = create_run_folder(config.run.dir, config.preset)
    try:
        write_config(config, parts.folder.config)
    except OSError:
        shutil.rmtree(parts.folder.path)
        raise
    return parts, Progress(seconds=time.perf_counter() - started)


def _check_first_prompts(parts: Parts) -> None:
    """Refuse a context that is too short for tasks which the run will come to."""
    world = parts.world
    held_out = [*world.test[:_PROMPTS_CHECKED], *world.dev[:_PROMPTS_CHECKED]]
    tasks = [*held_out, *world.curriculum.step(0)]
    first = [(world.probe.reset(seed=0, options={"task": task})[0], task) for task in tasks]
    first.sort(key=lambda pair: -len(pair[0]))  # the longest is the one to be told of
    for observation, task in first:
        parts.collector.first_prompt(task, observation)


def resume_run(
    config: TrainConfig, folder: RunFolder, which: str = "last"
) -> tuple[Parts, Progress]:
    """A run at the state of one of its checkpoints, see `find_checkpoint`.

    Raises:
        CheckpointError: there is none, or it belongs to other settings or tasks.
    """
    started = time.perf_counter()
    world = build_world(config)
    checkpoint = load_checkpoint(
        find_checkpoint(folder.checkpoints, which), fingerprint=fingerprint(config, world)
    )
    model = dataclasses.replace(config.model, path=str(checkpoint.model_folder))
    policy = build_policy(dataclasses.replace(config, model=model))
    parts = Parts(config, folder, world, policy)
    progress = parts.restore(checkpoint)
    progress.seconds += time.perf_counter() - started
    return parts, progress
