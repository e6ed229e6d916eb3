"""The training loop, top to bottom: warm-up, then learning from play, evaluated throughout.

A step chooses horizon and tasks, plays the episodes, gives credit, updates, and samples from the
new weights. The module that samples is the module that learns, so data is on-policy and there is
nothing to synchronize. Every random number is keyed by the seed and the step: a run that was
killed goes on from its last checkpoint to the same weights, bit for bit on a CPU with in-line
workers and as many threads.

Left out: overlap of sampling and learning, and more than one process.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import resource
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from agentgym_envs.episodes import Episode, write_episodes
from agentgym_envs.evaluation import EvalReport
from agentgym_envs.horizons import EpisodeOutcome
from agentgym_envs.monitoring import Alarm
from agentgym_envs.rollouts import summarize
from agentgym_envs.seeds import stable_seed
from agentgym_envs.tasks import Task
from agentgym_train.algorithms.refill import collect
from agentgym_train.assemble import Parts
from agentgym_train.batching import Sample
from agentgym_train.config import SupervisedConfig
from agentgym_train.evaluate import evaluate
from agentgym_train.loggers import Logger
from agentgym_train.monitor import collapsed
from agentgym_train.numerics import dump_nonfinite
from agentgym_train.rollout.collector import group_jobs
from agentgym_train.runs import Interrupted, InterruptRequest

logger = logging.getLogger(__name__)


def train(parts: Parts, log: Logger, interrupt: InterruptRequest) -> None:
    """Run all steps that are left, and the evaluations before, during and after.

    Args:
        parts: everything the run is made of; its progress is kept up to date.
        log: gets the numbers of every step.
        interrupt: asked between pieces of work; on a request a checkpoint is written.

    Raises:
        Interrupted: there was a request; the checkpoint is whole.
        Collapsed: a rule of the monitor stopped the run; the checkpoint is whole.
        NonFinite: a number was not finite; the last checkpoint is from before.
    """
    config, progress, warmup = parts.config, parts.progress, parts.config.warmup.steps
    total = config.total_steps
    if progress.step < total:  # a finished run may have been made longer
        progress.reports.pop("after", None)
    clock = _Clock()
    try:
        if progress.step == 0:
            parts.save()  # so that a run can always be resumed
        while progress.step < total:
            interrupt()
            step = progress.step
            parts.enter_phase("warmup" if step < warmup else config.run.algorithm)
            values: dict[str, float] = {}
            if step == warmup:
                _report(parts, "before", clock, interrupt)
            if step >= warmup and config.eval.every and (step - warmup) % config.eval.every == 0:
                values |= _evaluate_dev(parts, clock, interrupt)
            if parts.supervised:
                values |= _clone(parts, parts.supervised, step, clock)
            else:
                values |= _play_and_learn(parts, step - warmup, clock, interrupt)
            values |= clock.metrics(values)
            alarms = [] if step < warmup else _watch(parts, step - warmup, values)
            progress.step += 1
            progress.seconds += clock.total
            # Before the checkpoint: a crash in between leaves a record too many, not one too few.
            log.log(step, parts.phase, values)
            clock = _Clock()
            with clock("time/save"):
                due = progress.step % config.run.checkpoint_every == 0 or progress.step == total
                if due or alarms:
                    parts.save()
            if alarms:
                raise collapsed(alarms, parts.folder.path, progress.best)
        if not parts.is_finished:
            _report(parts, "before", clock, interrupt)  # no step may have come after the warm-up
            values = _evaluate_dev(parts, clock, interrupt)
            _report(parts, "after", clock, interrupt)
            progress.seconds += clock.total
            log.log(progress.step, "end", values | clock.metrics(values))
            parts.save()
    except Interrupted:
        progress.seconds += clock.total
        parts.save()
        raise


def _play_and_learn(
    parts: Parts, step: int, clock: _Clock, interrupt: InterruptRequest
) -> dict[str, float]:
    """One reinforcement learning step; `step` counts from the end of the warm-up."""
    config, size = parts.config, parts.config.batch.group_size
    horizon = parts.horizon.horizon(step)

    def play(round: int) -> list[Sequence[Episode]]:
        tasks = parts.world.curriculum.step(step, round)
        jobs = list(group_jobs(tasks, group_size=size, horizon=horizon, seed=config.run.seed))
        purpose = f"train/{step}/{round}" if round else f"train/{step}"
        with clock("time/rollout"):
            episodes = parts.collector.collect(jobs, purpose=purpose, interrupt=interrupt)
        return [episodes[start : start + size] for start in range(0, len(episodes), size)]

    collection = collect(play, parts.algorithm, config.refill, step)
    episodes = list(itertools.chain(*collection.groups))
    first = list(itertools.chain(*collection.rounds[0]))  # the others came or not by its results
    parts.horizon.observe(step, [EpisodeOutcome.from_episode(episode) for episode in first])
    parts.world.curriculum.observe(step, episodes)
    groups = collection.groups
    if config.run.algorithm == "evolve":
        groups += _demonstrations(parts, config.warmup, step, config.evolve.demonstrations)
    with clock("time/update"):
        metrics = _update(parts, groups, step, collection.rescale)
    if config.run.save_episodes_every and step % config.run.save_episodes_every == 0:
        with clock("time/save"):
            write_episodes(parts.folder.episodes(config.warmup.steps + step), episodes)
    played = {"rollout/episodes": float(len(episodes))}
    return summarize(first, size) | played | collection.metrics() | metrics


def _clone(parts: Parts, phase: SupervisedConfig, step: int, clock: _Clock) -> dict[str, float]:
    """One supervised step on demonstrations."""
    groups = _demonstrations(parts, phase, step, phase.episodes_per_step)
    with clock("time/update"):
        return _update(parts, groups, step)


def _demonstrations(
    parts: Parts, phase: SupervisedConfig, step: int, number: int
) -> list[Sequence[Episode]]:
    """Some demonstrations of a step, groups of one."""
    if not number:
        return []
    demonstrations = parts.demonstrations(phase.demonstrations)
    rng = np.random.default_rng(stable_seed(parts.config.run.seed, "demonstrations", step))
    size = min(number, len(demonstrations))
    chosen = rng.choice(len(demonstrations), size=size, replace=False)
    return [[demonstrations[int(index)]] for index in chosen]


def _update(
    parts: Parts,
    groups: Sequence[Sequence[Episode]],
    step: int,
    rescale: Callable[[list[Sample]], list[Sample]] = list,
) -> dict[str, float]:
    """Give credit, change the weights, and sample from them from now on."""
    algorithm, learner = parts.algorithm, parts.learner
    dump = parts.folder.path / f"nonfinite-{parts.progress.step:06d}"
    with dump_nonfinite(dump, itertools.chain(*groups)):
        samples = algorithm.select(groups, step)
        samples = learner.score(samples, algorithm)
        samples = rescale(algorithm.assign(samples, learner.total))
        metrics = learner.update(samples, algorithm, step)
    parts.collector.engine.load_weights(None, learner.weights_version)
    return metrics


def _watch(parts: Parts, step: int, values: dict[str, float]) -> list[Alarm]:
    """Act on what the monitor says of a step; gives the alarms that ask to stop."""
    alarms = parts.monitor.check(values)
    values["monitor/alarms"] = float(len(alarms))
    for alarm in alarms:
        logger.warning("after step %d: %s", parts.config.warmup.steps + step, alarm.reason)
    lower = [alarm for alarm in alarms if alarm.action == "lower"]
    # Once, however many ask for it, an adaptive schedule among them.
    if lower and parts.horizon.horizon(step + 1) >= values.get("rollout/horizon", 0):
        parts.horizon.lower(step, lower[0].reason)
    return [alarm for alarm in alarms if alarm.action == "stop"]


def _report(parts: Parts, name: str, clock: _Clock, interrupt: InterruptRequest) -> None:
    """Measure success on the test split, unless the report of this name is there."""
    if name not in parts.progress.reports:
        with clock("time/eval"):
            found = _evaluate(parts, parts.world.splits.test, interrupt)
        parts.progress.reports[name] = found.to_json()


def _evaluate_dev(parts: Parts, clock: _Clock, interrupt: InterruptRequest) -> dict[str, float]:
    """Success on the dev split; the weights that are best on it are kept."""
    with clock("time/eval"):
        values = _evaluate(parts, parts.world.splits.dev, interrupt).metrics()
    if "eval/success" in values and parts.progress.is_best(values["eval/success"]):
        with clock("time/save"):
            parts.save()
    return values


def _evaluate(parts: Parts, tasks: Sequence[Task], interrupt: InterruptRequest) -> EvalReport:
    return evaluate(parts.collector, tasks, parts.config.eval.horizon, interrupt)


class _Clock(dict[str, float]):
    """Seconds of the named parts of one step."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self[name] = self.get(name, 0.0) + time.perf_counter() - start

    @property
    def total(self) -> float:
        """Seconds since the step began."""
        return time.perf_counter() - self._start

    def metrics(self, values: dict[str, float]) -> dict[str, float]:
        """The ``time/``, ``speed/`` and ``memory/`` numbers of a step with these `values`."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found = {**self, "time/step": self.total, "memory/peak": peak}
        if values.get("train/tokens"):
            found["speed/train_tokens"] = values["train/tokens"] / self["time/update"]
        if episodes := values.get("rollout/episodes"):
            rate = episodes / self["time/rollout"]
            replies = rate * values["rollout/turns"]
            found["speed/sampled_tokens"] = replies * values["rollout/reply_tokens"]
            found["speed/rollout_tokens"] = rate * values["rollout/episode_tokens"]
            found["speed/episodes"] = episodes / self.total
        return found
