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
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from agentgym_envs.actions import action_format
from agentgym_envs.episodes import EndReason, Episode, Turn
from agentgym_envs.tasks import Task
from agentgym_envs.vector import StepResult, TextVectorEnv
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.engines.base import Completion, Engine, Request
from agentgym_train.errors import ConfigError, ContextError, TooManyFaults

logger = logging.getLogger(__name__)

_WAIT_S = 60.0
"""How long to wait for an environment before looking again, in seconds."""


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """How replies are sampled."""

    temperature: float = 1.0
    """Temperature of training and of sampled evaluation. Log-probabilities are those at this
    temperature."""
    max_tokens: int = 8
    """Most tokens of one reply, the end-of-turn token included. A longer reply is cut and parsed
    as it stands."""
    max_faults: float = 0.1
    """Largest share of episodes that may end by a fault, after one retry each, before the run
    stops."""

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise ConfigError(
                f"sampling.temperature must be above 0, got {self.temperature}; greedy success is "
                "evaluated beside the sampled one without it"
            )
        if self.max_tokens < 1:
            raise ConfigError(f"sampling.max_tokens must be at least 1, got {self.max_tokens}")
        if not 0 <= self.max_faults <= 1:
            raise ConfigError(f"sampling.max_faults is a share, 0..1; got {self.max_faults}")


@dataclasses.dataclass(frozen=True)
class Job:
    """An episode to play.

    Attributes:
        task: what to play.
        member: position in the group of episodes of this task.
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
    instructions: str
    versions: Mapping[str, str]


class Interrupt(Protocol):
    """Called between pieces of work; raises to stop the collection."""

    def __call__(self) -> None: ...


@dataclasses.dataclass
class _Live:
    """An episode in flight and the job it plays."""

    job: Job
    stream: int
    retried: bool
    episode: Episode
    prompt: list[int] = dataclasses.field(default_factory=list)
    context_ids: list[int] = dataclasses.field(default_factory=list)
    state_key: str | None = None


class Collector:
    """Plays jobs with an engine in a vector of environments.

    Args:
        envs: the environments, autoreset disabled.
        engine: who samples.
        template: turns text into tokens.
        sampling: how replies are sampled.
        context: what every record has in common.
        seed: of the run.
        show_instructions: whether the rules stand in front of the conversation, as the system
            message.
    """

    def __init__(
        self,
        envs: TextVectorEnv,
        engine: Engine,
        template: ChatTemplate,
        *,
        sampling: SamplingConfig,
        context: EpisodeContext,
        seed: int,
        show_instructions: bool,
    ) -> None:
        self.envs = envs
        self.engine = engine
        self.template = template
        self.sampling = sampling
        self.context = context
        self.seed = seed
        self.action_format = action_format(context.action_format)
        self._instructions = context.instructions if show_instructions else ""
        self._next_stream = 0

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
        prompt = self.template.open(self._instructions, observation)
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

    def _open_stream(self) -> int:
        self._next_stream += 1
        return self._next_stream


class _Collection:
    """The state of one call of `Collector.collect`."""

    def __init__(
        self,
        collector: Collector,
        purpose: str,
        temperature: float | None,
        on_episode: Callable[[Episode], None] | None,
    ) -> None:
        self._collector = collector
        self._purpose = purpose
        self._temperature = collector.sampling.temperature if temperature is None else temperature
        self._on_episode = on_episode
        self._live: dict[int, _Live] = {}  # by environment index
        self._env_of: dict[int, int] = {}  # environment index by stream
        self._finished: dict[int, Episode] = {}  # by position of the job
        self._position: dict[int, int] = {}  # position of the job by stream
        self._faults = 0

    def run(self, jobs: Sequence[Job], interrupt: Interrupt | None) -> list[Episode]:
        envs, engine = self._collector.envs, self._collector.engine
        waiting = deque(enumerate(jobs))
        free = deque(range(envs.num_envs))
        while len(self._finished) < len(jobs):
            if interrupt is not None:
                interrupt()
            while waiting and free:
                position, job = waiting.popleft()
                self._start(free.popleft(), position, job)
            # Block on the environments only when the engine has nothing to do.
            timeout = 0.0 if self._env_of else _WAIT_S
            for index, result in envs.recv(timeout=timeout) if self._stepping() else ():
                if self._advance(index, result):
                    free.append(index)
            for completion in engine.poll():
                self._act(completion)
            self._check_faults(len(jobs))
        return [self._finished[position] for position in range(len(jobs))]

    def abandon(self) -> None:
        """Leave engine and environments clean, whatever ended the collection."""
        for live in self._live.values():
            self._collector.engine.release(live.stream)
        while self._live and self._collector.envs.recv(timeout=_WAIT_S):
            pass  # results nobody waits for any more

    def _stepping(self) -> bool:
        """Whether any environment owes a result."""
        return len(self._live) > len(self._env_of)

    def _start(self, index: int, position: int, job: Job, *, retried: bool = False) -> None:
        collector = self._collector
        stream = collector._open_stream()
        context = collector.context
        episode = Episode(
            task=job.task,
            seed=job.seed,
            member=job.member,
            horizon=job.horizon,
            instructions=context.instructions,
            first_observation="",
            env_id=context.env_id,
            action_format=context.action_format,
            versions=dict(context.versions),
        )
        self._live[index] = _Live(job, stream, retried, episode)
        self._position[stream] = position
        collector.envs.send_reset([index], [job.task], [job.seed], [job.horizon])

    def _advance(self, index: int, result: StepResult) -> bool:
        """Take an environment's answer; True if the environment is free again."""
        live = self._live[index]
        if result.fault:
            return self._fault(index, live, result)
        episode, collector = live.episode, self._collector
        if result.is_reset:
            episode.first_observation = result.observation
            live.context_ids = collector.first_prompt(live.job.task, result.observation)
        else:
            _complete_turn(episode.turns[-1], result)
            episode.success = bool(result.info["success"])
            reason = EndReason(result.info["end_reason"])
            if result.terminated:
                return self._finish(index, live, reason)
            closed = episode.turns[-1].finish_reason == "stop"
            live.context_ids = collector.template.extend(result.observation, closed=closed)
            if result.truncated:
                return self._cut_off(index, live, reason or EndReason.HORIZON)
        if not collector.fits(live.prompt + live.context_ids):
            return self._cut_off(index, live, EndReason.CONTEXT)
        live.prompt += live.context_ids
        live.state_key = result.info.get("state_key")
        self._env_of[live.stream] = index
        collector.engine.submit(
            Request(
                stream=live.stream,
                prompt_ids=tuple(live.prompt),
                seed=self._reply_seed(live),
                max_tokens=collector.sampling.max_tokens,
                temperature=self._temperature,
            )
        )
        return False

    def _act(self, completion: Completion) -> None:
        """Give a sampled reply to its environment."""
        index = self._env_of.pop(completion.stream)
        live = self._live[index]
        reply = self._collector.template.reply_text(completion.token_ids)
        live.prompt += completion.token_ids
        answer = self._collector.action_format.answer_to(reply)
        live.episode.turns.append(
            Turn(
                reply=reply,
                observation="",
                reward=0.0,
                score=live.episode.score,
                action_valid=False,
                context_ids=live.context_ids,
                sampled_ids=list(completion.token_ids),
                logprobs=list(completion.logprobs),
                finish_reason=completion.finish_reason,
                weights_version=completion.weights_version,
                state_key=live.state_key,
                role=answer.role,
                call_id=answer.call_id,
            )
        )
        self._collector.envs.send([index], [reply])

    def _cut_off(self, index: int, live: _Live, reason: EndReason) -> bool:
        """End an episode that could go on. What would be the next prompt is kept, as far as it fits
        the context: a critic can say what return was still to come.
        """
        room = self._collector.engine.max_context - len(live.prompt)
        live.episode.tail_ids = live.context_ids[:room]
        return self._finish(index, live, reason)

    def _finish(self, index: int, live: _Live, reason: EndReason) -> bool:
        live.episode.end_reason = reason
        self._collector.engine.release(live.stream)
        del self._live[index]
        self._finished[self._position.pop(live.stream)] = live.episode
        if self._on_episode is not None:
            self._on_episode(live.episode)
        return True

    def _fault(self, index: int, live: _Live, result: StepResult) -> bool:
        logger.warning("task %s, member %d: %s", live.job.task.id, live.job.member, result.fault)
        if live.retried or not result.retryable:
            self._faults += 1
            live.episode.fault = result.fault
            return self._finish(index, live, EndReason.FAULT)
        self._collector.engine.release(live.stream)
        position = self._position.pop(live.stream)
        self._start(index, position, live.job, retried=True)
        return False

    def _check_faults(self, num_jobs: int) -> None:
        allowed = self._collector.sampling.max_faults * num_jobs
        if self._faults > allowed:
            raise TooManyFaults(
                f"{self._faults} of {num_jobs} episodes broke twice, more than "
                f"sampling.max_faults = {self._collector.sampling.max_faults} allows; "
                "the warnings above name the faults"
            )

    def _reply_seed(self, live: _Live) -> int:
        job, turn = live.job, len(live.episode.turns)
        return stable_seed(self._collector.seed, self._purpose, job.task.id, job.member, turn)


def _complete_turn(turn: Turn, result: StepResult) -> None:
    turn.observation = result.observation
    turn.reward = float(result.reward)
    turn.score = float(result.info["score"])
    turn.action_valid = bool(result.info["action_valid"])


def stable_seed(*parts: Any) -> int:
    """A 64-bit seed from parts that print the same everywhere: the same parts, the same seed."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def group_jobs(tasks: Sequence[Task], *, group_size: int, horizon: int, seed: int) -> Iterator[Job]:
    """`group_size` jobs a task, next to one another, all with the same reset seed."""
    for task in tasks:
        for member in range(group_size):
            yield Job(task, member, horizon, stable_seed(seed, task.id) % 2**31)
