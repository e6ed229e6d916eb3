"""Evaluation of a policy that samples tokens; what comes of it is `agentgym_envs.evaluation`'s.

Before, during and after training every task is played once with the policy's own sampling and once
greedily. The tasks and the random numbers are the same at every evaluation of a run, so two reports
are paired task by task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from agentgym_envs.episodes import Episode
from agentgym_envs.evaluation import EvalJob, EvalPlan, EvalReport
from agentgym_envs.tasks import Task
from agentgym_train.errors import at_least
from agentgym_train.rollout.collector import Collector, Interrupt, Job


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """Held-out evaluation."""

    tasks: int = 200
    """Number of tasks of each evaluation."""
    horizon: int = 8
    """Most turns of an evaluation episode, at every step the same."""
    every: int = 20
    """Training steps between evaluations on the dev split; 0 for none. Before and after training
    the test split is used."""

    def __post_init__(self) -> None:
        at_least(self, "eval", 1, "tasks", "horizon")
        at_least(self, "eval", 0, "every")


def evaluate(
    collector: Collector, tasks: Sequence[Task], horizon: int, interrupt: Interrupt | None = None
) -> EvalReport:
    """Play every task once sampled and once greedily.

    Args:
        collector: who plays.
        tasks: at least one task, all of one split.
        horizon: most turns.
        interrupt: called between pieces of work.

    Raises:
        InvalidEvaluation: there is no task.
        InvalidTask: a task comes twice.
    """
    plan = EvalPlan(collector.context.env_id, {}, tuple(tasks), horizon, seed=collector.seed)
    sampled, greedy = (
        play_tokens(collector, plan, [*plan.jobs()], temperature=temperature, interrupt=interrupt)
        for temperature in (None, 0.0)
    )
    return EvalReport.of(tasks, sampled, greedy, horizon=horizon)


def play_tokens(
    collector: Collector,
    plan: EvalPlan,
    jobs: Sequence[EvalJob],
    on_episode: Callable[[Episode], None] | None = None,
    *,
    temperature: float | None = None,
    interrupt: Interrupt | None = None,
) -> list[Episode]:
    """Play jobs of a plan, whose random numbers depend on seed, task and try; see
    `Collector.collect`.

    The share that may break is one of all episodes of the plan: where few are left to play, those
    that broke are among them.
    """
    num_episodes = len(plan.tasks) * plan.k
    if 0 < len(jobs) < num_episodes:
        share = min(1.0, collector.sampling.max_faults * num_episodes / len(jobs))
        sampling = dataclasses.replace(collector.sampling, max_faults=share)
        collector = dataclasses.replace(collector, sampling=sampling)
    return collector.collect(
        [Job(job.task, job.member, plan.horizon, job.seed) for job in jobs],
        purpose="eval",
        temperature=temperature,
        interrupt=interrupt,
        on_episode=on_episode,
    )
