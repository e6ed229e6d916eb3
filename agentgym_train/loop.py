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
from agentgym_envs.horizons import EpisodeOutcome
from agentgym_envs.rollouts import summarize
from agentgym_envs.seeds import stable_seed
from agentgym_train.algorithms.refill import collect
from agentgym_train.assemble import Parts
from agentgym_train.batching import Sample
from agentgym_train.config import SupervisedConfig
from agentgym_train.evaluate import EvalReport, evaluate
from agentgym_train.loggers.base import Logger
from agentgym_train.monitor import Alarm, collapsed
from agentgym_train.numerics import dump_nonfinite
from agentgym_train.rollout.collector import group_jobs
from agentgym_train.runs import Interrupted, InterruptRequest, Progress

logger = logging.getLogger(__name__)


def train(parts: Parts, progress: Progress, log: Logger, interrupt: InterruptRequest) -> None:
    """Run all steps that are left, and the evaluations before, during and after.

    Args:
        parts: everything the run is made of, at the state of `progress`.
        progress: how far the run is; kept up to date.
        log: gets the numbers of every step.
        interrupt: asked between pieces of work; on a request a checkpoint is written.

    Raises:
        Interrupted: there was a request; the checkpoint is whole.
        Collapsed: a rule of the monitor stopped the run; the checkpoint is whole.
        NonFinite: a number was not finite; the last checkpoint is from before.
    """
    config, warmup = parts.config, parts.config.warmup.steps
    total = warmup + config.run.steps
    if progress.step < total:  # a finished run may have been made longer
        progress.reports.pop("after", None)
    clock = _Clock()
    try:
        if progress.step == 0:
            parts.save(progress)  # so that a run can always be resumed
        while progress.step < total:
            interrupt()
            step = progress.step
            phase = "warmup" if step < warmup else config.run.algorithm
            parts.enter_phase(phase)
            values: dict[str, float] = {}
            if step == warmup and "before" not in progress.reports:
                with clock("time/eval"):
                    progress.reports["before"] = _evaluate(parts, "test", interrupt).to_json()
            if step >= warmup and config.eval.every and (step - warmup) % config.eval.every == 0:
                values |= _evaluate_dev(parts, progress, clock, interrupt)
            if phase == "warmup":
                values |= _clone(parts, config.warmup, step, clock)
            elif phase == "sft":
                values |= _clone(parts, config.sft, step, clock)
            else:
                values |= _play_and_learn(parts, step - warmup, clock, interrupt)
            alarms = [] if phase == "warmup" else _watch(parts, step - warmup, values)
            progress.step += 1
            progress.seconds += clock.total
            # Before the checkpoint: a crash in between leaves a record too many, not one too few.
            log.log(step, phase, values | clock.metrics(values))
            clock = _Clock()
            with clock("time/save"):
                due = progress.step % config.run.checkpoint_every == 0 or progress.step == total
                if due or alarms:
                    parts.save(progress)
            if alarms:
                raise collapsed(alarms, parts.folder.path, progress.best)
        _finish(parts, progress, log, interrupt, clock)
    except Interrupted:
        progress.seconds += clock.total
        parts.save(progress)
        raise


def _play_and_learn(
    parts: Parts, step: int, clock: _Clock, interrupt: InterruptRequest
) -> dict[str, float]:
    """One reinforcement learning step; `step` counts from the end of the warm-up."""
    config, size = parts.config, parts.config.batch.group_size
    horizon = parts.horizon.horizon(step)

    def play(round: int) -> list[Sequence[Episode]]:
        tasks = parts.curriculum.step(step, round)
        jobs = list(group_jobs(tasks, group_size=size, horizon=horizon, seed=config.run.seed))
        purpose = f"train/{step}/{round}" if round else f"train/{step}"
        with clock("time/rollout"):
            episodes = parts.collector.collect(jobs, purpose=purpose, interrupt=interrupt)
        return [episodes[start : start + size] for start in range(0, len(episodes), size)]

    collection = collect(play, parts.algorithm, config.refill, step)
    episodes = list(itertools.chain(*collection.groups))
    parts.horizon.observe(step, [EpisodeOutcome.from_episode(episode) for episode in episodes])
    parts.curriculum.observe(step, episodes)
    with clock("time/update"):
        metrics = _update(parts, collection.groups, step, collection.rescale)
    if config.run.save_episodes_every and step % config.run.save_episodes_every == 0:
        with clock("time/save"):
            write_episodes(parts.folder.episodes(config.warmup.steps + step), episodes)
    first = list(itertools.chain(*collection.rounds[0]))
    return summarize(first, size) | collection.metrics() | metrics


def _clone(parts: Parts, phase: SupervisedConfig, step: int, clock: _Clock) -> dict[str, float]:
    """One supervised step on demonstrations."""
    demonstrations = parts.demonstrations(phase.demonstrations)
    seed = stable_seed(parts.config.run.seed, "demonstrations", step)
    rng = np.random.default_rng(seed)
    size = min(phase.episodes_per_step, len(demonstrations))
    chosen = rng.choice(len(demonstrations), size=size, replace=False)
    with clock("time/update"):
        return _update(parts, [[demonstrations[int(index)]] for index in chosen], step)


def _update(
    parts: Parts,
    groups: Sequence[Sequence[Episode]],
    step: int,
    rescale: Callable[[list[Sample]], list[Sample]] = list,
) -> dict[str, float]:
    """Give credit, change the weights, and sample from them from now on."""
    algorithm, learner = parts.algorithm, parts.learner
    dump = parts.folder.path / f"nonfinite-{step:06d}"
    with dump_nonfinite(dump, itertools.chain(*groups)):
        samples = algorithm.select(groups, step)
        samples = learner.score(samples, algorithm)
        samples = rescale(algorithm.assign(samples, learner.total))
        metrics = learner.update(samples, algorithm, step)
    parts.engine.load_weights(None, learner.weights_version)
    return metrics


def _watch(parts: Parts, step: int, values: dict[str, float]) -> list[Alarm]:
    """Act on what the monitor says of a step; gives the alarms that ask to stop."""
    alarms = parts.monitor.check(values)
    values["monitor/alarms"] = float(len(alarms))
    for alarm in alarms:
        logger.warning("after step %d: %s", parts.config.warmup.steps + step, alarm.reason)
    if lower := [alarm for alarm in alarms if alarm.action == "lower"]:
        parts.horizon.lower(step, lower[0].reason)  # once, however many ask for it
    return [alarm for alarm in alarms if alarm.action == "stop"]


def _evaluate(parts: Parts, split: str, interrupt: InterruptRequest) -> EvalReport:
    tasks = parts.world.test if split == "test" else parts.world.dev
    return evaluate(parts.collector, tasks, horizon=parts.config.eval.horizon, interrupt=interrupt)


def _evaluate_dev(
    parts: Parts, progress: Progress, clock: _Clock, interrupt: InterruptRequest
) -> dict[str, float]:
    """Success on the dev split; the weights that are best on it are kept."""
    with clock("time/eval"):
        values = _evaluate(parts, "dev", interrupt).metrics()
    if "eval/success" in values and progress.is_best(values["eval/success"]):
        with clock("time/save"):
            parts.save(progress)
    return values


def _finish(
    parts: Parts, progress: Progress, log: Logger, interrupt: InterruptRequest, clock: _Clock
) -> None:
    """Evaluate what came out, on both held-out splits."""
    if "after" in progress.reports:
        return
    with clock("time/eval"):
        if "before" not in progress.reports:  # no step came after the warm-up
            progress.reports["before"] = _evaluate(parts, "test", interrupt).to_json()
    values = _evaluate_dev(parts, progress, clock, interrupt)
    with clock("time/eval"):
        progress.reports["after"] = _evaluate(parts, "test", interrupt).to_json()
    progress.seconds += clock.total
    log.log(progress.step, "end", values | clock.metrics(values))
    parts.save(progress)


class _Clock:
    """Seconds of the named parts of one step."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._parts: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._parts[name] = self._parts.get(name, 0.0) + time.perf_counter() - start

    @property
    def total(self) -> float:
        """Seconds since the step began."""
        return time.perf_counter() - self._start

    def metrics(self, values: dict[str, float]) -> dict[str, float]:
        """The ``time/``, ``speed/`` and ``memory/`` numbers of a step with these `values`."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found = self._parts | {"time/step": self.total, "memory/peak": peak}
        if (update := self._parts.get("time/update")) and values.get("train/tokens"):
            found["speed/train_tokens"] = values["train/tokens"] / update
        if (rollout := self._parts.get("time/rollout")) and "rollout/episodes" in values:
            episodes = values["rollout/episodes"]
            turns = episodes * values["rollout/turns"]
            found["speed/sampled_tokens"] = turns * values["rollout/reply_tokens"] / rollout
            found["speed/rollout_tokens"] = episodes * values["rollout/episode_tokens"] / rollout
            found["speed/episodes"] = episodes / self.total
        return found
