"""The critic of PPO: a second trunk that says what return is still to come.

It starts as a copy of the policy's trunk under a head of zeros, so its first values are 0 and it
knows the world's words. It shares no weight with the policy: the loss of one then cannot disturb
the other, at the price of as much memory again.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import torch
from transformers import PreTrainedModel

from agentgym_train.batching import Batch, sampled_hidden
from agentgym_train.errors import at_least


@dataclasses.dataclass(frozen=True)
class CriticConfig:
    """The critic of `run.algorithm = "ppo"`."""

    learning_rate: float = 0.0
    """Learning rate, by the same schedule as the policy's; 0: there is no critic. Several times the
    policy's is usual."""
    clip: float = 0.2
    """A value counts as moved by no more than this in one step; 0 for no limit."""

    def __post_init__(self) -> None:
        at_least(self, "critic", 0, "learning_rate", "clip")


class Critic(torch.nn.Module):
    """Values of the states in which tokens are sampled.

    Args:
        policy: whose trunk is copied.
        config: the settings.
    """

    def __init__(self, policy: PreTrainedModel, config: CriticConfig) -> None:
        super().__init__()
        self.config = config
        trunk: Any = copy.deepcopy(policy.base_model)
        self.trunk: PreTrainedModel = trunk
        size = policy.config.get_text_config().hidden_size
        like = next(self.trunk.parameters())
        self.weight = torch.nn.Parameter(like.new_zeros(size))
        self.bias = torch.nn.Parameter(like.new_zeros(1))

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Values before each sampled token, (N,), and after the last token of each row, (B,)."""
        hidden, last = sampled_hidden(self.trunk, batch)
        return self._values(hidden), self._values(last)

    def _values(self, hidden: torch.Tensor) -> torch.Tensor:
        # No matrix product: autocast would round it to the three digits of bf16.
        return (hidden * self.weight).sum(-1) + self.bias
