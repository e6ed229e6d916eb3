"""``python -m agentgym_train``: train, resume, evaluate, compare, check, report.

Without a word it trains the default preset. Output for people goes to standard error; standard
output gets the figures, with ``--json`` as one JSON object on its last line.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

COMMANDS = {
    "train": "train; this is what is done without a command",
    "resume": "go on with a stopped run",
    "check": "prove that tokens, masks, rewards and gradients of a model and an env are right",
    "eval": "evaluate a policy on tasks",
    "compare": "the difference of two evaluations",
    "report": "write report.html of a run",
    "presets": "list the presets",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit code: 0, 1 if a check did not pass, 2 after wrong input, 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("-h", "--help"):
        print("usage: python -m agentgym_train [COMMAND] [ARGUMENTS] [--json]\n")
        print("\n".join(f"  {name:8} {summary}" for name, summary in COMMANDS.items()))
        print("\nCOMMAND --help tells the arguments; with --json the last line is one JSON object.")
        return 0
    # Waiting OpenMP threads spin by default and starve whoever else uses the cores; this must be
    # set before torch is imported, and the user's own setting goes first.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from agentgym_envs.errors import AgentGymError
    from agentgym_train.errors import TrainError

    name = words.pop(0) if words and not words[0].startswith("-") else "train"
    as_json = "--json" in words
    try:
        figures = _run(name, [word for word in words if word != "--json"])
    except (TrainError, AgentGymError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(str(stop) or "stopped", file=sys.stderr)
        return 130
    if as_json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name}: {_readable(value)}" for name, value in figures.items()))
    return 0 if figures.get("passed", True) else 1


def _run(name: str, words: list[str]) -> dict[str, Any]:
    from agentgym_envs.errors import UnknownName
    from agentgym_train.commands.settings import Parser

    if name not in COMMANDS:
        raise UnknownName("command", name, COMMANDS)
    command = importlib.import_module(f"agentgym_train.commands.{name}")
    parser = Parser(
        prog=f"python -m agentgym_train {name}",
        description=COMMANDS[name],
        allow_abbrev=False,
        add_help=name != "train",  # which has nothing but settings, and helps with them itself
    )
    command.configure(parser)
    options, rest = parser.parse_known_args(words)
    if hasattr(options, "settings"):
        options.settings = rest
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    figures: dict[str, Any] = command.run(options)
    return figures


def _readable(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(_readable, value)) if isinstance(value, list) else str(value)
