"""The learner: samples and an algorithm in, changed weights and metrics out.

A batch is shuffled into `updates_per_step` minibatches, one optimizer step each, one pass. A
minibatch is cut into micro-batches by token budget only to fit into memory: every loss is divided
by a count of the whole minibatch over all ranks, taken before the first backward pass, so neither
the cut, nor padding, nor the order of episodes, nor the number of processes changes the gradient.

Precision: weights and optimizer state are fp32, since small updates vanish in bf16. On a GPU the
forward pass is cast to bf16 by autocast; on a CPU it stays fp32. Dropout is off: the learner must
score tokens with the distribution that sampled them.

In several processes (`torch.distributed` initialized) each rank gets its own samples and the same
weights; gradients are summed. Left out: sharded weights, learning rate decay, a second pass.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from agentgym_train.algorithms.advantages import FloatArray, moments
from agentgym_train.algorithms.base import Algorithm
from agentgym_train.algorithms.losses import LossInputs, LossOutput, value_loss
from agentgym_train.batching import (
    Batch,
    Sample,
    collate,
    micro_batches,
    sampled_logprobs,
    split_minibatches,
)
from agentgym_train.critic import Critic
from agentgym_train.errors import CheckpointError, ConfigError, TrainError
from agentgym_train.optimizer import Optimizer, OptimizerConfig
from agentgym_train.ranks import of_all_ranks, sum_over_ranks


@dataclasses.dataclass(frozen=True)
class LearnerConfig(OptimizerConfig):
    """AdamW and how a batch is cut."""

    updates_per_step: int = 4
    """Optimizer steps made of one batch, each on its own part."""
    micro_batch_tokens: int = 4096
    """Most tokens, padding included, of one forward pass. A matter of memory and speed only: a CPU
    likes a few thousand (less padding, and it fits the cache), a GPU as many as fit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.updates_per_step < 1 or self.micro_batch_tokens < 1:
            raise ConfigError(
                "learner.updates_per_step and learner.micro_batch_tokens must be at least 1, got "
                f"{self.updates_per_step} and {self.micro_batch_tokens}"
            )


class Learner:
    """Trains a model in place.

    Args:
        model: the policy, with fp32 (or wider) weights; shared with whoever samples from it.
        config: the settings.
        seed: of the shuffles.
        reference: a frozen model to stay near to, for algorithms that need one; `frozen_copy`
            makes it.
        critic: for algorithms that need one; trained beside the policy.

    Attributes:
        weights_version: how many times `update` has changed the weights.

    Raises:
        ConfigError: the weights are narrower than fp32.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        config: LearnerConfig,
        seed: int,
        *,
        reference: PreTrainedModel | None = None,
        critic: Critic | None = None,
    ) -> None:
        self.model = model.eval()
        self.config = config
        self.seed = seed
        self.reference = reference
        self.critic = critic
        self.weights_version = 0
        self._device = next(model.parameters()).device
        self._optimizers = {"optimizer": Optimizer(model, config)}
        if critic is not None:
            rate = critic.config.learning_rate
            settings = dataclasses.replace(config, learning_rate=rate)
            self._optimizers["critic_optimizer"] = Optimizer(critic.eval(), settings)

    def total(self, values: FloatArray) -> FloatArray:
        """The sum of an array over all ranks; every rank must call it."""
        return sum_over_ranks(values, self._device)

    def score(
        self, samples: Sequence[Sample], algorithm: Algorithm, *, temperature: float = 1.0
    ) -> list[Sample]:
        """The samples with what models say of them before the update.

        Args:
            samples: what `algorithm.select` gave.
            algorithm: says which log-probabilities it needs; values come if there is a critic.
            temperature: at which the samples were drawn.

        Raises:
            ConfigError: the algorithm needs a reference and there is none.
        """
        scored = list(samples)
        if algorithm.needs_reference:
            if self.reference is None:
                raise ConfigError(
                    "the algorithm has a divergence from a reference model, but the learner has "
                    "no reference; give it one or set the coefficient to 0"
                )
            scored = self._with_logprobs(scored, "ref_logprobs", self.reference, temperature)
        if algorithm.needs_proximal:
            scored = self._with_logprobs(scored, "proximal_logprobs", self.model, temperature)
        return scored if self.critic is None else self._with_values(scored, self.critic)

    def update(
        self,
        samples: Sequence[Sample],
        algorithm: Algorithm,
        step: int,
        *,
        temperature: float = 1.0,
    ) -> dict[str, float]:
        """Learn from a batch in one pass.

        Args:
            samples: what `algorithm.assign` gave; empty for no update.
            algorithm: gives the loss.
            step: training step, counted from 0; keys the shuffle.
            temperature: at which the samples were drawn.

        Returns:
            The ``train/`` metrics that apply; means are over the sampled tokens of the batch.

        Raises:
            TrainError: the gradient is not finite; the weights are left as they were before that
                optimizer step.
        """
        totals = _Totals()
        norms: list[list[float]] = []
        seed = (self.seed, step)
        for part in split_minibatches(samples, self.config.updates_per_step, seed):
            minibatch, count = algorithm.weigh(part)
            totals.counts["units"] += count
            normalizer = int(self.total(np.array([float(count)]))[0])
            if normalizer == 0:
                continue
            for micro_batch in micro_batches(minibatch, self.config.micro_batch_tokens):
                batch = collate(micro_batch).to(self._device)
                with self._autocast():
                    logprobs, entropy = sampled_logprobs(self.model, batch, temperature)
                inputs = LossInputs(batch, logprobs, entropy, normalizer)
                outputs = [algorithm.loss(inputs)]
                if self.critic is not None:
                    with self._autocast():
                        values, _ = self.critic(batch)
                    outputs.append(value_loss(inputs, values, self.critic.config.clip))
                torch.autograd.backward([output.loss for output in outputs])
                totals.add(_totals_of(inputs, outputs, compare=not norms))
            norms.append(self._optimizer_step(step))
        metrics = _merge(of_all_ranks(totals)).metrics()
        if self.critic is not None:
            metrics["train/explained_variance"] = _explained_variance(samples, self.total)
        if norms:
            self.weights_version += 1
            for name, column in zip(("", "critic_"), zip(*norms, strict=True), strict=False):
                metrics[f"train/{name}grad_norm"] = sum(column) / len(column)
            metrics["train/learning_rate"] = self._optimizers["optimizer"].learning_rate
        return metrics

    def _with_logprobs(
        self, samples: Sequence[Sample], name: str, model: PreTrainedModel, temperature: float
    ) -> list[Sample]:
        numbers = self._numbers(
            samples, lambda batch: batch.split(sampled_logprobs(model, batch, temperature)[0])
        )
        changes: list[dict[str, Any]] = [{name: logprobs} for logprobs in numbers]
        return [
            dataclasses.replace(sample, **change)
            for sample, change in zip(samples, changes, strict=True)
        ]

    def _with_values(self, samples: Sequence[Sample], critic: Critic) -> list[Sample]:
        def score(batch: Batch) -> list[torch.Tensor]:
            values, last = critic(batch)
            parts = zip(batch.split(values), last[:, None], strict=True)
            return [torch.cat(part) for part in parts]

        return [
            dataclasses.replace(
                sample,
                old_values=values[:-1],
                final_value=float(values[-1]) if sample.bootstraps else 0.0,
            )
            for sample, values in zip(samples, self._numbers(samples, score), strict=True)
        ]

    def _numbers(
        self, samples: Sequence[Sample], score: Callable[[Batch], list[torch.Tensor]]
    ) -> list[FloatArray]:
        """What `score` gives for each sample of a batch, without gradient, in their order."""
        found: dict[int, FloatArray] = {}
        for micro_batch in micro_batches(samples, self.config.micro_batch_tokens):
            with torch.no_grad(), self._autocast():
                scores = score(collate(micro_batch).to(self._device))
            for sample, numbers in zip(micro_batch, scores, strict=True):
                found[id(sample)] = numbers.cpu().double().numpy()
        return [found[id(sample)] for sample in samples]

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self._device.type == "cuda":
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def _optimizer_step(self, step: int) -> list[float]:
        """One step of policy and critic; returns the norms of their gradients before clipping."""
        optimizers = self._optimizers.values()
        norms = [optimizer.clip() for optimizer in optimizers]
        if not all(map(math.isfinite, norms)):
            for optimizer in optimizers:
                optimizer.zero_grad()
            raise TrainError(
                f"the gradient of step {step} is not finite (norm {max(norms)}); start a run with "
                "a lower learner.learning_rate, from a checkpoint's weights by --model.path"
            )
        for optimizer in optimizers:
            optimizer.step()
        return norms

    def _companions(self) -> dict[str, torch.nn.Parameter]:
        """The parameters of the other models, by name."""
        modules = {"reference": self.reference, "critic": self.critic}
        return {
            f"{prefix}.{name}": parameter
            for prefix, module in modules.items()
            if module is not None
            for name, parameter in module.named_parameters()
        }

    def state_dict(self) -> tuple[dict[str, torch.Tensor], dict[str, int]]:
        """Everything to go on from, but for the model's weights.

        Returns:
            Tensors by name (the optimizers', and the weights of reference and critic if there are
            any) and counters by name.
        """
        tensors = {name: parameter.detach() for name, parameter in self._companions().items()}
        for prefix, optimizer in self._optimizers.items():
            tensors |= optimizer.state_dict(prefix)
        num_updates = self._optimizers["optimizer"].num_updates
        return tensors, {"num_updates": num_updates, "weights_version": self.weights_version}

    def load_state_dict(
        self, tensors: Mapping[str, torch.Tensor], counters: Mapping[str, int]
    ) -> None:
        """Restore what `state_dict` gave; other tensors are ignored.

        Raises:
            CheckpointError: tensors or counters are missing, or of another model.
        """
        try:
            num_updates, version = int(counters["num_updates"]), int(counters["weights_version"])
            for prefix, optimizer in self._optimizers.items():
                optimizer.load_state_dict(tensors, prefix, num_updates)
            with torch.no_grad():
                for name, parameter in self._companions().items():
                    parameter.copy_(tensors[name])
        except KeyError as error:
            raise CheckpointError(f"the learner's state has no {error.args[0]!r}") from None
        except RuntimeError as error:
            raise CheckpointError(f"the learner's state is of another model: {error}") from None
        self.weights_version = version


def frozen_copy(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model that no gradient changes: a reference."""
    reference: PreTrainedModel = copy.deepcopy(model).eval()
    reference.requires_grad_(False)
    return reference


def _explained_variance(
    samples: Sequence[Sample], total: Callable[[FloatArray], FloatArray]
) -> float:
    """1 minus the share of the targets' variance that the old values leave unexplained."""
    pairs = [(sample.value_targets, sample.old_values) for sample in samples]
    known = [(target, old) for target, old in pairs if target is not None and old is not None]
    _, spread = moments([target for target, _ in known], total)
    _, rest = moments([target - old for target, old in known], total)
    return 1 - (rest / spread) ** 2 if spread > 0 else 0.0


_DENOMINATORS = {"loss": "units", "logprob_gap_mean": "compared_tokens"}
"""What sums are divided by if not by the sampled tokens; `units`: by what `weigh` counts."""


@dataclasses.dataclass
class _Totals:
    """Sums, maxima and counts over sampled tokens, of a micro-batch or of a whole update."""

    sums: dict[str, float] = dataclasses.field(default_factory=dict)
    maxima: dict[str, float] = dataclasses.field(default_factory=dict)
    counts: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, other: _Totals) -> None:
        self.counts.update(other.counts)
        for name, value in other.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        for name, value in other.maxima.items():
            self.maxima[name] = max(value, self.maxima.get(name, value))

    def metrics(self) -> dict[str, float]:
        """The ``train/`` metrics: counts, means over the sampled tokens, maxima."""
        values = {
            name: float(self.counts[name]) for name in ("samples", "tokens", "sampled_tokens")
        }
        for name, total in self.sums.items():
            values[name] = total / self.counts[_DENOMINATORS.get(name, "sampled_tokens")]
        if "importance_square" in values:
            mean = values["importance_mean"]
            values["importance_ess"] = mean**2 / values.pop("importance_square")
        return {f"train/{name}": value for name, value in (values | self.maxima).items()}


def _totals_of(inputs: LossInputs, outputs: Sequence[LossOutput], *, compare: bool) -> _Totals:
    """The totals of one micro-batch.

    Until the first optimizer step, learner and sampler have the same weights, so their
    log-probabilities must agree; after it they differ as they should. `compare` says which.
    """
    totals = _Totals()
    for output in outputs:
        totals.sums.update({name: float(value) for name, value in output.token_sums.items()})
        totals.maxima.update({name: float(value) for name, value in output.maxima.items()})
    batch = inputs.batch
    totals.sums["loss"] = outputs[0].loss.item() * inputs.normalizer
    totals.counts["samples"] = len(batch.lengths)
    totals.counts["tokens"] = int(batch.lengths.sum())
    totals.counts["sampled_tokens"] = len(inputs.logprobs)
    if compare and batch.old_logprobs is not None:
        gap = (inputs.logprobs.detach() - batch.old_logprobs).abs()
        totals.sums["logprob_gap_mean"] = float(gap.sum())
        totals.maxima["logprob_gap_max"] = float(gap.max())
        totals.counts["compared_tokens"] = len(gap)
    return totals


def _merge(parts: Sequence[_Totals]) -> _Totals:
    merged = _Totals()
    for part in parts:
        merged.add(part)
    return merged
