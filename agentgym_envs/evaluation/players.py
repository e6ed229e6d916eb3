"""Who plays an evaluation: text policies, in one environment a thread.

A `Player` makes a fresh policy for every episode, so nothing passes from one to the next and the
order of playing does not matter. Threads help policies that wait, such as endpoints; a world that
hangs is not interrupted here, since an oracle needs the world in its own process.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import gymnasium
import numpy as np

from agentgym_envs.episodes import EndReason, Episode
from agentgym_envs.errors import (
    AgentGymError,
    EnvFault,
    NoPlan,
    PolicyFault,
    PolicyStopped,
    UnknownName,
)
from agentgym_envs.evaluation.plan import EvalJob, EvalPlan
from agentgym_envs.policies import Policy, RandomPolicy, begin_record, play_on
from agentgym_envs.policies.endpoint import EndpointPolicy, EndpointSettings
from agentgym_envs.seeds import stable_seed
from agentgym_envs.spaces import to_utf8

logger = logging.getLogger(__name__)

TextWorld = gymnasium.Env[str, str]


@dataclasses.dataclass(frozen=True)
class Player:
    """A kind of policy.

    Attributes:
        description: what decides how it plays, for the fingerprint: JSON values, with ``name``.
        make_policy: the policy for one episode, in an environment that has just been reset.
        env_args: arguments that its environments need besides those of the plan.
    """

    description: Mapping[str, Any]
    make_policy: Callable[[TextWorld, EvalJob], Policy]
    env_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def oracle_player() -> Player:
    """The environment's own oracle. Where it finds no way the episode ends as `STOPPED`."""

    def make(env: TextWorld, job: EvalJob) -> Policy:
        policy: Policy = env.get_wrapper_attr("oracle")()
        return policy

    return Player({"name": "oracle"}, make)


def random_player(seed: int) -> Player:
    """Random admissible commands."""

    def make(env: TextWorld, job: EvalJob) -> Policy:
        rng = np.random.default_rng(stable_seed(seed, "random", job.task.id, job.member))
        return RandomPolicy(rng, env.get_wrapper_attr("render_command"))

    return Player({"name": "random"}, make, {"info_keys": ("admissible",)})


def endpoint_player(settings: EndpointSettings, seed: int) -> Player:
    """A model behind an endpoint."""

    def make(env: TextWorld, job: EvalJob) -> Policy:
        is_tools = env.get_wrapper_attr("action_format") == "tools"
        return EndpointPolicy(
            settings,
            seed=stable_seed(seed, "endpoint", job.task.id, job.member) % 2**31,
            tools=env.get_wrapper_attr("tools") if is_tools else (),
        )

    asked = ("model", "temperature", "max_tokens", "request")
    description = {name: getattr(settings, name) for name in asked}
    url = settings.completions_url
    return Player({"name": settings.model, "url": url, **description}, make)


TEXT_PLAYERS = ("oracle", "random", "endpoint")
"""Names that `text_player` knows."""


def text_player(name: str, seed: int, **endpoint: Any) -> Player:
    """The player called `name`.

    Args:
        name: one of `TEXT_PLAYERS`.
        seed: of a policy that is random.
        **endpoint: the `EndpointSettings` of ``"endpoint"``.

    Raises:
        UnknownName: there is none.
        InvalidEvaluation: settings that make no sense.
    """
    if name == "endpoint":
        return endpoint_player(EndpointSettings(**endpoint), seed)
    if name == "random":
        return random_player(seed)
    if name == "oracle":
        return oracle_player()
    raise UnknownName("player", name, TEXT_PLAYERS)


def play(
    plan: EvalPlan,
    player: Player,
    jobs: Sequence[EvalJob],
    on_episode: Callable[[Episode], None],
    *,
    threads: int = 1,
    max_faults: float = 0.1,
) -> None:
    """Play jobs; an episode that breaks is tried once more, in a fresh environment.

    Args:
        plan: what the jobs belong to.
        player: who plays.
        jobs: what to play.
        on_episode: called in this thread with every episode that has ended, in any order.
        threads: how many episodes are played at a time.
        max_faults: largest share of all episodes of the plan, rounded up to whole ones, that may
            break twice. The share is not one of the jobs: after an interruption few are left, and
            those that broke are among them.

    Raises:
        EnvFault: more than that broke.
        AgentGymError: a task, name or setting that is a mistake in every episode.
    """
    stage = _Stage(plan, player)
    pool = ThreadPoolExecutor(threads)
    faults, num_episodes = 0, len(plan.tasks) * plan.k
    try:
        for future in as_completed([pool.submit(stage.play, job) for job in jobs]):
            episode = future.result()
            on_episode(episode)
            faults += episode.end_reason is EndReason.FAULT
            if faults > math.ceil(max_faults * num_episodes):
                raise EnvFault(
                    f"{faults} of {num_episodes} episodes broke, more than the share of "
                    f"{max_faults} that may; the last: {episode.fault}"
                )
    finally:
        stage.is_closing = True
        pool.shutdown(cancel_futures=True)
        stage.close()


class _Stage:
    """Where a player plays: environments that any thread may take, one at a time."""

    def __init__(self, plan: EvalPlan, player: Player) -> None:
        self.is_closing = False
        self._plan = plan
        self._player = player
        self._free: queue.SimpleQueue[TextWorld] = queue.SimpleQueue()

    def play(self, job: EvalJob) -> Episode:
        """The episode of a job, the second if the first broke and may not have."""
        episode, retryable = self._try(job)
        return self._try(job)[0] if retryable else episode

    def close(self) -> None:
        while not self._free.empty():
            _close(self._free.get())

    def _try(self, job: EvalJob) -> tuple[Episode, bool]:
        """An episode, and whether it broke in a way that another may not."""
        horizon = self._plan.horizon
        episode = Episode(job.task, job.seed, horizon, instructions="", first_observation="")
        env: TextWorld | None = None
        retryable = False
        try:
            env = self._take()
            observation, info = env.reset(
                seed=job.seed, options={"task": job.task, "horizon": horizon}
            )
            episode = begin_record(env, observation, job.seed)
            policy = self._player.make_policy(env, job)
            play_on(env, _WhileOpen(policy, self), episode, info)
        except NoPlan:
            episode.end_reason = EndReason.STOPPED
        except (PolicyFault, EnvFault) as fault:
            episode.end_reason, episode.fault = EndReason.FAULT, to_utf8(str(fault))
            retryable = fault.retryable
        except AgentGymError:  # a mistake in the call, which every other episode shares
            raise
        except Exception as error:  # a bug in world or policy must not cost all other episodes
            logger.exception("task %s, try %d broke", job.task.id, job.member)
            episode.end_reason, episode.fault = EndReason.FAULT, to_utf8(repr(error))
            retryable = True
        episode.member = job.member
        if env is not None and episode.end_reason is EndReason.FAULT:
            _close(env)
        elif env is not None:
            self._free.put(env)
        return episode, retryable

    def _take(self) -> TextWorld:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return self._plan.make_env(**self._player.env_args)


def _close(env: TextWorld) -> None:
    """Close an environment; one that broke may fail at that too, which costs nobody an episode."""
    try:
        env.close()
    except Exception:
        logger.exception("an environment could not be closed")


class _WhileOpen:
    """A policy that plays no further once the stage closes, so that Ctrl-C is heard soon."""

    def __init__(self, policy: Policy, stage: _Stage) -> None:
        self._policy = policy
        self._stage = stage

    def start(self, instructions: str) -> None:
        self._policy.start(instructions)

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        if self._stage.is_closing:
            raise PolicyStopped("the evaluation is over")
        return self._policy.reply(observation, info)
