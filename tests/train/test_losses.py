"""Losses against numbers worked by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from agentgym_train.algorithms.losses import LossInputs, policy_loss, supervised_loss, value_loss
from agentgym_train.algorithms.settings import LossConfig
from agentgym_train.algorithms.terms import clipped_surrogate, kl_estimate, spread_log_ratio
from agentgym_train.batching import Sample, collate

PLAIN = {"clip_low": 0.2, "clip_high": 0.28, "entropy_coefficient": 0.0}


def numbers(values):
    return None if values is None else torch.tensor(values, dtype=torch.float64)


def batch_of(turns, weights=None, **assigned):
    """A batch whose rows have, for each of `turns`' sequences, that many tokens a turn."""
    batch = collate(
        [
            Sample(
                token_ids=np.zeros(1 + sum(counts), dtype=np.int64),
                sampled_mask=np.arange(1 + sum(counts)) > 0,
                turn_index=np.repeat(np.arange(len(counts)), counts),
                rewards=np.zeros(sum(counts)),
            )
            for counts in turns
        ]
    )
    if weights is not None:
        assigned["weights"] = weights
    return dataclasses.replace(
        batch, **{name: numbers(values) for name, values in assigned.items()}
    )


def inputs_of(ratios, advantages=None, *, turns=None, normalizer=None, entropy=0.0, **assigned):
    """Loss inputs whose probability ratios to the old policy are `ratios`."""
    assigned = {"old_logprobs": [-1.0] * len(ratios), "advantages": advantages} | assigned
    return LossInputs(
        batch=batch_of(turns or [[len(ratios)]], **assigned),
        logprobs=(numbers(ratios).log() - 1.0).requires_grad_(),
        entropy=torch.full((len(ratios),), entropy, dtype=torch.float64),
        normalizer=normalizer or len(ratios),
    )


def loss_of(inputs, **settings):
    return policy_loss(inputs, LossConfig(**PLAIN | settings))


# ------------------------------------------------------------------------------------ surrogate

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
    (4.0, -0.5, 2.0, 2.0, False),
]
# With a dual clip at 3 the last token costs no more than 3 times its advantage.
DUAL = [*TOKENS[:-1], (4.0, -0.5, 1.5, 0.0, True), (2.9, -0.5, 1.45, 1.45, False)]


@pytest.mark.parametrize(
    ("dual_clip", "token"), [(0.0, token) for token in TOKENS] + [(3.0, token) for token in DUAL]
)
def test_the_surrogate_of_one_token(dual_clip, token):
    ratio, advantage, loss, gradient, clipped = token
    log_ratio = numbers([math.log(ratio)]).requires_grad_()
    per_token, was_clipped = clipped_surrogate(
        log_ratio, numbers([advantage]), clip_low=0.2, clip_high=0.28, dual_clip=dual_clip
    )
    per_token.sum().backward()
    assert per_token.item() == pytest.approx(loss, abs=1e-9)
    assert log_ratio.grad.item() == pytest.approx(gradient, abs=1e-9)
    assert was_clipped.tolist() == [clipped]


@pytest.mark.parametrize("advantage", [0.0, 0.5])
def test_a_dual_clip_leaves_tokens_alone_that_are_not_bad(advantage):
    per_token, clipped = clipped_surrogate(
        numbers([math.log(4)]), numbers([advantage]), clip_low=0.2, clip_high=9.0, dual_clip=3.0
    )
    assert per_token.item() == pytest.approx(-4.0 * advantage)
    assert clipped.tolist() == [False]


def test_a_ratio_at_the_dual_clip_is_not_beyond_it():
    log_ratio = numbers([0.0]).requires_grad_()
    per_token, clipped = clipped_surrogate(
        log_ratio, numbers([-1.0]), clip_low=0.2, clip_high=0.28, dual_clip=1.0
    )
    per_token.sum().backward()
    assert (per_token.item(), log_ratio.grad.item(), clipped.tolist()) == (1.0, 1.0, [False])


def test_the_policy_loss_is_the_mean_over_tokens_and_its_sums_say_what_happened():
    ratios, advantages, losses, gradients, clipped = zip(*TOKENS, strict=True)
    inputs = inputs_of(ratios, advantages, entropy=1.5)
    output = loss_of(inputs)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(sum(losses) / 8)
    assert inputs.logprobs.grad.tolist() == pytest.approx([g / 8 for g in gradients])
    sums = {name: value.item() for name, value in output.token_sums.items()}
    k3 = sum(ratio - 1 - math.log(ratio) for ratio in ratios)
    assert sums == {
        "policy_loss": pytest.approx(sum(losses)),
        "clip_share": sum(clipped),
        "entropy": pytest.approx(8 * 1.5),
        "kl_k1": pytest.approx(-sum(map(math.log, ratios))),
        "kl_k3": pytest.approx(k3),
    }
    assert output.maxima["ratio_max"].item() == pytest.approx(4.0)


def test_what_is_logged_holds_on_to_no_gradient():
    inputs = inputs_of([1.5], [1.0], ref_logprobs=[-2.0], proximal_logprobs=[-1.1])
    entropy = inputs.entropy.requires_grad_()
    inputs = LossInputs(inputs.batch, inputs.logprobs, entropy, inputs.normalizer)
    output = loss_of(inputs, importance_cap=2.0, entropy_coefficient=0.1, kl_coefficient=0.1)
    assert output.loss.requires_grad
    logged = [*output.token_sums.values(), *output.maxima.values()]
    assert len(logged) == 12
    assert not any(value.requires_grad for value in logged)


def test_a_dual_clip_is_part_of_the_loss():
    inputs = inputs_of([4.0], [-0.5])
    assert loss_of(inputs, dual_clip=3.0).loss.item() == pytest.approx(1.5)
    assert loss_of(inputs).loss.item() == pytest.approx(2.0)


def test_the_clip_range_is_the_configured_one():
    inputs = inputs_of([2.0, 0.3], [1.0, -1.0])
    found = loss_of(inputs, clip_low=0.5, clip_high=0.6)
    assert found.loss.item() == pytest.approx((-1.6 + 0.5) / 2)


def test_micro_batches_of_ten_and_a_thousand_tokens_give_the_mean_over_all_tokens():
    small = inputs_of([1.0] * 10, [-1.0] * 10, normalizer=1010)  # a loss of 1 a token
    large = inputs_of([1.0] * 1000, [0.0] * 1000, normalizer=1010)  # a loss of 0 a token
    total = loss_of(small).loss + loss_of(large).loss
    assert total.item() == pytest.approx(10 / 1010)  # 0.0099, not 0.5


def test_every_term_of_the_loss_is_weighed():
    inputs = inputs_of(
        [1.0, 1.0],
        [1.0, 2.0],
        weights=[0.5, 0.25],
        normalizer=4,
        entropy=8.0,
        ref_logprobs=[-2.0, -1.0],  # log-ratios 1 and 0
    )
    found = loss_of(inputs, entropy_coefficient=0.1, kl_coefficient=0.2, kl_estimator="k2")
    terms = 0.5 * (-1.0 - 0.8 + 0.2 * 0.5) + 0.25 * (-2.0 - 0.8 + 0.0)
    assert found.loss.item() == pytest.approx(terms / 4)
    assert found.token_sums["policy_loss"].item() == pytest.approx(-3.0)  # metrics are not


def test_an_enormous_ratio_stays_finite():
    inputs = inputs_of([1.0, 1.0], [-1.0, 1.0])
    inputs.logprobs.data += torch.tensor([500.0, -500.0])
    output = loss_of(inputs)
    output.loss.backward()
    assert output.loss.item() == pytest.approx((math.exp(20) - math.exp(-20)) / 2)
    assert output.maxima["ratio_max"].item() == pytest.approx(math.exp(20))
    assert math.isfinite(output.token_sums["kl_k3"].item())
    assert torch.isfinite(inputs.logprobs.grad).all()


def test_the_entropy_bonus_is_subtracted():
    inputs = inputs_of([1.0, 1.0], [0.0, 0.0], entropy=2.0)
    assert loss_of(inputs, entropy_coefficient=0.01).loss.item() == pytest.approx(-0.02)


# --------------------------------------------------------------------------- turns and sequences

TURNS = [[2, 1], [1, 1]]
LOG_RATIOS = [0.1, 0.3, -0.6, 0.5, 0.7]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("token", LOG_RATIOS),
        ("turn", [0.2, 0.2, -0.6, 0.5, 0.7]),
        ("sequence", [-0.2 / 3, -0.2 / 3, -0.2 / 3, 0.6, 0.6]),
    ],
)
def test_a_token_is_clipped_by_the_mean_log_ratio_of_its_turn_or_sequence(level, expected):
    own = numbers(LOG_RATIOS).requires_grad_()
    spread = spread_log_ratio(own, batch_of(TURNS), level)
    assert spread.tolist() == pytest.approx(expected)
    (spread * torch.arange(5.0)).sum().backward()
    assert own.grad.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]  # the gradient is the token's own


def test_a_turn_of_one_sequence_is_none_of_another_however_many_turns_there_are():
    log_ratios = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]  # one token a turn: every mean is the token's own
    spread = spread_log_ratio(numbers(log_ratios), batch_of([[1, 1, 1], [1, 1, 1]]), "turn")
    assert spread.tolist() == pytest.approx(log_ratios)


@pytest.mark.parametrize("level", ["turn", "sequence"])
def test_the_sequences_of_a_batch_do_not_touch_one_another(level):
    together = spread_log_ratio(numbers(LOG_RATIOS), batch_of(TURNS), level)
    first = spread_log_ratio(numbers(LOG_RATIOS[:3]), batch_of(TURNS[:1]), level)
    second = spread_log_ratio(numbers(LOG_RATIOS[3:]), batch_of(TURNS[1:]), level)
    assert together.tolist() == pytest.approx([*first.tolist(), *second.tolist()])


def test_a_sequence_ratio_clips_whole_sequences():
    ratios = [math.exp(value) for value in LOG_RATIOS]
    inputs = inputs_of(ratios, [1.0] * 5, turns=TURNS)
    output = loss_of(inputs, ratio="sequence")
    output.loss.backward()
    first = math.exp(-0.2 / 3)
    assert output.loss.item() == pytest.approx(-(3 * first + 2 * 1.28) / 5)
    assert inputs.logprobs.grad.tolist() == pytest.approx([-first / 5] * 3 + [0.0] * 2)
    assert output.token_sums["clip_share"].item() == 2
    assert output.maxima["ratio_max"].item() == pytest.approx(math.exp(0.7))  # of single tokens


def test_with_sequence_means_it_is_gspo():
    # GSPO: the mean over sequences of -s A with s the geometric mean ratio, and its own gradient.
    ratios = [math.exp(value / 10) for value in LOG_RATIOS]  # none is clipped
    advantages = [2.0] * 3 + [-1.0] * 2
    weights = [1 / 3] * 3 + [1 / 2] * 2
    inputs = inputs_of(ratios, advantages, turns=TURNS, weights=weights, normalizer=2)
    loss_of(inputs, ratio="sequence").loss.backward()

    logprobs = inputs.logprobs.detach().clone().requires_grad_()
    log_ratio = logprobs + 1.0
    gspo = -(2.0 * log_ratio[:3].mean().exp() - log_ratio[3:].mean().exp()) / 2
    gspo.backward()
    assert inputs.logprobs.grad.tolist() == pytest.approx(logprobs.grad.tolist(), rel=1e-6)


# ----------------------------------------------------------------------------------- divergence


@pytest.mark.parametrize(
    ("estimator", "value", "gradient"),
    [
        ("k2", lambda d: d * d / 2, lambda d: d),
        ("k3", lambda d: math.exp(-d) - 1 + d, lambda d: 1 - math.exp(-d)),
    ],
)
def test_a_divergence_in_the_loss_has_the_estimators_value_and_gradient(estimator, value, gradient):
    log_ratios = [0.5, -0.25]
    refs = [-1.5, -0.75]  # the policy's are -1
    inputs = inputs_of([1.0, 1.0], [0.0, 0.0], ref_logprobs=refs)
    output = loss_of(inputs, kl_coefficient=0.1, kl_estimator=estimator)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(0.1 * sum(map(value, log_ratios)) / 2)
    assert inputs.logprobs.grad.tolist() == pytest.approx(
        [0.1 * gradient(d) / 2 for d in log_ratios]
    )
    k3 = sum(math.exp(-d) - 1 + d for d in log_ratios)
    assert output.token_sums["kl_ref"].item() == pytest.approx(k3)


def test_a_divergence_in_the_reward_is_logged_but_not_in_the_loss():
    inputs = inputs_of([1.0], [0.0], ref_logprobs=[-1.5])
    output = loss_of(inputs, kl_coefficient=0.1, kl_in="reward", kl_estimator="k1")
    assert output.loss.item() == 0.0
    assert output.token_sums["kl_ref"].item() == pytest.approx(math.exp(-0.5) - 0.5)


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_estimates_of_a_divergence(estimator):
    p, q = numbers([0.5, 0.3, 0.2]), numbers([0.2, 0.2, 0.6])
    divergence = sum(a * math.log(a / b) for a, b in zip(p.tolist(), q.tolist(), strict=True))
    estimate = kl_estimate(p.log() - q.log(), estimator)
    if estimator == "k2":
        squares = sum(a * math.log(a / b) ** 2 for a, b in zip(p.tolist(), q.tolist(), strict=True))
        assert (p * estimate).sum().item() == pytest.approx(squares / 2)
    else:
        assert (p * estimate).sum().item() == pytest.approx(divergence)
    if estimator != "k1":
        assert (estimate >= 0).all()


def test_a_bounded_estimate_of_an_enormous_divergence():
    found = kl_estimate(numbers([500.0, -500.0]), "k3")  # as if the log-ratios were 20 and -20
    assert found.tolist() == pytest.approx([math.exp(-20) - 1 + 20, math.exp(20) - 1 - 20])


def expected_gradient(estimator, kl_ratio):
    """The gradient in the logits of the mean divergence term over tokens drawn from the policy."""
    logits = numbers([0.3, -0.2, 0.9]).requires_grad_()
    reference = torch.log_softmax(numbers([-0.5, 0.4, 0.1]), -1)
    logprobs = torch.log_softmax(logits, -1)
    batch = batch_of(
        [[3]],
        old_logprobs=logprobs.tolist(),
        advantages=[0.0] * 3,
        ref_logprobs=reference.tolist(),
        # Each token once, weighed by its probability: the mean over all that can be sampled.
        weights=logprobs.exp().tolist(),
    )
    inputs = LossInputs(batch, logprobs, torch.zeros(3), 1)
    settings = {"kl_in": "loss", "kl_estimator": estimator, "kl_ratio": kl_ratio}
    loss_of(inputs, kl_coefficient=1.0, **settings).loss.backward()
    return logits.grad


def true_gradient(forward):
    logits = numbers([0.3, -0.2, 0.9]).requires_grad_()
    reference = torch.log_softmax(numbers([-0.5, 0.4, 0.1]), -1)
    logprobs = torch.log_softmax(logits, -1)
    if forward:
        (reference.exp() * (reference - logprobs)).sum().backward()
    else:
        (logprobs.exp() * (logprobs - reference)).sum().backward()
    return logits.grad


def test_gradients_of_divergences_are_what_the_settings_say():
    reverse, forward = true_gradient(forward=False), true_gradient(forward=True)
    torch.testing.assert_close(expected_gradient("k2", kl_ratio=False), reverse)
    torch.testing.assert_close(expected_gradient("k3", kl_ratio=False), forward)
    torch.testing.assert_close(expected_gradient("k1", kl_ratio=True), reverse)
    torch.testing.assert_close(expected_gradient("k3", kl_ratio=True), reverse)


def test_the_ratio_of_a_divergence_is_that_of_the_token():
    inputs = inputs_of([2.0], [0.0], ref_logprobs=[-1.0])  # log-ratio to the reference: log 2
    found = loss_of(inputs, kl_coefficient=1.0, kl_estimator="k1", kl_ratio=True)
    assert found.loss.item() == pytest.approx(2 * math.log(2))


# ------------------------------------------------------------------------- sampler and learner


def test_a_token_the_sampler_and_the_learner_disagree_on_is_weighed_up_to_the_cap():
    # The learner's own ratios are all 1; learner to sampler they are 4, 0.5 and 1.
    learner = [-1.0 + math.log(4), -1.0 + math.log(0.5), -1.0]
    inputs = inputs_of([4.0, 0.5, 1.0], [1.0, 1.0, -2.0], proximal_logprobs=learner, entropy=3.0)
    output = loss_of(inputs, importance_cap=2.0, entropy_coefficient=0.1)
    output.loss.backward()
    # The bonus is not weighed.
    assert output.loss.item() == pytest.approx((-2.0 - 0.5 + 2.0) / 3 - 0.3)
    assert inputs.logprobs.grad.tolist() == pytest.approx([-2 / 3, -0.5 / 3, 2 / 3])
    sums = {name: value.item() for name, value in output.token_sums.items()}
    assert sums["policy_loss"] == pytest.approx(-0.5)
    assert sums["clip_share"] == 0
    assert sums["kl_k3"] == pytest.approx(0.0)
    assert sums["importance_mean"] == pytest.approx(5.5)
    assert sums["importance_square"] == pytest.approx(16 + 0.25 + 1)
    assert sums["importance_cut"] == 1
    mismatch = (4 - 1 - math.log(4)) + (0.5 - 1 - math.log(0.5))
    assert sums["mismatch_k3"] == pytest.approx(mismatch)
    assert output.maxima["importance_max"].item() == pytest.approx(4.0)
    assert output.maxima["ratio_max"].item() == pytest.approx(1.0)


def test_with_a_correction_the_ratio_is_clipped_against_the_learners_own():
    inputs = inputs_of([1.0], [1.0], proximal_logprobs=[-1.0 - math.log(2)])
    found = loss_of(inputs, importance_cap=2.0)
    assert found.loss.item() == pytest.approx(-1.28 * 0.5)  # ratio 2, clipped; weight 0.5


def test_a_weight_at_the_cap_is_not_cut():
    inputs = inputs_of([1.0], [1.0], proximal_logprobs=[-1.0])
    assert loss_of(inputs, importance_cap=1.0).token_sums["importance_cut"].item() == 0


def test_without_a_correction_the_samplers_log_probabilities_count():
    inputs = inputs_of([1.0], [1.0], proximal_logprobs=[-3.0])
    assert loss_of(inputs).loss.item() == pytest.approx(-1.0)


# ------------------------------------------------------------------------------ values, teachers


@pytest.mark.parametrize(
    ("value", "old", "target", "clip", "loss", "gradient"),
    [
        (1.5, 0.5, 3.5, 0.0, 2.0, -2.0),
        (1.5, 0.5, 3.5, 0.2, 0.5 * 2.8**2, 0.0),  # moved to the target by more than allowed
        (0.6, 0.5, 3.5, 0.2, 0.5 * 2.9**2, -2.9),
        (-0.5, 0.5, 3.5, 0.2, 8.0, -4.0),  # moved away: the larger error counts
        (1.5, 0.5, -2.5, 0.2, 8.0, 4.0),
        (0.4, 0.5, -3.0, 0.2, 0.5 * 3.4**2, 3.4),
        (-0.5, 0.5, -3.0, 0.2, 0.5 * 3.3**2, 0.0),
    ],
)
def test_the_value_loss_of_one_token(value, old, target, clip, loss, gradient):
    inputs = inputs_of([1.0], old_values=[old], value_targets=[target])
    values = numbers([value]).requires_grad_()
    output = value_loss(inputs, values, clip)
    output.loss.backward()
    assert output.loss.item() == pytest.approx(loss)
    assert values.grad.tolist() == pytest.approx([gradient])
    assert output.token_sums["value_loss"].item() == pytest.approx(loss)
    assert not output.token_sums["value_loss"].requires_grad


def test_the_value_loss_is_weighed_like_the_policy_loss():
    inputs = inputs_of(
        [1.0, 1.0],
        old_values=[0.0, 0.0],
        value_targets=[2.0, 4.0],
        weights=[1.0, 0.5],
        normalizer=3,
    )
    output = value_loss(inputs, numbers([0.0, 0.0]), 0.0)
    assert output.loss.item() == pytest.approx((2.0 + 0.5 * 8.0) / 3)
    assert output.token_sums["value_loss"].item() == pytest.approx(10.0)


def test_the_supervised_loss_is_minus_the_log_probability_over_the_global_count():
    logprobs = torch.tensor([-1.0, -3.0], requires_grad=True)
    entropy = torch.tensor([0.5, 1.0], requires_grad=True)
    inputs = LossInputs(batch_of([[2]]), logprobs, entropy, normalizer=8)
    output = supervised_loss(inputs)
    output.loss.backward()
    assert not output.token_sums["entropy"].requires_grad
    assert output.loss.item() == 0.5
    assert logprobs.grad.tolist() == [-0.125, -0.125]
    assert output.token_sums["entropy"].item() == 1.5


@pytest.mark.parametrize(
    "missing", ["old_logprobs", "advantages", "ref_logprobs", "proximal_logprobs"]
)
def test_what_is_not_assigned_is_not_zero(missing):
    assigned = {"advantages": [1.0], "ref_logprobs": [0.0], "proximal_logprobs": [-1.0]}
    inputs = inputs_of([1.0], **assigned | {missing: None})
    with pytest.raises(ValueError, match=f"needs {missing}, but they are not assigned"):
        loss_of(inputs, kl_coefficient=0.1, importance_cap=2.0)


@pytest.mark.parametrize("missing", ["old_values", "value_targets"])
def test_values_that_are_not_assigned_are_not_zero(missing):
    assigned = {"old_values": [0.0], "value_targets": [0.0]} | {missing: None}
    with pytest.raises(ValueError, match=f"needs {missing}, but they are not assigned"):
        value_loss(inputs_of([1.0], **assigned), numbers([0.0]), 0.2)
