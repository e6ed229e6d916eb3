"""``resume``: go on with a run that was stopped, from one of its checkpoints."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from agentgym_train import assemble
from agentgym_train.checkpoint import delete_later
from agentgym_train.commands.train import run_to_end
from agentgym_train.config import read_config
from agentgym_train.runs import RunFolder, open_run_folder


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("run", help="folder of the run")
    parser.add_argument("--from", dest="which", default="last", help="last, best or a step")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Go on with a stopped run.

    Raises:
        TrainError: there is no run, or its checkpoint does not fit.
        KeyboardInterrupt: Ctrl-C; says how to go on.
    """
    folder = open_run_folder(options.run)
    with folder.locked():
        return _resume(folder, options.which)


def _resume(folder: RunFolder, which: str) -> dict[str, Any]:
    console = Console(stderr=True, highlight=False)
    parts = assemble.resume_run(read_config(folder.config), folder, which)
    if parts.is_finished and (result := folder.read_result()):
        parts.close()
        console.print("the run is finished; nothing is left to do")
        del result["reports"]
        return result
    step = parts.progress.step
    if later := delete_later(folder.checkpoints, step):
        steps = ", ".join(map(str, later))
        console.print(f"back to step {step}; checkpoints of steps {steps} are deleted")
    folder.go_back(step)
    return run_to_end(parts)
