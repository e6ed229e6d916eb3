"""The resume drill: runs are killed at random steps and go on; nothing else may change.

For every algorithm, horizon schedule and task curriculum a tiny run is trained twice on the CPU:
once undisturbed, and once killed by SIGKILL at three random steps, after each of which it is
resumed from its last checkpoint. The drill passes if weights, log (but for clocks) and figures are
equal, bit for bit. Prints a JSON line a run; ends with code 1 if one did not pass.

    python benchmarks/resume_drill.py                    # each of them at least once: 9 runs
    python benchmarks/resume_drill.py --full             # every combination: 81 runs
    python benchmarks/resume_drill.py --only ppo/adaptive/success_rate
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import emit
from safetensors import safe_open

from agentgym_train.loggers import read_metrics
from agentgym_train.runs import RunFolder

WARMUP, STEPS = 12, 10
SETTINGS = f"""
    --run.steps {STEPS} --run.threads 1 --run.device cpu --run.checkpoint-every 3
    --run.save-episodes-every 2 --env.num-envs 16
    --model.hidden-size 64 --model.num-layers 1 --model.num-heads 2 --model.vocab-size 400
    --warmup.steps {WARMUP} --warmup.demonstrations.episodes 100 --warmup.learning-rate 1e-2
    --sft.demonstrations.episodes 100 --batch.tasks-per-step 4 --batch.group-size 4
    --eval.tasks 6 --eval.every 3 --eval.horizon 4
"""
ALGORITHMS = {
    "grpo": "--run.algorithm grpo --credit.permute-rewards --loss.kl-coefficient 0.1",
    "grpo-refill": "--run.algorithm grpo --refill.groups 3 --refill.rounds 3",
    "rloo": "--run.algorithm rloo --loss.ratio sequence --loss.aggregation sequence",
    "reinforce_pp": """--run.algorithm reinforce_pp --loss.kl-coefficient 0.1 --loss.kl-in reward
        --loss.kl-estimator k1""",
    "ppo": """--run.algorithm ppo --critic.learning-rate 1e-3 --credit.on-horizon bootstrap
        --loss.importance-cap 2""",
    "gigpo": "--run.algorithm gigpo --loss.ratio turn --loss.aggregation group --loss.dual-clip 3",
    "sft": "--run.algorithm sft",
    "dpo": "--run.algorithm dpo",
    "evolve": "--run.algorithm evolve --evolve.min-score 0.5",
}
SCHEDULES = {
    "fixed": "--horizon.schedule fixed --horizon.stages 4",
    "staged": "--horizon.schedule staged --horizon.stages 2 4 --horizon.steps 4",
    # Moves often, by itself and because the monitor asks for it.
    "adaptive": """--horizon.schedule adaptive --horizon.stages 2 3 4 --horizon.adaptive.window 1
        --horizon.adaptive.min-steps 2 --horizon.adaptive.patience 1
        --horizon.adaptive.max-invalid 1 --monitor.invalid.condition above
        --monitor.invalid.limit 0.05 --monitor.invalid.patience 3""",
}
CURRICULA = {
    "uniform": "--curriculum.order uniform",
    "difficulty": "--curriculum.order difficulty --curriculum.grow-steps 8",
    "success_rate": "--curriculum.order success_rate --curriculum.by task",
}
KILLS = 3
DEADLINE_S = 600


def main() -> int:
    """Run the drill; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every combination")
    parser.add_argument("--only", nargs="+", help="combinations: algorithm/schedule/curriculum")
    parser.add_argument("--seed", type=int, default=0, help="of runs and of the steps of kills")
    options = parser.parse_args()
    combinations = ["/".join(each) for each in itertools.product(ALGORITHMS, SCHEDULES, CURRICULA)]
    if unknown := set(options.only or ()) - set(combinations):
        parser.error(f"unknown combinations {sorted(unknown)}; there are {', '.join(combinations)}")
    chosen = options.only or (combinations if options.full else each_once())
    passed = [drill(name, options.seed) for name in chosen]
    emit("resume/passed", all(passed), "bool", runs=len(passed), failed=passed.count(False))
    return 0 if all(passed) else 1


def each_once() -> list[str]:
    """A combination for each algorithm; together they hold every pair of schedule and curriculum
    at least once.
    """
    pairs = itertools.cycle(itertools.product(SCHEDULES, CURRICULA))
    return ["/".join((name, *pair)) for name, pair in zip(ALGORITHMS, pairs, strict=False)]


def drill(name: str, seed: int) -> bool:
    """Train one combination undisturbed and killed, and print how they compare."""
    algorithm, schedule, curriculum = name.split("/")
    words = " ".join([SETTINGS, ALGORITHMS[algorithm], SCHEDULES[schedule], CURRICULA[curriculum]])
    settings = [*shlex.split(words), "--run.seed", str(seed)]
    rng = random.Random(f"{name} {seed}")
    steps = sorted(rng.sample(range(1, WARMUP + STEPS), KILLS))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        whole, killed = RunFolder(Path(place, "whole")), RunFolder(Path(place, "killed"))
        finish(start("train", *settings, "--run.dir", str(whole.path)))
        process = start("train", *settings, "--run.dir", str(killed.path))
        for step in steps:
            kill(process, killed, step)
            process = start("resume", str(killed.path))
        finish(process)
        differing = [
            what
            for what, of in (("weights", weights), ("log", log), ("figures", figures))
            if of(whole) != of(killed)
        ]
        learned = sum(line.get("train/grad_norm", 0.0) > 0 for line in log(whole)[WARMUP:])
        horizons = sorted({line.get("rollout/horizon") for line in log(whole)} - {None})
    emit(
        f"resume/{name}",
        not differing,
        "bool",
        differing=differing,
        killed_at=steps,
        updates=learned,
        horizons=horizons,
        seconds=round(time.monotonic() - started, 1),
    )
    return not differing


def start(*words: str) -> subprocess.Popen[str]:
    """``python -m agentgym_train`` with `words`, in a process of its own."""
    command = [sys.executable, "-m", "agentgym_train", *words, "--json"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env)


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for the end, which must be a good one."""
    _, errors = process.communicate(timeout=DEADLINE_S)
    if process.returncode:
        raise SystemExit(f"{shlex.join(map(str, process.args))} failed:\n{errors}")


def kill(process: subprocess.Popen[str], folder: RunFolder, step: int) -> None:
    """Kill the process once the log holds `step` steps."""
    end = time.monotonic() + DEADLINE_S
    while sum(1 for _ in read_metrics(folder.metrics)) < step:
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            finish(process)
            raise SystemExit(f"{folder.path} did not come to step {step}")
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def weights(folder: RunFolder) -> dict[str, bytes]:
    """Every tensor of the last checkpoint, of models and optimizers alike, as bytes; but for the
    states of torch's own generators, which nothing draws from and every process seeds anew.
    """
    last = folder.checkpoints / f"step-{WARMUP + STEPS:06d}"
    found = {}
    for path in (last / "model" / "model.safetensors", last / "tensors.safetensors"):
        with safe_open(path, "np") as tensors:
            for key in tensors.keys():  # noqa: SIM118 - it cannot be iterated over
                found[key] = tensors.get_tensor(key).tobytes()
    return {key: data for key, data in found.items() if not key.startswith("random.")}


def log(folder: RunFolder) -> list[dict[str, Any]]:
    """The lines of the log without what depends on the clock or on the machine."""
    return [
        {
            key: value
            for key, value in line.items()
            if not key.startswith(("time/", "speed/", "mem"))
        }
        for line in read_metrics(folder.metrics)
    ]


def figures(folder: RunFolder) -> dict[str, Any]:
    """What the run reports, the state it ends in, and which checkpoints it keeps."""
    result = json.loads(folder.result.read_text())
    last = folder.checkpoints / f"step-{WARMUP + STEPS:06d}"
    state = json.loads((last / "state.json").read_text())
    del result["seconds"], result["run"], state["progress"]["seconds"]
    kept = sorted(path.name for path in folder.checkpoints.iterdir())
    return {"result": result, "state": state, "checkpoints": kept}


if __name__ == "__main__":
    sys.exit(main())
