"""``eval``: any policy on any task set, into a folder that an interrupted evaluation goes on in.

A policy of tokens plays through the trainer's collector; all else needs no trainer and is in
`agentgym_envs.evaluation`. Where the policy is a run, what is not asked for is as the run was
trained and evaluated.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from agentgym_envs.evaluation import commands
from agentgym_train.assemble import Policy, build_collector, load_policy
from agentgym_train.checkpoint import find_checkpoint
from agentgym_train.config import EnvConfig, ModelConfig, TrainConfig, read_config
from agentgym_train.evaluate import play_tokens
from agentgym_train.rollout.collector import SamplingConfig
from agentgym_train.runs import RunFolder

_OTHERWISE = TrainConfig(
    env=EnvConfig(num_envs=16),
    model=ModelConfig(max_context=2048, instructions=True),
    sampling=SamplingConfig(max_tokens=256),
)
"""Settings of models that are no run."""


_NOT_SAID = ("_name_or_path", "transformers_version")
"""What is in a model's configuration and decides nothing."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    commands.add_eval_options(parser, "a run, a chat model, smollm2, ")
    parser.add_argument("--checkpoint", help="of a run: last, the usual one, best or a step")
    parser.add_argument("--max-context", type=int, help="most tokens of an episode, for a model")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate a policy.

    Raises:
        AgentGymError, TrainError: something is wrong with policy, tasks or folder.
        KeyboardInterrupt: says how to go on.
    """
    with contextlib.ExitStack() as stack:
        return commands.run_eval(options, functools.partial(_prepare_tokens, stack))


def _prepare_tokens(stack: contextlib.ExitStack, options: argparse.Namespace) -> commands.Prepared:
    config = _settings(options)
    plan = commands.make_plan(options)
    policy = load_policy(config.model.path, config.run)
    with contextlib.closing(plan.make_env()) as env:
        collector = build_collector(config, env, policy)
    stack.callback(collector.envs.close)
    description = {
        "name": Path(options.policy).name,
        "weights": _digest(policy),
        "temperature": options.temperature,
        "max_tokens": config.sampling.max_tokens,
        "max_context": config.model.max_context,
        "instructions": config.model.instructions,
        "versions": {name: version(name) for name in ("torch", "transformers")},
    }
    play = functools.partial(play_tokens, collector, plan, temperature=options.temperature)
    return plan, description, play


def _settings(options: argparse.Namespace) -> TrainConfig:
    """The settings of the run, or usual ones, with what was asked for laid over them, and the
    options filled in by them.
    """
    folder = RunFolder(Path(options.policy))
    config, path, of_run = _OTHERWISE, options.policy, {}
    if folder.config.is_file():
        config = read_config(folder.config)
        path = str(find_checkpoint(folder.checkpoints, options.checkpoint or "last") / "model")
        of_run = {"tasks": config.eval.tasks, "horizon": config.eval.horizon}
    else:
        commands.refuse_unused(options, "checkpoint")
    env, model, sampling = config.env, config.model, config.sampling
    usual = {
        "env_args": {} if options.env else env.arguments,
        "env": env.id,
        "files": env.tasks,
        "parallel": env.num_envs,
        "max_context": model.max_context,
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "max_faults": sampling.max_faults,
        "seed": config.run.seed,
    }
    commands.fill_in(options, usual | of_run)
    tokens, faults = options.max_tokens, options.max_faults
    return dataclasses.replace(
        config,
        env=EnvConfig(options.env, options.env_args, {}, options.parallel, env.workers),
        model=dataclasses.replace(model, path=path, max_context=options.max_context),
        sampling=dataclasses.replace(sampling, max_tokens=tokens, max_faults=faults),
        run=dataclasses.replace(config.run, seed=options.seed),
    )


def _digest(policy: Policy) -> str:
    """Of everything that decides what a model says: configuration, tokenizer, chat template, which
    tokens end a reply, weights.
    """
    settings = policy.model.config.to_dict()
    for name in _NOT_SAID:
        settings.pop(name, None)
    tokenizer, ends = policy.tokenizer, sorted(policy.template.stop_ids)
    digest = hashlib.sha256(json.dumps([settings, ends], sort_keys=True, default=str).encode())
    digest.update(str(tokenizer.chat_template).encode())
    digest.update(tokenizer.backend_tokenizer.to_str().encode())
    for name, tensor in sorted(policy.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
