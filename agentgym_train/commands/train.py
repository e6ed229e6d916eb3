"""``train``: a preset, with settings laid over it, from the first step to the report."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shlex
from typing import Any

import torch
from rich.console import Console
from rich.logging import RichHandler

from agentgym_train import assemble, loop
from agentgym_train.commands.settings import parse_settings
from agentgym_train.errors import TrainError
from agentgym_train.loggers import JsonlLogger, Loggers, TensorBoardLogger
from agentgym_train.loggers.console import ConsoleLogger
from agentgym_train.runs import Interrupted, InterruptRequest
from agentgym_train.viewer.report import write_report


def configure(parser: argparse.ArgumentParser) -> None:
    """``--preset``, ``--config`` and every setting are read by `parse_settings`."""
    parser.set_defaults(settings=[])


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Train.

    Raises:
        TrainError: something is wrong with settings, model or disk.
        KeyboardInterrupt: Ctrl-C; says how to go on.
    """
    config = parse_settings(options.settings)
    Console(stderr=True).print("preparing tasks, demonstrations and model …", highlight=False)
    parts = assemble.start_run(config)
    with parts.folder.locked():
        return run_to_end(parts)


def run_to_end(parts: assemble.Parts) -> dict[str, Any]:
    """Run all steps that are left and write the result; the environments are closed.

    Raises:
        TrainError: the run cannot go on.
        KeyboardInterrupt: Ctrl-C; says how to go on.
    """
    folder, progress, total = parts.folder, parts.progress, parts.config.total_steps
    console = Console(stderr=True)
    handler = RichHandler(console=console, show_path=False)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format="%(message)s", force=True)
    go_on = f"python -m agentgym_train resume {shlex.quote(str(folder.path))}"
    console.print(f"run folder: {folder.path}", highlight=False)
    # The last record of a finished run bears the number of the next step.
    resume_at = progress.step + parts.is_finished
    try:
        loggers = Loggers(
            [
                JsonlLogger(folder.metrics, resume_at=resume_at),
                TensorBoardLogger(folder.tensorboard, resume_at=resume_at),
                ConsoleLogger(console, total=total, done=progress.step),
            ]
        )
        with contextlib.closing(loggers), InterruptRequest() as interrupt:
            loop.train(parts, loggers, interrupt)
    except Interrupted:
        raise KeyboardInterrupt(
            f"stopped after step {progress.step} of {total}; go on with:\n  {go_on}"
        ) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped at once; go on from the last checkpoint:\n  {go_on}"
        ) from None
    except OSError as error:
        raise TrainError(
            f"cannot write into {folder.path}: {error}; free space, then go on from the last "
            f"checkpoint with: {go_on}"
        ) from error
    finally:
        parts.close()
    figures = _figures(parts)
    folder.write_result({**figures, "reports": progress.reports})
    console.print(f"report: {write_report(folder)}", highlight=False)
    return figures


def _figures(parts: assemble.Parts) -> dict[str, Any]:
    names = {"success": "success_{}", "success_greedy": "success_{}_greedy"}
    names["interval_95"] = "interval_{}"
    model, reports = parts.policy.model, parts.progress.reports
    device = model.device.type + f", {torch.get_num_threads()} threads of {os.cpu_count()} cores"
    if model.device.type == "cuda":
        device = torch.cuda.get_device_name(model.device)
    return {
        **{
            name.format(when): reports[when][figure]
            for figure, name in names.items()
            for when in ("before", "after")
        },
        "n_eval": reports["after"]["n"],
        "horizon": reports["after"]["horizon"],
        "seconds": parts.progress.seconds,
        "seed": parts.config.run.seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "device": device,
        "run": str(parts.folder.path),
    }
