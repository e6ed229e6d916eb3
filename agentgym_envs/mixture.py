"""`MixtureEnv`: several families behind one id, so that a policy can learn in all of them at once.

A mixture is no world of its own. It makes one environment a family, sends each episode to the
family of its task, and hands on what that one says; instructions and grammar are those of the world
being played. So whatever works with a `TextEnv` (vectors, wrappers, trainers, evaluation) works
with a mixture, and none of them knows that there are several families.

Its id, ``AgentGymMixture-v0``, is not in the namespace of the families. Left out: the same family
twice, with different arguments; a task would not say which of the two is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from agentgym_envs import arguments
from agentgym_envs.actions import Command, Grammar
from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import InvalidTask
from agentgym_envs.outcomes import Outcome
from agentgym_envs.policies import Policy
from agentgym_envs.registration import require_id
from agentgym_envs.task_files import TaskEntry
from agentgym_envs.tasks import Task, TaskSet, join
from agentgym_envs.vector import vector_factory

MIXTURE_ID = "AgentGymMixture-v0"

_OF_ALL = ("split", "action_format", "info_keys", "render_mode")
"""Arguments in which environments may not differ: who plays is told one value for all."""


class MixtureEnv(TextEnv):
    """Several families of worlds behind one id.

    Args:
        envs: the constructor's arguments of each environment, by its Gymnasium id, but for those
            that hold for all: `split`, `action_format`, `info_keys` and `render_mode`.
        weights: how often a reset without a task chooses each id, up to a common factor; 1 for ids
            that are not named. Within one, tasks are drawn as it draws them.
        shared: arguments that all environments get; where they may differ, those of `envs` go
            first.

    Raises:
        UnknownName: an id or an argument that does not exist.
        ValueError: no environment, two of one family, an argument of one that holds for all, or a
            weight that is no number above 0.
        TypeError: an id that is of no `TextEnv`.
    """

    family = "mixture"
    version = "0"

    def __init__(
        self,
        *,
        envs: Mapping[str, Mapping[str, Any]],
        weights: Mapping[str, float] | None = None,
        **shared: Any,
    ) -> None:
        if not isinstance(envs, Mapping) or not envs:
            raise ValueError(
                f"envs= holds the arguments of each environment by its id, such as "
                f"{{'AgentGym/TextCraft-v0': {{}}}}; got {envs!r}"
            )
        for env_id, part in envs.items():
            _check_part(env_id, part)
        own = {name: shared.pop(name) for name in ("tasks",) if name in shared}
        self._parts = [_make(env_id, {**shared, **part}) for env_id, part in envs.items()]
        families = [part.family for part in self._parts]
        if len(set(families)) < len(families):
            raise ValueError(f"each family may be in a mixture once, got {', '.join(families)}")
        self.capabilities = frozenset.intersection(*(part.capabilities for part in self._parts))
        super().__init__(**own, **shared)
        self.step_timeout_s = max(part.step_timeout_s for part in self._parts)
        self.reset_timeout_s = max(part.reset_timeout_s for part in self._parts)
        self._shares = _shares(list(envs), weights or {})
        self._part = self._parts[0]

    # ------------------------------------------------------------------------------ the contract

    @property
    def parts(self) -> tuple[TextEnv, ...]:
        """The environments, in the order of ``envs``."""
        return tuple(self._parts)

    @property
    def goal(self) -> str:
        """What the task being played asks for, as its family states it."""
        self._require_task()
        return self._part.goal

    @property
    def grammar(self) -> Grammar:
        """The verbs of the world being played; before the first reset, of the first one."""
        return self._part.grammar

    @property
    def instructions(self) -> str:
        """The rules of the world being played; before the first reset, of the first one."""
        return self._part.instructions

    @property
    def instructions_by_family(self) -> dict[str, str]:
        """The instructions for the tasks of each family."""
        return {part.family: part.instructions for part in self._parts}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode in the family of its task; arguments as for `TextEnv.reset`."""
        self._task = None
        gymnasium.Env.reset(self, seed=seed)
        given = dict(options or {})
        task = self._choose_task(given.pop("task", None))
        self._part = self._part_of(task.family)
        own_seed = int(self.np_random.integers(2**31))
        observation, info = self._part.reset(seed=own_seed, options={"task": task, **given})
        self._adopt()
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn, as for `TextEnv.step`."""
        if isinstance(action, str):  # what else comes is refused by the family, as is a wrong time
            self._require_task()
        result = self._part.step(action)
        self._adopt()
        return result

    def _adopt(self) -> None:
        """Take over how far the episode is: saved states and everything inherited read it here."""
        part = self._part
        self._task, self._horizon, self._turn = part._task, part._horizon, part._turn
        self._score, self._end_reason = part._score, part._end_reason
        self._format_errors = part._format_errors

    # ------------------------------------------------------------------- what a family provides

    def _load_tasks(self) -> TaskSet:
        return join([part.tasks for part in self._parts])

    def _choose_task(self, wanted: Task | str | int | None) -> Task:
        draws = self.np_random.random(2)  # whether or not they are needed, as in `TextEnv`
        if wanted is not None:
            return self._find_task(wanted)
        sets = [part.tasks for part in self._parts]
        if self._tasks_argument is not None:
            sets = [self.tasks.filter(_is_of(part.family)) for part in self._parts]
        shares = self._shares * [len(tasks) > 0 for tasks in sets]
        if not shares.any():
            raise InvalidTask(f"the task set of {self.family}/{self.split} is empty")
        chosen = int(np.searchsorted(np.cumsum(shares / shares.sum()), draws[0], side="right"))
        tasks = sets[min(chosen, len(sets) - 1)]
        return tasks[int(draws[1] * len(tasks))]

    def _part_of(self, family: str) -> TextEnv:
        for part in self._parts:
            if part.family == family:
                return part
        known = ", ".join(part.family for part in self._parts)
        raise InvalidTask(f"no environment of this mixture plays {family!r}; it has {known}")

    def _resolve_task(self, name: str | int) -> Task:
        if isinstance(name, int):
            return self.tasks[name]
        return self._resolve_id(self.tasks, name)

    def _resolve_id(self, whole: TaskSet, task_id: str) -> Task:
        family = task_id.partition("/")[0]
        if family in {part.family for part in self._parts}:
            return self._part_of(family)._resolve_task(task_id)
        return whole[task_id]

    def _resolve_entry(self, entry: TaskEntry, of_id: Callable[[str], Task]) -> Task:
        item = AgentGymItem.of(entry)
        for part in self._parts:
            if item is not None and item.name == part.agentgym_name:
                return part._resolve_entry(entry, of_id)
        return super()._resolve_entry(entry, of_id)

    def _make_grammar(self) -> Grammar:
        return self._part.grammar

    def _rules(self) -> str:
        return self._part._rules()

    def _begin(self, task: Task) -> str:
        raise AssertionError("reset() leaves this to the family")

    def _execute(self, command: Command) -> Outcome:
        raise AssertionError("step() leaves this to the family")

    def _admissible(self) -> list[str]:
        return self._part.admissible()

    def _state_key(self) -> str:
        return self._part.state_key()

    def _make_oracle(self) -> Policy:
        return _Oracle(self)

    def _render_ansi(self) -> str:
        return self._part._render_ansi()

    def _save_world(self) -> Any:
        return self._part.save_state().decode()

    def _load_world(self, task: Task, state: Any) -> None:
        part = self._part_of(task.family)
        part.load_state(state.encode())
        self._part = part


class _Oracle:
    """The oracle of whichever family is played when an episode starts."""

    def __init__(self, env: MixtureEnv) -> None:
        self._env = env

    def start(self, instructions: str) -> None:
        self._oracle = self._env._part.oracle()
        self._oracle.start(instructions)

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        return self._oracle.reply(observation, info)


def _check_part(env_id: str, part: Any) -> None:
    if not isinstance(part, Mapping):
        raise TypeError(f"the arguments of {env_id!r} must be a table, got {part!r}")
    if taken := [name for name in _OF_ALL if name in part]:
        raise ValueError(
            f"{', '.join(taken)} must be the same for all environments of a mixture; give it to "
            f"the mixture instead of {env_id!r}"
        )


def _make(env_id: str, part: Mapping[str, Any]) -> TextEnv:
    require_id(env_id)
    env = gymnasium.make(env_id, **part)
    if not isinstance(env, TextEnv):
        raise TypeError(f"{env_id!r} is no text environment: {env}")
    return env


def _shares(ids: Sequence[str], weights: Mapping[str, float]) -> np.ndarray:
    """The share of draws of each id, (len(ids),)."""
    for env_id in weights:
        arguments.one_of("environment of the mixture", env_id, ids)
    values = [
        arguments.finite(f"the weight of {env_id!r}", weights.get(env_id, 1.0)) for env_id in ids
    ]
    if min(values) <= 0:
        raise ValueError(f"weights must be above 0, got {dict(weights)}")
    shares: np.ndarray = np.array(values) / sum(values)
    return shares


def _is_of(family: str) -> Callable[[Task], bool]:
    return lambda task: task.family == family


make_vector = vector_factory(MIXTURE_ID)
