"""`EvalPlan`: what an evaluation plays, with every number that decides what comes out.

A plan is data. Who plays is apart, so text policies and a trainer's token policies share it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import AgentGymError, InvalidEvaluation
from agentgym_envs.policies import package_versions
from agentgym_envs.registration import require_id
from agentgym_envs.seeds import stable_seed
from agentgym_envs.tasks import ListSource, Task, TaskSet

_CHOSEN = ("split", "tasks", "horizon", "info_keys")
"""Arguments of environments that whoever evaluates or trains chooses itself."""


@dataclasses.dataclass(frozen=True)
class EvalJob:
    """One episode to play.

    Attributes:
        task: what to play.
        member: number of the try, from 0.
        seed: of the environment's reset.
    """

    task: Task
    member: int
    seed: int


@dataclasses.dataclass(frozen=True)
class EvalPlan:
    """What to play.

    Attributes:
        env_id: Gymnasium id, with the module that registers it in front if need be.
        env_args: arguments of the environment; JSON values.
        tasks: what to play, in order.
        horizon: most turns of every episode.
        k: episodes of each task.
        seed: of all randomness.

    Raises:
        InvalidEvaluation: no task, a task twice, or a number below 1.
    """

    env_id: str
    env_args: Mapping[str, Any]
    tasks: tuple[Task, ...]
    horizon: int
    k: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InvalidEvaluation("there is no task to evaluate on: the task set is empty")
        if self.horizon < 1 or self.k < 1:
            raise InvalidEvaluation(
                f"horizon and k must be at least 1, got {self.horizon} and {self.k}"
            )
        ListSource(self.tasks)  # refuses a task that comes twice

    def jobs(self) -> Iterator[EvalJob]:
        """Every episode to play, the tries of a task next to one another."""
        for task in self.tasks:
            for member in range(self.k):
                yield EvalJob(task, member, reset_seed(self.seed, task, member))

    def make_env(self, **extra: Any) -> gymnasium.Env[str, str]:
        """An environment to play in; `extra` goes over `env_args`."""
        return make_env(self.env_id, {**self.env_args, **extra})

    def fingerprint(self, policy: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that two evaluations must share to be parts of one, as JSON values.

        Args:
            policy: what decides who plays and how: names, digests, sampling, further versions.
        """
        return {
            "policy": dict(policy),
            "env_id": self.env_id,
            "env_args": dict(self.env_args),
            "tasks": {"number": len(self.tasks), "sha256": _digest(self.tasks)},
            "horizon": self.horizon,
            "k": self.k,
            "seed": self.seed,
            "versions": package_versions(),
        }


def _digest(tasks: Sequence[Task]) -> str:
    """Of tasks in whatever order: it decides nothing."""
    return TaskSet(ListSource(sorted(tasks, key=lambda task: task.id))).digest()


def reset_seed(seed: int, task: Task, member: int) -> int:
    """The seed of a reset; the first try of a task does not depend on how many there are."""
    parts = (seed, task.id, member) if member else (seed, task.id)
    return stable_seed(*parts) % 2**31


def make_env(env_id: str, arguments: Mapping[str, Any]) -> gymnasium.Env[str, str]:
    """An environment of text, bare or wrapped.

    Raises:
        UnknownName: there is no such id, argument or name.
        InvalidEvaluation: it cannot be made, or is no text environment.
    """
    try:
        require_id(env_id)
        env: gymnasium.Env[Any, Any] = gymnasium.make(env_id, **arguments)
    except AgentGymError:
        raise  # it says what is wrong
    except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
        raise InvalidEvaluation(f"cannot make {env_id!r}: {error}") from None
    if not isinstance(env.unwrapped, TextEnv):
        raise InvalidEvaluation(f"{env_id!r} is no text environment: {env.unwrapped}")
    return env


def refuse_chosen(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of environments by which somebody else chooses what is played.

    Raises:
        InvalidEvaluation: there are such.
    """
    if taken := [name for name in _CHOSEN if name in arguments]:
        raise InvalidEvaluation(
            f"the arguments of the environment must not hold {taken}: splits, files of tasks and "
            "horizons have options of their own"
        )


def choose_tasks(
    env_id: str,
    env_args: Mapping[str, Any],
    split: str,
    wanted: int | str | None = None,
    *,
    file: str | None = None,
) -> tuple[Task, ...]:
    """Tasks of an environment.

    Args:
        env_id: which environment.
        env_args: its arguments, without those that are chosen here.
        split: ``train``, ``dev`` or ``test``.
        wanted: the first so many, in digits if it is a text; or the path of a file of task ids;
            None for all.
        file: path of a file of task ids that stands for the split, unless `wanted` is one.

    Raises:
        InvalidEvaluation: fewer tasks than wanted, or `env_args` choose themselves.
        InvalidTask, UnknownName: a name or file that cannot be used.
    """
    refuse_chosen(env_args)
    number: int | None = None
    if isinstance(wanted, int) or (wanted and wanted.isdecimal()):
        number = int(wanted)
    elif wanted:
        file = wanted
    if number is not None and number < 1:
        raise InvalidEvaluation(f"expected at least 1 task, got {number}")
    env = make_env(env_id, {**env_args, "split": split, "tasks": file})
    try:
        found: TaskSet = env.get_wrapper_attr("tasks")
        chosen = tuple(found if number is None else found.head(number))
    finally:
        env.close()
    if number is not None and len(chosen) < number:
        raise InvalidEvaluation(
            f"{number} tasks are asked for, but the {split} split has {len(chosen)}; ask for fewer"
        )
    return chosen


def differences(first: Any, second: Any, prefix: str = "") -> dict[str, tuple[str, str]]:
    """Where two JSON values differ: dotted keys with both values as JSON, ``absent`` for none."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        found: dict[str, tuple[str, str]] = {}
        for key in sorted({*first, *second}):
            name = f"{prefix}.{key}" if prefix else key
            found |= differences(first.get(key, _ABSENT), second.get(key, _ABSENT), name)
        return found
    texts = _text(first), _text(second)
    return {} if texts[0] == texts[1] else {prefix: texts}


_ABSENT = object()


def _text(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value, sort_keys=True)
