from __future__ import annotations

import math

import pytest
import torch

from agentgym_train.algorithms.losses import (
    LossInputs,
    clipped_surrogate,
    kl_estimates,
    policy_loss,
    supervised_loss,
)

CLIP = {"clip_low": 0.2, "clip_high": 0.28}


def inputs_of(ratios, advantages, *, normalizer=None, entropy=0.0, ref_log_ratios=None):
    """Loss inputs whose probability ratios are `ratios`."""
    old = torch.full((len(ratios),), -1.0, dtype=torch.float64)
    logprobs = (old + torch.tensor(ratios, dtype=torch.float64).log()).requires_grad_()
    ref = None
    if ref_log_ratios is not None:
        ref = (logprobs - torch.tensor(ref_log_ratios, dtype=torch.float64)).detach()
    return LossInputs(
        logprobs=logprobs,
        entropy=torch.full_like(old, entropy),
        normalizer=normalizer or len(ratios),
        old_logprobs=old,
        advantages=torch.tensor(advantages, dtype=torch.float64),
        ref_logprobs=ref,
    )


# One row a token: ratio, advantage, loss, its gradient in the log-probability, whether clipped.
# The gradient of -ratio * A in log p is -ratio * A itself; a clipped token has none.
TOKENS = [
    (1.0, 2.0, -2.0, -2.0, False),
    (1.1, 1.0, -1.1, -1.1, False),
    (1.5, 1.0, -1.28, 0.0, True),
    (0.5, 1.0, -0.5, -0.5, False),
    (1.5, -1.0, 1.5, 1.5, False),
    (0.5, -2.0, 1.6, 0.0, True),
    (0.9, -1.0, 0.9, 0.9, False),
]


@pytest.mark.parametrize(("ratio", "advantage", "loss", "gradient", "clipped"), TOKENS)
def test_the_surrogate_of_one_token(ratio, advantage, loss, gradient, clipped):
    log_ratio = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    per_token, was_clipped = clipped_surrogate(log_ratio, torch.tensor([advantage]), **CLIP)
    per_token.sum().backward()
    assert per_token.item() == pytest.approx(loss, abs=1e-9)
    assert log_ratio.grad.item() == pytest.approx(gradient, abs=1e-9)
    assert was_clipped.tolist() == [clipped]


def test_the_policy_loss_is_the_mean_over_tokens_and_its_sums_say_what_happened():
    ratios, advantages, losses, gradients, clipped = zip(*TOKENS, strict=True)
    inputs = inputs_of(ratios, advantages, entropy=1.5)
    output = policy_loss(inputs, **CLIP)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(sum(losses) / 7)
    assert inputs.logprobs.grad.tolist() == pytest.approx([g / 7 for g in gradients])
    assert output.token_sums["policy_loss"].item() == pytest.approx(sum(losses))
    assert output.token_sums["clip_share"].item() == sum(clipped) == 2
    assert output.token_sums["entropy"].item() == pytest.approx(7 * 1.5)
    assert output.token_sums["kl_k1"].item() == pytest.approx(-sum(map(math.log, ratios)))
    k3 = sum(ratio - 1 - math.log(ratio) for ratio in ratios)
    assert output.token_sums["kl_k3"].item() == pytest.approx(k3)
    assert output.maxima["ratio_max"].item() == pytest.approx(1.5)
    assert "kl_ref" not in output.token_sums


def test_micro_batches_of_ten_and_a_thousand_tokens_give_the_mean_over_all_tokens():
    small = inputs_of([1.0] * 10, [-1.0] * 10, normalizer=1010)  # a loss of 1 a token
    large = inputs_of([1.0] * 1000, [0.0] * 1000, normalizer=1010)  # a loss of 0 a token
    total = policy_loss(small, **CLIP).loss + policy_loss(large, **CLIP).loss
    assert total.item() == pytest.approx(10 / 1010)  # 0.0099, not 0.5


def test_an_enormous_ratio_stays_finite():
    inputs = inputs_of([1.0, 1.0], [-1.0, 1.0])
    inputs.logprobs.data += torch.tensor([500.0, -500.0])
    output = policy_loss(inputs, **CLIP)
    output.loss.backward()
    assert output.loss.item() == pytest.approx((math.exp(20) - math.exp(-20)) / 2)
    assert output.maxima["ratio_max"].item() == pytest.approx(math.exp(20))
    assert math.isfinite(output.token_sums["kl_k3"].item())
    assert torch.isfinite(inputs.logprobs.grad).all()


def test_the_entropy_bonus_is_subtracted():
    inputs = inputs_of([1.0, 1.0], [0.0, 0.0], entropy=2.0)
    assert policy_loss(inputs, **CLIP, entropy_coefficient=0.01).loss.item() == pytest.approx(-0.02)


def test_the_divergence_from_the_reference_is_k3():
    log_ratios = [0.5, -0.25]
    inputs = inputs_of([1.0, 1.0], [0.0, 0.0], ref_log_ratios=log_ratios)
    output = policy_loss(inputs, **CLIP, kl_coefficient=0.1)
    output.loss.backward()
    k3 = [math.exp(-d) - 1 + d for d in log_ratios]
    assert output.token_sums["kl_ref"].item() == pytest.approx(sum(k3))
    assert output.loss.item() == pytest.approx(0.1 * sum(k3) / 2)
    gradient = [0.1 * (1 - math.exp(-d)) / 2 for d in log_ratios]
    assert inputs.logprobs.grad.tolist() == pytest.approx(gradient)


def test_both_divergence_estimates_have_the_divergence_as_their_mean():
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    q = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64)
    divergence = sum(a * math.log(a / b) for a, b in zip(p.tolist(), q.tolist(), strict=True))
    k1, k3 = kl_estimates(p.log() - q.log())
    assert (p * k1).sum().item() == pytest.approx(divergence)
    assert (p * k3).sum().item() == pytest.approx(divergence)
    assert (k3 >= 0).all()


def test_the_supervised_loss_is_minus_the_log_probability_over_the_global_count():
    logprobs = torch.tensor([-1.0, -3.0], requires_grad=True)
    inputs = LossInputs(logprobs=logprobs, entropy=torch.tensor([0.5, 1.0]), normalizer=8)
    output = supervised_loss(inputs)
    output.loss.backward()
    assert output.loss.item() == 0.5
    assert logprobs.grad.tolist() == [-0.125, -0.125]
    assert output.token_sums["entropy"].item() == 1.5


@pytest.mark.parametrize("missing", ["old_logprobs", "advantages", "ref_logprobs"])
def test_what_is_not_assigned_is_not_zero(missing):
    values = vars(inputs_of([1.0], [1.0], ref_log_ratios=[0.0])) | {missing: None}
    with pytest.raises(ValueError, match=f"needs {missing}, but they are not assigned"):
        policy_loss(LossInputs(**values), **CLIP, kl_coefficient=0.1)
