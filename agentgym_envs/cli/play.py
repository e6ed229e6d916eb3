"""``play``: a person is the policy.

A bare command is taken in every action format and put into it. A line that begins with a colon is
for the game itself; it costs no turn, and neither does an empty one. An episode that is recorded is
one to be judged by, so there are neither hints nor second chances in it.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.cli.environments import Figures, made, reset_options
from agentgym_envs.cli.terminal import complete_with
from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason, Episode, read_episodes, write_episodes
from agentgym_envs.errors import CommandError, NoPlan, Unsupported
from agentgym_envs.policies import begin_record, record_turn

HELP = """\
:help      show this
:rules     show the instructions again
:commands  list what can be done now
:hint      ask the oracle
:undo      take the last turn back
:quit      stop
Tab completes a line; the arrow keys go through earlier lines."""


def play(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    with made(options.id, **dict(options.arg)) as env:
        beginning = env.reset(
            seed=options.seed, options=reset_options(options.task, options.horizon)
        )
        game = Game(env, *beginning)
        if options.record:
            game.record(options.record, options.seed)
        complete_with(game.candidates)
        figures = {"id": options.id, "task_id": env.task.id, **game.run(input)}
    print(", ".join(f"{name} {value}" for name, value in figures.items()))
    return 0, figures


@dataclasses.dataclass(frozen=True)
class Moment:
    """Where a game stands: what the last turn gave, and the way to come back to it."""

    observation: str
    info: Mapping[str, Any]
    return_: float = 0.0
    is_over: bool = False
    state: bytes = b""


class Game:
    """One episode, played line by line.

    Args:
        env: an environment that has just been reset.
        observation: its first observation.
        info: its first info.
    """

    def __init__(self, env: TextEnv, observation: str, info: Mapping[str, Any]) -> None:
        self._env = env
        self._now = Moment(observation, info)
        self._earlier: list[Moment] = []
        self._recording: tuple[str, Episode] | None = None
        self._asides: dict[str, Callable[[], str]] = {
            ":help": lambda: HELP,
            ":rules": lambda: env.instructions,
            ":commands": lambda: "\n".join(self._commands()),
            ":hint": self._hint,
            ":undo": self._undo,
        }

    def record(self, path: str, seed: int | None) -> None:
        """Add the episode to a file when it is over, and play without hints and undoing.

        A file that cannot be written, or holds something else, is told of before the game.

        Args:
            path: the file, one episode a line.
            seed: that of the reset.

        Raises:
            InvalidRecord: the file holds what is no episode.
            OSError: it cannot be written.
        """
        with open(path, "a", encoding="utf-8"):
            pass
        if Path(path).is_file():
            for _ in read_episodes(path):
                pass
        self._recording = path, begin_record(self._env, self._now.observation, seed)
        for word in (":hint", ":undo"):
            self._asides[word] = lambda: "Not while the episode is recorded."

    def run(self, read: Callable[[str], str]) -> Figures:
        """Play until the episode ends or the person stops; what came of it.

        Args:
            read: shows a prompt and gives the next line, such as `input`.
        """
        print(f"{self._env.instructions}\n\n:help lists what else you can write.\n")
        print(self._now.observation)
        while not self._now.is_over:
            try:
                line = read(f"[{self._now.info['turn']}/{self._env.horizon}] > ")
            except (EOFError, KeyboardInterrupt):
                print()
                break
            word = line.strip()
            if word == ":quit":
                break
            if not word:
                print("Write a command, or :help.")
            elif word.startswith(":"):
                aside = self._asides.get(word)
                print(aside() if aside else f"There is no {word}.\n{HELP}")
            else:
                self._turn(line)
        figures = self._figures()
        if self._recording and figures["turns"]:
            path, episode = self._recording
            episode.end_reason = EndReason(figures["end_reason"])
            write_episodes(path, [episode], append=True)
        return figures

    def candidates(self) -> list[str]:
        """The lines that could be meant now."""
        return [*self._commands(), *self._asides, ":quit"]

    def _turn(self, line: str) -> None:
        env, now = self._env, self._now
        if "clone" in env.capabilities:
            now = dataclasses.replace(now, state=env.save_state())
        self._earlier.append(now)
        reply = self._reply(line)
        outcome = env.step(reply)
        if self._recording:
            record_turn(self._recording[1], reply, outcome)
        observation, reward, terminated, truncated, info = outcome
        self._now = Moment(
            observation, info, now.return_ + float(reward), is_over=terminated or truncated
        )
        print(observation)

    def _reply(self, line: str) -> str:
        if self._env.action_format == "command":
            return line
        try:
            return self._env.render_command(line)
        except CommandError:
            return line

    def _commands(self) -> list[str]:
        if "admissible" in self._env.capabilities:
            return self._env.admissible()
        return [entry.forms[0].partition("{")[0] for entry in self._env.grammar.verbs]

    def _hint(self) -> str:
        try:
            oracle = self._env.oracle()
            oracle.start(self._env.instructions)
            return oracle.reply(self._now.observation, self._now.info)
        except (NoPlan, Unsupported) as error:
            return f"There is no hint: {error}."

    def _undo(self) -> str:
        if not self._earlier:
            return "There is no turn to take back."
        if not self._earlier[-1].state:
            return "This world cannot go back."
        self._now = self._earlier.pop()
        self._env.load_state(self._now.state)
        return self._now.observation

    def _figures(self) -> Figures:
        info = self._now.info
        ending = EndReason.HORIZON if self._now.is_over else EndReason.STOPPED
        return {
            "turns": info["turn"],
            "return": self._now.return_,
            "score": info["score"],
            "success": info["success"],
            "end_reason": info["end_reason"] or str(ending),
        }
