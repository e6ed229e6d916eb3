"""``train``: a preset, with settings laid over it, from the first step to the report."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shlex
from collections.abc import Iterator
from typing import Any

import torch
from rich.console import Console
from rich.logging import RichHandler

from agentgym_train import assemble, loop
from agentgym_train.commands.settings import parse_settings
from agentgym_train.errors import TrainError
from agentgym_train.loggers.base import Loggers
from agentgym_train.loggers.console import ConsoleLogger
from agentgym_train.loggers.jsonl import JsonlLogger
from agentgym_train.loggers.tensorboard import TensorBoardLogger
from agentgym_train.runs import Interrupted, InterruptRequest, Progress, RunFolder
from agentgym_train.viewer.report import write_report


def configure(parser: argparse.ArgumentParser) -> None:
    """``--preset``, ``--config`` and every setting are read by `parse_settings`."""
    parser.set_defaults(settings=[])


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Train.

    Raises:
        TrainError: something is wrong with settings, model or disk.
        Interrupted: Ctrl-C; says how to go on.
    """
    config = parse_settings(options.settings)
    Console(stderr=True).print("preparing tasks, demonstrations and model …", highlight=False)
    return run_to_end(*assemble.start_run(config))


def run_to_end(parts: assemble.Parts, progress: Progress) -> dict[str, Any]:
    """Run all steps that are left and write the result; the environments are closed.

    Raises:
        TrainError: the run cannot go on.
        Interrupted: Ctrl-C; says how to go on.
    """
    folder, config = parts.folder, parts.config
    console = Console(stderr=True)
    handler = RichHandler(console=console, show_path=False)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format="%(message)s", force=True)
    total = config.warmup.steps + config.run.steps
    go_on = f"python -m agentgym_train resume {shlex.quote(str(folder.path))}"
    console.print(f"run folder: {folder.path}", highlight=False)
    try:
        with _loggers(folder, console, progress, total) as logger, InterruptRequest() as interrupt:
            loop.train(parts, progress, logger, interrupt)
    except Interrupted:
        raise Interrupted(
            f"stopped after step {progress.step} of {total}; go on with:\n  {go_on}"
        ) from None
    except KeyboardInterrupt:
        raise Interrupted(f"stopped at once; go on from the last checkpoint:\n  {go_on}") from None
    except OSError as error:
        raise TrainError(
            f"cannot write into {folder.path}: {error}; free space, then go on from the last "
            f"checkpoint with: {go_on}"
        ) from error
    finally:
        parts.close()
    figures = _figures(parts, progress)
    folder.write_result({**figures, "reports": progress.reports})
    console.print(f"report: {write_report(folder)}", highlight=False)
    return figures


@contextlib.contextmanager
def _loggers(
    folder: RunFolder, console: Console, progress: Progress, total: int
) -> Iterator[Loggers]:
    finished = progress.step >= total and "after" in progress.reports
    resume_at = progress.step + finished  # the last record bears the number of the next step
    loggers = Loggers(
        [
            JsonlLogger(folder.metrics, resume_at=resume_at),
            TensorBoardLogger(folder.tensorboard, resume_at=resume_at),
            ConsoleLogger(console, total=total, done=progress.step),
        ]
    )
    with contextlib.closing(loggers):
        yield loggers


def _figures(parts: assemble.Parts, progress: Progress) -> dict[str, Any]:
    before, after = progress.reports["before"], progress.reports["after"]
    return {
        "success_before": before["success"],
        "success_after": after["success"],
        "success_before_greedy": before["success_greedy"],
        "success_after_greedy": after["success_greedy"],
        "interval_before": before["interval_95"],
        "interval_after": after["interval_95"],
        "n_eval": after["n"],
        "horizon": after["horizon"],
        "seconds": progress.seconds,
        "seed": parts.config.run.seed,
        "parameters": sum(parameter.numel() for parameter in parts.policy.model.parameters()),
        "device": _device_name(parts),
        "run": str(parts.folder.path),
    }


def _device_name(parts: assemble.Parts) -> str:
    device = next(parts.policy.model.parameters()).device
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads of {os.cpu_count()} cores"
