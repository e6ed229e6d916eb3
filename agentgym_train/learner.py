"""The learner: samples and an algorithm in, changed weights and metrics out.

A batch is shuffled into `updates_per_step` minibatches, one optimizer step each, one pass. A
minibatch is cut into micro-batches by token budget only to fit into memory: every loss is divided
by a count of the whole minibatch over all ranks, taken before the first backward pass, so neither
the cut, nor padding, nor the order of episodes, nor the number of processes changes the gradient.

Nothing is learned from a number that is not finite: `update` stops before the optimizer step that
would have, on all ranks. A step of several updates may have made some of them by then.

Tokens are scored at the temperature that their record says they were drawn at, so sampler and
learner cannot disagree about it.

Precision: weights and optimizer state are fp32, since small updates vanish in bf16. On a GPU the
forward pass is cast to bf16 by autocast; on a CPU it stays fp32. Dropout is off: the learner must
score tokens with the distribution that sampled them.

In several processes (`torch.distributed` initialized) each rank gets its own samples and the same
weights; gradients are summed. Left out: sharded weights, learning rate decay, a second pass.
"""

from __future__ import annotations

import copy
import dataclasses
import math
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
from agentgym_train.errors import CheckpointError, ConfigError, NonFinite, at_least
from agentgym_train.numerics import find_nonfinite, find_nonfinite_sample
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
        at_least(self, "learner", 1, "updates_per_step", "micro_batch_tokens")


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
        others = {"reference": reference, "critic": critic}
        self._companions = torch.nn.ModuleDict({k: v for k, v in others.items() if v is not None})
        self._optimizers = {"optimizer": Optimizer(model, config)}
        if critic is not None:
            rate = critic.config.learning_rate
            settings = dataclasses.replace(config, learning_rate=rate)
            self._optimizers["critic_optimizer"] = Optimizer(critic.eval(), settings)

    def total(self, values: FloatArray) -> FloatArray:
        """The sum of an array over all ranks; every rank must call it."""
        return sum_over_ranks(values, self._device)

    def score(self, samples: Sequence[Sample], algorithm: Algorithm) -> list[Sample]:
        """The samples with what models say of them before the update; every rank must call it.

        Args:
            samples: what `algorithm.select` gave.
            algorithm: says which log-probabilities it needs; values come if there is a critic.

        Raises:
            ConfigError: the algorithm needs a reference and there is none.
            NonFinite: a reward, a log-probability or a value is not finite.
        """
        if algorithm.needs_reference and self.reference is None:
            raise ConfigError(
                "the algorithm has a divergence from a reference model, but the learner has "
                "no reference; give it one or set the coefficient to 0"
            )
        by_id: dict[int, Sample] = {}
        for micro_batch in micro_batches(samples, self.config.micro_batch_tokens):
            batch = collate(micro_batch).to(self._device)
            with torch.no_grad(), self._autocast():
                scores = self._scores(batch, algorithm)
            for row, sample in enumerate(micro_batch):
                numbers: dict[str, Any] = {name: _array(of[row]) for name, of in scores.items()}
                by_id[id(sample)] = dataclasses.replace(sample, **numbers)
        scored = [by_id[id(sample)] for sample in samples]
        self._require_finite(find_nonfinite_sample(scored), scored)
        return scored

    def _scores(self, batch: Batch, algorithm: Algorithm) -> dict[str, Sequence[torch.Tensor]]:
        """By the name that a sample has for it, a number or an array (n,) for each sequence."""
        scores: dict[str, Sequence[torch.Tensor]] = {}
        if algorithm.needs_reference and self.reference is not None:
            scores["ref_logprobs"] = batch.split(sampled_logprobs(self.reference, batch)[0])
        if algorithm.needs_proximal:
            scores["proximal_logprobs"] = batch.split(sampled_logprobs(self.model, batch)[0])
        if self.critic is not None:
            values, last = self.critic(batch)
            scores["old_values"] = batch.split(values)
            scores["final_value"] = last.where(batch.bootstraps, 0.0).unbind()
        return scores

    def update(
        self, samples: Sequence[Sample], algorithm: Algorithm, step: int
    ) -> dict[str, float]:
        """Learn from a batch in one pass; every rank must call it.

        Args:
            samples: what `algorithm.assign` gave; empty for no update.
            algorithm: gives the loss.
            step: training step, counted from 0; keys the shuffle.

        Returns:
            The ``train/`` metrics that apply; means are over the sampled tokens of the batch.

        Raises:
            NonFinite: a number of the samples, a log-probability, an entropy, a value, a loss or
                the gradient is not finite; the weights are as they were before that optimizer step.
                Or the new weights score an episode of the batch like that; then they are lost.
        """
        self._require_finite(find_nonfinite_sample(samples), samples)
        totals = _Totals()
        norms: list[list[float]] = []
        seed = (self.seed, step)
        num_updates = 1 if algorithm.one_update else self.config.updates_per_step
        for part in split_minibatches(samples, num_updates, seed):
            minibatch, count = algorithm.weigh(part)
            totals.add({"units": count})
            normalizer = int(self.total(np.array([float(count)]))[0])
            if normalizer == 0:
                continue
            problem = ""
            for micro_batch in micro_batches(minibatch, self.config.micro_batch_tokens):
                inputs, outputs, found = self._backward(micro_batch, algorithm, normalizer)
                problem = problem or found
                totals.add_batch(inputs, outputs, compare=not norms)
            norms.append(self._optimizer_step(step, problem, samples))
        self._require_sane(samples)
        of_all = _Totals()
        for rank in of_all_ranks(totals):
            of_all.add(rank.sums, rank.maxima)
        metrics = of_all.metrics()
        if self.critic is not None:
            metrics["train/explained_variance"] = _explained_variance(samples, self.total)
        if norms:
            self.weights_version += 1
            for name, column in zip(("", "critic_"), zip(*norms, strict=True), strict=False):
                metrics[f"train/{name}grad_norm"] = sum(column) / len(column)
            metrics["train/learning_rate"] = self._optimizers["optimizer"].learning_rate
        return metrics

    def _require_sane(self, samples: Sequence[Sample]) -> None:
        """Refuse weights that cannot score what they learned from, before they are saved."""
        shortest = sorted(samples, key=lambda sample: sample.num_tokens)[:1]
        logprobs = []
        for sample in shortest:
            with torch.no_grad(), self._autocast():
                found, _ = sampled_logprobs(self.model, collate([sample]).to(self._device))
            logprobs.append(_array(found))
        problem = find_nonfinite(shortest, {"log-probability after the update": logprobs})
        self._require_finite(problem, samples)

    def _backward(
        self, samples: Sequence[Sample], algorithm: Algorithm, normalizer: int
    ) -> tuple[LossInputs, list[LossOutput], str]:
        """Add the gradients of a micro-batch; says what in it is not finite, or ""."""
        batch = collate(samples).to(self._device)
        with self._autocast():
            logprobs, entropy = sampled_logprobs(self.model, batch)
        computed = {"log-probability": logprobs, "entropy": entropy}
        inputs = LossInputs(batch, logprobs, entropy, normalizer)
        outputs = [algorithm.loss(inputs)]
        if self.critic is not None:
            with self._autocast():
                computed["value"], _ = self.critic(batch)
            outputs.append(value_loss(inputs, computed["value"], self.critic.config.clip))
        torch.autograd.backward([output.loss for output in outputs])
        numbers = {name: [*map(_array, batch.split(v))] for name, v in computed.items()}
        problem = find_nonfinite(samples, numbers)
        losses = [output.loss.item() for output in outputs]
        if not problem and not all(map(math.isfinite, losses)):
            problem = f"losses {losses} of {len(samples)} episodes, first {samples[0].origin}"
        return inputs, outputs, problem

    def _autocast(self) -> torch.autocast:
        kind = self._device.type
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")

    def _optimizer_step(self, step: int, problem: str, samples: Sequence[Sample]) -> list[float]:
        """One step of policy and critic; returns the norms of their gradients before clipping."""
        norms = [optimizer.clip() for optimizer in self._optimizers.values()]
        if not problem and not all(map(math.isfinite, norms)):
            problem = f"gradient norms {norms} in step {step}"
        self._require_finite(problem, samples)
        for optimizer in self._optimizers.values():
            optimizer.step()
        return norms

    def _require_finite(self, problem: str, samples: Sequence[Sample]) -> None:
        """Stop, on all ranks, if one of them has found a problem."""
        if found := next(filter(None, of_all_ranks(problem)), ""):
            for optimizer in self._optimizers.values():
                optimizer.zero_grad()
            raise NonFinite(
                f"cannot learn from numbers that are not finite: {found}; start a run with a lower "
                "learner.learning_rate, from the last checkpoint's weights by --model.path",
                samples,
            )

    def state_dict(self) -> tuple[dict[str, torch.Tensor], dict[str, int]]:
        """Everything to go on from, but for the model's weights.

        Returns:
            Tensors by name (the optimizers', and the weights of reference and critic if there are
            any) and counters by name.
        """
        tensors = {name: value.detach() for name, value in self._companions.named_parameters()}
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
                for name, parameter in self._companions.named_parameters():
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


def _array(numbers: torch.Tensor) -> FloatArray:
    found: FloatArray = numbers.detach().cpu().double().numpy()[()]  # of one number a float
    return found


_COUNTS = ("samples", "tokens", "sampled_tokens", "compared_tokens", "units")
_DENOMINATORS = {"loss": "units", "logprob_gap_mean": "compared_tokens"}
"""What sums are divided by if not by the sampled tokens; `units`: by what `weigh` counts."""

_Numbers = Mapping[str, float | torch.Tensor]


class _Totals:
    """Sums (counts among them) and maxima over sampled tokens, of one rank or of all."""

    def __init__(self) -> None:
        self.sums = dict.fromkeys(_COUNTS, 0.0)
        self.maxima: dict[str, float] = {}

    def add(self, sums: _Numbers, maxima: _Numbers | None = None) -> None:
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)
        for name, value in (maxima or {}).items():
            self.maxima[name] = max(float(value), self.maxima.get(name, -math.inf))

    def add_batch(
        self, inputs: LossInputs, outputs: Sequence[LossOutput], *, compare: bool
    ) -> None:
        """Add a micro-batch.

        Until the first optimizer step, learner and sampler have the same weights, so their
        log-probabilities must agree; after it they differ as they should. `compare` says which.
        """
        batch, num_sampled = inputs.batch, len(inputs.logprobs)
        for output in outputs:
            self.add(output.token_sums, output.maxima)
        self.add({"samples": len(batch.lengths), "tokens": batch.lengths.sum()})
        self.add(
            {"sampled_tokens": num_sampled, "loss": outputs[0].loss.item() * inputs.normalizer}
        )
        if compare and batch.old_logprobs is not None:
            gap = (inputs.logprobs.detach() - batch.old_logprobs).abs()
            self.add({"logprob_gap_mean": gap.sum(), "compared_tokens": num_sampled})
            self.add({}, {"logprob_gap_max": gap.max()})

    def metrics(self) -> dict[str, float]:
        """The ``train/`` metrics: counts, means over the sampled tokens, maxima."""
        values = {name: self.sums[name] for name in _COUNTS[:3]}
        for name, total in self.sums.items():
            if name not in _COUNTS:
                values[name] = total / self.sums[_DENOMINATORS.get(name, "sampled_tokens")]
        if "importance_square" in values:
            mean = values["importance_mean"]
            values["importance_ess"] = mean**2 / values.pop("importance_square")
        return {f"train/{name}": value for name, value in (values | self.maxima).items()}
