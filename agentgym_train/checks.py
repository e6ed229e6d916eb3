"""Checks of the learner: log-probabilities, gradients, and what an update moves.

The checks of what was played are in `agentgym_envs.record_checks`, which explains `Check`. Here
everything goes through `Learner` with the settings of a run, on copies of the model: the one that
is checked stays as it is, to the bit.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from transformers import PreTrainedModel

from agentgym_envs.episodes import Episode
from agentgym_envs.record_checks import Check, Exchange, Gap, judge
from agentgym_train.algorithms import Algorithm
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.algorithms.settings import LossConfig
from agentgym_train.batching import Sample, sample_from_episode
from agentgym_train.critic import Critic, CriticConfig
from agentgym_train.engines.base import Completion, Engine, Request
from agentgym_train.learner import Learner, LearnerConfig

_TOLERANCES = {
    torch.float64: (1e-9, 1e-9, 1e-12),
    torch.float32: (1e-3, 1e-4, 1e-7),
    torch.bfloat16: (0.5, 0.1, 1e-4),
}
_ALL_TOKENS = 2**62


class TappedEngine:
    """An engine that keeps what passes through it.

    Args:
        engine: does everything.

    Attributes:
        exchanges: prompts and replies, in order of completion.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: dict[int, Sequence[int]] = {}
        self.exchanges: list[Exchange] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def submit(self, request: Request) -> None:
        """As `Engine.submit`."""
        self._engine.submit(request)
        self._asked[request.stream] = tuple(request.prompt_ids)

    def poll(self) -> list[Completion]:
        """As `Engine.poll`."""
        done = self._engine.poll()
        self.exchanges += [(self._asked[one.stream], tuple(one.token_ids)) for one in done]
        return done


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """A model and how it learns.

    Attributes:
        model: the policy.
        algorithm: a policy gradient.
        config: the settings of the learner.
        critic: the settings of the critic, or None.
    """

    model: PreTrainedModel
    algorithm: Algorithm
    config: LearnerConfig = LearnerConfig()
    critic: CriticConfig | None = None

    @property
    def tolerances(self) -> tuple[float, float, float]:
        """What rounding may do in the precision that the learner computes in.

        Returns:
            The largest gap of a log-probability, in nats; the largest gap of a gradient, as a share
            of its norm; the smallest rise of a mean log-probability that is no rounding, in nats.
        """
        return _TOLERANCES[torch.bfloat16 if self.model.device.type == "cuda" else self.model.dtype]

    def learner(self, **changes: Any) -> Learner:
        """A learner of a copy of the model, which takes one full optimizer step an update."""
        settings = {"updates_per_step": 1, "lr_warmup_steps": 0} | changes
        return Learner(
            copy.deepcopy(self.model),
            dataclasses.replace(self.config, **settings),
            seed=0,
            reference=self.model if self.algorithm.needs_reference else None,
            critic=None if self.critic is None else Critic(self.model, self.critic),
        )

    def credited(self, episodes: Sequence[Episode]) -> list[Sample]:
        """Samples with advantages, as if the second of each two episodes had said something else,
        drawn at random, and earned 1 at its end.

        A policy that is sure of itself says the same twice, and nothing is to be learned from that.

        Args:
            episodes: two of each task, next to one another.
        """
        rng, learner = np.random.default_rng(0), self.learner()
        num_tokens = cast(Any, self.model.get_input_embeddings()).weight.shape[0]
        planted = []
        for number, episode in enumerate(episodes):
            sample = sample_from_episode(episode, group=number // 2)
            rewards, token_ids = np.zeros(sample.num_sampled), sample.token_ids.copy()
            if number % 2:
                rewards[-1] = 1
                token_ids[sample.sampled_mask] = rng.integers(num_tokens, size=len(rewards))
            planted.append(dataclasses.replace(sample, rewards=rewards, token_ids=token_ids))
        said = zip(planted, rescored(learner, planted), strict=True)
        drawn = [dataclasses.replace(sample, old_logprobs=logprobs) for sample, logprobs in said]
        return self.algorithm.assign(learner.score(drawn, self.algorithm))


def rescored(learner: Learner, samples: Sequence[Sample]) -> list[Any]:
    """The learner's log-probability of each sampled token: (n,) a sample."""
    scoring = GRPO(loss=LossConfig(importance_cap=1.0))
    return [sample.proximal_logprobs for sample in learner.score(samples, scoring)]


def check_gradient(subject: Subject, samples: Sequence[Sample]) -> Check:
    """Whether the gradient is the same however a batch is cut, padded and ordered.

    Args:
        subject: learns.
        samples: with advantages, of at least two groups.
    """
    expected = _gradient(subject, samples, _ALL_TOKENS)
    found = {
        "one sample a micro-batch, without padding": _gradient(subject, samples, 1),
        "several micro-batches": _gradient(subject, samples, 2 * samples[0].num_tokens),
        "another order": _gradient(subject, samples[::-1], _ALL_TOKENS),
    }
    return judge(
        "gradient",
        [(float((g - expected).norm() / expected.norm()), name) for name, g in found.items()],
        subject.tolerances[1],
        what="of the gradient's norm",
        meaning="What is learned depends on how a batch is cut to fit the memory. Divide losses by "
        "a count of the whole batch, taken before the first backward pass",
    )


def _gradient(subject: Subject, samples: Sequence[Sample], micro_batch_tokens: int) -> torch.Tensor:
    """The gradient of one update, flat, with a critic's behind it."""
    seen: list[torch.Tensor] = []

    def look(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            seen.extend(p.grad.flatten().cpu() for p in group["params"] if p.grad is not None)

    learner = subject.learner(max_grad_norm=math.inf, micro_batch_tokens=micro_batch_tokens)
    hook = register_optimizer_step_pre_hook(look)
    try:
        learner.update(samples, subject.algorithm, 0)
    finally:
        hook.remove()
    return torch.cat(seen)


def check_update(subject: Subject, samples: Sequence[Sample], learning_rate: float = 1e-5) -> Check:
    """Whether an update makes good tokens likelier and bad ones less likely.

    One optimizer step from the same weights each: on all samples as they are credited, and on the
    least likely one with an advantage of 1 and of -1.

    Args:
        subject: learns.
        samples: what `Subject.credited` gave.
        learning_rate: of the step; its own, since that of a run may move less than rounding does.
    """
    one = min(samples, key=lambda sample: float(cast(Any, sample.old_logprobs).mean()))
    batches: dict[str, tuple[Sequence[Sample], Sequence[int]]] = {
        "successes against failures": (
            samples,
            [1 if number % 2 else -1 for number in range(len(samples))],
        ),
        "an advantage of 1": ([one.with_advantages(1.0)], [1]),
        "an advantage of -1": ([one.with_advantages(-1.0)], [-1]),
    }

    def gaps() -> Iterator[Gap]:
        for name, (batch, signs) in batches.items():
            learner = subject.learner(learning_rate=learning_rate)
            before = rescored(learner, batch)
            learner.update(batch, subject.algorithm, 0)
            moves = zip(rescored(learner, batch), before, signs, strict=True)
            yield float(np.mean([sign * (old - new).mean() for new, old, sign in moves])), name

    return judge(
        "update",
        gaps(),
        -subject.tolerances[2],
        what="nats a token against the advantage, below 0 with it",
        meaning="An update does not raise what was good or lower what was bad. Look for a flipped "
        "sign, for advantages on other samples than their own, or for frozen weights",
    )
