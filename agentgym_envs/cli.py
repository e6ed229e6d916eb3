"""The command line: ``python -m agentgym_envs list | play | check``.

``list`` shows ids, splits and capabilities; ``play`` lets a person play an episode; ``check`` runs
the conformance kit. With ``--json`` the last line on stdout is one JSON object of the figures.
Exit codes: 0 fine, 1 a check failed, 2 the call itself was wrong, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import gymnasium

from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import AgentGymError, UnknownName
from agentgym_envs.policies import HumanPolicy, run_episode
from agentgym_envs.registration import registered_ids
from agentgym_envs.tasks import SPLITS
from agentgym_envs.testing import run_checks, wrapped
from agentgym_envs.wrappers import TextWrapper

Figures = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments; None takes those of the process.

    Returns:
        The exit code.
    """
    options = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], tuple[int, Figures]] = options.command
    try:
        code, figures = command(options)
    except (AgentGymError, gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(figures))
    return code


def _list(options: argparse.Namespace) -> tuple[int, Figures]:
    families = []
    for env_id in registered_ids():
        try:
            family = _describe(env_id)
        except ImportError as error:
            print(f"{env_id}: not installed ({error})")
            families.append({"id": env_id, "error": str(error)})
            continue
        splits = ", ".join(f"{name} {count}" for name, count in family["splits"].items())
        print(f"{env_id}: tasks {splits}; can {', '.join(family['capabilities']) or 'nothing'}")
        families.append(family)
    return 0, {"families": families}


def _describe(env_id: str) -> Figures:
    splits = {split: len(_make(env_id, split=split).tasks) for split in SPLITS}
    capabilities = sorted(_make(env_id).capabilities)
    return {"id": env_id, "splits": splits, "capabilities": capabilities}


def _play(options: argparse.Namespace) -> tuple[int, Figures]:
    env = _make(options.id, **dict(options.arg))
    person = HumanPolicy(input, print)
    try:
        episode = run_episode(
            env, person, task=options.task, seed=options.seed, horizon=options.horizon
        )
    except (EOFError, KeyboardInterrupt):
        print(f"\nStopped: {env.task.id}")
        return 0, {"id": options.id, "task_id": env.task.id, "end_reason": str(EndReason.STOPPED)}
    finally:
        env.close()
    print(f"\n{episode.turns[-1].observation}\n")
    figures = {
        "id": options.id,
        "task_id": episode.task.id,
        "turns": len(episode.turns),
        "return": episode.return_,
        "score": episode.score,
        "success": episode.success,
        "end_reason": str(episode.end_reason),
    }
    print(", ".join(f"{name} {value}" for name, value in figures.items()))
    return 0, figures


def _check(options: argparse.Namespace) -> tuple[int, Figures]:
    arguments = dict(options.arg)
    _make(options.id, **arguments).close()  # a wrong id or argument is no failed check
    bare = functools.partial(gymnasium.make, options.id, **arguments)
    start = time.perf_counter()
    names, failed = [], []
    for suffix, make in (("", bare), (" (wrapped)", wrapped(options.id, **arguments))):
        for result in run_checks(make):
            name = f"{result.name}{suffix}"
            names.append(name)
            if result.error:
                failed.append(name)
            verdict, text = ("FAIL", result.error) if result.error else ("ok", result.promise)
            print(f"{verdict:4} {name}: {' '.join(text.split())}", flush=True)
    seconds = round(time.perf_counter() - start, 2)
    print(f"{len(names) - len(failed)} of {len(names)} checks passed in {seconds} s")
    figures = {"id": options.id, "checks": len(names), "failed": failed, "seconds": seconds}
    return int(bool(failed)), figures


def _make(env_id: str, **arguments: Any) -> TextEnv:
    if ":" not in env_id and env_id not in gymnasium.registry:
        raise UnknownName("environment", env_id, registered_ids())
    env = gymnasium.make(env_id, **arguments)
    if not isinstance(env, (TextEnv, TextWrapper)):
        env.close()
        raise TypeError(f"{env_id} makes {env}; expected a TextEnv or a TextWrapper")
    return cast(TextEnv, env)


def _argument(text: str) -> tuple[str, Any]:
    """``NAME=VALUE`` as a name and a value; what is no JSON is a text."""
    name, equals, value = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m agentgym_envs", description="Text worlds.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="end with one JSON object of figures")
    of_env = argparse.ArgumentParser(add_help=False, parents=[common])
    of_env.add_argument("id", help="an id, such as AgentGym/BabyAI-v0")
    of_env.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        type=_argument,
        action="append",
        default=[],
        help="an argument of the environment; VALUE is JSON or a text; may be repeated",
    )

    listing = commands.add_parser("list", parents=[common], help="ids, splits, capabilities")
    listing.set_defaults(command=_list)
    playing = commands.add_parser("play", parents=[of_env], help="play an episode yourself")
    playing.add_argument("--task", help="id of a task; drawn if left out")
    playing.add_argument("--seed", type=int, help="seed of the reset")
    playing.add_argument("--horizon", type=int, help="most turns")
    playing.set_defaults(command=_play)
    checking = commands.add_parser("check", parents=[of_env], help="run the conformance kit")
    checking.set_defaults(command=_check)
    return parser
