"""Make the certified tasks: ``python -m agentgym_envs.babyai.certify [level or suite …]``.

For each level the seeds 0, 1, 2, … are tried in order. A world is kept if its layout is new in
the level, its split is not full, and the oracle reaches the goal in the environment itself, within
`HORIZON` turns. Nothing depends on a clock, so the same versions give the same files, byte for
byte. Levels that the manifest has already are left as they are, so a run that was stopped goes on
where it was; ``--again`` makes the named ones new.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agentgym_envs.babyai import tasks
from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import RED_BALL, SINGLE_ROOM, all_levels, resolve_levels
from agentgym_envs.errors import EnvFault, InvalidTask, NoPlan
from agentgym_envs.manifests import Manifest, SplitSummary
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS

VERSION = "1"
"""Version of the data."""
HORIZON = 200
"""Most turns that the oracle may take."""
MANY = {"train": 1000, "dev": 100, "test": 200}
"""How many tasks are wanted of each of the levels that training runs use."""
SOME = {"train": 400, "dev": 50, "test": 100}
"""How many are wanted of each of the others."""
MAX_SEEDS = 8_000
MAX_REPEATS = 1_000
"""A level is done after so many worlds in a row whose layouts are not new."""

_log = logging.getLogger(__name__)


@dataclasses.dataclass
class Certified:
    """What the seeds of one level gave.

    Attributes:
        rows: lines of the level's file by split, in the order of their seeds.
        num_seeds: how many seeds were tried.
        num_repeats: how many of them gave a layout that another one had given.
        unsolved: how many the oracle did not solve, by reason.
    """

    rows: dict[str, list[str]] = dataclasses.field(
        default_factory=lambda: {split: [] for split in SPLITS}
    )
    num_seeds: int = 0
    num_repeats: int = 0
    unsolved: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def num_tasks(self) -> int:
        """How many tasks there are in all splits."""
        return sum(map(len, self.rows.values()))

    def note(self) -> dict[str, Any]:
        """What the manifest says about the level."""
        note: dict[str, Any] = {"seeds": self.num_seeds, "repeated_layouts": self.num_repeats}
        if self.unsolved:
            tried = self.num_tasks + self.unsolved.total()
            note["unsolved"] = dict(sorted(self.unsolved.items()))
            note["unsolved_share"] = round(self.unsolved.total() / tried, 4)
        return note


def certify(level: str, wanted: Mapping[str, int]) -> Certified:
    """Try seeds of `level` until there are as many tasks as wanted or no more new layouts."""
    env = BabyAIEnv(levels=level)
    found = Certified()
    layouts: set[str] = set()
    repeats_in_a_row = 0
    for seed in range(MAX_SEEDS):
        if repeats_in_a_row == MAX_REPEATS or _is_full(found, wanted):
            break
        found.num_seeds += 1
        try:
            env.world.reset(level, seed)
        except EnvFault as fault:
            found.unsolved[str(fault)] += 1
            continue
        layout, goal = env.world.layout, env.world.mission
        repeats_in_a_row += 1
        if layout in layouts:
            found.num_repeats += 1
            continue
        layouts.add(layout)
        repeats_in_a_row = 0
        split = tasks.split_of(layout)
        if len(found.rows[split]) == wanted[split]:
            continue
        turns, reason = _solve(env, level, seed)
        if reason:
            found.unsolved[reason] += 1
        else:
            digest = layout[: tasks.DIGEST_LENGTH]
            found.rows[split].append(f"{split} {seed} {turns} {digest} {goal}")
    return found


def _is_full(found: Certified, wanted: Mapping[str, int]) -> bool:
    return all(len(found.rows[split]) == wanted[split] for split in SPLITS)


def _solve(env: BabyAIEnv, level: str, seed: int) -> tuple[int, str]:
    """Turns that the oracle takes, and why it fails, "" if it does not."""
    task_id = str(tasks.TaskName(tasks.ANY, level, seed))
    try:
        episode = run_episode(env, task=task_id, horizon=HORIZON)
    except NoPlan as error:
        return 0, str(error)
    return len(episode.turns), "" if episode.success else f"more than {HORIZON} turns"


def write_level(folder: Path, level: str, rows: Iterable[str]) -> None:
    """Write one level's file; equal rows give equal bytes."""
    text = "".join(f"{row}\n" for row in rows)
    path = folder / f"{level}.txt.gz"
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def write_manifest(path: Path, counts: Mapping[str, Mapping[str, int]], notes: Any) -> None:
    """Write the manifest of all files, with digests of what `tasks` makes of them.

    Args:
        path: of the manifest.
        counts: number of tasks by split and level.
        notes: see `Manifest`.
    """

    def write(summaries: Mapping[str, SplitSummary]) -> None:
        whole = {"levels": "all"}
        Manifest(tasks.FAMILY, VERSION, summaries, notes, whole).write(path)
        for read in (tasks.manifest, tasks._rows, tasks._turn_of_seed):
            read.cache_clear()

    write({split: SplitSummary(sum(n.values()), "", n) for split, n in counts.items()})
    write({split: SplitSummary.of(tasks.certified_tasks(split, all_levels())) for split in SPLITS})


def main() -> None:
    """Certify levels and write their files and the manifest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("levels", nargs="*", default=["redball", "single_room", "all"])
    parser.add_argument("--again", action="store_true", help="also levels that are there already")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    folder = Path(__file__).parent / "data"
    counts, notes = _read(folder / "manifest.json")
    for level in resolve_levels(options.levels):
        if level in notes["levels"] and not options.again:
            continue
        found = certify(level, MANY if level in RED_BALL + SINGLE_ROOM else SOME)
        notes["levels"][level] = found.note()
        for split in SPLITS:
            counts[split].pop(level, None)
            if found.rows[split]:
                counts[split][level] = len(found.rows[split])
        if found.num_tasks:
            write_level(folder, level, [row for split in SPLITS for row in found.rows[split]])
        write_manifest(folder / "manifest.json", counts, notes)
        _log.info("%s: %d tasks, %s", level, found.num_tasks, found.note())


def _read(path: Path) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """The counts and notes of a manifest of this version; empty ones if there is none."""
    notes: dict[str, Any] = {
        "how": "python -m agentgym_envs.babyai.certify; its docstring says what is kept",
        "minigrid": version("minigrid"),
        "levels": {},
    }
    try:
        manifest = Manifest.read(path)
    except InvalidTask:
        return {split: {} for split in SPLITS}, notes
    if manifest.version != VERSION or manifest.notes["minigrid"] != notes["minigrid"]:
        return {split: {} for split in SPLITS}, notes
    counts = {split: dict(manifest.splits[split].categories) for split in SPLITS}
    return counts, {**manifest.notes}


if __name__ == "__main__":
    main()
