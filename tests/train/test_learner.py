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

from agentgym_envs.episodes import EndReason, write_episodes
from agentgym_train.algorithms import algorithm as algorithm_called
from agentgym_train.algorithms.gigpo import GiGPO
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.algorithms.ppo import PPO, PPOConfig
from agentgym_train.algorithms.reinforce_pp import ReinforcePP
from agentgym_train.algorithms.rloo import RLOO
from agentgym_train.algorithms.settings import CreditConfig, LossConfig
from agentgym_train.algorithms.sft import SFT, SFTConfig
from agentgym_train.batching import collate, sample_from_episode, sampled_logprobs
from agentgym_train.critic import Critic, CriticConfig
from agentgym_train.errors import CheckpointError, ConfigError
from agentgym_train.learner import Learner, LearnerConfig, frozen_copy
from agentgym_train.metrics import check_names

ONE_UPDATE = {"updates_per_step": 1, "max_grad_norm": math.inf}


def credit(algorithm, groups, step=0):
    """The samples of an algorithm that asks no model before it gives credit."""
    return algorithm.assign(algorithm.select(groups, step))


def learn(learner, algorithm, groups, step=0):
    """Everything that a step does with its episodes."""
    samples = learner.score(algorithm.select(groups, step), algorithm)
    return learner.update(algorithm.assign(samples, learner.total), algorithm, step)


def critic_of(model, **settings):
    """A critic that does not say 0 everywhere."""
    critic = Critic(model, CriticConfig(**{"learning_rate": 1e-3} | settings))
    with torch.no_grad():
        critic.weight.copy_(torch.linspace(-0.3, 0.4, len(critic.weight)))
        critic.bias.fill_(0.1)
    return critic


def gradients_of(model, samples, algorithm, **settings):
    """The gradients of each optimizer step of one update, flat; of policy, then of critic."""
    seen = []

    def look(optimizer, *_):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        seen.append(torch.cat([p.grad.detach().flatten().clone() for p in parameters]))

    reference = frozen_copy(model) if algorithm.needs_reference else None
    if reference is not None:
        with torch.no_grad():
            next(reference.parameters()).mul_(1.1)  # so that the divergence has a gradient
    critic = critic_of(model) if algorithm.name == "ppo" else None
    settings = LearnerConfig(**ONE_UPDATE | settings)
    learner = Learner(model, settings, seed=0, reference=reference, critic=critic)
    samples = algorithm.assign(learner.score(samples, algorithm))
    with contextlib.ExitStack() as stack:
        stack.callback(register_optimizer_step_pre_hook(look).remove)
        learner.update(samples, algorithm, step=0)
    return seen


def relative_difference(found, expected):
    return float(torch.linalg.norm(found - expected) / torch.linalg.norm(expected))


EVERYTHING_ON = LossConfig(kl_coefficient=0.1, entropy_coefficient=0.05)


# Every option of the loss is on in one of them.
ALL = [
    GRPO(loss=EVERYTHING_ON),
    RLOO(loss=LossConfig(ratio="turn", aggregation="group", dual_clip=1.05)),
    ReinforcePP(
        loss=LossConfig(
            ratio="sequence",
            aggregation="sequence",
            kl_coefficient=0.2,
            kl_in="reward",
            kl_estimator="k1",
        )
    ),
    PPO(
        PPOConfig(turn_discount=0.9),
        loss=LossConfig(importance_cap=1.2, aggregation="constant", aggregation_constant=9),
        credit=CreditConfig(on_horizon="bootstrap"),
    ),
    GiGPO(loss=LossConfig(kl_coefficient=0.1, kl_estimator="k1", kl_ratio=True)),
    SFT(SFTConfig(successes_only=False)),
]


@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.name)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=["fp32", "fp64"]
)
def test_the_gradient_depends_on_neither_split_nor_padding_nor_order(
    random_groups, tiny_model, algorithm, dtype, tolerance
):
    samples = algorithm.select(random_groups(6, 4), 0)
    alone = gradients_of(tiny_model(dtype=dtype), samples, algorithm, micro_batch_tokens=1)
    for max_tokens, order in ((60, 1), (200, -1), (10**6, 1)):  # several a pass, and all at once
        gradients = gradients_of(
            tiny_model(dtype=dtype), samples[::order], algorithm, micro_batch_tokens=max_tokens
        )
        assert len(gradients) == len(alone)
        for gradient, expected in zip(gradients, alone, strict=True):
            assert relative_difference(gradient, expected) <= tolerance


def test_the_gradient_is_that_of_the_formula_written_as_a_loop(random_groups, tiny_model):
    algorithm = GRPO(loss=LossConfig(entropy_coefficient=0.05))
    samples = credit(algorithm, random_groups(3, 4))
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
    samples = credit(GRPO(), random_groups(4, 4))
    gradients = gradients_of(tiny_model(), samples, GRPO(), updates_per_step=4, learning_rate=0.0)
    assert len(gradients) == 4
    assert all(relative_difference(g, gradients[0]) > 0.1 for g in gradients[1:])


TWO_RANKS = """
import json, sys
from pathlib import Path
import torch
from torch import distributed
from agentgym_envs.episodes import read_episodes
from agentgym_train.algorithms import algorithm
from agentgym_train.algorithms.settings import LossConfig
from agentgym_train.critic import Critic, CriticConfig
from agentgym_train.learner import Learner, LearnerConfig
from agentgym_train.model import load_model

folder, rank, name = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
distributed.init_process_group(
    "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=2
)
model = load_model(folder / "model", dtype=torch.float64, device="cpu")
critic = Critic(model, CriticConfig(learning_rate=1e-3)) if name == "ppo" else None
learner = Learner(model, LearnerConfig(updates_per_step=1), seed=0, critic=critic)
chosen = algorithm(name, loss=LossConfig(aggregation="sequence" if name == "ppo" else "token"))
metrics = []
for step in range(2):
    episodes = list(read_episodes(folder / f"step-{step}-rank-{rank}.jsonl"))
    groups = [episodes[i : i + 4] for i in range(0, len(episodes), 4)]
    samples = chosen.assign(learner.score(chosen.select(groups, step), chosen), learner.total)
    metrics.append(learner.update(samples, chosen, step))
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
(folder / f"result-{rank}.json").write_text(json.dumps([metrics, weights.tolist()]))
distributed.destroy_process_group()
"""


@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_two_processes_learn_what_one_does(random_groups, tiny_model, tmp_path, name):
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
            [sys.executable, "-c", TWO_RANKS, str(tmp_path), str(rank), name], env=environment
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    results = [json.loads((tmp_path / f"result-{rank}.json").read_text()) for rank in range(2)]
    assert results[0] == results[1]

    critic = Critic(model, CriticConfig(learning_rate=1e-3)) if name == "ppo" else None
    learner = Learner(model, LearnerConfig(updates_per_step=1), seed=0, critic=critic)
    loss = LossConfig(aggregation="sequence" if name == "ppo" else "token")
    chosen = algorithm_called(name, loss=loss)
    metrics = [learn(learner, chosen, groups, step) for step in range(2)]
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    found = torch.tensor(results[0][1], dtype=torch.float64)
    assert relative_difference(found, weights) <= 1e-10
    assert results[0][0] == [pytest.approx(values) for values in metrics]


def test_the_learning_rate_rises_linearly_and_then_stays(random_groups, tiny_model):
    model = tiny_model()
    settings = LearnerConfig(learning_rate=1e-3, lr_warmup_steps=4, updates_per_step=1)
    learner = Learner(model, settings, seed=0)
    samples = credit(GRPO(), random_groups(2, 4))
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
    samples = credit(GRPO(), random_groups(3, 4))
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
    samples = rescored(model, credit(GRPO(), random_groups(4, 4)))
    settings = LearnerConfig(learning_rate=1e-2, lr_warmup_steps=0, micro_batch_tokens=100)
    metrics = Learner(model, settings, seed=0).update(samples, GRPO(), 0)
    assert metrics["train/logprob_gap_max"] <= 1e-5
    assert metrics["train/logprob_gap_mean"] <= metrics["train/logprob_gap_max"]
    assert metrics["train/kl_k3"] > 1e-3  # the later minibatches have moved away, as they should


def test_a_sampler_that_disagrees_shows(random_groups, tiny_model):
    model = tiny_model()
    samples = [
        dataclasses.replace(sample, old_logprobs=sample.old_logprobs - 0.5)
        for sample in rescored(model, credit(GRPO(), random_groups(2, 4)))
    ]
    metrics = Learner(model, LearnerConfig(), seed=0).update(samples, GRPO(), 0)
    assert metrics["train/logprob_gap_mean"] == pytest.approx(0.5, abs=1e-5)
    assert metrics["train/logprob_gap_max"] == pytest.approx(0.5, abs=1e-5)


def test_metrics_are_means_over_all_sampled_tokens_and_are_defined(random_groups, tiny_model):
    model = tiny_model()
    samples = rescored(model, credit(GRPO(), random_groups(3, 4)))
    with torch.no_grad():
        _, entropy = sampled_logprobs(model, collate(samples))
    settings = LearnerConfig(learning_rate=0.0, micro_batch_tokens=64)
    learner = Learner(model, settings, seed=0, reference=frozen_copy(model))
    algorithm = GRPO(loss=EVERYTHING_ON)
    metrics = learner.update(learner.score(samples, algorithm), algorithm, 0)
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
    algorithm = GRPO(loss=EVERYTHING_ON)
    reference = frozen_copy(model)
    start = [p.clone() for p in reference.parameters()]
    settings = LearnerConfig(learning_rate=1e-2, lr_warmup_steps=0, updates_per_step=1)
    learner = Learner(model, settings, seed=0, reference=reference)
    samples = rescored(model, credit(algorithm, random_groups(3, 4)))
    samples = learner.score(samples, algorithm)
    divergences = [learner.update(samples, algorithm, step)["train/kl_ref"] for step in range(2)]
    assert divergences[0] == pytest.approx(0, abs=1e-6)
    assert divergences[1] > 1e-3
    assert all(torch.equal(p, s) for p, s in zip(reference.parameters(), start, strict=True))


def test_a_divergence_without_reference_is_refused(random_groups, tiny_model):
    algorithm = GRPO(loss=EVERYTHING_ON)
    samples = algorithm.select(random_groups(1, 4), 0)
    with pytest.raises(ConfigError, match="the learner has no reference"):
        Learner(tiny_model(), LearnerConfig(), seed=0).score(samples, algorithm)


def test_tokens_are_scored_at_the_temperature_at_which_they_were_drawn(random_groups, tiny_model):
    model = tiny_model()
    groups = random_groups(2, 4)
    for turn in (turn for group in groups for episode in group for turn in episode.turns):
        turn.temperature = 0.5
    samples = credit(GRPO(), groups)
    with torch.no_grad():
        _, cooler = sampled_logprobs(model, collate(samples))
        at_one = [dataclasses.replace(sample, temperature=1.0) for sample in samples]
        _, plain = sampled_logprobs(model, collate(at_one))
    assert float(cooler.mean()) < 0.95 * float(plain.mean())
    learner = Learner(model, LearnerConfig(learning_rate=0.0), seed=0)
    metrics = learner.update(samples, GRPO(), 0)
    assert metrics["train/entropy"] == pytest.approx(float(cooler.mean()), rel=1e-5)


def test_nothing_to_learn_from_changes_nothing(tiny_model):
    model = tiny_model()
    before = [p.detach().clone() for p in model.parameters()]
    learner = Learner(model, LearnerConfig(), seed=0)
    metrics = learner.update([], GRPO(), 0)
    assert metrics == {"train/samples": 0, "train/tokens": 0, "train/sampled_tokens": 0}
    assert learner.weights_version == 0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_weights_narrower_than_fp32_are_refused(tiny_model):
    with pytest.raises(ConfigError, match=r"needs fp32 weights .* is torch.bfloat16"):
        Learner(tiny_model(dtype=torch.bfloat16), LearnerConfig(), seed=0)


def test_weight_decay_shrinks_matrices_only(random_groups, tiny_model):
    model = tiny_model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    algorithm = GRPO(loss=LossConfig(entropy_coefficient=0.0))
    samples = [s.with_advantages(0.0) for s in credit(algorithm, random_groups(1, 4))]
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
        samples = rescored(model, credit(GRPO(), [[good, bad]], step))
        learner.update(samples, GRPO(), step)
    assert margin() > before + 1.0
    assert learner.weights_version == 5


def test_sft_learns_the_teachers_tokens_by_heart(random_groups, tiny_model):
    model = tiny_model()
    episodes = [group[0] for group in random_groups(4, 2)]
    algorithm = SFT(SFTConfig(successes_only=False))
    learner = Learner(model, LearnerConfig(learning_rate=1e-2, updates_per_step=1), seed=0)
    samples = credit(algorithm, [episodes])
    losses = [learner.update(samples, algorithm, step)["train/loss"] for step in range(60)]
    assert losses[0] > 3.0  # the uniform guess has log 29 = 3.37
    assert losses[-1] < 0.1


@pytest.mark.parametrize("algorithm", ALL, ids=lambda algorithm: algorithm.name)
def test_a_restored_learner_goes_on_bit_for_bit(random_groups, tiny_model, algorithm):
    groups = random_groups(4, 4)

    def make(model, reference):
        critic = critic_of(model) if algorithm.name == "ppo" else None
        settings = LearnerConfig(lr_warmup_steps=20)
        return Learner(model, settings, seed=3, reference=reference, critic=critic)

    def train(learner, steps):
        for step in steps:
            learn(learner, algorithm, groups, step)

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
    learner.update(credit(GRPO(), random_groups(2, 4)), GRPO(), 0)
    tensors, counters = learner.state_dict()
    name = "optimizer.model.norm.weight.exp_avg"
    with pytest.raises(CheckpointError, match=f"the learner's state has no '{name}'"):
        learner.load_state_dict({k: v for k, v in tensors.items() if k != name}, counters)
    message = r"norm.weight has shape \(32,\), .* \[\(7,\), \(32,\)\]"
    with pytest.raises(CheckpointError, match=message):
        learner.load_state_dict(tensors | {name: torch.zeros(7)}, counters)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": -1.0}, r"learner.learning_rate\b.* -1.0"),
        ({"betas": (0.9, 1.0)}, r"betas must be in \[0, 1\), got \[0.9, 1.0\]"),
        ({"max_grad_norm": 0.0}, "above 0 .inf for no limit., got 0.0"),
        ({"updates_per_step": 0}, "learner.updates_per_step.* 0"),
    ],
)
def test_learner_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        LearnerConfig(**settings)


# ---------------------------------------------------------------------------------- the critic


def test_a_new_critic_says_zero_and_shares_no_weight_with_the_policy(random_groups, tiny_model):
    model = tiny_model()
    critic = Critic(model, CriticConfig(learning_rate=1e-3))
    samples = PPO().select(random_groups(2, 4), 0)
    learner = Learner(model, LearnerConfig(), seed=0, critic=critic)
    assert all(not sample.old_values.any() for sample in learner.score(samples, PPO()))
    policy = {parameter.data_ptr() for parameter in model.parameters()}
    assert policy.isdisjoint(parameter.data_ptr() for parameter in critic.parameters())
    pairs = zip(critic.trunk.parameters(), model.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_values_are_those_before_each_sampled_token_and_after_the_final_observation(
    random_groups, tiny_model
):
    model = tiny_model()
    critic = critic_of(model)
    groups = random_groups(3, 4)
    for group in groups:
        group[0].end_reason = EndReason.SUCCESS
    algorithm = PPO(credit=CreditConfig(on_horizon="bootstrap"))
    samples = algorithm.select(groups, 0)
    learner = Learner(model, LearnerConfig(micro_batch_tokens=100), seed=0, critic=critic)
    for sample, scored in zip(samples, learner.score(samples, algorithm), strict=True):
        assert scored.token_ids is sample.token_ids
        with torch.no_grad():
            hidden = critic.trunk(torch.from_numpy(sample.token_ids)[None]).last_hidden_state[0]
            values = (hidden @ critic.weight + critic.bias).double().numpy()
        before = np.flatnonzero(sample.sampled_mask) - 1
        np.testing.assert_allclose(scored.old_values, values[before], atol=1e-5)
        expected = values[-1] if sample.bootstraps else 0.0
        assert scored.final_value == pytest.approx(expected, abs=1e-5)
    assert {sample.bootstraps for sample in samples} == {True, False}


def test_the_critic_learns_the_returns_and_the_policy_is_left_alone(random_groups, tiny_model):
    model = tiny_model()
    groups = random_groups(3, 4)
    ppo = PPO(PPOConfig(trace=1.0), loss=LossConfig(entropy_coefficient=0.0))
    settings = LearnerConfig(learning_rate=0.0, updates_per_step=1, lr_warmup_steps=0)
    critic = Critic(model, CriticConfig(learning_rate=3e-3, clip=0.0))
    learner = Learner(model, settings, seed=0, critic=critic)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    metrics = [learn(learner, ppo, groups, step) for step in range(40)]
    check_names(metrics[0])
    # Targets are the returns: 0 in half of the episodes and 1 in the others.
    returns = np.concatenate(
        [np.full(s.num_sampled, s.rewards.sum()) for s in ppo.select(groups, 0)]
    )
    assert metrics[0]["train/value_loss"] == pytest.approx((returns**2).mean() / 2)
    assert metrics[0]["train/explained_variance"] == pytest.approx(0.0)
    assert metrics[-1]["train/value_loss"] < 0.1 * metrics[0]["train/value_loss"]
    assert metrics[-1]["train/explained_variance"] > 0.8
    assert metrics[0]["train/critic_grad_norm"] > 0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_the_explained_variance_of_values_worked_by_hand(make_episode, tiny_model):
    model = tiny_model()
    (sample,) = PPO().select([[make_episode([([5], [1, 2, 3], 1.0)])]], 0)
    sample = dataclasses.replace(
        sample,
        advantages=np.zeros(3),
        old_values=np.array([0.0, 1.0, 3.0]),
        value_targets=np.array([0.0, 2.0, 4.0]),
    )
    learner = Learner(model, LearnerConfig(), seed=0, critic=critic_of(model))
    # targets vary by 4; what is left of them, 0, 1, 1, by 1/3
    found = learner.update([sample], PPO(), 0)["train/explained_variance"]
    assert found == pytest.approx(1 - (1 / 3) / 4)


def test_the_learners_own_log_probabilities_are_those_before_the_update(random_groups, tiny_model):
    model = tiny_model()
    algorithm = GRPO(loss=LossConfig(importance_cap=1.5))
    samples = algorithm.select(random_groups(2, 4), 0)
    learner = Learner(model, LearnerConfig(micro_batch_tokens=50), seed=0)
    scored = learner.score(samples, algorithm)
    for one, other in zip(scored, rescored(model, samples), strict=True):
        np.testing.assert_allclose(one.proximal_logprobs, other.old_logprobs, atol=1e-5)
        assert one.old_logprobs is not None
    metrics = learner.update(algorithm.assign(scored), algorithm, 0)
    check_names(metrics)
    ratios = np.concatenate([np.exp(s.proximal_logprobs - s.old_logprobs) for s in scored])
    assert metrics["train/importance_mean"] == pytest.approx(ratios.mean(), rel=1e-4)
    ess = ratios.mean() ** 2 / (ratios**2).mean()
    assert metrics["train/importance_ess"] == pytest.approx(ess, rel=1e-4)
    assert metrics["train/importance_max"] == pytest.approx(ratios.max(), rel=1e-4)
    assert metrics["train/importance_cut"] == pytest.approx((ratios > 1.5).mean())
    # The gap is still that between learner and sampler.
    assert metrics["train/logprob_gap_max"] > 0.01


@pytest.mark.parametrize("settings", [{"learning_rate": -1.0}, {"clip": -0.1}])
def test_critic_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ConfigError, match=r"^critic\.(learning_rate|clip).*-(1.0|0.1)"):
        CriticConfig(**settings)
