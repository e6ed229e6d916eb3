"""Manifests: what the splits of a family hold, frozen in a file that is checked.

A manifest is one small JSON file in the family's folder. For each split it states the number of
tasks, the digest of their full content, and the number by category. Tests call `verify`, so a
change of any task, on purpose or by a new version of a dependency, is seen. Where the rows of the
tasks are kept is the family's business.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from agentgym_envs.errors import InvalidTask
from agentgym_envs.tasks import TaskSet

MANIFEST_SCHEMA = 1


@dataclasses.dataclass(frozen=True)
class SplitSummary:
    """One split: `count` tasks whose set has `digest`, and the tasks by category."""

    count: int
    digest: str
    categories: Mapping[str, int]

    @classmethod
    def of(cls, tasks: TaskSet) -> SplitSummary:
        """The summary of a task set; makes every task once."""
        return cls(len(tasks), tasks.digest(), tasks.categories())


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What the splits of one family hold.

    Attributes:
        family: the family's name.
        version: version of the data; changes whenever a digest does.
        splits: by name.
        notes: how the tasks were made and certified, what was left out and why; JSON values.
        arguments: those of the environment whose splits hold exactly these tasks.
    """

    family: str
    version: str
    splits: Mapping[str, SplitSummary]
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def write(self, path: str | Path) -> None:
        """Write the manifest as indented JSON with sorted keys."""
        data = {"schema": MANIFEST_SCHEMA} | dataclasses.asdict(self)
        Path(path).write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path | Traversable) -> Manifest:
        """Read what `write` wrote.

        Raises:
            InvalidTask: the file is missing, no manifest, or of another schema.
        """
        source = Path(path) if isinstance(path, str) else path
        try:
            data = json.loads(source.read_text(encoding="utf-8"))
            schema = data.pop("schema")
            if schema != MANIFEST_SCHEMA:
                raise InvalidTask(
                    f"manifest {source}: schema {MANIFEST_SCHEMA} expected, got {schema!r}"
                )
            splits = {name: SplitSummary(**split) for name, split in data.pop("splits").items()}
            return cls(splits=splits, **data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidTask):
                raise
            raise InvalidTask(f"cannot read the manifest {source}: {error!r}") from error


def find_manifest(env_class: type) -> Manifest | None:
    """The manifest of a family: ``data/manifest.json`` in the folder of its environment, or None.

    Raises:
        InvalidTask: it cannot be read.
    """
    package = env_class.__module__.rpartition(".")[0]
    if not package:
        return None
    path = resources.files(package) / "data" / "manifest.json"
    return Manifest.read(path) if path.is_file() else None


def verify(manifest: Manifest, task_sets: Mapping[str, TaskSet]) -> None:
    """Check task sets against their manifest, and that no id stands in two splits.

    Args:
        manifest: what is expected.
        task_sets: the tasks of each split of the manifest.

    Raises:
        InvalidTask: a split is missing, differs, or shares an id with another.
    """
    if set(task_sets) != set(manifest.splits):
        raise InvalidTask(
            f"{manifest.family}: splits {sorted(manifest.splits)} expected, got {sorted(task_sets)}"
        )
    split_of: dict[str, str] = {}
    for name, tasks in task_sets.items():
        summary = SplitSummary.of(tasks)
        if summary != manifest.splits[name]:
            raise InvalidTask(
                f"{manifest.family}/{name} differs from its manifest of version "
                f"{manifest.version}: expected {manifest.splits[name]}, got {summary}"
            )
        for task_id in tasks.ids:
            if split_of.setdefault(task_id, name) != name:
                raise InvalidTask(f"task {task_id!r} is in {split_of[task_id]!r} and in {name!r}")
