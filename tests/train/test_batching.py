from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from agentgym_envs.errors import InvalidRecord
from agentgym_train import batching
from agentgym_train.batching import (
    Sample,
    collate,
    micro_batches,
    sample_from_episode,
    sampled_hidden,
    sampled_logprobs,
    split_minibatches,
)
from agentgym_train.errors import TokenError


def sample_of_length(num_tokens: int, *, first_id: int = 1) -> Sample:
    mask = np.zeros(num_tokens, dtype=bool)
    mask[-1] = True
    return Sample(
        token_ids=np.arange(first_id, first_id + num_tokens, dtype=np.int64),
        sampled_mask=mask,
        turn_index=np.zeros(1, dtype=np.int64),
        rewards=np.zeros(1),
    )


def test_a_sample_holds_all_tokens_and_numbers_for_sampled_ones_only(make_episode):
    episode = make_episode(
        [([5, 6], [7], 0.0), ([8], [9, 10], 1.0)], logprobs=[[-0.5], [-0.25, -2.0]]
    )
    sample = sample_from_episode(episode)
    assert sample.token_ids.tolist() == [5, 6, 7, 8, 9, 10]
    assert sample.sampled_mask.tolist() == [False, False, True, False, True, True]
    assert sample.old_logprobs.tolist() == [-0.5, -0.25, -2.0]
    assert sample.turn_index.tolist() == [0, 1, 1]
    assert sample.rewards.tolist() == [0.0, 0.0, 1.0]
    assert (sample.num_tokens, sample.num_sampled, sample.group) == (6, 3, 0)
    assert sample.advantages is None
    assert sample.with_advantages(0.5).advantages.tolist() == [0.5, 0.5, 0.5]
    for whole in (1, np.ones(3, dtype=np.float32)):
        assert sample.with_advantages(whole).advantages.dtype == np.float64


def test_a_sample_that_bootstraps_ends_with_its_final_observation(make_episode):
    episode = make_episode([([5, 6], [7], 0.0), ([8], [9, 10], 1.0)])
    episode.tail_ids = [11, 12]
    sample = sample_from_episode(episode, group=3, bootstraps=True)
    assert sample.token_ids.tolist() == [5, 6, 7, 8, 9, 10, 11, 12]
    assert sample.sampled_mask.tolist() == [False, False, True, False, True, True, False, False]
    assert sample.turn_index.tolist() == [0, 1, 1]
    assert (sample.bootstraps, sample.group, sample.final_value) == (True, 3, 0.0)
    assert sample_from_episode(episode).num_tokens == 6


def test_a_record_that_contradicts_itself_is_refused(make_episode):
    episode = make_episode([([5], [7], 0.0)], task_id="t/7", member=3)
    episode.turns[0].logprobs.append(-1.0)
    with pytest.raises(TokenError, match="episode of task 't/7', member 3: turn 0 has 1 sampled"):
        sample_from_episode(episode)


def test_advantages_of_another_length_are_refused():
    with pytest.raises(
        InvalidRecord, match=r"one number for each of the 1 sampled .* shape \(2,\)"
    ):
        dataclasses.replace(sample_of_length(3), advantages=np.zeros(2))


def test_a_sample_is_refused_for_what_any_sequence_of_tokens_is():
    with pytest.raises(InvalidRecord, match="the first token is a sampled one"):
        sample_of_length(1)


def test_a_sample_counts_whole_and_ends_with_its_tokens_unless_said_otherwise():
    sample = sample_of_length(2)
    assert (sample.weight, sample.bootstraps, sample.final_value) == (1.0, False, 0.0)


def test_collate_pads_on_the_right_and_joins_the_compressed_numbers(make_episode):
    short = sample_from_episode(make_episode([([5], [7], 0.0)], logprobs=[[-0.5]]))
    long = sample_from_episode(
        make_episode([([1, 2], [3], 0.0), ([4], [6], 0.0)], logprobs=[[-0.25], [-4.0]])
    )
    short = dataclasses.replace(short.with_advantages(1.0), weight=0.5)
    long = dataclasses.replace(long.with_advantages(-1.0), weight=0.25)
    batch = collate([short, long])
    assert batch.token_ids[:, :2].tolist() == [[5, 7], [1, 2]]
    assert batch.token_ids[1].tolist() == [1, 2, 3, 4, 6]
    assert batch.sampled_mask.tolist() == [
        [False, True, False, False, False],
        [False, False, True, False, True],
    ]
    assert batch.sequence_index.tolist() == [0, 1, 1]
    assert batch.turn_index.tolist() == [0, 0, 1]
    assert batch.old_logprobs.tolist() == [-0.5, -0.25, -4.0]
    assert batch.advantages.tolist() == [1.0, -1.0, -1.0]
    assert batch.weights.tolist() == [0.5, 0.25, 0.25]
    for numbers in (batch.old_logprobs, batch.advantages, batch.weights):
        assert numbers.dtype == torch.float32
    assert batch.lengths.tolist() == [2, 5]
    assert [part.tolist() for part in batch.split(batch.advantages)] == [[1.0], [-1.0, -1.0]]
    assert batch.ref_logprobs is None


def test_temperatures_lose_no_digit():
    # fp32 would make 0.7 of it 0.699999988.
    batch = collate([dataclasses.replace(sample_of_length(2), temperature=t) for t in (0.7, 1.1)])
    assert batch.temperatures.tolist() == [0.7, 1.1]


def test_everything_in_a_batch_moves_to_a_device():
    moved = collate([sample_of_length(3).with_advantages(1.0)]).to(torch.device("meta"))
    kinds = {name: values.device.type for name, values in vars(moved).items() if values is not None}
    assert len(kinds) == 9
    assert set(kinds.values()) == {"meta"}
    assert moved.ref_logprobs is None


def test_a_batch_with_some_advantages_missing_is_refused():
    samples = [sample_of_length(3), sample_of_length(3).with_advantages(0.0)]
    with pytest.raises(TokenError, match="1 of 2 samples of a batch have advantages"):
        collate(samples)


def test_micro_batches_fill_the_token_budget_longest_first():
    samples = [sample_of_length(n, first_id=i) for i, n in enumerate([3, 9, 4, 4, 2, 3, 3])]
    parts = micro_batches(samples, 8)
    assert [[s.num_tokens for s in part] for part in parts] == [[9], [4, 4], [3, 3], [3, 2]]
    ids = [int(s.token_ids[0]) for part in parts for s in part]
    assert ids == [1, 2, 3, 0, 5, 6, 4]  # equal lengths keep their order


def test_there_are_no_micro_batches_of_nothing():
    assert micro_batches([], 8) == []


def test_minibatches_hold_every_sample_once_in_an_order_of_the_seed():
    samples = [sample_of_length(2, first_id=i) for i in range(10)]

    def ids(seed):
        return [[int(s.token_ids[0]) for s in part] for part in split_minibatches(samples, 4, seed)]

    assert [len(part) for part in ids(0)] == [3, 3, 2, 2]
    assert sorted(i for part in ids(0) for i in part) == list(range(10))
    assert ids(0) == ids(0)
    assert ids(0) != ids(1)
    assert ids((3, 4)) == ids((3, 4))


def test_there_are_as_many_minibatches_as_asked_for_even_if_some_are_empty():
    assert [len(part) for part in split_minibatches([sample_of_length(2)], 3, 0)] == [1, 0, 0]


def test_hidden_states_are_those_before_sampled_tokens_and_the_last_of_each_row(
    random_groups, tiny_model
):
    model = tiny_model()
    episodes = [episode for group in random_groups(2, 3) for episode in group]
    for episode in episodes:
        episode.tail_ids = [3, 4]
    samples = [sample_from_episode(e, bootstraps=i % 2 == 0) for i, e in enumerate(episodes)]
    with torch.no_grad():
        hidden, last = sampled_hidden(model, collate(samples))
        alone = [
            model.model(torch.from_numpy(sample.token_ids)[None]).last_hidden_state[0]
            for sample in samples
        ]
    before = [
        states[position - 1]
        for states, sample in zip(alone, samples, strict=True)
        for position in np.flatnonzero(sample.sampled_mask)
    ]
    np.testing.assert_allclose(hidden, torch.stack(before), atol=1e-5)
    np.testing.assert_allclose(last, torch.stack([states[-1] for states in alone]), atol=1e-5)


def score_one_by_one(model, sample: Sample, temperature: float):
    """Log-probability and entropy of each sampled token by one unpadded pass and plain loops."""
    logits = model(torch.from_numpy(sample.token_ids)[None]).logits[0].double() / temperature
    logprobs, entropies = [], []
    for position in np.flatnonzero(sample.sampled_mask):
        probabilities = torch.exp(logits[position - 1]) / torch.exp(logits[position - 1]).sum()
        logprobs.append(float(torch.log(probabilities[sample.token_ids[position]])))
        entropies.append(float(-sum(p * torch.log(p) for p in probabilities)))
    return logprobs, entropies


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_logprobs_equal_those_of_one_sequence_at_a_time(
    random_groups, tiny_model, temperature
):
    model = tiny_model()
    samples = [
        dataclasses.replace(sample_from_episode(episode), temperature=temperature + 0.1 * number)
        for number, episode in enumerate(e for group in random_groups(2, 3) for e in group)
    ]
    with torch.no_grad():
        logprobs, entropy = sampled_logprobs(model, collate(samples))
        expected = [score_one_by_one(model, sample, sample.temperature) for sample in samples]
    wanted_logprobs = [value for part, _ in expected for value in part]
    wanted_entropy = [value for _, part in expected for value in part]
    assert logprobs.shape == (sum(sample.num_sampled for sample in samples),)
    assert logprobs.dtype == entropy.dtype == torch.float32  # not the temperatures' fp64
    np.testing.assert_allclose(logprobs, wanted_logprobs, atol=1e-5)
    np.testing.assert_allclose(entropy, wanted_entropy, atol=1e-5)


@pytest.mark.parametrize("chunk_elements", [5 * 29, 28], ids=["5 tokens", "less than a token"])
def test_chunks_of_logits_change_neither_values_nor_gradients(
    random_groups, tiny_model, monkeypatch, chunk_elements
):
    samples = [sample_from_episode(e) for group in random_groups(2, 3) for e in group]

    def values_and_gradient():
        model = tiny_model(dtype=torch.float64)
        logprobs, entropy = sampled_logprobs(model, collate(samples))
        (logprobs.sum() + 0.3 * entropy.sum()).backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
        return torch.cat([logprobs, entropy]).detach(), gradient

    whole = values_and_gradient()
    monkeypatch.setattr(batching, "_CHUNK_ELEMENTS", chunk_elements)
    chunked = values_and_gradient()
    for expected, found in zip(whole, chunked, strict=True):
        assert torch.linalg.norm(found - expected) <= 1e-12 * torch.linalg.norm(expected)


class Projection:
    """A model that is its output layer alone: the trunks of transformers round to fp32 within."""

    def __init__(self, weight):
        self.weight = weight

    def get_output_embeddings(self):
        return self

    def __call__(self, hidden):
        return hidden @ self.weight.T


@pytest.mark.parametrize("chunk_elements", [2**24, 2 * 7], ids=["whole", "in chunks"])
def test_gradients_equal_finite_differences_in_fp64(make_episode, monkeypatch, chunk_elements):
    monkeypatch.setattr(batching, "_CHUNK_ELEMENTS", chunk_elements)
    sample = sample_from_episode(make_episode([([1, 2], [3, 4], 0.0), ([5], [6, 0, 1], 1.0)]))
    batch = collate([dataclasses.replace(sample, temperature=0.7)])
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (
        torch.randn(rows, 3, generator=generator, dtype=torch.float64, requires_grad=True)
        for rows in (5, 7)
    )

    def scores(hidden, weight):
        monkeypatch.setattr(batching, "sampled_hidden", lambda *_: (hidden, None))
        return sampled_logprobs(Projection(weight), batch)

    assert torch.autograd.gradcheck(scores, (hidden, weight), eps=1e-6, atol=1e-8, rtol=1e-6)


class LogitRows(TorchDispatchMode):
    """Counts the rows of everything that is as wide as the vocabulary."""

    def __init__(self, width):
        super().__init__()
        self.width, self.most, self.chunks = width, 0, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            is_logits = isinstance(tensor, torch.Tensor) and tensor.shape[-1:] == (self.width,)
            if is_logits and tensor.ndim == 2:
                self.most = max(self.most, tensor.shape[0])
                if function is torch.ops.aten._log_softmax.default:
                    self.chunks.append(tensor.shape[0])
        return result


@pytest.mark.parametrize("num_observed", [1, 10, 100])
def test_no_logit_exists_at_an_observation_and_no_more_than_a_chunk_at_once(
    make_episode, tiny_model, monkeypatch, num_observed
):
    monkeypatch.setattr(batching, "_CHUNK_ELEMENTS", 4 * 29)
    observation = [int(i) for i in np.arange(num_observed) % 29]
    sample = sample_from_episode(make_episode([(observation, [1, 2, 3, 4, 5, 6], 1.0)]))
    model = tiny_model()
    with LogitRows(29) as rows:
        logprobs, _ = sampled_logprobs(model, collate([sample]))
        logprobs.sum().backward()
    assert rows.most <= 4 or rows.most == 32  # the gradient of the matrix is (29, 32) or (32, 29)
    assert rows.chunks[:2] == [4, 2]
    assert sorted(rows.chunks[2:]) == [2, 4]  # once again on the way back
