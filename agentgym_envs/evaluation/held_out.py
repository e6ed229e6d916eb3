"""`EvalReport`: what a training loop asks of held-out tasks, sampled and greedily.

The sampled figure is the policy that is trained; the greedy one stands beside it, because
sharpening alone narrows their gap. The same tasks and random numbers at every evaluation of a run
make its reports comparable task by task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from agentgym_envs.episodes import Episode
from agentgym_envs.evaluation.summary import Summary, summarize
from agentgym_envs.tasks import Task


@dataclasses.dataclass(frozen=True)
class EvalReport:
    """What an evaluation on held-out tasks found.

    Attributes:
        split: the split of the tasks.
        horizon: most turns.
        sampled: one episode a task, at the temperature of training.
        greedy: one episode a task, with the likeliest token each time.
    """

    split: str
    horizon: int
    sampled: Summary
    greedy: Summary

    @classmethod
    def of(
        cls,
        tasks: Sequence[Task],
        sampled: Sequence[Episode],
        greedy: Sequence[Episode],
        *,
        horizon: int,
    ) -> EvalReport:
        """The report on episodes of `tasks`, all of one split."""
        return cls(
            split=tasks[0].split,
            horizon=horizon,
            sampled=summarize(tasks, sampled, horizon=horizon, k=1),
            greedy=summarize(tasks, greedy, horizon=horizon, k=1),
        )

    def metrics(self) -> dict[str, float]:
        """The ``eval/`` numbers; one of no episode at all is absent."""
        success = self.sampled.success
        values = {"eval/episodes": float(success.tasks)}
        if success.tasks:
            values["eval/success"] = success.value
            values["eval/success_low"] = success.low
            values["eval/success_high"] = success.high
        if self.greedy.success.tasks:
            values["eval/success_greedy"] = self.greedy.success.value
        return values

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values.

        ``sampled`` and ``greedy`` hold 1 or 0 task by task, null for an episode that broke.
        """
        success, greedy = self.sampled.success.to_json(), self.greedy.success.to_json()
        return {
            "split": self.split,
            "horizon": self.horizon,
            "n": len(self.sampled.tasks),
            "success": success["value"],
            "interval_95": success["interval_95"],
            "success_greedy": greedy["value"],
            "sampled": _outcomes(self.sampled),
            "greedy": _outcomes(self.greedy),
            "categories": {
                name: [figures["success"].tasks, figures["success"].value]
                for name, figures in self.sampled.categories.items()
                if figures["success"].tasks
            },
            "faults": self.sampled.faults + self.greedy.faults,
        }


def _outcomes(summary: Summary) -> list[int | None]:
    return [task.solved if task.episodes else None for task in summary.tasks]
