"""Episodes as training sequences: samples, padded batches, and the one shift.

A `Sample` holds an episode's tokens and numbers over its sampled tokens only: for n sampled
tokens, arrays of n numbers in order (*compressed*). Context tokens have no slot in them, so no
reward, value, advantage or ratio can land on one. `sampled_hidden` is the only place that knows
that position t-1 predicts token t; everything else speaks of quantities of token t.

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
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from agentgym_envs.episodes import Episode, Turn
from agentgym_train.errors import TokenError
from agentgym_train.model import hidden_states, logits_of

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_PADDING_ID = 0
"""Any token would do: padding stands to the right, where causal attention never looks."""

_CHUNK_ELEMENTS = 2**24
"""Most logits held at once by `sampled_logprobs`: 64 MiB in fp32."""


_PER_TOKEN = (
    "old_logprobs",
    "proximal_logprobs",
    "ref_logprobs",
    "old_values",
    "advantages",
    "value_targets",
)
"""The compressed numbers of a sample that may be unassigned."""


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """One training sequence.

    Attributes:
        token_ids: all tokens up to the last turn's, and the final observation's if the sample
            bootstraps: (T,).
        sampled_mask: True on the tokens that the policy sampled: (T,), n of them.
        turn_index: the turn of each sampled token, counted from 0: (n,).
        rewards: see `token_rewards`: (n,).
        old_logprobs: log-probability of each sampled token under the distribution it was drawn
            from: (n,), or None where a teacher wrote the tokens.
        proximal_logprobs: the same as the learner computes it before its first update: (n,), or
            None where `old_logprobs` stand for it.
        ref_logprobs: the same under the reference: (n,), or None if not computed.
        old_values: the critic's value before each sampled token, before its first update: (n,), or
            None if there is no critic.
        advantages: of each sampled token: (n,), or None if not assigned.
        value_targets: what the critic is to predict: (n,), or None if not assigned.
        group: number of the group of episodes this one is compared with.
        weight: weight of each of its tokens in the loss.
        bootstraps: whether the return goes on with the value of the final observation.
        final_value: that value; 0 if the sample does not bootstrap.
        state_keys: for each turn the key of the state it was taken in, or () if not recorded.

    Raises:
        TokenError: the lengths differ, nothing was sampled, or the first token was.
    """

    token_ids: IntArray
    sampled_mask: NDArray[np.bool_]
    turn_index: IntArray
    rewards: FloatArray
    old_logprobs: FloatArray | None = None
    proximal_logprobs: FloatArray | None = None
    ref_logprobs: FloatArray | None = None
    old_values: FloatArray | None = None
    advantages: FloatArray | None = None
    value_targets: FloatArray | None = None
    group: int = 0
    weight: float = 1.0
    bootstraps: bool = False
    final_value: float = 0.0
    state_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.sampled_mask) != len(self.token_ids):
            raise TokenError(
                f"{len(self.token_ids)} tokens need a mask of that length, got "
                f"{len(self.sampled_mask)}"
            )
        if not self.num_sampled:
            raise TokenError("no token was sampled, so there is nothing to train on")
        if self.sampled_mask[0]:
            raise TokenError(
                "the first token is a sampled one and nothing predicts it; a prompt needs at least "
                "one token"
            )
        for name in ("turn_index", "rewards", *_PER_TOKEN):
            values = getattr(self, name)
            if values is not None and values.shape != (self.num_sampled,):
                raise TokenError(
                    f"{name} must have one number for each of the {self.num_sampled} sampled "
                    f"tokens, got shape {values.shape}"
                )

    @property
    def num_tokens(self) -> int:
        """T: tokens, context included."""
        return len(self.token_ids)

    @property
    def num_sampled(self) -> int:
        """n: sampled tokens."""
        return int(self.sampled_mask.sum())

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
        for index, turn in enumerate(episode.turns):
            _check_turn(index, turn)
        tail = episode.tail_ids if bootstraps else []
        if tail is None:
            raise TokenError("its final observation was not recorded, so it has no value")
        keys = [turn.state_key for turn in episode.turns]
        return Sample(
            token_ids=np.array(episode.token_ids + tail, dtype=np.int64),
            sampled_mask=np.array(episode.sampled_mask + [False] * len(tail), dtype=np.bool_),
            turn_index=np.repeat(np.arange(len(episode.turns)), _sampled_counts(episode)),
            rewards=token_rewards(episode),
            old_logprobs=_old_logprobs(episode),
            group=group,
            bootstraps=bootstraps,
            state_keys=() if None in keys else tuple(map(str, keys)),
        )
    except TokenError as error:
        raise TokenError(
            f"episode of task {episode.task.id!r}, member {episode.member}: {error}"
        ) from None


def _check_turn(index: int, turn: Turn) -> None:
    if turn.sampled_ids is None:
        raise TokenError(
            f"turn {index} has no token ids; only episodes of a token-level policy can be trained "
            "on"
        )
    if turn.logprobs is None:
        return
    if len(turn.logprobs) != len(turn.sampled_ids):
        raise TokenError(
            f"turn {index} has {len(turn.sampled_ids)} sampled tokens but {len(turn.logprobs)} "
            "log-probabilities"
        )
    if not np.isfinite(turn.logprobs).all():
        raise TokenError(f"turn {index} has a log-probability that is not finite: {turn.logprobs}")


def _old_logprobs(episode: Episode) -> FloatArray | None:
    written = [turn.logprobs for turn in episode.turns if turn.sampled_ids]
    known = [logprobs for logprobs in written if logprobs is not None]
    if not known:
        return None
    if len(known) < len(written):
        raise TokenError(
            f"{len(known)} of {len(written)} turns have log-probabilities; all or none expected"
        )
    return np.concatenate([np.asarray(logprobs, dtype=np.float64) for logprobs in known])


def _sampled_counts(episode: Episode) -> list[int]:
    return [len(turn.sampled_ids or ()) for turn in episode.turns]


def token_rewards(episode: Episode) -> FloatArray:
    """The rewards of the turns, placed on sampled tokens.

    A turn's reward sits on that turn's last sampled token. The reward of a turn without sampled
    tokens goes back to the most recent sampled token, or, before any, forward to the last one of
    the first turn that has some. The sum is the episode's return.

    Returns:
        Reward of each sampled token: (n,), in the order of `Sample.turn_index`.

    Raises:
        TokenError: no token was sampled, so there is no place for a reward.
    """
    counts = _sampled_counts(episode)
    if not any(counts):
        raise TokenError("no token was sampled, so there is no place for a reward")
    first = next(count for count in counts if count)
    rewards = np.zeros(sum(counts))
    for turn, end in zip(episode.turns, np.cumsum(counts), strict=True):
        rewards[max(end, first) - 1] += turn.reward
    return rewards


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
        old_logprobs: (N,) fp32, or None; this and the others: see `Sample`.
        proximal_logprobs: (N,) fp32, or None.
        ref_logprobs: (N,) fp32, or None.
        advantages: (N,) fp32, or None.
        old_values: (N,) fp32, or None.
        value_targets: (N,) fp32, or None.
    """

    token_ids: torch.Tensor
    sampled_mask: torch.Tensor
    lengths: torch.Tensor
    sequence_index: torch.Tensor
    turn_index: torch.Tensor
    weights: torch.Tensor
    old_logprobs: torch.Tensor | None = None
    proximal_logprobs: torch.Tensor | None = None
    ref_logprobs: torch.Tensor | None = None
    advantages: torch.Tensor | None = None
    old_values: torch.Tensor | None = None
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
    return Batch(
        token_ids=token_ids,
        sampled_mask=sampled_mask,
        lengths=torch.tensor([sample.num_tokens for sample in samples]),
        sequence_index=sequence_index,
        turn_index=torch.from_numpy(np.concatenate([sample.turn_index for sample in samples])),
        weights=torch.tensor([sample.weight for sample in samples])[sequence_index],
        **{name: _join(name, [getattr(sample, name) for sample in samples]) for name in _PER_TOKEN},
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


def sampled_logprobs(
    model: PreTrainedModel, batch: Batch, temperature: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy at every sampled token.

    Logits exist only where the next token is a sampled one, in fp32 or wider, and for large
    vocabularies in chunks that the backward pass computes again.

    Args:
        model: the policy.
        batch: on the model's device.
        temperature: what the logits are divided by, as when sampling.

    Returns:
        Log-probability of each sampled token, (N,), and entropy in nats of the distribution it was
        drawn from, (N,).
    """
    hidden, _ = sampled_hidden(model, batch)
    targets = batch.token_ids[batch.sampled_mask]  # (N,)

    def score(hidden: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = torch.log_softmax(logits_of(model, hidden) / temperature, dim=-1)  # (N, V)
        entropy = -(logprobs.exp() * logprobs).sum(-1)
        return logprobs.gather(-1, targets[:, None]).squeeze(-1), entropy

    chunk = max(1, _CHUNK_ELEMENTS // _vocabulary_size(model))
    if len(targets) <= chunk:
        return score(hidden, targets)
    parts = [
        checkpoint(score, *part, use_reentrant=False)
        for part in zip(torch.split(hidden, chunk), torch.split(targets, chunk), strict=True)
    ]
    logprobs, entropies = zip(*parts, strict=True)
    return torch.cat(logprobs), torch.cat(entropies)


def _vocabulary_size(model: PreTrainedModel) -> int:
    return int(model.get_output_embeddings().weight.shape[0])
