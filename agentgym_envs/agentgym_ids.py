"""AgentGym's item ids, ``babyai_17``: a name for the environment, and a number in it.

AgentGym and AgentGym-RL (arXiv 2406.04151, 2509.08755) publish their task sets as such ids. What a
number means is the family's business: `TextEnv._resolve_item`. Names of environments that have
no family here are no special case: their ids are unknown tasks.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.task_files import TaskEntry, entry_id
from agentgym_envs.tasks import Task

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "babyai": "BabyAI",
        "sciworld": "SciWorld",
        "searchqa": "Deep Search",
        "textcraft": "TextCraft",
        "webarena": "WebArena",
    }
)
"""The families by the names that they have in item ids."""

_ID = re.compile(r"([a-z]+)_(0|[1-9][0-9]{0,17})", re.ASCII)


@dataclasses.dataclass(frozen=True)
class AgentGymItem:
    """One item of AgentGym.

    Attributes:
        name: which environment, ``"babyai"``.
        number: which of its tasks.
        entry: what the file says besides the id, such as ``conversations``; may be empty.
    """

    name: str
    number: int
    entry: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id, ``"babyai_17"``."""
        return f"{self.name}_{self.number}"

    @classmethod
    def of(cls, entry: TaskEntry) -> Self | None:
        """The item that an entry of a list of tasks stands for, or None."""
        match = _ID.fullmatch(entry_id(entry))
        if match is None or match[1] not in FAMILIES:
            return None
        return cls(match[1], int(match[2]), {} if isinstance(entry, str) else entry)


def resolve_entry(
    entry: TaskEntry,
    name: str,
    *,
    of_item: Callable[[AgentGymItem], Task],
    of_id: Callable[[str], Task],
) -> Task:
    """The task of an entry.

    Args:
        entry: an id of the family's own, an item id, or an object with one of them.
        name: the family's name in item ids, or "" if it has none.
        of_item: gives the task of an item of this family.
        of_id: gives the task of an id of the family's own.

    Raises:
        UnknownName: there is no such task.
        InvalidTask: an item of another family, or one that stands for no task.
    """
    item = AgentGymItem.of(entry)
    if item is not None and item.name == name:
        return of_item(item)
    try:
        return of_id(entry_id(entry))
    except UnknownName:
        if item is None:
            raise
    takes = f"item ids here begin with '{name}_'" if name else "this family takes no item ids"
    raise InvalidTask(f"{item.id!r} is an item of AgentGym's {FAMILIES[item.name]}; {takes}")
