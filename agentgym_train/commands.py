"""What the command line does, as functions that return the figures they print."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import logging
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.logging import RichHandler

from agentgym_envs.errors import UnknownName
from agentgym_train import assemble, loop
from agentgym_train.config import (
    DEFAULT_PRESET,
    TrainConfig,
    load_preset,
    preset_names,
    preset_summary,
    read_config,
    setting_names,
)
from agentgym_train.errors import ConfigError, TrainError
from agentgym_train.evaluate import evaluate as evaluate_policy
from agentgym_train.loggers.base import Loggers
from agentgym_train.loggers.console import ConsoleLogger
from agentgym_train.loggers.jsonl import JsonlLogger
from agentgym_train.loggers.tensorboard import TensorBoardLogger
from agentgym_train.runs import (
    Interrupted,
    InterruptRequest,
    Progress,
    RunFolder,
    open_run_folder,
)
from agentgym_train.viewer.report import read_result, write_report
from agentgym_train.world import tasks_of

__all__ = ["Interrupted", "evaluate", "presets", "report", "resume", "train"]


def train(words: Sequence[str]) -> dict[str, Any]:
    """Train from a preset with the settings in `words` laid over it.

    Raises:
        TrainError: something is wrong with settings, model or disk.
        Interrupted: Ctrl-C; says how to go on.
    """
    config = parse_settings(words)
    console = Console(stderr=True)
    console.print("preparing tasks, demonstrations and model …", highlight=False)
    parts, progress = assemble.start_run(config)
    return _run(parts, progress)


def resume(run: str) -> dict[str, Any]:
    """Go on with a stopped run.

    Raises:
        TrainError: there is no run, or its checkpoint does not fit.
        Interrupted: Ctrl-C; says how to go on.
    """
    folder = open_run_folder(run)
    config = read_config(folder.config)
    parts, progress = assemble.resume_run(config, folder)
    finished = progress.step >= config.warmup.steps + config.run.steps
    if finished and "after" in progress.reports and (result := read_result(folder)):
        parts.close()
        Console(stderr=True).print("the run is finished; nothing is left to do", highlight=False)
        del result["reports"]
        return result
    return _run(parts, progress)


def evaluate(run: str, split: str, tasks: int | None, horizon: int | None) -> dict[str, Any]:
    """Evaluate the newest checkpoint of a run."""
    folder = open_run_folder(run)
    config = read_config(folder.config)
    parts, _ = assemble.resume_run(config, folder)
    try:
        chosen = tasks_of(config, split).head(tasks or config.eval.tasks)
        report = evaluate_policy(
            parts.collector, list(chosen), horizon=horizon or config.eval.horizon
        )
    finally:
        parts.close()
    return {"run": str(folder.path)} | report.to_json()


def report(run: str, beside: Sequence[str]) -> dict[str, Any]:
    """Write the page of a run."""
    page = write_report(open_run_folder(run), [open_run_folder(other) for other in beside])
    return {"report": str(page)}


def presets() -> dict[str, Any]:
    """The presets and what each is for."""
    return {name: preset_summary(name) for name in preset_names()}


def parse_settings(words: Sequence[str]) -> TrainConfig:
    """Settings from the command line.

    Args:
        words: ``--preset NAME``, ``--config FILE``, and a flag for each setting.

    Raises:
        ConfigError: settings that cannot work together.
        UnknownName: no such preset or setting.
    """
    words = list(words)
    preset = _take_option(words, "--preset")
    file = _take_option(words, "--config")
    if preset and file:
        raise ConfigError("give --preset or --config, not both")
    default = read_config(file) if file else load_preset(preset or DEFAULT_PRESET)
    registry = tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_json_object)
    complaint = io.StringIO()
    try:
        with registry, contextlib.redirect_stderr(complaint):
            config, unknown = tyro.cli(
                TrainConfig,
                default=default,
                args=words,
                prog="python -m agentgym_train",
                return_unknown_args=True,
            )
    except SystemExit as stop:
        if not stop.code:  # help was asked for
            raise
        raise ConfigError(_first_paragraph(complaint.getvalue())) from None
    if unknown:
        flags = [f"--{name.replace('_', '-')}" for name in setting_names(default)]
        raise UnknownName("setting", unknown[0].partition("=")[0], flags)
    return config


def _first_paragraph(box: str) -> str:
    """What a framed message of tyro's says, on one line, without the help below it."""
    lines = [line.strip("│ ") for line in box.splitlines()[1:-1]]
    return " ".join(itertools.takewhile(lambda line: not line.startswith("─"), lines))


def _take_option(words: list[str], name: str) -> str:
    for index, word in enumerate(words):
        if word.startswith(f"{name}="):
            return words.pop(index).partition("=")[2]
        if word == name:
            if index + 1 == len(words):
                raise ConfigError(f"{name} needs a value")
            _, value = words.pop(index), words.pop(index)
            return value
    return ""


def _json_object(info: Any) -> Any:
    """Mappings are given on the command line as one JSON object."""
    if "Mapping" not in str(info.type):
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="JSON",
        instance_from_str=lambda texts: _parse_object(texts[0]),
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [json.dumps(value)],
    )


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ConfigError(
            f"""expected a JSON object like '{{"levels": "BossLevel"}}', got {text!r}"""
        )
    return value


def _run(parts: assemble.Parts, progress: Progress) -> dict[str, Any]:
    folder, config = parts.folder, parts.config
    console = Console(stderr=True)
    _log_warnings(console)
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
    page = write_report(folder)
    console.print(f"report: {page}", highlight=False)
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
    try:
        yield loggers
    finally:
        loggers.close()


def _log_warnings(console: Console) -> None:
    handler = RichHandler(console=console, show_path=False)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format="%(message)s", force=True)


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
