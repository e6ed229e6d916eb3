"""``report``: write the page of a run, with others drawn beside it."""

from __future__ import annotations

import argparse
from typing import Any

from agentgym_train.runs import open_run_folder
from agentgym_train.viewer.report import write_report


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("run", help="folder of the run")
    parser.add_argument("--beside", nargs="*", default=(), help="runs to draw beside it: controls")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Write ``report.html``."""
    beside = [open_run_folder(other) for other in options.beside]
    return {"report": str(write_report(open_run_folder(options.run), beside))}
