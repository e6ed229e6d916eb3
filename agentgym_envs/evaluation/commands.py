"""The commands ``eval`` and ``compare``: their options, and what is done with them.

Policies of text need no trainer, so ``python -m agentgym_envs`` has both commands. A trainer has
them too, with its own policies beside: it hands in who plays what is not known here.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import InvalidEvaluation, UnknownName
from agentgym_envs.evaluation.comparison import compare
from agentgym_envs.evaluation.folder import EvalFolder, headline, read_result
from agentgym_envs.evaluation.plan import EvalPlan, choose_tasks
from agentgym_envs.evaluation.players import TEXT_PLAYERS, play, text_player
from agentgym_envs.evaluation.running import Play, recorded, run_evaluation
from agentgym_envs.tasks import SPLITS

Prepared = tuple[EvalPlan, Mapping[str, Any], Play]
"""What is played, what decides who plays it, and how."""

_USUAL = {
    "env": "agentgym_envs:AgentGym/BabyAI-v0",
    "env_args": {},
    "files": {},
    "k": 1,
    "seed": 0,
    "temperature": 1.0,
    "max_tokens": 256,
    "max_faults": 0.1,
    "url": "",
    "model": "",
    "request": {},
}
_OF_ENDPOINTS = ("url", "model", "request")
_OF_MODELS = ("max_context", "checkpoint")
_OF_PLAY = ("env", "env_args", "tasks", "horizon", "k", "seed", "parallel", "max_faults")
_OF_SAMPLING = ("temperature", "max_tokens")


def add_eval_options(parser: argparse.ArgumentParser, further: str = "") -> None:
    """Add the options of ``eval``. What is None afterwards was not asked for.

    Args:
        parser: gets them.
        further: what a policy may be besides those that are known here.
    """
    add = parser.add_argument
    add("policy", help=f"{further}endpoint, oracle, random, or FILE.jsonl")
    add("--env", help="Gymnasium id")
    add("--env-args", type=json_object, help="arguments of the environment, a JSON object")
    add("--split", default="test", choices=SPLITS)
    add("--tasks", help="number of tasks, all by default; or a file of task ids")
    add("--horizon", type=int, help="most turns; the largest of the tasks' own by default")
    add("--k", type=int, help="episodes of each task")
    add("--temperature", type=float, help="of sampling; 0 takes the likeliest token")
    add("--max-tokens", type=int, help="most tokens of a reply")
    add("--seed", type=int, help="of all randomness")
    add("--parallel", type=int, help="episodes that are played at a time")
    add("--max-faults", type=float, help="share of episodes that may break")
    add("--url", help="of the endpoint: http://localhost:8000/v1")
    add("--model", help="its name at the endpoint; a key goes into $OPENAI_API_KEY")
    add("--request", type=json_object, help="further fields of requests, JSON")
    add("--out", help="folder of the evaluation; evaluations/POLICY-SPLIT by default")
    add("--resume", action="store_true", help="go on with the evaluation in the folder")
    parser.set_defaults(files=None)


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in an argument.

    Raises:
        ArgumentTypeError: it is none.
    """
    with contextlib.suppress(ValueError):
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    raise argparse.ArgumentTypeError(
        f"""expected a JSON object like '{{"levels": "BossLevel"}}', got {text!r}"""
    )


def run_eval(
    options: argparse.Namespace, prepare: Callable[[argparse.Namespace], Prepared] | None = None
) -> dict[str, Any]:
    """Evaluate a policy.

    Args:
        options: those of `add_eval_options`.
        prepare: makes the evaluation of a policy that is not known here.

    Returns:
        Figures to show, with the seconds it took and the folder.

    Raises:
        AgentGymError: something is wrong with policy, tasks or folder.
        KeyboardInterrupt: says how to go on.
    """
    started = time.perf_counter()
    default = Path("evaluations") / f"{Path(options.policy).name}-{options.split}"
    folder = EvalFolder(options.out or default)
    try:
        if options.policy.endswith(".jsonl"):
            refuse_unused(options, *_OF_PLAY, *_OF_SAMPLING, *_OF_ENDPOINTS, *_OF_MODELS)
            prepared: Prepared = recorded(options.policy)
        elif options.policy in TEXT_PLAYERS:
            is_endpoint = options.policy == "endpoint"
            refuse_unused(options, *_OF_MODELS)
            refuse_unused(options, *(() if is_endpoint else (*_OF_SAMPLING, *_OF_ENDPOINTS)))
            prepared = _prepare_text(options)
        elif prepare is not None:
            refuse_unused(options, *_OF_ENDPOINTS)
            prepared = prepare(options)
        else:
            raise UnknownName("policy", options.policy, [*TEXT_PLAYERS, "FILE.jsonl"])
        result = run_evaluation(*prepared, folder, resume=options.resume)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped; episodes that have ended are kept: the same command with "
            f"--resume --out {shlex.quote(str(folder.path))} goes on"
        ) from None
    seconds = time.perf_counter() - started
    return headline(result) | {"seconds": seconds, "out": str(folder.path)}


def refuse_unused(options: argparse.Namespace, *names: str) -> None:
    """Refuse options that would change nothing: whoever gave them believes that they do.

    Raises:
        InvalidEvaluation: one of these was asked for.
    """
    asked = [name for name in names if getattr(options, name, None) is not None]
    if asked:
        told = ", ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise InvalidEvaluation(f"{told} would change nothing for {options.policy!r}; leave it out")


def fill_in(options: argparse.Namespace, usual: dict[str, Any]) -> None:
    """Give options that were not asked for, and are None, their usual values.

    Raises:
        InvalidEvaluation: a number that makes no sense, whoever plays.
    """
    for name, value in (_USUAL | usual).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for name, is_sound, expected in (
        ("parallel", options.parallel >= 1, "at least 1"),
        ("max_tokens", options.max_tokens >= 1, "at least 1"),
        ("max_faults", 0 <= options.max_faults <= 1, "a share of the episodes, from 0 to 1"),
        ("temperature", 0 <= options.temperature < math.inf, "at least 0, and finite"),
    ):
        if not is_sound:
            option, value = name.replace("_", "-"), getattr(options, name)
            raise InvalidEvaluation(f"--{option} must be {expected}, got {value}")


def make_plan(options: argparse.Namespace) -> EvalPlan:
    """The plan that is asked for.

    Raises:
        AgentGymError: it cannot be played as asked.
    """
    file = options.files.get(options.split)
    tasks = choose_tasks(options.env, options.env_args, options.split, options.tasks, file=file)
    longest = max((task.horizon for task in tasks), default=1)
    horizon = longest if options.horizon is None else options.horizon
    return EvalPlan(options.env, options.env_args, tasks, horizon, options.k, options.seed)


def _prepare_text(options: argparse.Namespace) -> Prepared:
    usual_threads = 8 if options.policy == "endpoint" else 1
    fill_in(options, {"parallel": usual_threads})
    plan = make_plan(options)
    asked = ("url", "model", "request", "temperature", "max_tokens")
    settings = {name: getattr(options, name) for name in asked}
    player = text_player(options.policy, plan.seed, **settings)
    threads, faults = options.parallel, options.max_faults
    how = functools.partial(play, plan, player, threads=threads, max_faults=faults)
    return plan, player.description, how


def add_compare_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``compare``."""
    parser.add_argument("first", help="folder of an evaluation, or its result.json")
    parser.add_argument("second", help="another, of the same tasks, horizon and k")
    parser.add_argument(
        "--common", action="store_true", help="compare the tasks that both have, if others differ"
    )


def run_compare(options: argparse.Namespace) -> dict[str, Any]:
    """The paired difference of two evaluations, first minus second.

    Raises:
        InvalidEvaluation: they cannot be compared; says in what they differ.
    """
    names = (options.first, options.second)
    first, second = map(read_result, names)
    return compare(first, second, names=names, only_common=options.common)
