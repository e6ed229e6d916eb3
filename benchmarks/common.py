"""What the benchmark scripts share: JSON lines with versions, and runs of the trainer."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = (
    "agentgym-suite",
    "gymnasium",
    "minigrid",
    "numpy",
    "scienceworld",
    "torch",
    "transformers",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the figures depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def emit(figure: str, value: Any, unit: str, **details: Any) -> None:
    """Print one figure as a JSON line."""
    line = {"figure": figure, "value": value, "unit": unit, **details, "versions": versions()}
    print(json.dumps(line), flush=True)


def run_trainer(*words: str, deadline_s: float = 3600) -> dict[str, Any]:
    """Run ``python -m agentgym_train`` in a process of its own and return its figures.

    Raises:
        subprocess.CalledProcessError: it failed; its messages are on standard error.
    """
    command = [sys.executable, "-m", "agentgym_train", *words, "--json"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=deadline_s, check=True, env=os.environ
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
