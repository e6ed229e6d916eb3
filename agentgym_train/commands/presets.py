"""``presets``: what there is to start from."""

from __future__ import annotations

import argparse
from typing import Any

from agentgym_train.config import preset_names, preset_summary


def configure(parser: argparse.ArgumentParser) -> None:
    """There are no arguments."""


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The presets and what each is for."""
    return {name: preset_summary(name) for name in preset_names()}
