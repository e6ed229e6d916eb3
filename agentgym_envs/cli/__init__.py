"""The command line: ``python -m agentgym_envs COMMAND``; each command is one file of this folder.

With ``--json`` stdout holds one JSON object of the figures and nothing else, and what is said on
the way goes to stderr. Exit codes: 0 fine, 1 what was looked at is not as it should be, 2 the call
itself was wrong (one line on stderr), 130 stopped by Ctrl-C, 141 nobody reads the output any more.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence

import gymnasium

from agentgym_envs.cli.parser import make_parser
from agentgym_envs.errors import AgentGymError

_WRONG_CALL = (AgentGymError, gymnasium.error.Error, ImportError, OSError, TypeError, ValueError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments; None takes those of the process.

    Returns:
        The exit code.
    """
    _mend_streams()
    options = make_parser().parse_args(argv)
    talk = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    try:
        with talk:
            code, figures = options.command(options)
        if options.json:
            print(json.dumps(figures))
        sys.stdout.flush()
    except KeyboardInterrupt as stop:
        print(str(stop) or "stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # What is buffered would be written again at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _WRONG_CALL as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return int(code)


def _mend_streams() -> None:
    """Stand in for streams that the caller closed; write what an encoding lacks as escapes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr always does
