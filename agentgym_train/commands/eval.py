"""``eval``: any policy on any task set, into a folder that an interrupted evaluation goes on in.

A policy of tokens plays through the trainer's collector, a policy of text in threads; plan, folder
and statistics are the same and need no trainer: `agentgym_envs.evaluation`. Where the policy is a
run, what is not asked for is as the run was trained and evaluated.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import shlex
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from agentgym_envs import evaluation
from agentgym_envs.evaluation import EvalFolder, EvalPlan, Play
from agentgym_train.assemble import Policy, build_collector, build_policy
from agentgym_train.checkpoint import find_checkpoint
from agentgym_train.commands.settings import json_object
from agentgym_train.config import EnvConfig, ModelConfig, TrainConfig, read_config
from agentgym_train.evaluate import play_tokens
from agentgym_train.rollout.collector import EpisodeContext, SamplingConfig
from agentgym_train.runs import Interrupted, RunFolder

_OTHERWISE = TrainConfig(
    preset="",
    env=EnvConfig(num_envs=16),
    model=ModelConfig(max_context=2048, instructions=True),
    sampling=SamplingConfig(max_tokens=256),
)
"""Settings of policies that are no run: without a preset, and with no say in tasks and horizon."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add = parser.add_argument
    add("policy", help="a run, a chat model, smollm2, endpoint, oracle, random, or FILE.jsonl")
    add("--checkpoint", default="last", help="of a run: last, best or the number of a step")
    add("--env", help="Gymnasium id")
    add("--env-args", type=json_object, help="arguments of the environment, a JSON object")
    add("--split", default="test", choices=("train", "dev", "test"))
    add("--tasks", help="number of tasks, all by default; or a file of task ids")
    add("--horizon", type=int, help="most turns; the largest of the tasks' own by default")
    add("--k", type=int, default=1, help="episodes of each task")
    add("--temperature", type=float, help="of sampling; 0 takes the likeliest token")
    add("--max-tokens", type=int, help="most tokens of a reply")
    add("--max-context", type=int, help="most tokens of an episode, for a model")
    add("--seed", type=int, help="of all randomness")
    add("--parallel", type=int, help="episodes that are played at a time")
    add("--max-faults", type=float, help="share of episodes that may break")
    add("--url", default="", help="of the endpoint: http://localhost:8000/v1")
    add("--model", default="", help="its name at the endpoint; a key goes into $OPENAI_API_KEY")
    add("--request", type=json_object, default={}, help="further fields of requests, JSON")
    add("--out", help="folder of the evaluation; evaluations/POLICY-SPLIT by default")
    add("--resume", action="store_true", help="go on with the evaluation in the folder")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate a policy.

    Raises:
        AgentGymError, TrainError: something is wrong with policy, tasks or folder.
        Interrupted: Ctrl-C; says how to go on.
    """
    started = time.perf_counter()
    default = Path("evaluations") / f"{Path(options.policy).name}-{options.split}"
    folder = EvalFolder(options.out or default)
    try:
        with contextlib.ExitStack() as stack:
            prepared = _prepared(options, stack)
            result = evaluation.run_evaluation(*prepared, folder, resume=options.resume)
    except KeyboardInterrupt:
        raise Interrupted(
            "stopped; episodes that have ended are kept: the same command with "
            f"--resume --out {shlex.quote(str(folder.path))} goes on"
        ) from None
    seconds = time.perf_counter() - started
    return evaluation.headline(result) | {"seconds": seconds, "out": str(folder.path)}


def _prepared(
    options: argparse.Namespace, stack: contextlib.ExitStack
) -> tuple[EvalPlan, Mapping[str, Any], Play]:
    """What to play, who plays it, and how."""
    if options.policy.endswith(".jsonl"):
        return evaluation.recorded(options.policy)
    config = _settings(options)
    plan = _plan(config, options)
    own, given = config.sampling.temperature, options.temperature
    temperature = own if given is None else given
    if options.policy not in evaluation.TEXT_PLAYERS:
        name = Path(options.policy).name
        return plan, *_token_policy(name, config, plan, temperature, stack)
    asked = {name: getattr(options, name) for name in ("url", "model", "request")}
    asked |= {"temperature": temperature, "max_tokens": config.sampling.max_tokens}
    player = evaluation.text_player(options.policy, plan.seed, **asked)
    threads = options.parallel or (8 if options.policy == "endpoint" else 1)
    faults = config.sampling.max_faults
    play = functools.partial(evaluation.play, plan, player, threads=threads, max_faults=faults)
    return plan, player.description, play


def _settings(options: argparse.Namespace) -> TrainConfig:
    """The settings of the run, or usual ones, with what was asked for laid over them."""
    folder = RunFolder(Path(options.policy))
    config, path = _OTHERWISE, options.policy
    if folder.config.is_file():
        config = read_config(folder.config)
        path = str(find_checkpoint(folder.checkpoints, options.checkpoint) / "model")
    env_args = {} if options.env and options.env_args is None else options.env_args
    return dataclasses.replace(
        config,
        env=_with(config.env, id=options.env, arguments=env_args, num_envs=options.parallel),
        model=_with(config.model, path=path, max_context=options.max_context),
        sampling=_with(
            config.sampling, max_tokens=options.max_tokens, max_faults=options.max_faults
        ),
        run=_with(config.run, seed=options.seed),
    )


def _with(settings: Any, **values: Any) -> Any:
    given = {name: value for name, value in values.items() if value is not None}
    return dataclasses.replace(settings, **given)


def _plan(config: TrainConfig, options: argparse.Namespace) -> EvalPlan:
    env, own = config.env, config.eval if config.preset else None
    wanted = options.tasks or (own.tasks if own else None)
    file = env.tasks.get(options.split)
    tasks = evaluation.choose_tasks(env.id, env.arguments, options.split, wanted, file=file)
    longest = own.horizon if own else max((task.horizon for task in tasks), default=1)
    horizon = longest if options.horizon is None else options.horizon
    return EvalPlan(env.id, env.arguments, tasks, horizon, options.k, config.run.seed)


def _token_policy(
    name: str, config: TrainConfig, plan: EvalPlan, temperature: float, stack: contextlib.ExitStack
) -> tuple[Mapping[str, Any], Play]:
    policy = build_policy(config)
    with contextlib.closing(plan.make_env()) as probe:
        context = EpisodeContext.of(probe)
    collector = build_collector(config, context, policy)
    stack.callback(collector.envs.close)
    description = {
        "name": name,
        "weights": _digest(policy),
        "temperature": temperature,
        "max_tokens": config.sampling.max_tokens,
        "max_context": config.model.max_context,
        "instructions": config.model.instructions,
        "versions": {name: version(name) for name in ("torch", "transformers")},
    }
    return description, functools.partial(play_tokens, collector, plan, temperature=temperature)


def _digest(policy: Policy) -> str:
    """Of everything that decides what a model says: weights, tokenizer, chat template."""
    digest = hashlib.sha256(str(policy.tokenizer.chat_template).encode())
    digest.update(policy.tokenizer.backend_tokenizer.to_str().encode())
    for name, tensor in sorted(policy.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
