"""``eval`` and ``compare``: how often a policy of text solves tasks, and the difference of two."""

from __future__ import annotations

import argparse
import json

from agentgym_envs.cli.environments import Figures
from agentgym_envs.evaluation.commands import run_compare, run_eval


def evaluate(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run ``eval``."""
    return _told(run_eval(options))


def compare(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run ``compare``."""
    return _told(run_compare(options))


def _told(figures: Figures) -> tuple[int, Figures]:
    for name, value in figures.items():
        print(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")
    return 0, figures
