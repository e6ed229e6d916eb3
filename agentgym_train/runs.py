"""The folder of a run, and what a run knows of itself.

::

    runs/first-run/
      config.toml          the resolved settings
      metrics.jsonl        one line a step
      tensorboard/         the same numbers as events
      episodes/            step-000020.jsonl, readable
      checkpoints/         step-000120/, each whole
      result.json          the figures of the finished run
      report.html          the curves
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import itertools
import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Self

from agentgym_envs.evaluation.folder import write_atomically
from agentgym_train.errors import ConfigError


@dataclasses.dataclass
class Progress:
    """How far a run has come; part of every checkpoint.

    Attributes:
        step: steps done, warm-up included; the next step has this number.
        seconds: time spent so far, start-up included, over all resumes.
        reports: evaluation reports, by name: ``before`` and ``after``.
        best: ``step`` and ``success`` of the weights that were best on held-out tasks, or None
            before any were evaluated; of equals the earliest.
    """

    step: int = 0
    seconds: float = 0.0
    reports: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    best: dict[str, float] | None = None

    def is_best(self, success: float) -> bool:
        """Whether the weights of now, with this held-out success, are the best so far; remembers it
        if they are.
        """
        if self.best is not None and success <= self.best["success"]:
            return False
        self.best = {"step": self.step, "success": success}
        return True


class RunFolder:
    """Where the files of one run are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.metrics = path / "metrics.jsonl"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.result = path / "result.json"
        self.report = path / "report.html"

    def episodes(self, step: int) -> Path:
        """The file of the episodes of one step."""
        return self.path / "episodes" / f"step-{step:06d}.jsonl"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing into the folder meanwhile.

        The lock is the system's, so it ends with the process, however that ends.

        Raises:
            ConfigError: another process is writing.
        """
        descriptor = os.open(self.config, os.O_RDWR)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    f"another process is at work on the run in {self.path}; stop it with Ctrl-C "
                    "or kill, or wait for its end"
                ) from None
            except OSError:
                pass  # a file system without locks
            yield
        finally:
            os.close(descriptor)

    def go_back(self, step: int) -> None:
        """Delete the episodes of `step` and of later ones, and the result: they will come again.

        Checkpoints and loggers have ways of their own to forget what came later.
        """
        first = self.episodes(step)
        for path in first.parent.glob("step-*.jsonl"):
            if path.name >= first.name:
                path.unlink()
        self.result.unlink(missing_ok=True)

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the figures, all or nothing."""
        write_atomically(self.result, json.dumps(result, indent=1) + "\n")

    def read_result(self) -> dict[str, Any]:
        """The figures of a finished run, or {} while it has none.

        Raises:
            ConfigError: the file is damaged.
        """
        if not self.result.is_file():
            return {}
        try:
            result: dict[str, Any] = json.loads(self.result.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(
                f"{self.result} is damaged: {error}; delete it, resuming the run writes it again"
            ) from None
        return result


def create_run_folder(wanted: str, preset: str) -> RunFolder:
    """Make the folder of a new run; of several processes that want one name, one gets it.

    Args:
        wanted: its path, or "" for the first free of ``runs/<preset>``, ``runs/<preset>-2``, ….
        preset: name of the preset.

    Raises:
        ConfigError: the folder is not empty, or cannot be made.
    """
    names = (f"{preset}-{n}" if n > 1 else preset for n in itertools.count(1))
    for path in [Path(wanted).expanduser()] if wanted else map(Path("runs").joinpath, names):
        folder = RunFolder(path)
        try:
            path.mkdir(parents=True, exist_ok=bool(wanted))
            if not any(path.iterdir()):
                folder.checkpoints.mkdir()
                folder.episodes(0).parent.mkdir()
                return folder
        except FileExistsError:  # a file, or another run that was faster
            continue
        except OSError as error:
            raise ConfigError(f"cannot create the run folder {path}: {error}") from None
    raise ConfigError(
        f"{wanted} is not an empty folder; go on with its run by "
        f"'python -m agentgym_train resume {wanted}' or choose another --run.dir"
    )


def open_run_folder(path: str | Path) -> RunFolder:
    """The folder of an existing run.

    Raises:
        ConfigError: there is no run.
    """
    folder = RunFolder(Path(path))
    if not folder.config.is_file():
        raise ConfigError(f"{path} holds no run: there is no {folder.config.name} in it")
    return folder


class Interrupted(KeyboardInterrupt):
    """The user asked to stop; what is done so far is whole."""


class InterruptRequest:
    """Turns the first Ctrl-C into a request that is honored between two pieces of work.

    Calling it raises `Interrupted` if there was a request; a second Ctrl-C stops at once.
    """

    def __init__(self) -> None:
        self._requested = False
        self._handlers = contextlib.ExitStack()

    def __call__(self) -> None:
        if self._requested:
            raise Interrupted

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers.callback(signal.signal, number, signal.signal(number, self._request))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._handlers.close()

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True
