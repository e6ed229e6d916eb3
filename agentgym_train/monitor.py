"""The rules of the collapse monitor, and what a run says that they stopped.

How a rule is judged is in `agentgym_envs.monitoring`; the loop warns, lowers the horizon or stops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentgym_envs.monitoring import Alarm, Monitor, Rule
from agentgym_train.errors import Collapsed, ConfigError
from agentgym_train.metrics import METRICS


@dataclasses.dataclass(frozen=True)
class MonitorConfig:
    """Rules that are checked after every step but those of the warm-up."""

    invalid: Rule = Rule("rollout/invalid", "rise", 0.35, 10, "lower")
    """The policy forgets how to say what the world understands."""
    repeats: Rule = Rule("rollout/repeats", "above", 0.4, 10, "lower")
    """The policy goes round in circles."""
    success: Rule = Rule("rollout/success", "fall", 0.4, 10, "warn")
    """Training episodes fail that used to succeed, or the tasks have become harder."""
    held_out: Rule = Rule("eval/success", "fall", 0.5, 2, "stop")
    """Held-out tasks fail that used to succeed, at one horizon; patience counts evaluations."""
    unsolved: Rule = Rule("rollout/unsolved", "above", 0.95, 20, "warn")
    """No group holds a success to learn from."""
    entropy_high: Rule = Rule("train/entropy", "rise", 1.0, 10, "stop")
    """The policy dissolves into noise."""
    entropy_low: Rule = Rule("train/entropy", "below", 0.01, 10, "warn")
    """The policy no longer tries anything."""
    sampler_gap: Rule = Rule("train/logprob_gap_mean", "above", 0.1, 3, "stop")
    """The learner trains on another distribution than was sampled from."""
    grad_norm: Rule = Rule("train/grad_norm", "spike", 10.0, 3, "warn")
    """Updates are of another size than they were."""
    turns: Rule = Rule("rollout/turns_success", "spike", 2.0, 10, "warn")
    """Successes take far longer than they did."""

    def __post_init__(self) -> None:
        try:
            self.build()
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def build(self) -> Monitor:
        """A monitor that has seen nothing yet."""
        meanings = {name: metric.meaning for name, metric in METRICS.items()}
        return Monitor(vars(self), meanings)


def collapsed(
    alarms: Sequence[Alarm], run: str | Path, best: Mapping[str, float] | None
) -> Collapsed:
    """The error that stops a run.

    Args:
        alarms: what fired.
        run: folder of the run.
        best: `Progress.best`, the weights that were best on held-out tasks.
    """
    kept = (
        f"the best checkpoint, of step {best['step']} with held-out success {best['success']:.3f}, "
        f"is kept: start a run with other settings from it by --warmup.steps 0 --model.path "
        f"{run}/checkpoints/step-{best['step']:06d}/model"
        if best
        else "no weights were evaluated on held-out tasks, so none are known as the best"
    )
    return Collapsed(
        f"training has collapsed: {'; '.join(alarm.reason for alarm in alarms)}. Read the newest "
        f"episodes in {run}/episodes and the curves of 'python -m agentgym_train report {run}'; "
        f"rules are switched off in [monitor] of {run}/config.toml; {kept}"
    )
