"""AdamW with a linear warm-up and clipped gradients, summed over ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch

from agentgym_train.errors import CheckpointError, ConfigError, at_least
from agentgym_train.ranks import sum_gradients

_ADAM_KEYS = ("step", "exp_avg", "exp_avg_sq")


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """AdamW."""

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

    def __post_init__(self) -> None:
        at_least(self, "learner", 0, "learning_rate", "lr_warmup_steps", "weight_decay")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(f"learner.betas must be in [0, 1), got {list(self.betas)}")
        if not self.max_grad_norm > 0:
            raise ConfigError(
                f"learner.max_grad_norm must be above 0 (inf for no limit), got "
                f"{self.max_grad_norm}"
            )


class Optimizer:
    """Changes the parameters of a module that want a gradient.

    Args:
        module: with fp32 (or wider) weights.
        config: the settings.

    Attributes:
        num_updates: optimizer steps so far.

    Raises:
        ConfigError: the weights are narrower than fp32.
    """

    def __init__(self, module: torch.nn.Module, config: OptimizerConfig) -> None:
        self.num_updates = 0
        self._config = config
        named = module.named_parameters()
        self._parameters = {name: weight for name, weight in named if weight.requires_grad}
        _check_precision(self._parameters)
        weights = self._parameters.values()
        groups = [
            {"params": [w for w in weights if w.ndim >= 2], "weight_decay": config.weight_decay},
            {"params": [w for w in weights if w.ndim < 2], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        rate, betas = config.learning_rate, config.betas
        self._adam = torch.optim.AdamW(groups, lr=rate, betas=betas, fused=True)

    @property
    def learning_rate(self) -> float:
        """The learning rate of optimizer step number `num_updates`, counted from 1."""
        risen = min(1.0, self.num_updates / max(1, self._config.lr_warmup_steps))
        return self._config.learning_rate * risen

    def clip(self) -> float:
        """Sum gradients over ranks and clip them; returns the norm before."""
        sum_gradients(self._parameters.values())
        norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._config.max_grad_norm)
        return float(norm)

    def step(self) -> None:
        """Change the weights by the gradients, and forget these."""
        self.num_updates += 1
        for group in self._adam.param_groups:
            group["lr"] = self.learning_rate
        self._adam.step()
        self.zero_grad()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self._adam.zero_grad()

    def state_dict(self, prefix: str) -> dict[str, torch.Tensor]:
        """Adam's averages, by ``<prefix>.<parameter>.<key>``; empty before the first step."""
        return {
            f"{prefix}.{name}.{key}": value
            for name, parameter in self._parameters.items()
            for key, value in self._adam.state[parameter].items()
        }

    def load_state_dict(
        self, tensors: Mapping[str, torch.Tensor], prefix: str, num_updates: int
    ) -> None:
        """Restore what `state_dict` gave after `num_updates` steps.

        Raises:
            CheckpointError: tensors of another model.
            KeyError: a tensor is missing.
        """
        self.num_updates = num_updates
        self._adam.state.clear()
        for name, parameter in self._parameters.items() if num_updates else ():
            state = {key: tensors[f"{prefix}.{name}.{key}"].clone() for key in _ADAM_KEYS}
            shapes = [tuple(state[key].shape) for key in _ADAM_KEYS[1:]]
            if shapes != [tuple(parameter.shape)] * 2:
                raise CheckpointError(
                    f"{name} has shape {tuple(parameter.shape)}, but its optimizer state "
                    f"{shapes}: the checkpoint is of another model"
                )
            self._adam.state[parameter] = {k: v.to(parameter.device) for k, v in state.items()}


def _check_precision(parameters: Mapping[str, torch.nn.Parameter]) -> None:
    for name, parameter in parameters.items():
        if parameter.dtype not in (torch.float32, torch.float64):
            raise ConfigError(
                f"the learner needs fp32 weights (it computes in bf16 on a GPU by itself), but "
                f"{name} is {parameter.dtype}; load the model in float32"
            )
