"""What the vocabulary costs a learner step in memory and time, beside logits at every position.

One GRPO step of `Learner` on synthetic episodes, over a small trunk (1 layer, 64 wide) with a real
vocabulary, in four ways:

- ``ours``: logits at sampled positions only, in chunks that the backward pass computes again;
- ``unchunked``: logits at sampled positions in one piece;
- ``whole``: logits at every position, as ``model(input_ids).logits`` gives them, of which those of
  sampled tokens are used;
- ``none``: no logits at all. What it takes is the trunk's and the optimizer's; the figures are
  differences from it.

In ``observations`` the number of sampled tokens stays and that of observation tokens grows; in
``sampled`` it is the other way round, with as many observation tokens as sampled ones.

Every way runs in a process of its own. Memory is the growth of the peak resident set over a step
(Linux: ``VmHWM``, reset before it), with an allocator that gives freed memory back at once; time is
that of one CPU thread. Medians over repeats, with their spread.

    python benchmarks/learner_memory.py
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import emit

CASES = [("observations", 128, share) for share in (0.5, 0.8, 0.9, 0.95)]
CASES += [("sampled", num_sampled, 0.5) for num_sampled in (128, 512, 2048)]
WAYS = {"observations": ("ours", "whole"), "sampled": ("ours", "unchunked")}
NUM_EPISODES = 4
TURNS = 4


def resident_mib(key: str) -> float:
    """``VmRSS`` or ``VmHWM`` of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(key))
    return int(line.split()[1]) / 1024


def run_way(way: str, vocabulary: int, repeats: int) -> list[list[dict[str, float]]]:
    """MiB of growth, CPU seconds and tokens of each repeat of each case."""
    import numpy as np
    import torch

    from agentgym_train import batching, learner
    from agentgym_train.algorithms.grpo import GRPO
    from agentgym_train.model import create_model

    def make_sample(num_sampled: int, share: float) -> batching.Sample:
        observed = round(num_sampled * share / (1 - share) / TURNS)
        mask = np.array(([False] * observed + [True] * (num_sampled // TURNS)) * TURNS)
        return batching.Sample(
            token_ids=rng.integers(vocabulary, size=len(mask)),
            sampled_mask=mask,
            turn_index=np.repeat(np.arange(TURNS), num_sampled // TURNS),
            rewards=np.zeros(num_sampled),
            old_logprobs=np.full(num_sampled, -np.log(vocabulary)),
            advantages=rng.normal(size=num_sampled),
        )

    def whole(model: Any, batch: batching.Batch) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = torch.log_softmax(model(batch.token_ids, use_cache=False).logits[:, :-1], -1)
        entropy = -(logprobs.exp() * logprobs).sum(-1)
        chosen = logprobs.gather(-1, batch.token_ids[:, 1:, None]).squeeze(-1)
        mask = batch.sampled_mask[:, 1:]
        return chosen[mask], entropy[mask]

    def none(model: Any, batch: batching.Batch) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, _ = batching.sampled_hidden(model, batch)
        return hidden.mean(-1) - 10, hidden.square().mean(-1)

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    if way == "unchunked":
        batching._CHUNK_ELEMENTS = 2**62
    elif way != "ours":
        learner.sampled_logprobs = {"whole": whole, "none": none}[way]
    model = create_model(
        vocabulary, hidden_size=64, num_layers=1, num_heads=2, max_context=2**14, seed=0
    )
    settings = learner.LearnerConfig(updates_per_step=1, micro_batch_tokens=10**9)
    trained = learner.Learner(model, settings, seed=0)
    trained.update([make_sample(8, 0.5)], GRPO(), 0)  # makes the optimizer's state
    found = []
    for figure, num_sampled, share in CASES:
        runs = []
        for _ in range(repeats if way in (*WAYS[figure], "none") else 0):
            size = num_sampled // NUM_EPISODES
            samples = [make_sample(size, share) for _ in range(NUM_EPISODES)]
            Path("/proc/self/clear_refs").write_text("5")
            before, start = resident_mib("VmRSS"), time.process_time()
            metrics = trained.update(samples, GRPO(), 1)
            seconds = time.process_time() - start
            grown = resident_mib("VmHWM") - before
            runs.append({"MiB": grown, "s": seconds, "tokens": metrics["train/tokens"]})
        found.append(runs)
    return found


def measure(way: str, vocabulary: int, repeats: int) -> list[list[dict[str, float]]]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--way", way, "--vocabulary", str(vocabulary)]
    done = subprocess.run(
        [*command, "--repeats", str(repeats)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=3600,
        env=os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"},
    )
    found: list[list[dict[str, float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=50_257)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(run_way(options.way, options.vocabulary, options.repeats)))
        return
    ways = ["none", *dict.fromkeys(itertools.chain(*WAYS.values()))]
    runs = {way: measure(way, options.vocabulary, options.repeats) for way in ways}
    for index, (figure, num_sampled, share) in enumerate(CASES):
        for way, (unit, digits) in itertools.product(WAYS[figure], (("MiB", 1), ("s", 3))):
            base = statistics.median(run[unit] for run in runs["none"][index])
            over = [run[unit] - base for run in runs[way][index]]
            emit(
                f"learner_memory/{figure}/{way}",
                round(statistics.median(over), digits),
                f"{unit} of a step, over one without logits",
                spread=[round(min(over), digits), round(max(over), digits)],
                without_logits=round(base, digits),
                vocabulary=options.vocabulary,
                sampled_tokens=num_sampled,
                tokens=int(runs[way][index][0]["tokens"]),
                observation_share=share,
            )


if __name__ == "__main__":
    main()
