"""Make the embedded data: ``python -m agentgym_envs.deepsearch.generator.build``.

It writes the corpus and its questions, and needs the packages that `sources` pins (the extra
``deepsearch_generator``). Nothing depends on a clock or on the order of hashes, so the same
packages give the same files, byte for byte.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.deepsearch.generator import baselines, hand
from agentgym_envs.deepsearch.generator.checks import LOST, SHORTCUT, Checker
from agentgym_envs.deepsearch.generator.comparisons import COMPARISONS, SET, ComparisonMaker
from agentgym_envs.deepsearch.generator.corpus import Corpus, read_corpus
from agentgym_envs.deepsearch.generator.makers import PATHS, Candidate, PathMaker
from agentgym_envs.deepsearch.generator.phrasings import choice
from agentgym_envs.deepsearch.generator.quotas import SIZES, Selection
from agentgym_envs.deepsearch.generator.sources import SOURCES
from agentgym_envs.deepsearch.matching import normalize
from agentgym_envs.deepsearch.questions import FAMILY
from agentgym_envs.deepsearch.retrievers import fts5
from agentgym_envs.deepsearch.tasks import QuestionTasks
from agentgym_envs.manifests import Manifest, SplitSummary
from agentgym_envs.tasks import SPLITS

DATA = Path(__file__).parent.parent / "data"
VERSION = "1"

_log = logging.getLogger(__name__)


def make_questions(corpus: Corpus, checker: Checker) -> Iterator[Candidate]:
    """All questions: the hand-written ones, then set by set, test before dev before train."""
    written = list(checker.kept(hand.candidates(corpus)))
    yield from written
    asked = {normalize(candidate.question) for candidate in written}
    for split in ("test", "dev", "train"):
        for name, sizes in SIZES.items():
            selection = Selection(sizes[split], asked)
            _select(selection, checker, _families(corpus, name, split))
            _log.info("%s %s: %d of %d", name, split, len(selection.chosen), selection.size)
            yield from sorted(
                selection.chosen, key=lambda item: choice(f"order {item.question}", 2**60)
            )


def _families(corpus: Corpus, name: str, split: str) -> list[tuple[Iterator[Candidate], int]]:
    """The candidates of each family of a set, and its share in percent."""
    if name == SET:
        made = [(ComparisonMaker(corpus, item, split), item.share) for item in COMPARISONS]
        return [(maker.candidates(), share) for maker, share in made]
    return [
        (PathMaker(corpus, name, path, split).candidates(), share) for path, share in PATHS[name]
    ]


def _select(
    selection: Selection, checker: Checker, families: Sequence[tuple[Iterator[Candidate], int]]
) -> None:
    """Give each family its share; what one lacks the others fill."""
    total = sum(share for _, share in families)
    going = []
    for candidates, share in families:
        quota = max(1, round(selection.size * share / total))
        going.append((checker.kept(_acceptable(selection, candidates, quota)), quota))
    while going and len(selection.chosen) < selection.size:
        taken = [(stream, quota, selection.fill(stream, quota)) for stream, quota in going]
        going = [(stream, quota) for stream, quota, count in taken if count == quota]


def _acceptable(
    selection: Selection, candidates: Iterator[Candidate], quota: int
) -> Iterator[Candidate]:
    """Candidates that may still be taken: searching for others would be in vain."""
    return (candidate for candidate in candidates if selection.accepts(candidate, quota))


def records(candidates: Iterator[Candidate]) -> list[dict[str, Any]]:
    """The records of the file of questions."""
    numbers: Counter[str] = Counter()
    found = []
    for item in candidates:
        folder = f"deepsearch/{item.split}/{item.set}"
        found.append(
            {
                "id": f"{folder}/{numbers[folder]}",
                "set": item.set,
                "split": item.split,
                "question": item.question,
                "answers": list(item.answers),
                "hops": len(item.steps),
                "type": item.type,
                "chain": [
                    {"query": step.query, "passage_id": step.passage_id, "answer": step.answer}
                    for step in item.steps
                ],
                "gold_passages": item.gold_passages,
                "facts": [step.fact for step in item.steps],
            }
        )
        numbers[folder] += 1
    return sorted(found, key=_place)


def _place(record: Mapping[str, Any]) -> tuple[int, str, int]:
    split = ("train", "dev", "test").index(record["split"])
    return split, record["set"], int(record["id"].rpartition("/")[2])


def write_questions(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write records as compressed lines of JSON, the same bytes for the same records."""
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    text = "".join(f"{line}\n" for line in lines)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())


def report(checker: Checker, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By set: the share that the oracle's chains found, shortcuts, and what guessing gives."""
    found: dict[str, Any] = {}
    for name, reasons in sorted(checker.reasons.items()):
        looked_at = sum(reasons.values())
        found[name] = {
            "candidates": looked_at,
            "share_found_by_chain": round(1 - reasons[LOST] / looked_at, 4),
            "share_of_shortcuts": round(reasons[SHORTCUT] / looked_at, 4),
        }
    for name, guesses in baselines.of_records(rows).items():
        found[name] |= guesses
    return found


def build(folder: Path) -> Manifest:
    """Write the index of passages, the questions and their manifest into `folder`."""
    corpus = read_corpus()
    path = folder / "passages.sqlite"
    index = fts5.build(path, corpus.passages.values())
    checker = Checker(fts5.Fts5Retriever(path))
    rows = records(make_questions(corpus, checker))
    write_questions(folder / "questions.jsonl.gz", rows)
    notes = {
        "how": "python -m agentgym_envs.deepsearch.generator.build; docs/deepsearch-data.md",
        "sources": {source.package: source.version for source in SOURCES},
        "corpus": index.digest,
        "passages": len(corpus.passages),
        "sets": report(checker, rows),
    }
    tasks = QuestionTasks(rows, "the questions just made")
    summaries = {split: SplitSummary.of(tasks.of_split(split)) for split in SPLITS}
    manifest = Manifest(FAMILY, VERSION, summaries, notes)
    manifest.write(folder / "manifest.json")
    return manifest


def main() -> None:
    """Build the data of the package."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    DATA.mkdir(exist_ok=True)
    manifest = build(DATA)
    for split, summary in manifest.splits.items():
        _log.info("%s: %d questions, %s", split, summary.count, dict(summary.categories))
    _log.info("%s", json.dumps(manifest.notes, indent=1))


if __name__ == "__main__":
    main()
