"""DPO: which episodes make a pair, and the loss against autograd over whole pairs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid
from torch.optim.optimizer import register_optimizer_step_pre_hook

from agentgym_envs.episodes import EndReason, read_episodes, write_episodes
from agentgym_train.algorithms.dpo import DPO, DPOConfig
from agentgym_train.algorithms.losses import LossInputs
from agentgym_train.algorithms.settings import CreditConfig
from agentgym_train.batching import collate, sampled_logprobs
from agentgym_train.errors import ConfigError
from agentgym_train.learner import Learner, LearnerConfig, frozen_copy
from agentgym_train.metrics import check_names


def group_of(make_episode, returns, reasons=None, task_id="t/0"):
    """Episodes whose first sampled token is their number from 1 on."""
    reasons = reasons or [EndReason.HORIZON] * len(returns)
    return [
        make_episode(
            [([20], [1 + i], 0.0), ([21, 22], [10, 11], value)],
            end_reason=reason,
            member=i,
            task_id=task_id,
        )
        for i, (value, reason) in enumerate(zip(returns, reasons, strict=True))
    ]


def pairs_of(samples):
    """(better, worse) by the number of the episode."""
    assert [sample.group for sample in samples] == [i // 2 for i in range(len(samples))]
    for sign, half in ((1.0, samples[::2]), (-1.0, samples[1::2])):
        assert all(sample.advantages.tolist() == [sign] * 3 for sample in half)
    names = [int(sample.token_ids[1]) for sample in samples]
    return list(zip(names[::2], names[1::2], strict=True))


# ------------------------------------------------------------------------------------- the pairs


def test_the_best_is_paired_with_the_worst_and_so_on(make_episode):
    group = group_of(make_episode, [0.2, 0.9, 0.5, 0.0, 0.7])
    assert pairs_of(DPO().select([group], 0)) == [(2, 4), (5, 1)]  # 3, in the middle, has no rival


def test_equal_returns_are_no_pair(make_episode):
    group = group_of(make_episode, [1.0, 0.0, 1.0, 1.0])
    assert pairs_of(DPO().select([group], 0)) == [(4, 2)]
    assert DPO().select([group_of(make_episode, [0.1 + 0.2, 0.3])], 0) == []
    assert DPO().select([], 0) == []


def test_a_pair_may_need_a_margin(make_episode):
    group = group_of(make_episode, [0.0, 0.5, 0.75, 1.0])
    assert pairs_of(DPO(DPOConfig(min_margin=0.25)).select([group], 0)) == [(4, 1), (3, 2)]
    assert pairs_of(DPO(DPOConfig(min_margin=0.5)).select([group], 0)) == [(4, 1)]
    assert pairs_of(DPO().select([group_of(make_episode, [0.0, 0.01])], 0)) == [(2, 1)]


def test_pairs_stay_within_a_group_and_are_numbered_through(make_episode):
    groups = [
        group_of(make_episode, [0.0, 0.0]),
        group_of(make_episode, [1.0, 0.0], task_id="t/1"),
        group_of(make_episode, [0.0, 1.0], task_id="t/2"),
    ]
    assert pairs_of(DPO().select(groups, 0)) == [(1, 2), (2, 1)]


@pytest.mark.parametrize("reason", ["fault", "context", "budget", "stopped", "horizon"])
def test_a_masked_episode_is_in_no_pair(make_episode, reason):
    reasons = [EndReason.SUCCESS, EndReason.FAILURE, EndReason(reason), EndReason.FAILURE]
    group = group_of(make_episode, [1.0, 0.3, -9.0, 0.4], reasons)
    masking = DPO(credit=CreditConfig(**{f"on_{reason}": "mask"}))
    assert pairs_of(masking.select([group], 0)) == [(1, 2)]
    dropping = DPO(credit=CreditConfig(**{f"on_{reason}": "drop"}))
    assert dropping.select([group], 0) == []


def test_a_single_episode_is_refused(make_episode):
    with pytest.raises(ValueError, match="at least 2 episodes to compare, got 1"):
        DPO().select([group_of(make_episode, [1.0])], 0)


def test_in_the_control_pairs_say_nothing_about_the_episode(make_episode):
    control = DPO(credit=CreditConfig(permute_rewards=True))
    group = group_of(make_episode, [1.0, 0.0])
    found = [pairs_of(control.select([group], step))[0] for step in range(200)]
    assert 70 < found.count((1, 2)) < 130  # standard deviation 7


def test_recorded_episodes_are_paired_like_those_just_played(make_episode, tmp_path):
    group = group_of(make_episode, [0.2, 0.9, 0.5, 0.0])
    write_episodes(tmp_path / "episodes.jsonl", group)
    recorded = list(read_episodes(tmp_path / "episodes.jsonl"))
    assert pairs_of(DPO().select([recorded], 0)) == pairs_of(DPO().select([group], 0))


# -------------------------------------------------------------------------------------- the loss


def inputs_of(samples, normalizer, shift=0.0):
    batch = collate(samples)
    logprobs = torch.tensor(np.concatenate([s.proximal_logprobs for s in samples]) + shift)
    return LossInputs(batch, logprobs.requires_grad_(), torch.zeros(len(logprobs)), normalizer)


def scored_pair(make_episode, chosen, better, worse, reference=-1.0):
    """A pair whose log-probabilities are given, by token, under a reference that says -1."""
    samples = chosen.select([group_of(make_episode, [1.0, 0.0])], 0)
    return [
        dataclasses.replace(
            sample, proximal_logprobs=np.array(values), ref_logprobs=np.full(3, reference)
        )
        for sample, values in zip(samples, (better, worse), strict=True)
    ]


@pytest.mark.parametrize(
    ("settings", "delta", "scale"),
    [
        # Log-ratios sum up to 0.8 in the better episode and to -0.3 in the worse.
        ({"beta": 0.5}, 1.1, 1.0),
        ({"beta": 3.0, "normalize_length": True}, 1.1 / 3, 1 / 3),
        ({"beta": 0.5, "label_smoothing": 0.2}, 1.1, 1.0),
    ],
)
def test_the_loss_of_one_pair_worked_by_hand(make_episode, settings, delta, scale):
    config = DPOConfig(**settings)
    chosen = DPO(config)
    better, worse = [-0.5, -0.8, -0.9], [-1.1, -1.2, -1.0]
    samples = chosen.assign(scored_pair(make_episode, chosen, better, worse))
    weighed, normalizer = chosen.weigh(samples)
    assert normalizer == 1
    inputs = inputs_of(weighed, normalizer)
    output = chosen.loss(inputs)
    output.loss.backward()
    margin, smoothing = config.beta * delta, config.label_smoothing
    right, wrong = 1 / (1 + math.exp(-margin)), 1 / (1 + math.exp(margin))
    expected = -(1 - smoothing) * math.log(right) - smoothing * math.log(wrong)
    assert output.loss.item() == pytest.approx(expected, rel=1e-6)
    # The slope of -log sigmoid(m) is -sigmoid(-m), that of the smoothed part sigmoid(m).
    slope = config.beta * scale * (-(1 - smoothing) * wrong + smoothing * right)
    assert inputs.logprobs.grad.tolist() == pytest.approx([slope] * 3 + [-slope] * 3, rel=1e-5)
    sums = {name: value.item() for name, value in output.token_sums.items()}
    assert sums == {"entropy": 0.0, "preferred": 6, "margin": pytest.approx(6 * margin, rel=1e-5)}


def test_a_pair_that_the_policy_prefers_no_more_than_the_reference_is_not_counted(make_episode):
    samples = DPO().assign(scored_pair(make_episode, DPO(), [-1.5] * 3, [-1.5] * 3))
    output = DPO().loss(inputs_of(*DPO().weigh(samples)))
    assert output.loss.item() == pytest.approx(math.log(2))
    assert output.token_sums["preferred"].item() == 0
    assert not any(value.requires_grad for value in output.token_sums.values())


def test_what_is_logged_holds_on_to_no_gradient(make_episode):
    samples = DPO().assign(scored_pair(make_episode, DPO(), [-1.0] * 3, [-1.5] * 3))
    inputs = inputs_of(*DPO().weigh(samples))
    inputs = dataclasses.replace(inputs, entropy=inputs.entropy.requires_grad_())
    output = DPO().loss(inputs)
    assert output.loss.requires_grad
    assert not any(value.requires_grad for value in output.token_sums.values())


def test_enormous_margins_stay_finite(make_episode):
    samples = DPO().assign(scored_pair(make_episode, DPO(), [-9000.0] * 3, [-1.0] * 3))
    inputs = inputs_of(*DPO().weigh(samples))
    output = DPO().loss(inputs)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(0.1 * 3 * 8999, rel=1e-5)
    assert inputs.logprobs.grad.tolist() == pytest.approx([-0.1] * 3 + [0.1] * 3)


@pytest.mark.parametrize("missing", ["proximal_logprobs", "ref_logprobs"])
def test_an_unscored_pair_is_refused(make_episode, missing):
    pair = scored_pair(make_episode, DPO(), [-1.0] * 3, [-1.0] * 3)
    for index in (0, 1):
        incomplete = list(pair)
        incomplete[index] = dataclasses.replace(pair[index], **{missing: None})
        with pytest.raises(ValueError, match=f"needs {missing}, but they are not assigned"):
            DPO().assign(incomplete)


@pytest.mark.parametrize("missing", ["ref_logprobs", "advantages"])
def test_the_loss_of_what_is_not_assigned_is_refused(make_episode, missing):
    pair = scored_pair(make_episode, DPO(), [-1.0] * 3, [-1.0] * 3)
    inputs = inputs_of([dataclasses.replace(sample, **{missing: None}) for sample in pair], 1)
    with pytest.raises(ValueError, match=f"needs {missing}, but they are not assigned"):
        DPO().loss(inputs)


def test_half_a_pair_is_refused(make_episode):
    samples = DPO().select(
        [group_of(make_episode, [1.0, 0.0]), group_of(make_episode, [1.0, 0.0], task_id="t/1")], 0
    )
    assert DPO().weigh([]) == ([], 0)
    assert DPO().weigh(samples)[1] == 2
    for part in (samples[:3], samples[1:3]):
        with pytest.raises(ValueError, match="needs both episodes of a pair in the same"):
            DPO().weigh(part)


# ------------------------------------------------------------------------------------ the learner


def perturbed(model):
    reference = frozen_copy(model)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in reference.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return reference


def updated(model, reference, algorithm, groups, **settings):
    """The metrics of one step, and the gradient it took."""
    settings = {"updates_per_step": 4, "max_grad_norm": math.inf, "learning_rate": 0.0} | settings
    learner = Learner(model, LearnerConfig(**settings), seed=0, reference=reference)
    seen = []

    def look(optimizer, *_):
        seen.append({id(p): p.grad.clone() for g in optimizer.param_groups for p in g["params"]})

    handle = register_optimizer_step_pre_hook(look)
    try:
        samples = algorithm.assign(learner.score(algorithm.select(groups, 0), algorithm))
        metrics = learner.update(samples, algorithm, 0)
    finally:
        handle.remove()
    (gradients,) = seen  # one optimizer step, whatever updates_per_step says
    return metrics, torch.cat([gradients[id(p)].flatten() for p in model.parameters()])


def whole_batch_dpo(model, reference, samples, config):
    """DPO as in its paper: every pair whole, one backward pass."""
    losses = []
    for better, worse in zip(samples[::2], samples[1::2], strict=True):
        ratios = []
        for sample in (better, worse):
            batch = collate([sample])
            own, _ = sampled_logprobs(model, batch)
            with torch.no_grad():
                other, _ = sampled_logprobs(reference, batch)
            log_ratio = own - other
            ratios.append(log_ratio.mean() if config.normalize_length else log_ratio.sum())
        margin = config.beta * (ratios[0] - ratios[1])
        losses.append(
            -(1 - config.label_smoothing) * logsigmoid(margin)
            - config.label_smoothing * logsigmoid(-margin)
        )
    loss = torch.stack(losses).mean()
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return loss.item(), torch.cat([gradient.flatten() for gradient in gradients])


@pytest.mark.parametrize(
    "config",
    [DPOConfig(beta=0.5), DPOConfig(beta=5.0, normalize_length=True, label_smoothing=0.1)],
    ids=["sums", "means"],
)
@pytest.mark.parametrize("micro_batch_tokens", [1, 100, 10**6])
def test_the_gradient_is_that_of_whole_pairs_however_they_are_split(
    random_groups, tiny_model, config, micro_batch_tokens
):
    model = tiny_model(dtype=torch.float64)
    reference = perturbed(model)
    groups = random_groups(5, 5)
    chosen = DPO(config)
    samples = chosen.select(groups, 0)
    assert len(samples) == 20
    loss, expected = whole_batch_dpo(model, reference, samples, config)
    metrics, found = updated(
        model, reference, chosen, groups, micro_batch_tokens=micro_batch_tokens
    )
    # Numbers of a batch are fp32, hence not 1e-12.
    assert torch.linalg.norm(found - expected) <= 1e-6 * torch.linalg.norm(expected)
    assert metrics["train/loss"] == pytest.approx(loss, rel=1e-6)
    assert 0 < metrics["train/preferred"] < 1
    check_names(metrics)


def test_splits_agree_to_the_last_digits(random_groups, tiny_model):
    model = tiny_model(dtype=torch.float64)
    reference, groups = perturbed(model), random_groups(5, 5)
    found = [
        updated(model, reference, DPO(), groups, micro_batch_tokens=tokens)[1]
        for tokens in (1, 100, 10**6)
    ]
    for other in found[1:]:
        assert torch.linalg.norm(other - found[0]) <= 1e-9 * torch.linalg.norm(found[0])


def test_steps_raise_the_margin_of_the_pairs(random_groups, tiny_model):
    model, groups = tiny_model(), random_groups(3, 4)
    settings = LearnerConfig(learning_rate=3e-3, lr_warmup_steps=0)
    learner = Learner(model, settings, seed=0, reference=frozen_copy(model))
    history = []
    for step in range(12):
        samples = learner.score(DPO().select(groups, step), DPO())
        history.append(learner.update(DPO().assign(samples), DPO(), step))
    assert history[0]["train/loss"] == pytest.approx(math.log(2), rel=1e-5)
    assert history[0]["train/margin"] == pytest.approx(0.0, abs=1e-5)
    assert history[-1]["train/margin"] > 0.3
    assert history[-1]["train/preferred"] == 1.0


# ---------------------------------------------------------------------------------- the settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta": 0.0}, "dpo.beta must be above 0 .* got 0.0 and 0.0"),
        ({"label_smoothing": 0.5}, "label_smoothing below 0.5, got 0.1 and 0.5"),
        ({"label_smoothing": -0.1}, "^dpo.label_smoothing must be at least 0, got -0.1"),
        ({"min_margin": -1.0}, "^dpo.min_margin must be at least 0, got -1.0"),
    ],
)
def test_dpo_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        DPOConfig(**settings)


def test_dpo_needs_a_reference_and_the_learners_own_scores():
    assert DPO.name == "dpo"
    assert DPO().needs_reference
    assert DPO().needs_proximal
    assert DPO().compares_groups
    assert DPO().one_update
