"""Numbers that are not finite: who is named, that no weight moves, and what is written down."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open

from agentgym_envs.episodes import read_episodes, write_episodes
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.algorithms.losses import LossOutput
from agentgym_train.algorithms.ppo import PPO
from agentgym_train.algorithms.settings import LossConfig
from agentgym_train.critic import Critic, CriticConfig
from agentgym_train.engines.sampling import sample
from agentgym_train.errors import NonFinite, TokenError
from agentgym_train.learner import Learner, LearnerConfig, frozen_copy
from agentgym_train.numerics import dump_nonfinite

WITH_REFERENCE = GRPO(loss=LossConfig(kl_coefficient=0.1, importance_cap=2.0))


def spoil(model):
    """Make a model say NaN."""
    with torch.no_grad():
        next(model.parameters())[:, 0] = math.nan


def replace_one(samples, **changes):
    """The samples with a number of the last one changed: by name, what to multiply it by."""
    spoilt = {name: getattr(samples[-1], name) * factor for name, factor in changes.items()}
    return [*samples[:-1], dataclasses.replace(samples[-1], **spoilt)]


def weights_of(*modules):
    return [p.detach().clone() for module in modules for p in module.parameters()]


@pytest.mark.parametrize("value", [-math.inf, math.nan])
def test_a_log_probability_of_an_episode_stops_the_step_before_credit_is_given(
    random_groups, tiny_model, value
):
    groups = random_groups(3, 4)
    groups[1][2].turns[0].logprobs[0] = value
    learner = Learner(tiny_model(), LearnerConfig(), seed=0)
    expected = f"old_logprobs {value} in episode of task 't/1', member 2; start a run with"
    with pytest.raises(NonFinite, match=expected) as caught:
        learner.score(GRPO().select(groups, 0), GRPO())
    assert len(caught.value.samples) == 12


def test_a_reward_that_is_no_number_is_named_before_statistics_swallow_it(random_groups):
    groups = random_groups(3, 4)
    groups[1][2].turns[0].reward = math.nan
    with pytest.raises(TokenError, match=r"task 't/1', member 2: turn 0 has the reward nan"):
        GRPO().select(groups, 0)


def test_a_reference_or_critic_that_gives_no_numbers_is_named(random_groups, tiny_model):
    model = tiny_model()
    reference = frozen_copy(model)
    spoil(reference)
    learner = Learner(model, LearnerConfig(), seed=0, reference=reference)
    samples = WITH_REFERENCE.select(random_groups(2, 4), 0)
    with pytest.raises(NonFinite, match="ref_logprobs nan in episode of task 't/0', member 0"):
        learner.score(samples, WITH_REFERENCE)
    critic = Critic(model, CriticConfig(learning_rate=1e-3))
    spoil(critic.trunk)
    learner = Learner(model, LearnerConfig(), seed=0, critic=critic)
    with pytest.raises(NonFinite, match="old_values nan in episode of task 't/0', member 0"):
        learner.score(PPO().select(random_groups(2, 4), 0), PPO())


@pytest.mark.parametrize(
    ("factor", "found"), [(math.nan, "nan"), (math.inf, "inf"), (1e300, r"1e\+300")]
)
def test_an_advantage_beyond_fp32_leaves_the_weights_alone(
    random_groups, tiny_model, factor, found
):
    model = tiny_model()
    before = weights_of(model)
    groups = random_groups(2, 4)
    samples = [s.with_advantages(1.0) for s in GRPO().select(groups, 0)]
    learner = Learner(model, LearnerConfig(updates_per_step=2), seed=0)
    with pytest.raises(NonFinite, match=rf"advantages {found} in episode of task 't/1', member 3"):
        learner.update(replace_one(samples, advantages=factor), GRPO(), 7)
    assert all(map(torch.equal, before, weights_of(model)))
    assert learner.weights_version == 0


def test_a_critics_target_leaves_both_models_alone(random_groups, tiny_model):
    model = tiny_model()
    critic = Critic(model, CriticConfig(learning_rate=1e-3))
    learner = Learner(model, LearnerConfig(), seed=0, critic=critic)
    samples = PPO().assign(learner.score(PPO().select(random_groups(2, 4), 0), PPO()))
    before = weights_of(model, critic)
    with pytest.raises(NonFinite, match="value_targets nan in episode of task 't/1', member 3"):
        learner.update(replace_one(samples, value_targets=math.nan), PPO(), 0)
    assert all(map(torch.equal, before, weights_of(model, critic)))


def scored(algorithm, learner, groups):
    return algorithm.assign(learner.score(algorithm.select(groups, 0), algorithm))


def test_a_policy_that_gives_no_numbers_is_named_with_the_episode(random_groups, tiny_model):
    model = tiny_model()
    learner = Learner(model, LearnerConfig(updates_per_step=1), seed=0)
    samples = scored(GRPO(), learner, random_groups(2, 4))
    spoil(model)
    before = weights_of(model)
    with pytest.raises(NonFinite, match=r"log-probability nan in episode of task 't/\d', member"):
        learner.update(samples, GRPO(), 0)
    assert all(
        torch.equal(p.nan_to_num(), q.nan_to_num())
        for p, q in zip(before, weights_of(model), strict=True)
    )
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_one_episode_among_good_ones_is_found(random_groups, tiny_model):
    model = tiny_model()
    learner = Learner(model, LearnerConfig(updates_per_step=1), seed=0)
    groups = random_groups(2, 4)
    for group in groups:  # token 28 only in one episode
        for episode in group:
            for turn in episode.turns:
                turn.context_ids = [min(token, 27) for token in turn.context_ids]
                turn.sampled_ids = [min(token, 27) for token in turn.sampled_ids]
    groups[1][1].turns[0].context_ids[0] = 28
    samples = scored(GRPO(), learner, groups)
    embeddings = model.get_input_embeddings()
    embeddings.weight = torch.nn.Parameter(embeddings.weight.detach().clone())  # not tied any more
    with torch.no_grad():
        embeddings.weight[28] = math.nan
    with pytest.raises(NonFinite, match="log-probability nan in episode of task 't/1', member 1"):
        learner.update(samples, GRPO(), 0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_is_drawn_from_logits_that_are_no_numbers(value, temperature):
    logits = torch.zeros(2, 5)
    logits[1, 3] = value
    halves, temperatures = torch.full((2,), 0.5).double(), torch.full((2,), temperature).double()
    with pytest.raises(NonFinite, match="the policy's logits are not finite"):
        sample(logits, halves, temperatures)
    sample(logits[:1], halves[:1], temperatures[:1])


class Broken(GRPO):
    """Its loss or its gradient is not finite though everything it reads is."""

    def __init__(self, factor, of):
        super().__init__()
        self.factor, self.of = factor, of

    def loss(self, inputs):
        loss = inputs.mean(-inputs.logprobs)
        if self.of == "gradient":
            loss.register_hook(lambda gradient: gradient * self.factor)
            return LossOutput(loss, {})
        return LossOutput(loss * self.factor, {})


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("loss", r"losses \[nan\] of \d+ episodes, first episode of task 't/\d', member \d"),
        ("gradient", r"gradient norms \[nan\] in step 3"),
    ],
)
def test_a_loss_or_gradient_that_is_no_number_is_caught_at_the_first_of_several_updates(
    random_groups, tiny_model, of, message
):
    model = tiny_model()
    before = weights_of(model)
    learner = Learner(model, LearnerConfig(), seed=0)
    samples = scored(GRPO(), learner, random_groups(3, 4))
    with pytest.raises(NonFinite, match=message):
        learner.update(samples, Broken(math.nan, of), 3)
    assert all(map(torch.equal, before, weights_of(model)))
    learner.update(samples, GRPO(), 4)  # nothing of it is left in the gradient
    assert all(bool(p.isfinite().all()) for p in model.parameters())


def test_weights_that_no_longer_score_their_own_batch_are_never_returned(random_groups, tiny_model):
    """The step itself is finite; a checkpoint of what it leads to could not be gone on from."""
    settings = LearnerConfig(learning_rate=1e38, lr_warmup_steps=0, updates_per_step=1)
    learner = Learner(tiny_model(), settings, seed=0)
    samples = scored(GRPO(), learner, random_groups(3, 4))
    with pytest.raises(NonFinite, match="log-probability after the update nan in episode of task"):
        learner.update(samples, GRPO(), 0)
    assert learner.weights_version == 0


def test_the_batch_is_written_down(random_groups, tiny_model, tmp_path):
    groups = random_groups(2, 4)
    groups[0][1].turns[0].logprobs[0] = math.nan
    learner = Learner(tiny_model(), LearnerConfig(), seed=0)
    folder = tmp_path / "runs" / "nonfinite-000012"
    episodes = [episode for group in groups for episode in group]
    with (
        pytest.raises(NonFinite, match=r"old_logprobs nan .*; the batch is in .*nonfinite-000012"),
        dump_nonfinite(folder, episodes),
    ):
        learner.update(scored(GRPO(), learner, groups), GRPO(), 0)
    assert (
        "old_logprobs nan in episode of task 't/0', member 1" in (folder / "error.txt").read_text()
    )
    read = list(read_episodes(folder / "episodes.jsonl"))
    assert [e.token_ids for e in read] == [e.token_ids for e in episodes]
    assert math.isnan(read[1].turns[0].logprobs[0])
    with safe_open(folder / "samples.safetensors", framework="numpy") as file:
        assert file.metadata()["0001"] == "episode of task 't/0', member 1"
        np.testing.assert_array_equal(file.get_tensor("0001.token_ids"), episodes[1].token_ids)
        assert math.isnan(file.get_tensor("0001.old_logprobs")[0])
        assert np.isfinite(file.get_tensor("0002.old_logprobs")).all()


def test_nothing_is_written_where_all_is_well(tmp_path):
    with dump_nonfinite(tmp_path / "dump", []):
        pass
    assert list(tmp_path.iterdir()) == []


TWO_RANKS = """
import json, math, sys
from pathlib import Path
from torch import distributed
from agentgym_envs.episodes import read_episodes
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.errors import NonFinite
from agentgym_train.learner import Learner, LearnerConfig
from agentgym_train.model import load_model
import torch

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
distributed.init_process_group(
    "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=2
)
model = load_model(folder / "model", dtype=torch.float32, device="cpu")
learner = Learner(model, LearnerConfig(), seed=0)
group = list(read_episodes(folder / f"rank-{rank}.jsonl"))
found = ""
try:
    learner.update([s.with_advantages(1.0) for s in GRPO().select([group], 0)], GRPO(), 0)
except NonFinite as error:
    found = str(error)
(folder / f"result-{rank}.txt").write_text(found)
distributed.destroy_process_group()
"""


def test_all_ranks_stop_and_name_the_episode_of_the_one_that_found_it(
    random_groups, tiny_model, tmp_path
):
    tiny_model().save_pretrained(tmp_path / "model")
    groups = random_groups(2, 4)
    groups[1][2].turns[0].logprobs[0] = math.nan
    for rank, group in enumerate(groups):
        write_episodes(tmp_path / f"rank-{rank}.jsonl", group)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_RANKS, str(tmp_path), str(rank)], env=environment
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    found = [(tmp_path / f"result-{rank}.txt").read_text() for rank in range(2)]
    assert found[0] == found[1]
    assert "old_logprobs nan in episode of task 't/1', member 2" in found[0]
