"""Certify the tasks: ``python -m agentgym_envs.sciworld.certify [rows.txt]``.

Every variation of every experiment is tried: its gold actions are computed, read by our grammar,
and played in a fresh world; those that are not understood do nothing and do not count. It is
certified if they reach the score 1; the others are left out and the manifest says why. All 7,207
take some hours on one core.

What has been tried is appended to the file of rows, so that a run that was stopped, by Ctrl-C or
otherwise, goes on where it was; a new file begins with the data that there is, or, with ``--anew``,
empty. The data is written from the file at the end of a run and at Ctrl-C; splits hold what is
certified by then.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.actions import Grammar
from agentgym_envs.errors import CommandError, EnvFault
from agentgym_envs.manifests import Manifest, SplitSummary
from agentgym_envs.sciworld import tasks
from agentgym_envs.sciworld.actions import verbs
from agentgym_envs.sciworld.experiments import EXPERIMENTS, NAMES, experiment, variations
from agentgym_envs.sciworld.java_runtime import SIMULATOR_VERSION
from agentgym_envs.sciworld.session import Session, gold_actions
from agentgym_envs.tasks import SPLITS

VERSION = "1"
"""Version of the data."""

DATA = Path(__file__).parent / "data"

_log = logging.getLogger(__name__)


def certify(session: Session, grammar: Grammar, name: str, variation: int) -> tasks.Row | str:
    """The row of a variation, or why its gold actions do not solve it, on one line."""
    try:
        try:
            found = _certify(session, grammar, name, variation)
        except EnvFault:  # of the simulator, or of the machine: then it is another the next time
            found = _certify(session, grammar, name, variation)
    except (EnvFault, CommandError) as error:
        found = str(error)
    return found if isinstance(found, tasks.Row) else " ".join(found.split())


def _certify(session: Session, grammar: Grammar, name: str, variation: int) -> tasks.Row | str:
    gold = gold_actions(name, variation, "")
    _, description = session.load(name, variation, "")
    turns, score = 0, 0.0
    for line in gold:
        result = session.do(grammar.parse(line))
        if result.error:
            return f"the simulator breaks at {line!r}: {result.error}"
        if not result.is_understood:
            continue  # it has done nothing, and the oracle leaves it out
        turns, score = turns + 1, result.score
        if score < 0:
            return f"{line!r} fails the task"
        if result.is_completed and score == 1.0:
            return tasks.Row(name, variation, turns, result.moves, tasks.digest_of(description))
    return f"the gold actions end at the score {score:.2f}"


def in_turn(names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """All variations of some experiments, in turn one of each experiment and split."""
    ranges = [(name, variations(name, split)) for name in names for split in SPLITS]
    for turn in range(max(len(numbers) for _, numbers in ranges)):
        for name, numbers in ranges:
            if turn < len(numbers):
                yield name, numbers[turn]


def write(rows: Iterable[tasks.Row], unsolved: Mapping[str, str]) -> Manifest:
    """Write the file of tasks and the manifest; equal rows give equal bytes.

    Raises:
        InvalidTask: a split would be empty.
    """
    text = "".join(f"{row}\n" for row in sorted(rows))
    (DATA / "tasks.txt.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    for read in (tasks._all_rows, tasks.manifest):
        read.cache_clear()
    sets = {split: tasks.certified_tasks(split) for split in SPLITS}
    total = sum(entry.num_variations for entry in EXPERIMENTS)
    notes: dict[str, Any] = {
        "how": "python -m agentgym_envs.sciworld.certify; its docstring says what is kept",
        "simulator": f"scienceworld {SIMULATOR_VERSION}",
        "variations": total,
        "not_tried": total - sum(map(len, sets.values())) - len(unsolved),
        "unsolved": dict(sorted(unsolved.items())),
        "oracle_turns": {split: _turns(of_split) for split, of_split in sets.items()},
    }
    summaries = {split: SplitSummary.of(of_split) for split, of_split in sets.items()}
    manifest = Manifest(tasks.FAMILY, VERSION, summaries, notes)
    manifest.write(DATA / "manifest.json")
    return manifest


def _turns(of_split: Iterable[Any]) -> dict[str, float]:
    turns = Counter(task.difficulty for task in of_split)
    mean = sum(length * count for length, count in turns.items()) / turns.total()
    return {"mean": round(mean, 1), "most": max(turns)}


def main() -> None:
    """Certify what has not been tried yet, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=Path, default=Path("sciworld-rows.txt"))
    parser.add_argument("--experiments", nargs="+", default=list(NAMES), metavar="NAME")
    parser.add_argument("--anew", action="store_true", help="do not start from the data there is")
    options = parser.parse_args()
    names = [experiment(name).name for name in options.experiments]
    if not options.rows.exists() and not options.anew:
        options.rows.write_text("".join(written()), encoding="utf-8")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with contextlib.suppress(KeyboardInterrupt):
        try_all(options.rows, names)
    rows, unsolved = read(options.rows)
    manifest = write(rows, unsolved)
    for split, summary in manifest.splits.items():
        _log.info("%s: %d tasks", split, summary.count)
    _log.info("unsolved: %s", unsolved)


def try_all(path: Path, names: Sequence[str]) -> None:
    """Append to the file of rows what it does not hold of these experiments."""
    rows, unsolved = read(path)
    tried = {f"{row.experiment} {row.variation}" for row in rows} | unsolved.keys()
    session, grammar = Session(), Grammar(verbs(()))
    with path.open("a", encoding="utf-8") as log:
        for name, variation in in_turn(names):
            if f"{name} {variation}" not in tried:
                found = certify(session, grammar, name, variation)
                log.write(_line(name, variation, found))
                log.flush()
    session.close()


def written() -> Iterator[str]:
    """The lines that a file of rows would hold for the data as it is."""
    for name in NAMES:
        yield from (f"{row}\n" for row in tasks.certified_rows(name).values())
    for key, reason in tasks.manifest().notes["unsolved"].items():
        name, variation = key.split()
        yield _line(name, int(variation), reason)


def _line(name: str, variation: int, found: tasks.Row | str) -> str:
    return f"{found}\n" if isinstance(found, tasks.Row) else f"{name} {variation} - {found}\n"


def read(path: Path) -> tuple[list[tasks.Row], dict[str, str]]:
    """What a file of rows holds: certified tasks, and the others with the reason.

    A line that a stopped run left unfinished is taken out of the file.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    rows: list[tasks.Row] = []
    unsolved: dict[str, str] = {}
    for line in whole.splitlines():
        name, variation, turns, rest = line.split(" ", 3)
        if turns == "-":
            unsolved[f"{name} {variation}"] = rest
        else:
            rows.append(tasks.Row.parse(line))
    return rows, unsolved


if __name__ == "__main__":
    main()
