"""``presets``: what there is to start from."""

from __future__ import annotations

import argparse
from typing import Any

from agentgym_train.config import presets


def configure(parser: argparse.ArgumentParser) -> None:
    """There are no arguments."""


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The presets and what each is for."""
    texts = presets().items()
    return {name: text.partition("\n")[0].removeprefix("# ") for name, text in texts}
