from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch.optim.optimizer import register_optimizer_step_pre_hook

from agentgym_envs.episodes import write_episodes
from agentgym_train.algorithms.grpo import GRPO, GRPOConfig
from agentgym_train.algorithms.sft import SFT, SFTConfig
from agentgym_train.batching import collate, sample_from_episode, sampled_logprobs
from agentgym_train.errors import CheckpointError, ConfigError, TrainError
from agentgym_train.learner import Learner, LearnerConfig, frozen_copy
from agentgym_train.metrics import check_names

ONE_UPDATE = {"updates_per_step": 1, "max_grad_norm": math.inf}


def gradients_of(model, samples, algorithm, **settings):
    """The gradient of each optimizer step of one update, flat."""
    seen = []

    def look(optimizer, *_):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        seen.append(torch.cat([p.grad.detach().flatten().clone() for p in parameters]))

    reference = frozen_copy(model) if algorithm.needs_reference else None
    if reference is not None:
        with torch.no_grad():
            next(reference.parameters()).mul_(1.1)  # so that the divergence has a gradient
    learner = Learner(model, LearnerConfig(**ONE_UPDATE | settings), seed=0, reference=reference)
    with contextlib.ExitStack() as stack:
        stack.callback(register_optimizer_step_pre_hook(look).remove)
        learner.update(samples, algorithm, step=0)
    return seen


def relative_difference(found, expected):
    return float(torch.linalg.norm(found - expected) / torch.linalg.norm(expected))


EVERYTHING_ON = GRPOConfig(kl_coefficient=0.1, entropy_coefficient=0.05)


@pytest.mark.parametrize(
    "algorithm",
    [GRPO(EVERYTHING_ON), SFT(SFTConfig(successes_only=False))],
    ids=["grpo", "sft"],
)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=["fp32", "fp64"]
)
def test_the_gradient_depends_on_neither_split_nor_padding_nor_order(
    random_groups, tiny_model, algorithm, dtype, tolerance
):
    samples = algorithm.assign(random_groups(6, 4), step=0)
    (alone,) = gradients_of(tiny_model(dtype=dtype), samples, algorithm, micro_batch_tokens=1)
    for max_tokens in (60, 200, 10**6):  # several a pass, and all at once
        for order in (samples, samples[::-1]):
            (gradient,) = gradients_of(
                tiny_model(dtype=dtype), order, algorithm, micro_batch_tokens=max_tokens
            )
            assert relative_difference(gradient, alone) <= tolerance


def test_the_gradient_is_that_of_the_formula_written_as_a_loop(random_groups, tiny_model):
    algorithm = GRPO(GRPOConfig(entropy_coefficient=0.05))
    samples = algorithm.assign(random_groups(3, 4), step=0)
    (gradient,) = gradients_of(tiny_model(dtype=torch.float64), samples, algorithm)

    model = tiny_model(dtype=torch.float64)
    losses = []
    for sample in samples:
        logits = model(torch.from_numpy(sample.token_ids)[None]).logits[0]
        positions = np.flatnonzero(sample.sampled_mask)
        for position, old, advantage in zip(
            positions, sample.old_logprobs, sample.advantages, strict=True
        ):
            distribution = torch.distributions.Categorical(logits=logits[position - 1])
            logprob = distribution.log_prob(torch.tensor(sample.token_ids[position]))
            ratio = torch.exp(logprob - old)
            clipped = torch.clamp(ratio, 0.8, 1.28)
            surrogate = -torch.minimum(ratio * advantage, clipped * advantage)
            losses.append(surrogate - 0.05 * distribution.entropy())
    torch.stack(losses).mean().backward()
    named = dict(model.named_parameters()).values()
    expected = torch.cat(
        [p.grad.flatten() for p in named if p.ndim >= 2]
        + [p.grad.flatten() for p in named if p.ndim < 2]
    )
    # Advantages are fp32 in a batch, hence not 1e-10.
    assert relative_difference(gradient, expected) <= 1e-6


def test_each_minibatch_is_one_update_on_its_own_part(random_groups, tiny_model):
    samples = GRPO().assign(random_groups(4, 4), step=0)
    gradients = gradients_of(tiny_model(), samples, GRPO(), updates_per_step=4, learning_rate=0.0)
    assert len(gradients) == 4
    assert all(relative_difference(g, gradients[0]) > 0.1 for g in gradients[1:])


TWO_RANKS = """
import json, sys
from pathlib import Path
import torch
from torch import distributed
from agentgym_envs.episodes import read_episodes
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.learner import Learner, LearnerConfig
from agentgym_train.model import load_model

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
distributed.init_process_group(
    "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=2
)
model = load_model(folder / "model", dtype=torch.float64, device="cpu")
learner = Learner(model, LearnerConfig(updates_per_step=1), seed=0)
metrics = []
for step in range(2):
    episodes = list(read_episodes(folder / f"step-{step}-rank-{rank}.jsonl"))
    groups = [episodes[i : i + 4] for i in range(0, len(episodes), 4)]
    metrics.append(learner.update(GRPO().assign(groups, step), GRPO(), step))
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
(folder / f"result-{rank}.json").write_text(json.dumps([metrics, weights.tolist()]))
distributed.destroy_process_group()
"""


def test_two_processes_learn_what_one_does(random_groups, tiny_model, tmp_path):
    groups = random_groups(3, 4)
    model = tiny_model(dtype=torch.float64)
    model.save_pretrained(tmp_path / "model")
    # In the second step one rank has nothing to learn from; it must not stop the other.
    for step, shares in enumerate([(groups[:2], groups[2:]), (groups, [])]):
        for rank, share in enumerate(shares):
            episodes = [episode for group in share for episode in group]
            write_episodes(tmp_path / f"step-{step}-rank-{rank}.jsonl", episodes)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_RANKS, str(tmp_path), str(rank)], env=environment
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    results = [json.loads((tmp_path / f"result-{rank}.json").read_text()) for rank in range(2)]
    assert results[0] == results[1]

    learner = Learner(model, LearnerConfig(updates_per_step=1), seed=0)
    metrics = [learner.update(GRPO().assign(groups, step), GRPO(), step) for step in range(2)]
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    found = torch.tensor(results[0][1], dtype=torch.float64)
    assert relative_difference(found, weights) <= 1e-10
    assert results[0][0] == [pytest.approx(values) for values in metrics]


def test_the_learning_rate_rises_linearly_and_then_stays(random_groups, tiny_model):
    model = tiny_model()
    settings = LearnerConfig(learning_rate=1e-3, lr_warmup_steps=4, updates_per_step=1)
    learner = Learner(model, settings, seed=0)
    samples = GRPO().assign(random_groups(2, 4), step=0)
    before = [p.detach().clone() for p in model.parameters()]
    rates = [learner.update(samples, GRPO(), 0)["train/learning_rate"]]
    # Adam's first step moves a weight by the learning rate, whatever its gradient.
    moved = [
        float((after.detach() - start).abs().max())
        for after, start in zip(model.parameters(), before, strict=True)
    ]
    assert max(moved) == pytest.approx(1e-3 / 4, rel=1e-2)
    rates += [learner.update(samples, GRPO(), step)["train/learning_rate"] for step in range(1, 6)]
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3])


def test_the_gradient_is_clipped_and_its_norm_before_that_is_logged(random_groups, tiny_model):
    samples = GRPO().assign(random_groups(3, 4), step=0)
    (whole,) = gradients_of(tiny_model(), samples, GRPO())
    norm = float(torch.linalg.norm(whole))
    (clipped,) = gradients_of(tiny_model(), samples, GRPO(), max_grad_norm=norm / 10)
    assert float(torch.linalg.norm(clipped)) == pytest.approx(norm / 10, rel=1e-4)
    settings = LearnerConfig(updates_per_step=1, max_grad_norm=norm / 10)
    metrics = Learner(tiny_model(), settings, seed=0).update(samples, GRPO(), 0)
    assert metrics["train/grad_norm"] == pytest.approx(norm, rel=1e-4)


def rescored(model, samples):
    """The samples with the model's own log-probabilities, as an exact sampler would give them."""
    with torch.no_grad():
        logprobs, _ = sampled_logprobs(model, collate(samples))
    parts = logprobs.double().split([sample.num_sampled for sample in samples])
    return [
        dataclasses.replace(sample, old_logprobs=part.numpy())
        for sample, part in zip(samples, parts, strict=True)
    ]


def test_learner_and_sampler_are_compared_before_the_first_update_only(random_groups, tiny_model):
    model = tiny_model()
    samples = rescored(model, GRPO().assign(random_groups(4, 4), step=0))
    settings = LearnerConfig(learning_rate=1e-2, lr_warmup_steps=0, micro_batch_tokens=100)
    metrics = Learner(model, settings, seed=0).update(samples, GRPO(), 0)
    assert metrics["train/logprob_gap_max"] <= 1e-5
    assert metrics["train/logprob_gap_mean"] <= metrics["train/logprob_gap_max"]
    assert metrics["train/kl_k3"] > 1e-3  # the later minibatches have moved away, as they should


def test_a_sampler_that_disagrees_shows(random_groups, tiny_model):
    model = tiny_model()
    samples = [
        dataclasses.replace(sample, old_logprobs=sample.old_logprobs - 0.5)
        for sample in rescored(model, GRPO().assign(random_groups(2, 4), step=0))
    ]
    metrics = Learner(model, LearnerConfig(), seed=0).update(samples, GRPO(), 0)
    assert metrics["train/logprob_gap_mean"] == pytest.approx(0.5, abs=1e-5)
    assert metrics["train/logprob_gap_max"] == pytest.approx(0.5, abs=1e-5)


def test_metrics_are_means_over_all_sampled_tokens_and_are_defined(random_groups, tiny_model):
    model = tiny_model()
    samples = rescored(model, GRPO(EVERYTHING_ON).assign(random_groups(3, 4), step=0))
    with torch.no_grad():
        _, entropy = sampled_logprobs(model, collate(samples))
    settings = LearnerConfig(learning_rate=0.0, micro_batch_tokens=64)
    learner = Learner(model, settings, seed=0, reference=frozen_copy(model))
    metrics = learner.update(samples, GRPO(EVERYTHING_ON), 0)
    check_names(metrics)
    assert metrics["train/samples"] == 12
    assert metrics["train/tokens"] == sum(sample.num_tokens for sample in samples)
    assert metrics["train/sampled_tokens"] == sum(sample.num_sampled for sample in samples)
    assert metrics["train/entropy"] == pytest.approx(float(entropy.mean()), rel=1e-5)
    # With unchanged weights every ratio is 1, so the surrogate is minus the mean advantage.
    advantages = np.concatenate([sample.advantages for sample in samples])
    assert metrics["train/policy_loss"] == pytest.approx(-advantages.mean(), abs=1e-5)
    assert metrics["train/loss"] == pytest.approx(
        metrics["train/policy_loss"] - 0.05 * metrics["train/entropy"], abs=1e-5
    )
    assert metrics["train/clip_share"] == 0
    assert metrics["train/ratio_max"] == pytest.approx(1, abs=1e-5)
    for name in ("kl_k1", "kl_k3", "kl_ref"):
        assert metrics[f"train/{name}"] == pytest.approx(0, abs=1e-5)


def test_the_divergence_is_from_the_frozen_weights(random_groups, tiny_model):
    model = tiny_model()
    algorithm = GRPO(EVERYTHING_ON)
    reference = frozen_copy(model)
    start = [p.clone() for p in reference.parameters()]
    settings = LearnerConfig(learning_rate=1e-2, lr_warmup_steps=0, updates_per_step=1)
    learner = Learner(model, settings, seed=0, reference=reference)
    samples = rescored(model, algorithm.assign(random_groups(3, 4), step=0))
    divergences = [learner.update(samples, algorithm, step)["train/kl_ref"] for step in range(2)]
    assert divergences[0] == pytest.approx(0, abs=1e-6)
    assert divergences[1] > 1e-3
    assert all(torch.equal(p, s) for p, s in zip(reference.parameters(), start, strict=True))


def test_a_divergence_without_reference_is_refused(random_groups, tiny_model):
    algorithm = GRPO(EVERYTHING_ON)
    samples = algorithm.assign(random_groups(1, 4), step=0)
    with pytest.raises(ConfigError, match="the learner has no reference"):
        Learner(tiny_model(), LearnerConfig(), seed=0).update(samples, algorithm, 0)


def test_the_temperature_divides_the_logits(random_groups, tiny_model):
    model = tiny_model()
    samples = GRPO().assign(random_groups(2, 4), step=0)
    with torch.no_grad():
        _, entropy = sampled_logprobs(model, collate(samples), 0.5)
    learner = Learner(model, LearnerConfig(learning_rate=0.0), seed=0)
    metrics = learner.update(samples, GRPO(), 0, temperature=0.5)
    assert metrics["train/entropy"] == pytest.approx(float(entropy.mean()), rel=1e-5)


def test_nothing_to_learn_from_changes_nothing(tiny_model):
    model = tiny_model()
    before = [p.detach().clone() for p in model.parameters()]
    learner = Learner(model, LearnerConfig(), seed=0)
    metrics = learner.update([], GRPO(), 0)
    assert metrics == {"train/samples": 0, "train/tokens": 0, "train/sampled_tokens": 0}
    assert learner.weights_version == 0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(random_groups, tiny_model):
    model = tiny_model()
    before = [p.detach().clone() for p in model.parameters()]
    samples = [
        sample.with_advantages(math.nan) for sample in GRPO().assign(random_groups(2, 4), step=0)
    ]
    with pytest.raises(TrainError, match=r"the gradient of step 7 is not finite \(norm nan\)"):
        Learner(model, LearnerConfig(), seed=0).update(samples, GRPO(), 7)
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_weights_narrower_than_fp32_are_refused(tiny_model):
    with pytest.raises(ConfigError, match=r"needs fp32 weights .* is torch.bfloat16"):
        Learner(tiny_model(dtype=torch.bfloat16), LearnerConfig(), seed=0)


def test_weight_decay_shrinks_matrices_only(random_groups, tiny_model):
    model = tiny_model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    algorithm = GRPO(GRPOConfig(entropy_coefficient=0.0))
    samples = [s.with_advantages(0.0) for s in algorithm.assign(random_groups(1, 4), step=0)]
    settings = LearnerConfig(
        learning_rate=0.1, lr_warmup_steps=0, weight_decay=0.5, updates_per_step=1
    )
    Learner(model, settings, seed=0).update(samples, algorithm, 0)
    for name, parameter in model.named_parameters():
        expected = before[name] * (1 - 0.1 * 0.5 if parameter.ndim >= 2 else 1)
        torch.testing.assert_close(parameter.detach(), expected)


def test_grpo_makes_rewarded_tokens_likelier(make_episode, tiny_model):
    model = tiny_model()
    good, bad = make_episode([([1, 2], [3], 1.0)]), make_episode([([1, 2], [4], 0.0)], member=1)
    learner = Learner(model, LearnerConfig(learning_rate=1e-2, updates_per_step=1), seed=0)

    def margin():
        with torch.no_grad():
            batch = collate([sample_from_episode(good), sample_from_episode(bad)])
            logprobs, _ = sampled_logprobs(model, batch)
        return float(logprobs[0] - logprobs[1])

    before = margin()
    for step in range(5):
        samples = rescored(model, GRPO().assign([[good, bad]], step))
        learner.update(samples, GRPO(), step)
    assert margin() > before + 1.0
    assert learner.weights_version == 5


def test_sft_learns_the_teachers_tokens_by_heart(random_groups, tiny_model):
    model = tiny_model()
    episodes = [group[0] for group in random_groups(4, 2)]
    algorithm = SFT(SFTConfig(successes_only=False))
    learner = Learner(model, LearnerConfig(learning_rate=1e-2, updates_per_step=1), seed=0)
    samples = algorithm.assign([episodes], 0)
    losses = [learner.update(samples, algorithm, step)["train/loss"] for step in range(60)]
    assert losses[0] > 3.0  # the uniform guess has log 29 = 3.37
    assert losses[-1] < 0.1


def test_a_restored_learner_goes_on_bit_for_bit(random_groups, tiny_model):
    algorithm = GRPO(EVERYTHING_ON)
    groups = random_groups(4, 4)

    def make(model, reference):
        return Learner(model, LearnerConfig(lr_warmup_steps=20), seed=3, reference=reference)

    def train(learner, steps):
        for step in steps:
            learner.update(algorithm.assign(groups, step), algorithm, step)

    whole = make(tiny_model(), frozen_copy(tiny_model()))
    train(whole, range(6))

    first = make(tiny_model(), frozen_copy(tiny_model()))
    train(first, range(3))
    tensors, counters = first.state_dict()
    saved = load(save(tensors)), json.loads(json.dumps(counters))
    other = tiny_model(seed=1)
    other.load_state_dict(first.model.state_dict())
    second = make(other, frozen_copy(tiny_model(seed=2)))
    second.load_state_dict(*saved)
    for name, tensor in second.state_dict()[0].items():
        assert torch.equal(tensor, tensors[name]), name
    train(second, range(3, 6))

    assert second.weights_version == whole.weights_version == 6
    for found, expected in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(found, expected)


def test_a_learner_is_restored_before_its_first_update(tiny_model):
    tensors, counters = Learner(tiny_model(), LearnerConfig(), seed=0).state_dict()
    assert tensors == {}
    Learner(tiny_model(), LearnerConfig(), seed=0).load_state_dict(tensors, counters)


def test_the_state_of_another_model_is_refused(random_groups, tiny_model):
    learner = Learner(tiny_model(), LearnerConfig(), seed=0)
    learner.update(GRPO().assign(random_groups(2, 4), 0), GRPO(), 0)
    tensors, counters = learner.state_dict()
    name = "optimizer.model.norm.weight.exp_avg"
    with pytest.raises(CheckpointError, match=f"the learner's state has no '{name}'"):
        learner.load_state_dict({k: v for k, v in tensors.items() if k != name}, counters)
    with pytest.raises(CheckpointError, match=r"norm.weight has shape \(32,\).* \(7,\)"):
        learner.load_state_dict(tensors | {name: torch.zeros(7)}, counters)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": -1.0}, "must not be negative, got -1.0, 5 and 0.0"),
        ({"betas": (0.9, 1.0)}, r"betas must be in \[0, 1\), got \[0.9, 1.0\]"),
        ({"max_grad_norm": 0.0}, "above 0 .inf for no limit., got 0.0"),
        ({"updates_per_step": 0}, "must be at least 1, got 0 and 4096"),
    ],
)
def test_learner_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        LearnerConfig(**settings)
