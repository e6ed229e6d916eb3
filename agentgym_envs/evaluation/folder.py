"""`EvalFolder`: the files of one evaluation, which can be killed at any moment and go on.

::

    DIR/
      plan.json         the fingerprint: everything that decides what is played
      episodes.jsonl    one line an episode, appended as they finish; at the end in order
      result.json       the summary, and the plan again
      report.md         the same for people
      report.png        success by category, and by horizon and k

No file holds a clock, so equal evaluations have equal files. A record is written whole, by one
system call where the system lets it; a last line without an end, which only a kill amid that call
leaves, is cut off on resume. One process writes into a folder at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.episodes import EndReason, Episode, episode_line, read_episodes
from agentgym_envs.errors import InvalidEvaluation
from agentgym_envs.evaluation.plan import EvalPlan, differences
from agentgym_envs.evaluation.report import markdown
from agentgym_envs.evaluation.summary import Summary

_WRITING = ".writing"


class EvalFolder:
    """Where the files of one evaluation are.

    Args:
        path: the folder; made by `begin`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.plan = self.path / "plan.json"
        self.episodes = self.path / "episodes.jsonl"
        self.result = self.path / "result.json"
        self.report = self.path / "report.md"
        self.figure = self.path / "report.png"

    def begin(self, fingerprint: Mapping[str, Any], *, resume: bool) -> None:
        """Claim the folder for an evaluation.

        Args:
            fingerprint: of the plan and its policy.
            resume: go on with the evaluation in the folder, if there is one.

        Raises:
            InvalidEvaluation: the folder is taken, or holds an evaluation that differs.
        """
        if self._is_taken():
            if not resume:
                raise InvalidEvaluation(
                    f"{self.path} is not an empty folder; --resume goes on with the evaluation in "
                    "it, --out chooses another"
                )
            self._check(fingerprint)
            return
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.plan, json.dumps(fingerprint, indent=1) + "\n")

    def _is_taken(self) -> bool:
        if not self.path.is_dir():
            return self.path.exists()
        return any(not path.name.endswith(_WRITING) for path in self.path.iterdir())

    def _check(self, fingerprint: Mapping[str, Any]) -> None:
        if not self.plan.is_file():
            raise InvalidEvaluation(f"{self.path} holds no evaluation: there is no plan.json in it")
        there = _read_object(self.plan, "choose another folder")
        found = differences(there, json.loads(json.dumps(fingerprint)))
        if found:
            told = "; ".join(f"{key} was {was}, is {now}" for key, (was, now) in found.items())
            raise InvalidEvaluation(
                f"the evaluation in {self.path} is another one: {told}; ask for the same, or "
                "choose another folder"
            )

    def kept(self, plan: EvalPlan) -> list[Episode]:
        """The whole records of `plan` so far. Broken episodes are none: they are played again.

        Raises:
            InvalidRecord: a line is no episode.
            InvalidEvaluation: an episode that the plan does not have, or has once.
        """
        if not self.episodes.exists():
            return []
        with open(self.episodes, "rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
        wanted = {(job.task, job.member) for job in plan.jobs()}
        kept = []
        for episode in read_episodes(self.episodes):
            if episode.end_reason is EndReason.FAULT:
                continue
            if (episode.task, episode.member) not in wanted:
                raise InvalidEvaluation(
                    f"{self.episodes} holds task {episode.task.id!r}, try {episode.member}, more "
                    "than once, or it is not of this evaluation; choose another folder"
                )
            wanted.remove((episode.task, episode.member))
            kept.append(episode)
        self._rewrite(kept)
        return kept

    def discard_result(self) -> None:
        """Forget what was computed from the episodes so far: others are about to come."""
        for path in (self.result, self.report, self.figure):
            path.unlink(missing_ok=True)

    def leave_if_unplayed(self) -> None:
        """Claim the folder no longer if no episode has come, so that a mended call may have it."""
        if not self.episodes.exists():
            self.plan.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # other files are there
                self.path.rmdir()

    def append(self, episode: Episode) -> None:
        """Add the record of an episode that has ended."""
        with open(self.episodes, "ab", buffering=0) as file:
            rest = memoryview(episode_line(episode).encode())
            while rest:
                rest = rest[file.write(rest) :]

    def finish(
        self,
        plan: EvalPlan,
        fingerprint: Mapping[str, Any],
        summary: Summary,
        episodes: Sequence[Episode],
    ) -> dict[str, Any]:
        """Put the records in order and write result and report.

        Returns:
            What ``result.json`` holds.
        """
        place = {(job.task.id, job.member): n for n, job in enumerate(plan.jobs())}
        self._rewrite(sorted(episodes, key=lambda e: place[e.task.id, e.member]))
        result = {"plan": dict(fingerprint)} | summary.to_json()
        write_atomically(self.report, markdown(summary, fingerprint))
        write_atomically(self.result, json.dumps(result, indent=1, allow_nan=False) + "\n")
        return result

    def _rewrite(self, episodes: Iterable[Episode]) -> None:
        write_atomically(self.episodes, "".join(map(episode_line, episodes)))


def read_result(path: str | Path) -> dict[str, Any]:
    """The result of a finished evaluation.

    Args:
        path: its folder, or the file itself.

    Raises:
        InvalidEvaluation: there is none.
    """
    file = EvalFolder(path).result if Path(path).is_dir() else Path(path)
    hint = "an evaluation that was interrupted has a result after it is resumed"
    found = _read_object(file, hint)
    if not {"plan", "tasks", "success"} <= found.keys():
        raise InvalidEvaluation(
            f"{file} is no result of an evaluation; give the folder of one, which eval writes"
        )
    return found


def headline(result: Mapping[str, Any]) -> dict[str, Any]:
    """The few figures of a result that fit on a screen."""
    return {
        "success": result["success"]["value"],
        "interval_95": result["success"]["interval_95"],
        "score": result["score"]["value"],
        "pass_at": {k: cell["value"] for k, cell in result["pass_at"].items()},
        "n": len(result["tasks"]),
        "faults": result["faults"],
        "horizon": result["plan"]["horizon"],
        "k": result["plan"]["k"],
    }


def write_atomically(path: Path, text: str) -> None:
    """Write a file, all or nothing."""
    temporary = path.with_name(f".{path.name}{_WRITING}")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    os.replace(temporary, path)


def _read_object(path: Path, hint: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidEvaluation(f"cannot read {path}: {error}; {hint}") from None
    if not isinstance(found, dict):
        raise InvalidEvaluation(f"{path} is no result of an evaluation")
    return found
