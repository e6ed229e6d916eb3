"""The collector: one event loop over environments and engine; no episode waits for another.

A `Job` is an episode to play. The loop moves each episode on as soon as its environment or its
reply is there: reset, prompt, reply, step, prompt, … . Token ids are the only truth: what was
sampled is kept as sampled, the world's text is encoded once and appended, and the prompt of every
turn is the episode's recorded tokens, which the engine checks against its own.

Random numbers of a reply are keyed by (seed, purpose, task, member, turn), whatever the order of
arrival. With in-line workers the order is fixed too, and a run repeats bit for bit on a CPU.

Left out: overlap of collection and learning. It needs a second thread of control and belongs to
the loop, not here.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import gymnasium

from agentgym_envs.episodes import EndReason, Episode
from agentgym_envs.policies import package_versions, record_turn
from agentgym_envs.seeds import stable_seed
from agentgym_envs.tasks import Task
from agentgym_envs.vector import StepResult, TextVectorEnv
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.engines.base import Completion, Engine, Request
from agentgym_train.errors import ConfigError, ContextError, TooManyFaults, at_least

logger = logging.getLogger(__name__)

_WAIT_S = 60.0
"""How long to wait for an environment before looking again, in seconds."""

Interrupt = Callable[[], None]
"""Called between pieces of work; raises to stop the collection."""


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """How replies are sampled."""

    temperature: float = 1.0
    """Temperature of training and of sampled evaluation. Log-probabilities are those at this
    temperature, for sampler and learner alike."""
    top_p: float = 1.0
    """1 and nothing else: the learner scores tokens under the whole distribution, so they must be
    drawn from it."""
    max_tokens: int = 8
    """Most tokens of one reply, the end-of-turn token included. A longer reply is cut and parsed
    as it stands."""
    max_faults: float = 0.1
    """Largest share of the episodes of a step or an evaluation, rounded up to whole ones, that may
    end by a fault, after one retry each, before the run stops."""

    def __post_init__(self) -> None:
        at_least(self, "sampling", 1, "max_tokens")
        if not 0 < self.temperature < math.inf:
            raise ConfigError(
                f"sampling.temperature must be above 0, got {self.temperature}; greedy success is "
                "evaluated beside the sampled one without it"
            )
        if self.top_p != 1:
            raise ConfigError(
                f"sampling.top_p = {self.top_p} would draw from another distribution than the one "
                "that is trained; set it to 1, and sampling.temperature for less variety"
            )
        if not 0 <= self.max_faults <= 1:
            raise ConfigError(f"sampling.max_faults is a share, 0..1; got {self.max_faults}")


@dataclasses.dataclass(frozen=True)
class Job:
    """An episode to play.

    Attributes:
        task: what to play.
        member: number of the episode among those of this task.
        horizon: most turns.
        seed: seed of the environment's reset.
    """

    task: Task
    member: int
    horizon: int
    seed: int


@dataclasses.dataclass(frozen=True)
class EpisodeContext:
    """What every record of a run has in common."""

    env_id: str
    action_format: str
    instructions: Mapping[str, str]
    """By family of the task."""
    versions: Mapping[str, str]

    @classmethod
    def of(cls, env: gymnasium.Env[str, str]) -> EpisodeContext:
        """That of a `TextEnv` or a wrapper around one."""
        return cls(
            env_id=env.spec.id if env.spec else "",
            action_format=env.get_wrapper_attr("action_format"),
            instructions=env.get_wrapper_attr("instructions_by_family"),
            versions=package_versions(),
        )


@dataclasses.dataclass(eq=False)
class Collector:
    """Plays jobs with an engine in a vector of environments.

    Attributes:
        envs: the environments, autoreset disabled.
        engine: who samples.
        template: turns text into tokens.
        sampling: how replies are sampled.
        context: what every record has in common.
        seed: of the run.
        show_instructions: whether the rules stand in front of the conversation, as the system
            message.
    """

    envs: TextVectorEnv
    engine: Engine
    template: ChatTemplate
    _: dataclasses.KW_ONLY
    sampling: SamplingConfig
    context: EpisodeContext
    seed: int
    show_instructions: bool

    def __post_init__(self) -> None:
        self.streams = itertools.count(1)

    def collect(
        self,
        jobs: Sequence[Job],
        *,
        purpose: str,
        temperature: float | None = None,
        interrupt: Interrupt | None = None,
        on_episode: Callable[[Episode], None] | None = None,
    ) -> list[Episode]:
        """Play every job once.

        Args:
            jobs: what to play; admitted in this order.
            purpose: part of the key of the random numbers: ``"train/12"``.
            temperature: instead of the configured one; 0 is greedy.
            interrupt: called between pieces of work.
            on_episode: called with each finished episode, in the order of finishing.

        Returns:
            The episodes in the order of the jobs. Those that broke twice, or for good,
            end as `FAULT`.

        Raises:
            ContextError: the first prompt of a task does not fit the model's context.
            TooManyFaults: more episodes broke than the budget allows.
        """
        if temperature is None:
            temperature = self.sampling.temperature
        collection = _Collection(self, purpose, temperature, on_episode)
        try:
            return collection.run(jobs, interrupt)
        finally:
            collection.abandon()

    def first_prompt(self, task: Task, observation: str) -> list[int]:
        """The tokens before the first reply of an episode.

        Raises:
            ContextError: with a reply they do not fit the model's context.
        """
        instructions = self.context.instructions[task.family] if self.show_instructions else ""
        prompt = self.template.open(instructions, observation)
        if not self.fits(prompt):
            raise ContextError(
                f"the first prompt of task {task.id!r} has {len(prompt)} tokens; with "
                f"{self.sampling.max_tokens} for the reply it does not fit the context of "
                f"{self.engine.max_context}; raise model.max_context, lower sampling.max_tokens or "
                "leave out the instructions (model.instructions)"
            )
        return prompt

    def fits(self, prompt: Sequence[int]) -> bool:
        """Whether a prompt and its reply fit the model's context."""
        return len(prompt) + self.sampling.max_tokens <= self.engine.max_context


@dataclasses.dataclass(eq=False)
class _Live:
    """An episode in flight: which job it plays where, and its open turn."""

    position: int
    job: Job
    index: int
    stream: int
    retried: bool
    episode: Episode
    prompt: list[int] = dataclasses.field(default_factory=list)
    context_ids: list[int] = dataclasses.field(default_factory=list)
    state_key: str | None = None
    completion: Completion = dataclasses.field(init=False)
    reply: str = ""


class _Collection:
    """The state of one call of `Collector.collect`."""

    def __init__(
        self,
        collector: Collector,
        purpose: str,
        temperature: float,
        on_episode: Callable[[Episode], None] | None,
    ) -> None:
        self._collector, self._purpose, self._temperature = collector, purpose, temperature
        self._on_episode = on_episode
        self._free = deque(range(collector.envs.num_envs))
        self._live: dict[int, _Live] = {}  # by environment index
        self._sampling: dict[int, _Live] = {}  # by stream, those that wait for a reply
        self._finished: dict[int, Episode] = {}  # by position of the job
        self._faults: list[str] = []

    def run(self, jobs: Sequence[Job], interrupt: Interrupt | None) -> list[Episode]:
        envs, engine = self._collector.envs, self._collector.engine
        waiting = deque(enumerate(jobs))
        while len(self._finished) < len(jobs):
            if interrupt is not None:
                interrupt()
            while waiting and self._free:
                self._start(self._free.popleft(), *waiting.popleft())
            if len(self._live) > len(self._sampling):  # some environment owes a result
                # Block on the environments only when the engine has nothing to do.
                for index, result in envs.recv(timeout=0.0 if self._sampling else _WAIT_S):
                    self._advance(self._live[index], result)
            for completion in engine.poll():
                self._act(self._sampling.pop(completion.stream), completion)
            self._check_faults(len(jobs))
        return [self._finished[position] for position in range(len(jobs))]

    def abandon(self) -> None:
        """Leave engine and environments clean, whatever ended the collection."""
        for live in self._live.values():
            self._collector.engine.release(live.stream)
        while self._live and self._collector.envs.recv(timeout=_WAIT_S):
            pass  # results nobody waits for any more

    def _start(self, index: int, position: int, job: Job, *, retried: bool = False) -> None:
        context = dataclasses.asdict(self._collector.context)
        context["instructions"] = context["instructions"][job.task.family]
        episode = Episode(first_observation="", **vars(job), **context)
        stream = next(self._collector.streams)
        self._live[index] = _Live(position, job, index, stream, retried, episode)
        self._collector.envs.send_reset([index], [job.task], [job.seed], [job.horizon])

    def _advance(self, live: _Live, result: StepResult) -> None:
        """Take an environment's answer and ask for the next reply, or end the episode."""
        episode, collector = live.episode, self._collector
        if not result.is_reset:
            self._record(live, result)
        if result.fault:
            self._break(live, result)
        elif result.terminated:
            self._finish(live, episode.end_reason)
        else:
            live.context_ids = self._context(live, result)
            if result.truncated:
                self._cut_off(live, episode.end_reason)
            elif not collector.fits(live.prompt + live.context_ids):
                self._cut_off(live, EndReason.CONTEXT)
            else:
                live.prompt += live.context_ids
                live.state_key = result.info.get("state_key")
                self._ask(live)

    def _context(self, live: _Live, result: StepResult) -> list[int]:
        """The tokens that an observation adds to the prompt."""
        if result.is_reset:
            live.episode.first_observation = result.observation
            return self._collector.first_prompt(live.job.task, result.observation)
        closed = live.completion.finish_reason == "stop"
        return self._collector.template.extend(result.observation, closed=closed)

    def _ask(self, live: _Live) -> None:
        collector, job, turn = self._collector, live.job, len(live.episode.turns)
        self._sampling[live.stream] = live
        collector.engine.submit(
            Request(
                stream=live.stream,
                prompt_ids=tuple(live.prompt),
                seed=stable_seed(collector.seed, self._purpose, job.task.id, job.member, turn),
                max_tokens=collector.sampling.max_tokens,
                temperature=self._temperature,
            )
        )

    def _act(self, live: _Live, completion: Completion) -> None:
        """Give a sampled reply to its environment."""
        live.completion = completion
        live.prompt += completion.token_ids
        live.reply = self._collector.template.reply_text(completion.token_ids)
        self._collector.envs.send([live.index], [live.reply])

    def _record(self, live: _Live, result: StepResult) -> None:
        turns = live.episode.turns
        record_turn(live.episode, live.reply, result[:5])
        turns[-1] = dataclasses.replace(
            turns[-1],
            context_ids=live.context_ids,
            sampled_ids=list(live.completion.token_ids),
            logprobs=list(live.completion.logprobs),
            temperature=self._temperature,
            finish_reason=live.completion.finish_reason,
            weights_version=live.completion.weights_version,
            state_key=live.state_key,
        )

    def _break(self, live: _Live, result: StepResult) -> None:
        """Play an episode that broke again, once."""
        logger.warning("task %s, member %d: %s", live.job.task.id, live.job.member, result.fault)
        if live.retried or not result.retryable:
            self._faults.append(result.fault)
            live.episode.fault = result.fault
            self._finish(live, EndReason.FAULT)
        else:
            self._collector.engine.release(live.stream)
            self._start(live.index, live.position, live.job, retried=True)

    def _cut_off(self, live: _Live, reason: EndReason) -> None:
        """End an episode that could go on. What would be the next prompt is kept, as far as it fits
        the context: a critic can say what return was still to come.
        """
        room = self._collector.engine.max_context - len(live.prompt)
        live.episode.tail_ids = live.context_ids[:room]
        self._finish(live, reason)

    def _finish(self, live: _Live, reason: EndReason) -> None:
        live.episode.end_reason = reason
        self._collector.engine.release(live.stream)
        self._free.append(live.index)
        self._finished[live.position] = self._live.pop(live.index).episode
        if self._on_episode is not None:
            self._on_episode(live.episode)

    def _check_faults(self, num_jobs: int) -> None:
        share = self._collector.sampling.max_faults
        allowed = math.ceil(share * num_jobs)
        if len(self._faults) > allowed:
            raise TooManyFaults(
                f"{len(self._faults)} of {num_jobs} episodes broke twice, more than the {allowed} "
                f"that sampling.max_faults = {share} allows; the last fault: {self._faults[-1]}"
            )


def group_jobs(tasks: Sequence[Task], *, group_size: int, horizon: int, seed: int) -> Iterator[Job]:
    """`group_size` jobs a task, next to one another, all with the same reset seed.

    A task that comes twice has two groups, whose members are all different.
    """
    played: Counter[str] = Counter()
    for task in tasks:
        for _ in range(group_size):
            yield Job(task, played[task.id], horizon, stable_seed(seed, task.id) % 2**31)
            played[task.id] += 1
