"""``compare``: the paired difference of two evaluations, task by task."""

from __future__ import annotations

import argparse
from typing import Any

from agentgym_envs.evaluation import compare, read_result


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("first", help="folder of an evaluation, or its result.json")
    parser.add_argument("second", help="another, of the same tasks, horizon and k")
    parser.add_argument(
        "--common", action="store_true", help="compare the tasks that both have, if others differ"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The difference, first minus second.

    Raises:
        InvalidEvaluation: they cannot be compared; says in what they differ.
    """
    names = (options.first, options.second)
    first, second = map(read_result, names)
    return compare(first, second, names=names, only_common=options.common)
