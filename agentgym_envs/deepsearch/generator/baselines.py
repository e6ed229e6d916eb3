"""What guessing is worth: ``python -m agentgym_envs.deepsearch.generator.baselines``.

Four players that never read a passage. By set, over the questions of the test split unless told
otherwise, each figure is the expected exact match:

- ``majority``: gives the answer that is right most often in the set, knowing the test answers.
- ``majority_of_family``: the same, knowing also which family a question is of.
- ``random``: gives the answer of a random other question of the set.
- ``options``: gives the first thing that the question names, where it asks which of two; says
  "yes" where it asks whether; else nothing.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.deepsearch.matching import normalize

Record = Mapping[str, Any]


def of_records(records: Iterable[Record], split: str = "test") -> dict[str, dict[str, Any]]:
    """The figures by set."""
    by_set: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record["split"] == split:
            by_set[record["set"]].append(record)
    return {name: _figures(rows) for name, rows in sorted(by_set.items())}


def _figures(rows: Sequence[Record]) -> dict[str, Any]:
    by_family: dict[str, list[Record]] = defaultdict(list)
    for row in rows:
        by_family[row["type"]].append(row)
    knowing = sum(_hits_of_best(family) for family in by_family.values())
    return {
        "test_questions": len(rows),
        "majority": round(_hits_of_best(rows) / len(rows), 4),
        "majority_of_family": round(knowing / len(rows), 4),
        "random": round(_random(rows), 4),
        "options": round(sum(map(_first_option, rows)) / len(rows), 4),
    }


def _right(row: Record) -> set[str]:
    return {normalize(answer) for answer in row["answers"]}


def _hits_of_best(rows: Sequence[Record]) -> int:
    """How many questions the best constant answer gets right."""
    return Counter(answer for row in rows for answer in _right(row)).most_common(1)[0][1]


def _random(rows: Sequence[Record]) -> float:
    """The chance that the first answer of a random question is right for a random other one."""
    said = Counter(normalize(row["answers"][0]) for row in rows)
    hits = sum(said[answer] for row in rows for answer in _right(row)) - len(rows)
    return hits / (len(rows) * (len(rows) - 1)) if len(rows) > 1 else 0.0


def _first_option(row: Record) -> bool:
    kind = row["type"].partition(":")[0]
    if kind == "whether":
        return "yes" in _right(row)
    if kind != "which":
        return False
    first_query = normalize(row["chain"][0]["query"])
    return any(first_query.startswith(f"{answer} ") for answer in _right(row))


def main() -> None:
    """Print the figures of the package's questions, one JSON line a set."""
    data = Path(__file__).parent.parent / "data" / "questions.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(data.read_bytes()).splitlines()]
    for name, figures in of_records(rows).items():
        sys.stdout.write(json.dumps({"set": name} | figures) + "\n")


if __name__ == "__main__":
    main()
