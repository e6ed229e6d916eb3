"""The oracle of SciWorld: the gold actions of the simulator's own agent.

They are computed once for each task, in a world of their own, which takes about half a second, and
kept in memory and in a file of the user's cache. They reach the goal from the start of an episode;
they are not the shortest way. From a state that is not on their way there is no plan.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agentgym_envs.actions import Grammar
from agentgym_envs.cache import cache_folder
from agentgym_envs.errors import NoPlan
from agentgym_envs.sciworld.actions import FREE_LINES, lines_of
from agentgym_envs.sciworld.java_runtime import HELPER_JAR, SIMULATOR_VERSION
from agentgym_envs.sciworld.session import gold_actions, lines_that_count


class SciWorldOracle:
    """Gives the gold action that comes next for as long as the episode follows them.

    Args:
        gold: the gold actions as lines for the simulator.
        played: gives the lines played so far.
    """

    def __init__(self, gold: Sequence[str], played: Callable[[], Sequence[str]]) -> None:
        self._gold = gold
        self._played = played

    def next_command(self) -> str:
        """The next gold action.

        Raises:
            NoPlan: the episode has left their way, or they are at their end.
        """
        at = 0
        for line in self._played():
            if at < len(self._gold) and line == self._gold[at]:
                at += 1
            elif line not in FREE_LINES or self._asks_at(at):
                raise NoPlan(f"the gold actions lead from the start of the task, not past {line!r}")
        if at == len(self._gold):
            raise NoPlan("the gold actions are at their end")
        return self._gold[at]

    def _asks_at(self, at: int) -> bool:
        """Whether the simulator waits for a number there, which any other line makes it forget."""
        return at < len(self._gold) and self._gold[at].isdecimal()


def canonical_lines(grammar: Grammar, gold: Sequence[str]) -> tuple[str, ...]:
    """Gold actions as the lines that our verbs give, which mean the same.

    Raises:
        CommandError: one of them is no command.
    """
    return tuple(lines_of(grammar.parse(line))[0] for line in gold)


@functools.lru_cache(maxsize=1024)
def gold_of(experiment: str, variation: int, simplifications: str) -> tuple[str, ...]:
    """The gold actions of a task that do something, in the simulator's words; computed once.

    Args:
        experiment: its name.
        variation: which of its variations.
        simplifications: their names with commas.

    Raises:
        EnvFault: the simulator broke.
    """
    name = "-".join([experiment, str(variation), *simplifications.split(",")]).rstrip("-")
    path = gold_folder() / f"{name}.txt"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return tuple(path.read_text(encoding="utf-8").splitlines())
    whole = gold_actions(experiment, variation, simplifications)
    gold = lines_that_count(whole, experiment, variation, simplifications)
    _write(path, "".join(f"{line}\n" for line in gold))
    return tuple(gold)


def gold_folder() -> Path:
    """Where gold actions are kept."""
    ours = hashlib.sha256(HELPER_JAR.read_bytes()).hexdigest()[:12]  # which decides them, too
    return cache_folder() / f"sciworld-gold-{SIMULATOR_VERSION}-{ours}"


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all; a cache that cannot be written is no error."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
