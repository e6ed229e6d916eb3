"""``check``: prove that tokens, masks, rewards and gradients of a model and an env are right.

A few short episodes are played with the settings of a run, and what could go wrong without a sign
is compared with a second way of getting it. Each check goes to standard error as it is made.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from agentgym_envs import record_checks
from agentgym_envs.record_checks import Check
from agentgym_train import assemble, checks
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.batching import sample_from_episode
from agentgym_train.checkpoint import find_checkpoint
from agentgym_train.commands.settings import parse_settings
from agentgym_train.config import TrainConfig
from agentgym_train.errors import ModelError
from agentgym_train.rollout.collector import group_jobs
from agentgym_train.runs import RunFolder
from agentgym_train.world import build_world

_SMALL = """\
    --env.num-envs=6 --batch.tasks-per-step=3 --batch.group-size=2 --sampling.max-faults=0
    --eval.tasks=1 --warmup.episodes-per-step=1 --warmup.demonstrations.episodes=200
    --warmup.demonstrations.noise=0 --warmup.demonstrations.horizon=100"""
"""Less of what takes time; the demonstrations are read by the tokenizer of a new model."""
_ROOMY = "--model.max-context=4096"
"""For a new model in an environment that the preset was not made for."""
_MAX_TURNS = 4


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("--model", default="", help="model folder, hub id, 'smollm2' or run folder")
    parser.add_argument("--env", default="", help="id of the environment, with its module in front")
    parser.add_argument("--env-args", default="", help="its arguments, a JSON object")
    parser.add_argument(
        "--append", action="store_true", help="accept a chat template that rewrites earlier turns"
    )
    parser.set_defaults(settings=[])


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Make all checks.

    Raises:
        TrainError: settings that do not work; a model that does not is a failed check.
    """
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    made = []
    for check in _checks(_settings(options), append=options.append):
        console.print(str(check))
        made.append(check)
    failed = [check.name for check in made if not check.passed]
    figures = {check.name: check.figure for check in made}
    return {"passed": not failed, "failed": ", ".join(failed) or "none", **figures}


def _settings(options: argparse.Namespace) -> TrainConfig:
    model, words = options.model, list(options.settings)
    folder = RunFolder(Path(model))
    if options.env and not model:
        words.insert(0, _ROOMY)
    if model and folder.config.is_file():
        words += ["--config", str(folder.config)]
        model = str(find_checkpoint(folder.checkpoints) / "model")
    arguments = options.env_args or ("{}" if options.env else "")
    given = {"model.path": model, "env.id": options.env, "env.arguments": arguments}
    return parse_settings(
        [*_SMALL.split(), *words, *(f"--{name}={value}" for name, value in given.items() if value)]
    )


def _checks(config: TrainConfig, *, append: bool) -> Iterator[Check]:
    world = build_world(config)
    try:
        policy = assemble.build_policy(config, world)
        collector = assemble.build_collector(config, world.splits.env, policy)
    except ModelError as error:
        yield Check("model", False, 1.0, 0.0, str(error))
        return
    collector.engine = engine = checks.TappedEngine(collector.engine)
    collector.envs = cast(Any, record_checks.TippedEnvs(collector.envs))
    turns = min(_MAX_TURNS, config.eval.horizon)
    jobs = group_jobs(world.curriculum.step(0), group_size=2, horizon=turns, seed=config.run.seed)
    with contextlib.closing(collector.envs):
        episodes = collector.collect(list(jobs), purpose="check")
    chat, instructions = policy.template, config.model.instructions * world.splits.env.instructions
    yield record_checks.check_template(episodes, chat, instructions, append=append)
    yield record_checks.check_prompts(episodes, engine.exchanges)
    yield record_checks.check_mask(episodes, chat, instructions, sample_from_episode)
    paid = (record_checks.play_again(world.splits.env, episode) for episode in episodes)
    tipped = map(record_checks.with_tips, paid)
    yield record_checks.check_rewards(episodes, tipped, sample_from_episode)
    learns_from_play = config.run.algorithm not in ("sft", "dpo", "evolve")
    algorithm = config.build_algorithm() if learns_from_play else GRPO(loss=config.loss)
    critic = config.critic if config.critic.learning_rate > 0 else None
    subject = checks.Subject(policy.model, algorithm, config.learner, critic)
    sampled = [sample_from_episode(episode) for episode in episodes]
    scored = checks.rescored(subject.learner(), sampled)
    yield record_checks.check_logprobs(sampled, scored, subject.tolerances[0])
    samples = subject.credited(episodes)
    yield checks.check_gradient(subject, samples)
    yield checks.check_update(subject, samples)
