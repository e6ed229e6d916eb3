"""The default run and its controls: does reinforcement learning, and nothing else, help?

For each seed five runs with the same warm-up, weight for weight: the preset itself; the same with
returns shuffled within groups, with and without the entropy bonus, which alone makes a policy
random; and supervised fine-tuning continued, on noisy demonstrations as in the warm-up and on
clean oracle episodes. Equal compute means equal floating point work: a supervised step gets as many
demonstrations as make its forward and backward passes cost what a step of sampling and learning
cost, by the tokens that both report.

    python benchmarks/first_run.py --seeds 11 12 13 --out runs/benchmark

Every figure is one JSON line; success is held-out, on 200 tasks at horizon 8, with 95 % intervals
over tasks. The pages that it writes show the curves of all runs together.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from common import emit, run_trainer

from agentgym_envs.evaluation import paired_interval

FORWARD, TRAINED = 1.0, 3.0
"""Cost of a token: a forward pass is one unit, forward and backward are three."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="first-run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--out", default="runs/benchmark", help="folder of the run folders")
    parser.add_argument("--without-controls", action="store_true")
    parser.add_argument(
        "--settings",
        nargs=argparse.REMAINDER,
        default=[],
        help="further settings of the runs, last",
    )
    options = parser.parse_args()
    for seed in options.seeds:
        compare(options, seed)


def compare(options: argparse.Namespace, seed: int) -> None:
    """Train with one seed, and its controls, and print the figures."""
    out = Path(options.out)

    def run(name: str, *settings: str) -> Path:
        folder = out / f"{options.preset}-{seed}-{name}"
        if not (folder / "result.json").exists():  # an interrupted benchmark goes on here
            words = ["--preset", options.preset, "--run.seed", str(seed), "--run.dir", str(folder)]
            run_trainer(*words, *options.settings, *settings)
        figures = json.loads((folder / "result.json").read_text())
        del figures["reports"]
        emit(f"{options.preset}/{name}", figures["success_after"], "share", **figures)
        return folder

    rl = run("rl")
    if options.without_controls:
        return
    episodes = episodes_of_equal_cost(rl)
    controls = {
        "permuted": run("permuted", "--credit.permute-rewards"),
        "permuted-no-entropy": run(
            "permuted-no-entropy", "--credit.permute-rewards", "--loss.entropy-coefficient", "0"
        ),
        "sft-noisy": run(
            "sft-noisy", "--run.algorithm", "sft", "--sft.episodes-per-step", str(episodes)
        ),
        "sft-clean": run(
            "sft-clean",
            *("--run.algorithm", "sft", "--sft.episodes-per-step", str(episodes)),
            *("--sft.demonstrations.noise", "0"),
        ),
    }
    solved = reports(rl)["after"]
    for name, folder in controls.items():
        other = reports(folder)
        assert other["before"]["sampled"] == reports(rl)["before"]["sampled"], "warm-ups differ"
        for kind in ("sampled", "greedy"):
            interval = paired_interval(solved[kind], other["after"][kind])
            emit(
                f"{options.preset}/rl-minus-{name}/{kind}",
                interval.value,
                "share",
                seed=seed,
                interval_95=[interval.low, interval.high],
                n=len(solved[kind]),
            )
    run_report(rl, list(controls.values()))


def run_report(rl: Path, controls: list[Path]) -> None:
    """Draw the controls beside the run."""
    from agentgym_train.runs import open_run_folder
    from agentgym_train.viewer.report import write_report

    page = write_report(open_run_folder(rl), [open_run_folder(folder) for folder in controls])
    emit("report", str(page), "file")


def reports(folder: Path) -> dict[str, Any]:
    """The evaluation reports of a finished run."""
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())["reports"]
    return found


def episodes_of_equal_cost(rl: Path) -> int:
    """Demonstrations a step whose training costs what a step of `rl` cost on average."""
    lines = [json.loads(line) for line in (rl / "metrics.jsonl").read_text().splitlines()]
    played = [line for line in lines if line["phase"] == "grpo"]
    warmup = [line for line in lines if line["phase"] == "warmup"]
    cost = np.mean(
        [
            FORWARD * line["rollout/episodes"] * line["rollout/episode_tokens"]
            + TRAINED * line.get("train/tokens", 0.0)
            for line in played
        ]
    )
    tokens = sum(line["train/tokens"] for line in warmup)
    per_episode = tokens / sum(line["train/samples"] for line in warmup)
    return max(1, round(float(cost) / (TRAINED * per_episode)))


if __name__ == "__main__":
    main()
