"""DPO on pairs of episodes: prefer the better of two episodes of a task to the worse.

The best episode of a group is paired with the worst, the second best with the second worst, and so
on, so that no episode is in two pairs. Only sampled tokens count: what the world wrote is in no
log-probability.

With `delta` the sum over sampled tokens of log p - log p_ref in the better episode minus that in
the worse one, the loss of a pair is ``-log sigmoid(beta * delta)``. Its two episodes need not be in
the same micro-batch: each sees the other as a constant, the learner's score before the update, and
carries its own half of the gradient. That is exact as long as the weights are those of the score,
so a batch is learned from in one optimizer step.

Left out: a second step on the same pairs, and the likelihood of the better episode as a second
term.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import torch
from torch.nn.functional import logsigmoid

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.advantages import Total, alone, has_spread
from agentgym_train.algorithms.base import BaseAlgorithm
from agentgym_train.algorithms.losses import LossInputs, LossOutput
from agentgym_train.algorithms.terms import required
from agentgym_train.algorithms.weights import weigh
from agentgym_train.batching import Sample
from agentgym_train.errors import ConfigError, at_least


@dataclasses.dataclass(frozen=True)
class DPOConfig:
    """Direct preference optimization."""

    beta: float = 0.1
    """How much a difference in log-probability counts; the lower, the farther the policy goes from
    the reference."""
    min_margin: float = 0.0
    """Least difference between the returns of a pair. Equal returns are never a pair."""
    normalize_length: bool = False
    """Compare means over sampled tokens instead of sums, so that length counts for nothing; beta
    must then be far larger."""
    label_smoothing: float = 0.0
    """How often the better episode is taken to be the worse one, 0..0.5."""

    def __post_init__(self) -> None:
        at_least(self, "dpo", 0, "min_margin", "label_smoothing")
        if self.beta <= 0 or self.label_smoothing >= 0.5:
            raise ConfigError(
                "dpo.beta must be above 0 and dpo.label_smoothing below 0.5, got "
                f"{self.beta} and {self.label_smoothing}"
            )


class DPO(BaseAlgorithm[DPOConfig]):
    """Direct preference optimization.

    Reference: equation 7 of arXiv 2305.18290.
    """

    name = "dpo"
    settings = DPOConfig
    one_update = True
    compares_groups = True
    needs_reference = True
    needs_proximal = True

    def select(self, groups: Sequence[Sequence[Episode]], step: int) -> list[Sample]:
        """The two samples of each pair, numbered by it: advantage 1 on the better, -1 on the worse.

        Arguments and errors as for `BaseAlgorithm`.
        """
        pairs = []
        members = super().select(groups, step)
        for _, group in itertools.groupby(members, key=lambda sample: sample.group):
            ranked = sorted(group, key=_return)
            # From the middle on the two have changed places, and their margin is negative.
            for worse, better in zip(ranked, reversed(ranked), strict=True):
                returns = [_return(worse), _return(better)]
                if has_spread(returns) and returns[1] - returns[0] >= self.config.min_margin:
                    pairs.append((better, worse))
        return [
            dataclasses.replace(sample, group=number).with_advantages(sign)
            for number, (better, worse) in enumerate(pairs)
            for sample, sign in ((better, 1.0), (worse, -1.0))
        ]

    def assign(self, samples: Sequence[Sample], total: Total = alone) -> list[Sample]:
        """The samples, each set against the other of its pair. Arguments as for `BaseAlgorithm`."""
        pairs = zip(samples[::2], samples[1::2], strict=True)
        return [self._against(*two) for pair in pairs for two in (pair, pair[::-1])]

    def _against(self, sample: Sample, other: Sample) -> Sample:
        """The sample with the other's log-ratio to the reference spread over its own reference."""
        reference = required(other.ref_logprobs, "ref_logprobs")
        gain = required(other.proximal_logprobs, "proximal_logprobs") - reference
        spread = gain.mean() if self.config.normalize_length else gain.sum() / sample.num_sampled
        own = required(sample.ref_logprobs, "ref_logprobs")
        return dataclasses.replace(sample, ref_logprobs=own + spread)

    def weigh(self, samples: Sequence[Sample]) -> tuple[list[Sample], int]:
        if len(samples) != 2 * len({sample.group for sample in samples}):
            raise ValueError(
                "dpo needs both episodes of a pair in the same optimizer step, one a batch"
            )
        weighed, _ = weigh(samples, "sequence" if self.config.normalize_length else "token")
        return weighed, len(samples) // 2

    def loss(self, inputs: LossInputs) -> LossOutput:
        """See the module's docstring.

        Returns:
            The loss; sums ``entropy``, ``preferred`` and ``margin``.
        """
        batch, smoothing = inputs.batch, self.config.label_smoothing
        log_ratio = inputs.logprobs - required(batch.ref_logprobs, "ref_logprobs")
        signed = log_ratio * required(batch.advantages, "advantages") * batch.weights
        margins = self.config.beta * torch.stack([row.sum() for row in batch.split(signed)])  # (B,)
        losses = -(1 - smoothing) * logsigmoid(margins) - smoothing * logsigmoid(-margins)
        # Both episodes of a pair have its loss: each counts half of it, with its whole gradient.
        loss = (losses - losses.detach() / 2).sum() / inputs.normalizer
        of_tokens = margins.detach()[batch.sequence_index]
        sums = {"entropy": inputs.entropy.detach(), "preferred": of_tokens > 0, "margin": of_tokens}
        return LossOutput(loss, {name: values.sum() for name, values in sums.items()})


def _return(sample: Sample) -> float:
    return float(sample.rewards.sum())
