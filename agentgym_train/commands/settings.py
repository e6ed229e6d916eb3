"""Settings of a run from the command line: a preset or a file, and flags laid over it."""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
from collections.abc import Sequence
from typing import Any, NoReturn

import tyro

from agentgym_envs.errors import UnknownName
from agentgym_envs.evaluation.commands import json_object
from agentgym_train.config import (
    DEFAULT_PRESET,
    TrainConfig,
    all_settings,
    load_preset,
    read_config,
)
from agentgym_train.errors import ConfigError


class Parser(argparse.ArgumentParser):
    """Complains on one line, like everything else here."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see {self.prog} --help")


def parse_settings(words: Sequence[str]) -> TrainConfig:
    """Settings from the command line.

    Args:
        words: ``--preset NAME``, ``--config FILE``, and a flag for each setting.

    Raises:
        ConfigError: settings that cannot work together.
        UnknownName: no such preset or setting.
    """
    chooser = Parser("python -m agentgym_train", add_help=False, allow_abbrev=False)
    source = chooser.add_mutually_exclusive_group()
    source.add_argument("--preset", default=DEFAULT_PRESET)
    source.add_argument("--config")
    chosen, flags = chooser.parse_known_args(words)
    default = read_config(chosen.config) if chosen.config else load_preset(chosen.preset)
    registry = tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_json_object)
    complaint = io.StringIO()
    try:
        with registry, contextlib.redirect_stderr(complaint):
            config, unknown = tyro.cli(
                TrainConfig,
                default=default,
                args=flags,
                prog=chooser.prog,
                return_unknown_args=True,
            )
    except SystemExit as stop:
        if not stop.code:  # help was asked for
            raise
        raise ConfigError(_first_paragraph(complaint.getvalue())) from None
    except argparse.ArgumentTypeError as error:
        raise ConfigError(str(error)) from None
    if unknown and not unknown[0].startswith("-"):
        raise ConfigError(
            f"expected settings such as --run.dir FOLDER, got {unknown[0]!r}; see --help"
        )
    if unknown:
        known = [f"--{name.replace('_', '-')}" for name in all_settings(default)]
        raise UnknownName("setting", unknown[0].partition("=")[0], known)
    return config


def _first_paragraph(box: str) -> str:
    """What a framed message of tyro's says, on one line, without the help below it."""
    lines = [line.strip("│ ") for line in box.splitlines()[1:-1]]
    words = itertools.dropwhile(_is_rule, lines)  # where frames cannot be drawn
    return " ".join(itertools.takewhile(lambda line: not _is_rule(line), words))


def _is_rule(line: str) -> bool:
    return not line.strip("─-")


def _json_object(info: Any) -> Any:
    """Mappings are given on the command line as one JSON object."""
    if "Mapping" not in str(info.type):
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="JSON",
        instance_from_str=lambda texts: json_object(texts[0]),
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [json.dumps(value)],
    )
