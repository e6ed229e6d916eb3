"""``python -m agentgym_train``: train, resume, evaluate, report.

Without a word it trains the default preset. Output for people goes to standard error; standard
output gets the figures, with ``--json`` as one JSON object on its last line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

_USAGE = """\
usage: python -m agentgym_train [train] [--preset NAME | --config FILE] [settings]
                                                                     train; see train --help
       python -m agentgym_train resume RUN                           go on with a stopped run
       python -m agentgym_train eval RUN [--split SPLIT] [--tasks N] [--horizon N]
       python -m agentgym_train report RUN [--beside RUN ...]        write report.html
       python -m agentgym_train presets                              list the presets

Every command takes --json: the last line of standard output is one JSON object of the figures.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit code: 0, 2 after wrong input, 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    # Waiting OpenMP threads spin by default and starve whoever else uses the cores; this must be
    # set before torch is imported, and the user's own setting goes first.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from agentgym_envs.errors import AgentGymError
    from agentgym_train import commands
    from agentgym_train.errors import TrainError

    as_json = "--json" in words
    words = [word for word in words if word != "--json"]
    name = words.pop(0) if words and not words[0].startswith("-") else "train"
    try:
        figures = _COMMANDS[name](commands, words) if name in _COMMANDS else _unknown(name)
    except (TrainError, AgentGymError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (commands.Interrupted, KeyboardInterrupt) as stop:
        print(str(stop) or "stopped", file=sys.stderr)
        return 130
    if as_json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            if (text := _readable(value)) is not None:
                print(f"{key}: {text}")
    return 0


def _readable(value: Any) -> str | None:
    """A figure for people; None for long lists, which only ``--json`` shows."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(f"{item:.4g}" for item in value) if len(value) <= 3 else None
    return str(value)


def _unknown(name: str) -> dict[str, Any]:
    from agentgym_envs.errors import UnknownName

    raise UnknownName("command", name, _COMMANDS)


def _train(commands: Any, words: list[str]) -> dict[str, Any]:
    figures: dict[str, Any] = commands.train(words)
    return figures


class _Parser(argparse.ArgumentParser):
    """Complains on one line, like everything else here."""

    def error(self, message: str) -> NoReturn:
        from agentgym_train.errors import ConfigError

        raise ConfigError(f"{message}; see {self.prog} --help")


def _positive(text: str) -> int:
    """A whole number of at least 1; the parser turns the error into its message."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def _resume(commands: Any, words: list[str]) -> dict[str, Any]:
    parser = _Parser(prog="python -m agentgym_train resume")
    parser.add_argument("run", help="folder of the run")
    figures: dict[str, Any] = commands.resume(parser.parse_args(words).run)
    return figures


def _eval(commands: Any, words: list[str]) -> dict[str, Any]:
    parser = _Parser(prog="python -m agentgym_train eval")
    parser.add_argument("run", help="folder of the run; its newest checkpoint is evaluated")
    parser.add_argument("--split", default="test", choices=("train", "dev", "test"))
    parser.add_argument("--tasks", type=_positive, help="number of tasks; as trained by default")
    parser.add_argument("--horizon", type=_positive, help="most turns; as trained by default")
    options = parser.parse_args(words)
    figures: dict[str, Any] = commands.evaluate(
        options.run, options.split, options.tasks, options.horizon
    )
    return figures


def _report(commands: Any, words: list[str]) -> dict[str, Any]:
    parser = _Parser(prog="python -m agentgym_train report")
    parser.add_argument("run", help="folder of the run")
    parser.add_argument("--beside", nargs="*", default=(), help="runs to draw beside it: controls")
    options = parser.parse_args(words)
    figures: dict[str, Any] = commands.report(options.run, options.beside)
    return figures


def _presets(commands: Any, words: list[str]) -> dict[str, Any]:
    _Parser(prog="python -m agentgym_train presets").parse_args(words)
    figures: dict[str, Any] = commands.presets()
    return figures


_COMMANDS = {
    "train": _train,
    "resume": _resume,
    "eval": _eval,
    "report": _report,
    "presets": _presets,
}
