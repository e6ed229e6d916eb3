"""The learner: samples and an algorithm in, changed weights and metrics out.

A batch is shuffled into `updates_per_step` minibatches, one optimizer step each, one pass. A
minibatch is cut into micro-batches by token budget only to fit into memory: every loss is divided
by the number of sampled tokens of the whole minibatch over all ranks, counted before the first
backward pass, so neither the cut, nor padding, nor the order of episodes, nor the number of
processes changes the gradient.

Precision: weights and optimizer state are fp32, since small updates vanish in bf16. On a GPU the
forward pass is cast to bf16 by autocast; on a CPU it stays fp32. Dropout is off: the learner must
score tokens with the distribution that sampled them.

In several processes (`torch.distributed` initialized) each rank gets its own samples and the same
weights; gradients are summed. Left out: sharded weights, learning rate decay.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import distributed
from transformers import PreTrainedModel

from agentgym_train.algorithms.base import Algorithm
from agentgym_train.algorithms.losses import LossInputs, LossOutput
from agentgym_train.batching import (
    Sample,
    collate,
    micro_batches,
    sampled_logprobs,
    split_minibatches,
)
from agentgym_train.errors import CheckpointError, ConfigError, TrainError


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """AdamW and how a batch is cut."""

    learning_rate: float = 3e-4
    """Learning rate after its warm-up."""
    lr_warmup_steps: int = 5
    """Optimizer steps over which the learning rate rises linearly; constant after that."""
    weight_decay: float = 0.0
    """Decoupled weight decay of matrices; vectors (norms, biases) have none."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of Adam's two averages."""
    max_grad_norm: float = 1.0
    """The gradient is scaled down to this norm; inf never does."""
    updates_per_step: int = 4
    """Optimizer steps made of one batch, each on its own part."""
    micro_batch_tokens: int = 4096
    """Most tokens, padding included, of one forward pass. A matter of memory and speed only: a CPU
    likes a few thousand (less padding, and it fits the cache), a GPU as many as fit."""

    def __post_init__(self) -> None:
        if self.learning_rate < 0 or self.lr_warmup_steps < 0 or self.weight_decay < 0:
            raise ConfigError(
                "learner.learning_rate, learner.lr_warmup_steps and learner.weight_decay must not "
                f"be negative, got {self.learning_rate}, {self.lr_warmup_steps} and "
                f"{self.weight_decay}"
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(f"learner.betas must be in [0, 1), got {list(self.betas)}")
        if not self.max_grad_norm > 0:
            raise ConfigError(
                f"learner.max_grad_norm must be above 0 (inf for no limit), got "
                f"{self.max_grad_norm}"
            )
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
    ) -> None:
        self.model = model.eval()
        self.config = config
        self.seed = seed
        self.reference = reference
        self.weights_version = 0
        self._num_updates = 0
        self._device = next(model.parameters()).device
        self._parameters = {
            name: parameter
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        }
        _check_precision(self._parameters)
        self._optimizer = _build_optimizer(self._parameters, config)

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
            ConfigError: the algorithm needs a reference and there is none.
            TrainError: the gradient is not finite; the weights are left as they were before that
                optimizer step.
        """
        if algorithm.needs_reference:
            samples = self._with_reference(samples, temperature)
        totals = _Totals()
        grad_norms: list[float] = []
        seed = (self.seed, step)
        for minibatch in split_minibatches(samples, self.config.updates_per_step, seed):
            num_sampled = sum(sample.num_sampled for sample in minibatch)
            normalizer = _global_sum(num_sampled, self._device)
            if normalizer == 0:
                continue
            for micro_batch in micro_batches(minibatch, self.config.micro_batch_tokens):
                inputs = self._inputs(micro_batch, normalizer, temperature)
                output = algorithm.loss(inputs)
                torch.autograd.backward(output.loss)
                totals.add(_totals_of(micro_batch, inputs, output, compare=not grad_norms))
            grad_norms.append(self._optimizer_step(step))
        metrics = _merge_over_ranks(totals).metrics()
        if grad_norms:
            self.weights_version += 1
            metrics["train/grad_norm"] = sum(grad_norms) / len(grad_norms)
            metrics["train/learning_rate"] = self._learning_rate()
        return metrics

    def _inputs(self, samples: Sequence[Sample], normalizer: int, temperature: float) -> LossInputs:
        batch = collate(samples).to(self._device)
        with self._autocast():
            logprobs, entropy = sampled_logprobs(self.model, batch, temperature)
        return LossInputs(
            logprobs=logprobs,
            entropy=entropy,
            normalizer=normalizer,
            old_logprobs=batch.old_logprobs,
            advantages=batch.advantages,
            ref_logprobs=batch.ref_logprobs,
        )

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self._device.type == "cuda":
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def _with_reference(self, samples: Sequence[Sample], temperature: float) -> list[Sample]:
        """The samples with `ref_logprobs`, in another order."""
        if self.reference is None:
            raise ConfigError(
                "the algorithm has a divergence from a reference model, but the learner has no "
                "reference; give it one or set the coefficient to 0"
            )
        scored = []
        for micro_batch in micro_batches(samples, self.config.micro_batch_tokens):
            with torch.no_grad(), self._autocast():
                batch = collate(micro_batch).to(self._device)
                logprobs, _ = sampled_logprobs(self.reference, batch, temperature)
            counts = [sample.num_sampled for sample in micro_batch]
            parts = torch.split(logprobs.cpu().double(), counts)
            scored += [
                dataclasses.replace(sample, ref_logprobs=part.numpy())
                for sample, part in zip(micro_batch, parts, strict=True)
            ]
        return scored

    def _optimizer_step(self, step: int) -> float:
        """Sum gradients over ranks, clip, step; returns the norm before clipping."""
        _sum_gradients(self._parameters.values())
        norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), self.config.max_grad_norm)
        if not torch.isfinite(norm):
            self._optimizer.zero_grad()
            raise TrainError(
                f"the gradient of step {step} is not finite (norm {float(norm)}); start a run with "
                "a lower learner.learning_rate, from a checkpoint's weights by --model.path"
            )
        self._num_updates += 1
        for group in self._optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self._optimizer.step()
        self._optimizer.zero_grad()
        return float(norm)

    def _learning_rate(self) -> float:
        """The learning rate of optimizer step number `_num_updates`, counted from 1."""
        risen = min(1.0, self._num_updates / max(1, self.config.lr_warmup_steps))
        return self.config.learning_rate * risen

    def state_dict(self) -> tuple[dict[str, torch.Tensor], dict[str, int]]:
        """Everything to go on from, but for the model's weights.

        Returns:
            Tensors by name (the optimizer's, and the reference's weights if there is one) and
            counters by name.
        """
        tensors = {
            f"optimizer.{name}.{key}": value
            for name, parameter in self._parameters.items()
            for key, value in self._optimizer.state[parameter].items()
        }
        if self.reference is not None:
            for name, weights in self.reference.named_parameters():
                tensors[f"reference.{name}"] = weights.detach()
        counters = {"num_updates": self._num_updates, "weights_version": self.weights_version}
        return tensors, counters

    def load_state_dict(
        self, tensors: Mapping[str, torch.Tensor], counters: Mapping[str, int]
    ) -> None:
        """Restore what `state_dict` gave; other tensors are ignored.

        Raises:
            CheckpointError: tensors or counters are missing, or of another model.
        """
        try:
            num_updates, version = int(counters["num_updates"]), int(counters["weights_version"])
            self._load_optimizer(tensors, started=num_updates > 0)
            if self.reference is not None:
                with torch.no_grad():
                    for name, weights in self.reference.named_parameters():
                        weights.copy_(tensors[f"reference.{name}"])
        except KeyError as error:
            raise CheckpointError(f"the learner's state has no {error.args[0]!r}") from None
        except RuntimeError as error:
            raise CheckpointError(f"the learner's state is of another model: {error}") from None
        self._num_updates, self.weights_version = num_updates, version

    def _load_optimizer(self, tensors: Mapping[str, torch.Tensor], *, started: bool) -> None:
        if not started:
            self._optimizer.state.clear()
            return
        for name, parameter in self._parameters.items():
            state = {}
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = tensors[f"optimizer.{name}.{key}"]
                if key != "step" and value.shape != parameter.shape:
                    raise CheckpointError(
                        f"{name} has shape {tuple(parameter.shape)}, but its optimizer state "
                        f"{tuple(value.shape)}: the checkpoint is of another model"
                    )
                state[key] = value.clone().to(parameter.device)
            self._optimizer.state[parameter] = state


def frozen_copy(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model that no gradient changes: a reference."""
    reference: PreTrainedModel = copy.deepcopy(model).eval()
    reference.requires_grad_(False)
    return reference


def _check_precision(parameters: Mapping[str, torch.nn.Parameter]) -> None:
    for name, parameter in parameters.items():
        if parameter.dtype not in (torch.float32, torch.float64):
            raise ConfigError(
                f"the learner needs fp32 weights (it computes in bf16 on a GPU by itself), but "
                f"{name} is {parameter.dtype}; load the model in float32"
            )


def _build_optimizer(
    parameters: Mapping[str, torch.nn.Parameter], config: LearnerConfig
) -> torch.optim.AdamW:
    matrices = [parameter for parameter in parameters.values() if parameter.ndim >= 2]
    vectors = [parameter for parameter in parameters.values() if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=config.betas,
        fused=True,
    )


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
            tokens = "compared_tokens" if name == "logprob_gap_mean" else "sampled_tokens"
            values[name] = total / self.counts[tokens]
        return {f"train/{name}": value for name, value in (values | self.maxima).items()}


def _totals_of(
    samples: Sequence[Sample], inputs: LossInputs, output: LossOutput, *, compare: bool
) -> _Totals:
    """The totals of one micro-batch.

    Until the first optimizer step, learner and sampler have the same weights, so their
    log-probabilities must agree; after it they differ as they should. `compare` says which.
    """
    totals = _Totals()
    totals.sums["loss"] = output.loss.item() * inputs.normalizer
    totals.sums.update({name: float(value) for name, value in output.token_sums.items()})
    totals.maxima.update({name: float(value) for name, value in output.maxima.items()})
    totals.counts["samples"] = len(samples)
    totals.counts["tokens"] = sum(sample.num_tokens for sample in samples)
    totals.counts["sampled_tokens"] = len(inputs.logprobs)
    if compare and inputs.old_logprobs is not None:
        gap = (inputs.logprobs.detach() - inputs.old_logprobs).abs()
        totals.sums["logprob_gap_mean"] = float(gap.sum())
        totals.maxima["logprob_gap_max"] = float(gap.max())
        totals.counts["compared_tokens"] = len(gap)
    return totals


def _in_several_processes() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _global_sum(value: int, device: torch.device) -> int:
    """The sum of a count over all ranks."""
    if not _in_several_processes():
        return value
    total = torch.tensor(value, device=device)
    distributed.all_reduce(total)
    return int(total)


def _sum_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Sum gradients over all ranks; a rank without samples adds zeros."""
    if not _in_several_processes():
        return
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        distributed.all_reduce(parameter.grad)


def _merge_over_ranks(totals: _Totals) -> _Totals:
    """The totals of all ranks together."""
    if not _in_several_processes():
        return totals
    of_ranks: list[_Totals | None] = [None] * distributed.get_world_size()
    distributed.all_gather_object(of_ranks, totals)
    merged = _Totals()
    for part in of_ranks:
        assert part is not None
        merged.add(part)
    return merged
