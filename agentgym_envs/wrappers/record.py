"""`RecordEpisodes`: every episode as one JSON line, in a file that no other environment writes.

A wrapper cannot know where in which vector it stands, so each instance claims the first free name
in the folder when its first episode ends; the file system decides who was first. Two runs into one
folder add up. A line is written whole, around Python's buffers: of a process that dies, what it had
finished is there and what it was playing is not. Only SIGKILL amid the system call itself can leave
a last line without an end, which `read_episodes` names; nothing is ever written behind it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import gymnasium

from agentgym_envs.episodes import EndReason, Episode, episode_line
from agentgym_envs.errors import EnvFault
from agentgym_envs.policies import begin_record, record_turn
from agentgym_envs.spaces import to_utf8
from agentgym_envs.wrappers.base import TextWrapper


class RecordEpisodes(TextWrapper):
    """Writes every episode as an `Episode` to ``<folder>/<name_prefix>-<number>.jsonl``.

    An episode is written when it ends, as this wrapper sees it: put it outside wrappers that change
    rewards or end episodes, and inside `History`, or every turn holds those before. One that a
    reset, a loaded state or `close` cuts short after its first turn has the end reason
    ``"stopped"``; one whose world broke has ``"fault"``. Read files with
    `agentgym_envs.read_episodes`.

    A saved state holds the record so far. After `clone` or `load_state` the turns before stand in
    the record of every episode that goes on from there.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        folder: where the files go; made if there is none.
        name_prefix: how their names begin.

    Raises:
        TypeError, ValueError: no text, an empty one, or a prefix with a path in it.
        OSError: the folder cannot be made.
    """

    neutral_arguments: ClassVar[frozenset[str]] = frozenset({"folder", "name_prefix"})

    def __init__(
        self, env: gymnasium.Env[str, str], folder: str, name_prefix: str = "episodes"
    ) -> None:
        super().__init__(env, folder=folder, name_prefix=name_prefix)
        for name, value in self._arguments.items():
            if not isinstance(value, str) or not value:
                raise TypeError(f"{name} must be a text that is not empty, got {value!r}")
        if Path(name_prefix).name != name_prefix:
            raise ValueError(f"name_prefix must be the beginning of a name, got {name_prefix!r}")
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._prefix = name_prefix
        self._path: Path | None = None
        self._episode: Episode | None = None

    @property
    def path(self) -> Path | None:
        """The file of this instance; None before its first episode was written."""
        return self._path

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode and its record, see `TextEnv.reset`."""
        self._stop()
        observation, info = super().reset(seed=seed, options=options)
        self._episode = begin_record(self, observation, seed)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn; the record is written if it is the last."""
        try:
            outcome = super().step(action)
        except EnvFault as error:
            self._finish(EndReason.FAULT, to_utf8(str(error)))
            raise
        if self._episode is not None:
            record_turn(self._episode, action, outcome)
            if self._episode.end_reason:
                self._finish(self._episode.end_reason)
        return outcome

    def load_state(self, state: bytes) -> None:
        """Continue where `save_state` was called, with the record as it was there."""
        abandoned = self._episode
        super().load_state(state)
        loaded, self._episode = self._episode, abandoned
        self._stop()
        self._episode = loaded

    def close(self) -> None:
        """Write the unfinished episode and close the environment."""
        self._stop()
        super().close()

    def _stop(self) -> None:
        if self._episode is not None and self._episode.turns:
            self._finish(EndReason.STOPPED)
        self._episode = None

    def _finish(self, reason: EndReason, fault: str = "") -> None:
        episode, self._episode = self._episode, None
        if episode is None:
            return
        episode.end_reason, episode.fault = reason, fault
        line = episode_line(episode).encode()
        if self._path is None:
            self._path = _claim(self._folder, self._prefix)
        _append(self._path, line)

    def _save_own(self) -> Any:
        return None if self._episode is None else self._episode.to_json()

    def _load_own(self, own: Any) -> None:
        self._episode = None if own is None else Episode.from_json(own)


def _claim(folder: Path, prefix: str) -> Path:
    """A new, empty file that nobody else has."""
    number = sum(1 for _ in folder.glob(f"{prefix}-*.jsonl"))
    while True:
        path = folder / f"{prefix}-{number:05d}.jsonl"
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            number += 1
            continue
        return path


def _append(path: Path, line: bytes) -> None:
    """Write the whole line or nothing; the file belongs to this instance alone."""
    with open(path, "ab", buffering=0) as file:
        start = file.seek(0, os.SEEK_END)
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException:
            file.truncate(start)
            raise
