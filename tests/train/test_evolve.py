"""Evolve: which of the policy's own episodes it imitates, and how much each counts."""

from __future__ import annotations

import pytest
import torch

from agentgym_envs.episodes import EndReason
from agentgym_train.algorithms.evolve import Evolve, EvolveConfig
from agentgym_train.algorithms.losses import LossInputs
from agentgym_train.algorithms.settings import CreditConfig
from agentgym_train.batching import collate
from agentgym_train.errors import ConfigError
from agentgym_train.learner import Learner, LearnerConfig


def group_of(make_episode, scores, reasons=None):
    """Episodes of one to n sampled tokens, by which they are known."""
    reasons = reasons or [EndReason.HORIZON] * len(scores)
    group = []
    for member, (score, reason) in enumerate(zip(scores, reasons, strict=True)):
        episode = make_episode([([5], [1] * (1 + member), 7.0)], end_reason=reason, member=member)
        episode.turns[-1].score = score
        group.append(episode)
    return group


def kept_at(chosen, group, step):
    """(number of the episode, weight) of what is imitated."""
    return [(sample.num_sampled - 1, sample.weight) for sample in chosen.select([group], step)]


def kept(chosen, group):
    return kept_at(chosen, group, 0)


def test_successes_are_kept_and_nothing_else(make_episode):
    reasons = [EndReason.SUCCESS, EndReason.FAILURE, EndReason.HORIZON]
    group = group_of(make_episode, [0.9, 0.9, 0.0], reasons)  # the first by its reason alone
    assert kept(Evolve(), group) == [(0, 1.0)]
    assert [Evolve().worth(episode) for episode in group] == [1.0, 0.0, 0.0]


def test_a_lower_score_may_be_enough(make_episode):
    group = group_of(make_episode, [0.0, 0.4, 0.5, 1.0])
    assert kept(Evolve(EvolveConfig(min_score=0.5)), group) == [(2, 1.0), (3, 1.0)]
    assert kept(Evolve(EvolveConfig(min_score=0.0)), group) == [(1, 1.0), (2, 1.0), (3, 1.0)]


def test_episodes_may_count_by_their_score(make_episode):
    reasons = [EndReason.SUCCESS, *[EndReason.HORIZON] * 3]
    group = group_of(make_episode, [0.0, 0.4, 0.5, 0.0], reasons)
    chosen = Evolve(EvolveConfig(min_score=0.5, weighted=True))
    assert kept(chosen, group) == [(0, 1.0), (2, 0.5)]
    samples, normalizer = chosen.weigh(chosen.select([group], 0))
    assert normalizer == 1 + 3
    batch = collate(samples)
    inputs = LossInputs(batch, torch.full((4,), -2.0), torch.zeros(4), normalizer)
    assert chosen.loss(inputs).loss.item() == pytest.approx((1 * 2.0 + 0.5 * 3 * 2.0) / 4)


@pytest.mark.parametrize("reason", ["fault", "context", "budget", "stopped"])
def test_a_masked_episode_is_not_imitated(make_episode, reason):
    reasons = [EndReason.SUCCESS, EndReason(reason)]
    group = group_of(make_episode, [1.0, 1.0], reasons)
    chosen = Evolve(credit=CreditConfig(**{f"on_{reason}": "mask"}))
    assert kept(chosen, group) == [(0, 1.0)]
    assert kept(Evolve(credit=CreditConfig(**{f"on_{reason}": "drop"})), group) == []


def test_a_group_may_have_one_episode_as_a_demonstration_has(make_episode):
    assert Evolve.name == "evolve"
    assert Evolve().config.demonstrations == 0
    (sample,) = Evolve().select([group_of(make_episode, [1.0])], 0)
    assert sample.old_logprobs is None
    assert collate([sample]).weights.dtype == torch.float32
    for name in ("compares_groups", "needs_reference", "needs_proximal", "one_update"):
        assert getattr(Evolve(), name) is False
    assert Evolve().assign([sample]) == [sample]


def test_in_the_control_as_many_episodes_are_kept_whatever_they_did(make_episode):
    group = group_of(make_episode, [1.0, 0.0, 0.5, 0.0])
    config = EvolveConfig(min_score=0.5, weighted=True)
    control = Evolve(config, credit=CreditConfig(permute_rewards=True))
    found = [dict(kept_at(control, group, step)) for step in range(200)]
    assert all(sorted(weights.values()) == [0.5, 1.0] for weights in found)
    times = [sum(number in weights for weights in found) for number in range(4)]
    assert all(70 < count < 130 for count in times)  # a half, standard deviation 7
    assert found[0] == dict(kept_at(control, group, 0))
    assert kept(control, group[:1]) == [(0, 1.0)]
    plain = Evolve(config)
    assert all(kept_at(plain, group, step) == [(0, 1.0), (2, 0.5)] for step in range(20))


def test_it_makes_what_did_well_likelier(random_groups, tiny_model):
    groups = random_groups(3, 4)
    for group in groups:
        for episode in group:
            episode.success = episode.return_ > 0
    learner = Learner(tiny_model(), LearnerConfig(learning_rate=1e-2), seed=0)
    losses = [
        learner.update(Evolve().select(groups, step), Evolve(), step)["train/loss"]
        for step in range(12)
    ]
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_score": -0.1}, "^evolve.min_score must be at least 0, got -0.1"),
        ({"min_score": 1.1}, "evolve.min_score is a score, 0..1; got 1.1"),
        ({"demonstrations": -1}, "^evolve.demonstrations must be at least 0, got -1"),
    ],
)
def test_evolve_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        EvolveConfig(**settings)
