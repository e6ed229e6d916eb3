"""Commands and their options; options of one name mean the same everywhere."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, Never

from agentgym_envs.cli.bench import POLICIES, bench
from agentgym_envs.cli.check import check
from agentgym_envs.cli.describe import describe
from agentgym_envs.cli.evaluation import compare, evaluate
from agentgym_envs.cli.listing import list_families
from agentgym_envs.cli.oracle import watch_oracle
from agentgym_envs.cli.play import play
from agentgym_envs.cli.serve_search import add_serve_options, serve_search
from agentgym_envs.cli.setup import add_setup_options, setup
from agentgym_envs.cli.validate import validate
from agentgym_envs.evaluation.commands import add_compare_options, add_eval_options
from agentgym_envs.vector import WORKERS

Command = Callable[[argparse.Namespace], tuple[int, dict[str, Any]]]


def make_parser() -> argparse.ArgumentParser:
    """The parser; the result of parsing has a `Command` in ``command``."""
    parser = _Parser(prog="python -m agentgym_envs", description="Text worlds.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Command, summary: str, *parents: _Parser) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name, parents=parents, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        command.add_argument("--json", action="store_true", help="print one JSON object instead")
        command.set_defaults(command=run)
        return command

    of_env, of_episode = _of_env(), _of_episode()

    add("list", list_families, "ids, sizes of the splits, capabilities")
    add("describe", describe, "all about one id, with a first observation", of_env, of_episode)
    playing = add("play", play, "play an episode yourself", of_env, of_episode)
    playing.add_argument("--record", metavar="FILE", help="add the episode to a file, JSON lines")
    watching = add("oracle", watch_oracle, "watch the oracle play", of_env, of_episode)
    watching.add_argument("--delay", type=_seconds, default=0.0, help="seconds before each reply")
    add("check", check, "run the conformance kit", of_env)
    _add_bench_options(add("bench", bench, "steps and resets per second", of_env))
    validating = add(
        "validate", validate, "tasks against manifests, and the oracle on them", _of_env(nargs="?")
    )
    validating.add_argument(
        "--play",
        type=_count_or_all,
        default=10,
        metavar="N",
        help="tasks of each split that the oracle plays, spread evenly; or all (default: 10)",
    )
    add_eval_options(add("eval", evaluate, "evaluate a policy of text on tasks"))
    add_compare_options(add("compare", compare, "the difference of two evaluations"))
    add_setup_options(add("setup", setup, "make data that the package does not bring"))
    add_serve_options(add("serve-search", serve_search, "a search engine as a service"))
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser that answers a wrong call in one line."""

    def error(self, message: str) -> Never:
        print(f"error: {message}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


def _of_env(nargs: str | None = None) -> _Parser:
    options = _Parser(add_help=False)
    all_of_them = "; all of them if left out" if nargs else ""
    options.add_argument("id", nargs=nargs, help=f"such as AgentGym/BabyAI-v0{all_of_them}")
    options.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        type=_argument,
        action="append",
        default=[],
        help="an argument of the environment; VALUE is JSON or a text; may be repeated",
    )
    return options


def _of_episode() -> _Parser:
    options = _Parser(add_help=False)
    options.add_argument("--task", type=_task, help="id or index of a task; drawn if left out")
    options.add_argument("--seed", type=_at_least(0), help="seed of the reset")
    options.add_argument("--horizon", type=_at_least(1), help="most turns")
    return options


def _add_bench_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policy", choices=POLICIES, help="who plays; both if left out")
    parser.add_argument("--episodes", type=_at_least(1), default=20, help="how many (default: 20)")
    parser.add_argument("--repeats", type=_at_least(1), default=5, help="how often (default: 5)")
    parser.add_argument("--seed", type=_at_least(0), default=0, help="seed of the first reset")
    parser.add_argument("--num-envs", type=_at_least(1), help="play in a vector of so many")
    parser.add_argument("--workers", choices=WORKERS, help="who runs the vector (default: inline)")


def _argument(text: str) -> tuple[str, Any]:
    """``NAME=VALUE`` as a name and a value; what is no JSON is a text."""
    name, equals, value = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _task(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(
                f"expected a whole number of at least {least}, got {text!r}"
            )
        return value

    return number


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 3600:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to 3600, got {text!r}")
    return value


def _count_or_all(text: str) -> int | None:
    return None if text == "all" else _at_least(0)(text)
