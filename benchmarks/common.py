"""What the benchmark scripts share: JSON lines with versions, and paired intervals."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

PACKAGES = ("agentgym-suite", "gymnasium", "minigrid", "numpy", "torch", "transformers")


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


def paired_interval(first: Sequence[int], second: Sequence[int]) -> Mapping[str, float]:
    """Mean difference of two runs over the same tasks, with a 95 % bootstrap interval over tasks.

    Args:
        first: solved or not, by task: (n,).
        second: the same tasks in the same order: (n,).
    """
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    rng = np.random.default_rng(0)
    means = rng.choice(differences, size=(20_000, len(differences))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"difference": float(differences.mean()), "low": float(low), "high": float(high)}
