"""What MaskablePPO with a stock network learns in text worlds behind numeric wrappers.

Trains as `docs/examples/maskable_ppo.py` does, whose environments and settings are used. At
checkpoints it plays held-out tasks at the same fixed horizon, sampling from the masked policy,
beside one that samples from the mask alone (``blind``). Three designs in each world: ``words`` is
`HashedText` over hashed slots, ``match`` is `CandidateFeatures` over listed slots, and ``no_goal``
the design of the example with the goal hidden, which tells how much comes from reading it.

Prints JSON lines {figure, value, unit, …, versions}: shares of solved episodes, the mean over tasks
and seeds, with a 95 % bootstrap interval over tasks and the values by seed.

    python benchmarks/classic_rl.py --seeds 1 2 3 > lines.jsonl
    python benchmarks/classic_rl.py --draw docs/classic-rl.png --lines lines.jsonl
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import emit
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "examples"))
import maskable_ppo as example

from agentgym_envs.evaluation import estimate, paired_interval
from agentgym_envs.wrappers import CandidateActions, CandidateFeatures, HashedText, History

LIBRARIES = {name: version(name) for name in ("stable-baselines3", "sb3-contrib")}
COLORS = {"words": "tab:blue", "match": "tab:orange", "no_goal": "tab:green"}

Choose = Callable[[np.ndarray, np.ndarray], Any]
"""The action for an observation and a mask."""


class NoGoalText(HashedText):
    """Does not tell the goal."""

    def encode(self, goal: str, text: str) -> np.ndarray:
        return super().encode("", text.replace(goal, ""))


class NoGoalFeatures(CandidateFeatures):
    """Does not tell the goal."""

    def encode(self, goal: str, text: str) -> np.ndarray:
        return super().encode("", text.replace(goal, ""))


@dataclasses.dataclass(frozen=True)
class World:
    """What is trained and how it is judged.

    Attributes:
        title: for people.
        designs: makes the numeric environment of a split, by name of the design.
        num_episodes: held-out episodes a checkpoint; a multiple of the number of test tasks.
    """

    title: str
    designs: Mapping[str, Callable[[str], Any]]
    num_episodes: int


WORLDS = {
    "babyai": World(
        "BabyAI GoToLocal, horizon 6",
        {
            "words": example.babyai,
            "match": lambda split: CandidateFeatures(
                CandidateActions(example.babyai(split).unwrapped, k=48, slots="listed")
            ),
            "no_goal": lambda split: NoGoalText(example.babyai(split).env),
        },
        num_episodes=200,
    ),
    "textcraft": World(
        "TextCraft depth 1, horizon 8",
        {
            "match": example.textcraft,
            "words": lambda split: HashedText(
                CandidateActions(History(example.textcraft(split).unwrapped, turns=8), k=512)
            ),
            "no_goal": lambda split: NoGoalFeatures(example.textcraft(split).env),
        },
        num_episodes=300,
    ),
}


def play(env: Any, choose: Choose, num_episodes: int) -> np.ndarray:
    """Share of solved episodes by task, for as many tasks as were played: (tasks,)."""
    num_tasks = min(len(env.tasks), num_episodes)
    solved, played = np.zeros(num_tasks), np.zeros(num_tasks)
    for number in range(num_episodes):
        task = number % num_tasks
        observation, info = env.reset(seed=number, options={"task": task})
        while not info["end_reason"]:
            observation, *_, info = env.step(choose(observation, env.action_masks()))
        solved[task] += info["success"]
        played[task] += 1
    return solved / played


def blind(seed: int) -> Choose:
    """Chooses among the commands that the mask allows, whatever is seen."""
    rng = np.random.default_rng(seed)
    return lambda observation, mask: rng.choice(np.flatnonzero(mask))


def policy_of(model: MaskablePPO, *, greedy: bool = False) -> Choose:
    """Chooses as the model does."""
    return lambda observation, mask: model.predict(
        observation, action_masks=mask, deterministic=greedy
    )[0]


def train(world: World, design: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One run: shares by task at each checkpoint, and at the end of greedy play and in training."""
    make = world.designs[design]
    held_out = make("test")
    settings = example.SETTINGS | {"seed": seed}
    model = MaskablePPO("MlpPolicy", make_vec_env(lambda: make("train"), 8), **settings)
    curve, seconds = {}, 0.0
    for checkpoint in range(options.checkpoints + 1):
        if checkpoint:
            start = time.process_time()
            model.learn(options.steps // options.checkpoints, reset_num_timesteps=False)
            seconds += time.process_time() - start
        torch.manual_seed(seed)
        curve[model.num_timesteps] = play(held_out, policy_of(model), world.num_episodes)
    return {
        "curve": curve,
        "greedy": play(held_out, policy_of(model, greedy=True), len(held_out.tasks)),
        "train": play(make("train"), policy_of(model), world.num_episodes),
        "cpu_s": seconds,
    }


def measure(name: str, options: argparse.Namespace) -> None:
    """Print all figures of a world."""
    world = WORLDS[name]
    held_out = next(iter(world.designs.values()))("test")
    chance = np.array([play(held_out, blind(seed), world.num_episodes) for seed in options.seeds])
    report(f"{name}/blind", chance)
    for design in options.designs:
        runs = [train(world, design, seed, options) for seed in options.seeds]
        for steps in runs[0]["curve"]:
            by_task = np.array([run["curve"][steps] for run in runs])
            report(f"{name}/{design}/held_out", by_task, steps=steps)
        gain = paired_interval(by_task.mean(axis=0).tolist(), chance.mean(axis=0).tolist())
        emit(
            f"classic_rl/{name}/{design}/gain_over_blind",
            round(gain.value, 3),
            "share solved",
            interval=[round(gain.low, 3), round(gain.high, 3)],
        )
        report(f"{name}/{design}/held_out_greedy", np.array([run["greedy"] for run in runs]))
        report(f"{name}/{design}/train_tasks", np.array([run["train"] for run in runs]))
        seconds = [round(run["cpu_s"], 1) for run in runs]
        emit(f"classic_rl/{name}/{design}/training", max(seconds), "s of CPU", seeds=seconds)


def report(figure: str, by_task: np.ndarray, **details: Any) -> None:
    """Print shares by seed and task, (seeds, tasks), as one line."""
    found = estimate(by_task.mean(axis=0))
    emit(
        f"classic_rl/{figure}",
        round(float(by_task.mean()), 3),
        "share solved",
        interval=[round(found.low, 3), round(found.high, 3)],
        seeds=[round(float(share), 3) for share in by_task.mean(axis=1)],
        **details,
        libraries=LIBRARIES,
    )


def draw(lines: Sequence[Mapping[str, Any]], path: Path) -> None:
    """One panel a world: held-out success by steps, seeds as thin lines, and chance."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(WORLDS), figsize=(9, 3.4), sharey=True)
    for panel, (name, world) in zip(panels, WORLDS.items(), strict=True):
        for design, color in COLORS.items():
            points = [
                line for line in lines if line["figure"] == f"classic_rl/{name}/{design}/held_out"
            ]
            steps = [point["steps"] for point in points]
            panel.plot(steps, [point["value"] for point in points], color=color, label=design)
            low, high = zip(*(point["interval"] for point in points), strict=True)
            panel.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
            seeds = np.array([point["seeds"] for point in points])
            panel.plot(steps, seeds, color=color, linewidth=0.5, alpha=0.7)
        chance = next(line for line in lines if line["figure"] == f"classic_rl/{name}/blind")
        panel.axhline(chance["value"], color="gray", linestyle=":", label="blind")
        panel.set(title=world.title, xlabel="environment steps", ylim=(0, 1))
    panels[0].set_ylabel("held-out episodes solved")
    panels[0].legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--designs", nargs="+", choices=COLORS, default=list(COLORS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=49_152, help="environment steps of a run")
    parser.add_argument("--checkpoints", type=int, default=6, help="evaluations after the first")
    parser.add_argument("--draw", type=Path, help="draw --lines into this PNG file; train nothing")
    parser.add_argument("--lines", type=Path, nargs="+", default=[], help="what was printed before")
    options = parser.parse_args()
    if options.draw:
        texts = [text for path in options.lines for text in path.read_text().splitlines()]
        draw([json.loads(text) for text in texts], options.draw)
        return
    torch.set_num_threads(1)
    for name in options.worlds:
        measure(name, options)


if __name__ == "__main__":
    main()
