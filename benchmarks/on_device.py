"""The trainer on a GPU in a few minutes: what is checked there, and how fast it is beside the CPU.

On each device: `check` (tokens re-scored, masks, rewards, gradients), then the preset ``first-run``
with fewer steps, of which the sampler-learner gap, the speeds and the held-out success are given.
Networks of this size do not fill a GPU: the speeds say that nothing waits for long, no more.

    python benchmarks/on_device.py --devices cuda cpu --out runs/on-device

Prints JSON lines {figure, value, unit, …, versions}; ends with code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import emit, run_trainer

DEADLINE_S = 1800
FIGURES = {
    "sampler gap, largest": ("train/logprob_gap_max", max, "nats"),
    "sampled, median": ("speed/sampled_tokens", statistics.median, "tokens/s"),
    "trained, median": ("speed/train_tokens", statistics.median, "tokens/s"),
}


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", nargs="+", default=["cuda", "cpu"], choices=["cuda", "cpu"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("runs/on-device"))
    options = parser.parse_args()
    passed = True
    for device in options.devices:
        passed &= check(device)
        train(device, options.steps, options.out / device)
    return 0 if passed else 1


def check(device: str) -> bool:
    """Make the checks on a device; tells whether they all passed."""
    command = [sys.executable, "-m", "agentgym_train", "check", "--run.device", device, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    emit(f"{device}/check", figures["passed"], "passed", **figures)
    return done.returncode == 0


def train(device: str, steps: int, folder: Path) -> None:
    """Train on a device and emit the figures of the run."""
    words = f"--preset first-run --run.device {device} --run.steps {steps} --run.dir {folder}"
    figures = run_trainer(*words.split(), deadline_s=DEADLINE_S)
    for name in ("before", "after"):
        emit(f"{device}/success {name}", figures[f"success_{name}"], "share")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    played = [line for line in lines if "rollout/episodes" in line]
    for figure, (metric, summary, unit) in FIGURES.items():
        emit(f"{device}/{figure}", summary([line[metric] for line in played]), unit, metric=metric)


if __name__ == "__main__":
    sys.exit(main())
