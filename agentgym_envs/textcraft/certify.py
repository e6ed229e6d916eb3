"""Certify the tasks of our own recipes: ``python -m agentgym_envs.textcraft.certify``.

The oracle plays every goal of the book in the environment itself. A goal is certified if it is
reached in as many turns as the planner says and within the horizon that follows from them; the
other goals are left out and the manifest says why. Nothing depends on a clock, so the same recipes
give the same files, byte for byte.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.errors import NoPlan
from agentgym_envs.manifests import Manifest, SplitSummary
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS, Task, TaskSet
from agentgym_envs.textcraft import tasks
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.families import family_of
from agentgym_envs.textcraft.recipes import default_book

VERSION = "1"
"""Version of the data."""

_log = logging.getLogger(__name__)


def certify(env: TextCraftEnv, wanted: Iterable[Task]) -> tuple[list[str], dict[str, str]]:
    """Let the oracle play tasks.

    Returns:
        The lines of the file of goals, in the order of the tasks, and by goal why the oracle did
        not solve the others.
    """
    lines: list[str] = []
    unsolved: dict[str, str] = {}
    for task in wanted:
        item = task.payload["item"]
        if reason := _unsolved(env, task):
            unsolved[item] = reason
        else:
            depth = default_book().depth[item]
            lines.append(f"{task.split} {depth} {task.difficulty} {item}")
    return lines, unsolved


def _unsolved(env: TextCraftEnv, task: Task) -> str:
    """Why the oracle does not solve a task as the planner says; "" if it does."""
    try:
        episode = run_episode(env, task=task)
    except NoPlan as error:
        return str(error)
    if not episode.success:
        return f"not reached within {episode.horizon} turns"
    if len(episode.turns) != task.difficulty:
        return f"{len(episode.turns)} turns instead of {task.difficulty}"
    return ""


def write(folder: Path, lines: Sequence[str], unsolved: Mapping[str, str]) -> Manifest:
    """Write the file of goals and the manifest into `folder`."""
    text = "".join(f"{line}\n" for line in lines)
    (folder / "goals.txt").write_text(text, encoding="utf-8")
    certified = tasks.tasks_of_lines(default_book(), lines)
    sets = {split: certified.of_split(split) for split in SPLITS}
    notes = {
        "how": "python -m agentgym_envs.textcraft.certify; its docstring says what is kept",
        "recipes": default_book().digest,
        "goals": len(default_book().goals),
        "unsolved": dict(unsolved),
        "splits": {split: _note(of_split) for split, of_split in sets.items()},
    }
    summaries = {split: SplitSummary.of(of_split) for split, of_split in sets.items()}
    manifest = Manifest(tasks.FAMILY, VERSION, summaries, notes)
    manifest.write(folder / "manifest.json")
    return manifest


def _note(of_split: TaskSet) -> dict[str, Any]:
    """Families of a split, and how often the oracle needs so many turns."""
    turns = Counter(task.difficulty or 0 for task in of_split)
    return {
        "families": len({family_of(task.payload["item"]) for task in of_split}),
        "oracle_turns": {str(length): turns[length] for length in sorted(turns)},
    }


def main() -> None:
    """Certify all goals and write the files."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    lines, unsolved = certify(TextCraftEnv(), TaskSet(tasks.tasks_of_book(default_book())))
    manifest = write(Path(__file__).parent / "data", lines, unsolved)
    for split, summary in manifest.splits.items():
        _log.info("%s: %d tasks, %s", split, summary.count, dict(summary.categories))
    _log.info("unsolved: %s", unsolved)


if __name__ == "__main__":
    main()
