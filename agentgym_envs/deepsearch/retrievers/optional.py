"""Packages that only some engines need."""

from __future__ import annotations

import importlib
from typing import Any

from agentgym_envs.errors import Unsupported


def load(module: str, *, engine: str, extra: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: its name.
        engine: that needs it.
        extra: of this package that installs it.

    Raises:
        Unsupported: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Unsupported(
            f"the engine {engine} needs the package {module.partition('.')[0]} ({error}): "
            f"pip install 'agentgym-suite[{extra}]'"
        ) from error
