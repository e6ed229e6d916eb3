"""`compat="agentgym"`: AgentGym's SciWorld (arXiv 2406.04151): texts, rules and task indices.

Everything is that of its server at commit 68b51cf, which hands lines to the official simulator and
hands back its words. What that means, beside our own way:

- The first observation is the task and the room, untrimmed; what names no action is answered "No
  known action matches that input."
- A command that comes instead of the number that the simulator has asked for is spent on dropping
  the question; so is a number that stands for nothing. ``help`` and ``objects`` are answered.
- The task ends after 100 units of time, `wait` counts ten; here that is a failure at the score that
  was reached. Its task sets hold what the gold actions solve within them.
- Index n is entry n of its list; see `agentgym_variation`.

Where the original is at fault it is not followed:

- Scores are 0 to 1 and never negative; there, a wrong focus is -100.
- A reward is the gain in score; its client hands back the whole score each turn.
- An action on which the simulator breaks does not break all that follow.
- A list of tasks holds each once; there, the list of a server grows with every environment.
"""

from __future__ import annotations

from typing import Any

from agentgym_envs.actions import Command, Grammar, verb
from agentgym_envs.actions.grammar import shorten
from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.errors import CommandError, InvalidTask
from agentgym_envs.sciworld.actions import verbs
from agentgym_envs.sciworld.dialect import Dialect
from agentgym_envs.sciworld.experiments import (
    AGENTGYM_EXPERIMENTS,
    NOT_IN_AGENTGYM,
    NOT_IN_AGENTGYM_FILES,
    agentgym_variation,
)
from agentgym_envs.sciworld.tasks import certified_variation, digest_of
from agentgym_envs.tasks import Task

MAX_MOVES = 100
"""The simulator's own limit, where nobody sets another."""
NO_MATCH = "No known action matches that input."

_STATES_TASK = "Your task is to "
_MOST_WORDS = 200
"""More than any task is stated in; the longest certified one has 77."""
_MAX_LINE = 2000


def agentgym_dialect() -> Dialect:
    """The dialect of AgentGym."""
    return Dialect(
        grammar=lambda simplifications: _AgentGymGrammar(verbs(simplifications)),
        goal=str,
        first=lambda goal, look: f"{goal}\n{look}",
        answer=lambda result: result.observation,
        refuse=lambda error: NO_MATCH,
        fail=lambda observation, reason: observation,
        is_official=True,
        max_moves=MAX_MOVES,
        experiments=AGENTGYM_EXPERIMENTS,
        variation_of_index=agentgym_variation,
    )


@verb("{line}")
def other(world: object, line: str) -> str:
    """A line for the simulator, which may be waiting for an answer to a question.

    Examples:
        dance
    """
    return line


class _AgentGymGrammar(Grammar):
    """Our verbs, and any other line, which the simulator answers itself."""

    def parse(self, text: str, *, strict: bool = False) -> Command:
        try:
            return super().parse(text, strict=strict)
        except CommandError:
            line = " ".join(text.split())
            if not line or len(line) > _MAX_LINE:
                raise CommandError(NO_MATCH) from None
            return _OTHER.command("other", line=line)


_OTHER = Grammar([other])


def task_of_item(item: AgentGymItem) -> Task:
    """The task of an item, of whatever split.

    Its number counts the list of AgentGym's server. The published files of tasks were made with a
    list that leaves out one experiment more (WooooDyy/AgentGym issue 49). If the entry states the
    task, as their trajectories do, that decides between the two.

    Raises:
        InvalidTask: the lists are shorter, hold another task there, or one that is not certified.
    """
    stated = _stated_task(item.entry)
    if not stated:
        return certified_variation(*agentgym_variation(item.number))
    digests = _digests_of_beginnings(stated)
    found = []
    for left_out in (NOT_IN_AGENTGYM, NOT_IN_AGENTGYM_FILES):
        name, variation = agentgym_variation(item.number, left_out)
        task = certified_variation(name, variation)
        if task.payload["stated"] in digests:
            return task
        found.append(task.id)
    raise InvalidTask(
        f"{item.id!r} states {shorten(stated)!r}, but stands for {found[0]!r} or {found[1]!r}"
    )


def _digests_of_beginnings(stated: str) -> set[str]:
    """Digests of all that a statement of a task may be: where it ends is not marked."""
    found = set()
    for part in stated.split(_STATES_TASK)[1:]:
        words = (_STATES_TASK + part).split()[:_MOST_WORDS]
        found |= {digest_of(" ".join(words[:end])) for end in range(1, len(words) + 1)}
    return found


def _stated_task(entry: Any) -> str:
    """What an entry says from the statement of the task on, blanks made single; "" without one."""
    turns = entry.get("conversations", [])
    texts = [turn.get("value") for turn in turns if isinstance(turn, dict)]
    whole = " ".join(" ".join(text for text in texts if isinstance(text, str)).split())
    at = whole.find(_STATES_TASK)
    return whole[at:] if at >= 0 else ""
