"""Episodes as training sequences: samples, padded batches, and the one shift.

A `Sample` holds an episode's tokens and numbers over its sampled tokens only. `sampled_hidden` is
the only place that knows that position t-1 predicts token t; everything else speaks of quantities
of token t.

Left out: packing several sequences into one row. Sorting by length leaves little padding, and
plain causal attention is then right for every model.

Letters: B sequences of a batch, T tokens of the longest, n sampled tokens of one sample, N of a
batch, H hidden size, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from agentgym_envs.episodes import Episode
from agentgym_envs.errors import InvalidRecord
from agentgym_envs.sequences import FloatArray, TokenSequence, token_sequence
from agentgym_train.errors import TokenError
from agentgym_train.model import hidden_states, logits_of

_PADDING_ID = 0
"""Any token would do: padding stands to the right, where causal attention never looks."""

_CHUNK_ELEMENTS = 2**24
"""Most logits held at once by `sampled_logprobs`: 64 MiB in fp32."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Sample(TokenSequence):
    """One training sequence, and what models and the algorithm say of its sampled tokens.

    Attributes:
        proximal_logprobs: log-probability of each sampled token as the learner computes it before
            its first update: (n,), or None where `old_logprobs` stand for it.
        ref_logprobs: the same under the reference: (n,), or None if not computed.
        old_values: the critic's value before each sampled token, before its first update: (n,), or
            None if there is no critic.
        advantages: of each sampled token: (n,), or None if not assigned.
        value_targets: what the critic is to predict: (n,), or None if not assigned.
        group: number of the group of episodes this one is compared with.
        weight: weight of each of its tokens in the loss.
        bootstraps: whether the return goes on with the value of the final observation.
        final_value: that value; 0 if the sample does not bootstrap.

    Raises:
        InvalidRecord: as for `TokenSequence`.
    """

    proximal_logprobs: FloatArray | None = None
    ref_logprobs: FloatArray | None = None
    old_values: FloatArray | None = None
    advantages: FloatArray | None = None
    value_targets: FloatArray | None = None
    group: int = 0
    weight: float = 1.0
    bootstraps: bool = False
    final_value: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_one_each(*OPTIONAL_NUMBERS)

    def with_advantages(self, advantages: float | FloatArray) -> Sample:
        """The same sample with advantages: one number for every sampled token, or (n,)."""
        values = np.broadcast_to(np.asarray(advantages, dtype=np.float64), (self.num_sampled,))
        return dataclasses.replace(self, advantages=values)


def sample_from_episode(episode: Episode, *, group: int = 0, bootstraps: bool = False) -> Sample:
    """The training sequence of an episode, with rewards and without advantages.

    Args:
        episode: its record, with tokens.
        group: number of the group it belongs to.
        bootstraps: put the final observation behind, so that a critic can value it.

    Raises:
        TokenError: the token record is missing, contradicts itself or holds no sampled token; or
            the final observation is wanted and was not recorded.
    """
    try:
        sequence = token_sequence(episode, with_tail=bootstraps)
    except InvalidRecord as error:
        raise TokenError(str(error)) from None
    return Sample(**vars(sequence), group=group, bootstraps=bootstraps)


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Samples padded to one length, and their compressed numbers one after another.

    Attributes:
        token_ids: padded on the right: (B, T), int64.
        sampled_mask: True on sampled tokens: (B, T).
        lengths: tokens of each sequence without padding: (B,).
        sequence_index: row of each sampled token: (N,).
        turn_index: turn of each sampled token within its sequence: (N,).
        weights: weight of each sampled token in the loss: (N,) fp32.
        temperatures: what the logits of each sampled token are divided by: (N,) fp64.
        bootstraps: whether the return of a sequence goes on after its last token: (B,).
        old_logprobs: (N,) fp32, or None; this and the others: see `Sample`.
        proximal_logprobs: (N,) fp32, or None.
        ref_logprobs: (N,) fp32, or None.
        old_values: (N,) fp32, or None.
        advantages: (N,) fp32, or None.
        value_targets: (N,) fp32, or None.
    """

    token_ids: torch.Tensor
    sampled_mask: torch.Tensor
    lengths: torch.Tensor
    sequence_index: torch.Tensor
    turn_index: torch.Tensor
    weights: torch.Tensor
    temperatures: torch.Tensor
    bootstraps: torch.Tensor
    old_logprobs: torch.Tensor | None = None
    proximal_logprobs: torch.Tensor | None = None
    ref_logprobs: torch.Tensor | None = None
    old_values: torch.Tensor | None = None
    advantages: torch.Tensor | None = None
    value_targets: torch.Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """The same batch on `device`."""
        moved: dict[str, Any] = {
            name: None if values is None else values.to(device)
            for name, values in vars(self).items()
        }
        return Batch(**moved)

    def split(self, numbers: torch.Tensor) -> list[torch.Tensor]:
        """Compressed numbers (N,) cut into those of each sequence."""
        counts: list[int] = self.sampled_mask.sum(1).tolist()
        return list(torch.split(numbers, counts))


OPTIONAL_NUMBERS = tuple(field.name for field in dataclasses.fields(Batch) if field.default is None)
"""The compressed numbers that may be unassigned, by their names in `Sample` and `Batch`."""


def collate(samples: Sequence[Sample]) -> Batch:
    """One padded batch of at least one sample, in the given order.

    Raises:
        TokenError: some samples have advantages or log-probabilities and some have none.
    """
    longest = max(sample.num_tokens for sample in samples)
    token_ids = torch.full((len(samples), longest), _PADDING_ID, dtype=torch.int64)
    sampled_mask = torch.zeros((len(samples), longest), dtype=torch.bool)
    for row, sample in enumerate(samples):
        token_ids[row, : sample.num_tokens] = torch.from_numpy(sample.token_ids)
        sampled_mask[row, : sample.num_tokens] = torch.from_numpy(sample.sampled_mask)
    sequence_index = sampled_mask.nonzero(as_tuple=True)[0]
    temperatures = [sample.temperature for sample in samples]
    return Batch(
        token_ids=token_ids,
        sampled_mask=sampled_mask,
        lengths=torch.tensor([sample.num_tokens for sample in samples]),
        sequence_index=sequence_index,
        turn_index=torch.from_numpy(np.concatenate([sample.turn_index for sample in samples])),
        weights=torch.tensor([sample.weight for sample in samples])[sequence_index],
        temperatures=torch.tensor(temperatures, dtype=torch.float64)[sequence_index],
        bootstraps=torch.tensor([sample.bootstraps for sample in samples]),
        **{
            name: _join(name, [getattr(sample, name) for sample in samples])
            for name in OPTIONAL_NUMBERS
        },
    )


def _join(name: str, arrays: Sequence[FloatArray | None]) -> torch.Tensor | None:
    known = [array for array in arrays if array is not None]
    if not known:
        return None
    if len(known) < len(arrays):
        raise TokenError(
            f"{len(known)} of {len(arrays)} samples of a batch have {name}; all or none expected"
        )
    return torch.from_numpy(np.concatenate(known).astype(np.float32))


def micro_batches(samples: Sequence[Sample], max_tokens: int) -> list[list[Sample]]:
    """Split samples so that each part, padded, has at most `max_tokens` tokens.

    Samples are taken longest first, those of one length in the given order; a sample longer than
    `max_tokens` stands alone. Each sample is in exactly one part.

    Args:
        samples: what to split; may be empty.
        max_tokens: limit of B * T.
    """
    parts: list[list[Sample]] = []
    for sample in sorted(samples, key=lambda sample: -sample.num_tokens):
        # The first sample of a part is its longest.
        if not parts or (len(parts[-1]) + 1) * parts[-1][0].num_tokens > max_tokens:
            parts.append([])
        parts[-1].append(sample)
    return parts


def split_minibatches(
    samples: Sequence[Sample], n: int, seed: int | Sequence[int]
) -> list[list[Sample]]:
    """Shuffle samples into `n` parts whose sizes differ by at most one.

    There are always `n` parts, empty ones included, so that all ranks make as many updates.

    Args:
        samples: what to split.
        n: number of parts, at least 1.
        seed: the order depends on it and on nothing else.
    """
    order = np.random.default_rng(seed).permutation(len(samples))
    return [[samples[index] for index in part] for part in np.array_split(order, n)]


def sampled_hidden(model: PreTrainedModel, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The hidden states that sampled tokens are drawn from, and the last of each sequence.

    Args:
        model: a causal language model, or the trunk of one.
        batch: on the model's device.

    Returns:
        The hidden state before each sampled token, (N, H), and the one after the last token of
        each sequence, (B, H).
    """
    hidden = hidden_states(model, batch.token_ids)
    rows, columns = batch.sampled_mask[:, 1:].nonzero(as_tuple=True)
    return hidden[rows, columns], hidden[
        torch.arange(len(hidden), device=hidden.device), batch.lengths - 1
    ]


def sampled_logprobs(model: PreTrainedModel, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy at every sampled token, at the temperature it was drawn at.

    Logits exist only where the next token is a sampled one, in fp32 or wider, and for large
    vocabularies in chunks that the backward pass computes again. So they take as much memory for
    long observations as for short ones, and from one chunk on as much for many sampled tokens as
    for few.

    Args:
        model: the policy.
        batch: on the model's device.

    Returns:
        Log-probability of each sampled token, (N,), and entropy in nats of the distribution it was
        drawn from, (N,).
    """

    def score(
        hidden: torch.Tensor, targets: torch.Tensor, temperatures: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits = logits_of(model, hidden)  # (N, V)
        logprobs = torch.log_softmax(logits / temperatures[:, None].to(logits.dtype), dim=-1)
        entropy = -(logprobs.exp() * logprobs).sum(-1)
        return logprobs.gather(-1, targets[:, None]).squeeze(-1), entropy

    hidden, _ = sampled_hidden(model, batch)
    inputs = hidden, batch.token_ids[batch.sampled_mask], batch.temperatures
    size = max(1, _CHUNK_ELEMENTS // model.get_output_embeddings().weight.shape[0])
    if len(hidden) <= size:
        return score(*inputs)
    chunks = zip(*(torch.split(numbers, size) for numbers in inputs), strict=True)
    parts = [checkpoint(score, *chunk, use_reentrant=False) for chunk in chunks]
    logprobs, entropies = zip(*parts, strict=True)
    return torch.cat(logprobs), torch.cat(entropies)
