"""Task curricula: which tasks a training step plays.

A curriculum puts all tasks into an order of its own for every step, by random numbers keyed by the
seed and the step; the step takes the first of them. Some steps turn out to need more tasks (groups
that agree teach nothing): further rounds of the same step go on in the same order, so they repeat
nothing while other tasks are left. What is learned from results is in `state_dict`: a resumed run
draws the same tasks.

Under `difficulty` and `success_rate` the tasks change from step to step, so success in training
does not say how good the policy is; only evaluation on fixed tasks does.

They know nothing of any trainer. A mixture gives each family a curriculum of its own and every step
a fixed number of tasks of each.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from agentgym_envs import arguments
from agentgym_envs.episodes import Episode
from agentgym_envs.errors import UnknownName
from agentgym_envs.horizons import EpisodeOutcome
from agentgym_envs.tasks import Task, TaskSet

_DECAY = 0.9
"""What past episodes of a task or category count after another step with it."""


class TaskCurriculum(Protocol):
    """Which tasks a step plays."""

    def step(self, step: int, round: int = 0) -> list[Task]:
        """The tasks of training step `step`; with `round` 1, 2, … further ones for the same step.

        Call `observe` after the last round of a step, not between them.
        """
        ...

    def observe(self, step: int, episodes: Sequence[Episode]) -> None:
        """Take note of all episodes of a step, also of those that are not learned from."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What was learned from results, as JSON values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave."""
        ...


class _Ordered(abc.ABC):
    """A curriculum that puts all tasks into an order of its own for every step.

    Args:
        tasks: what to draw from.
        per_step: tasks of one round of a step.
        seed: of the draws.

    Raises:
        ValueError: the tasks are too few, or lack what the curriculum needs.
    """

    def __init__(self, tasks: TaskSet, *, per_step: int, seed: int) -> None:
        if arguments.whole_number("per_step", per_step, least=1) > len(tasks):
            raise ValueError(
                f"a step wants {per_step} different tasks, but the task set holds {len(tasks)}; "
                "take fewer a step or choose more tasks"
            )
        self._tasks, self._per_step, self._seed = tasks, per_step, seed

    @abc.abstractmethod
    def _order(self, step: int) -> np.ndarray:
        """Indices of all tasks, those first that `step` takes first."""

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng((self._seed, *key))

    def step(self, step: int, round: int = 0) -> list[Task]:
        order = self._order(step)
        first = round * self._per_step
        positions = range(first, first + self._per_step)
        return [self._tasks[int(order[position % len(order)])] for position in positions]

    def observe(self, step: int, episodes: Sequence[Episode]) -> None:  # noqa: B027 - few learn
        pass

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - few learn
        pass


class Uniform(_Ordered):
    """Shuffled epochs, every task once before any comes again: a function of (seed, step) alone.

    A step in which one epoch ends and the next begins may hold a task twice. Further rounds draw
    from the whole set and leave the epochs as they are.
    """

    def _order(self, step: int) -> np.ndarray:
        count = len(self._tasks)
        epoch, first = divmod(step * self._per_step, count)
        epochs = [self._rng(number).permutation(count) for number in (epoch, epoch + 1)]
        own = np.concatenate(epochs)[first : first + self._per_step]
        others = self._rng(step, 1).permutation(count)
        return np.concatenate([own, others[~np.isin(others, own)]])


class Difficulty(_Ordered):
    """Uniform over the tasks up to a bound on the oracle's turns, which rises with the steps.

    The bound of step s is the difficulty of the task that stands at a share of
    ``start_share + (1 - start_share) * s / grow_steps`` of all tasks sorted by difficulty; if a
    step wants more tasks than are within it, the next easiest follow. Steps are absolute, not
    shares of the run: one that is made longer goes on as it was.

    Args:
        tasks, per_step, seed: as for every curriculum.
        start_share: share of the tasks, the easiest, with which step 0 begins, in (0, 1].
        grow_steps: steps until all tasks are in, at least 1.
    """

    def __init__(
        self,
        tasks: TaskSet,
        *,
        per_step: int,
        seed: int,
        start_share: float = 0.25,
        grow_steps: int = 50,
    ) -> None:
        super().__init__(tasks, per_step=per_step, seed=seed)
        self._start = _share("start_share", start_share)
        self._grow_steps = arguments.whole_number("grow_steps", grow_steps, least=1)
        known = [task.difficulty for task in tasks]
        if None in known:
            raise ValueError(
                "the order 'difficulty' needs the oracle's turns of every task, but "
                f"{known.count(None)} of {len(known)} have none, such as "
                f"{tasks[known.index(None)].id!r}; choose 'uniform' or 'success_rate'"
            )
        self._difficulty = np.array(known)

    def _order(self, step: int) -> np.ndarray:
        share = self._start + (1.0 - self._start) * min(step / self._grow_steps, 1.0)
        bound = np.sort(self._difficulty)[max(round(share * len(self._tasks)), 1) - 1]
        draws = self._rng(step).random(len(self._tasks))
        return np.lexsort((draws, np.maximum(self._difficulty, bound)))


class SuccessRate(_Ordered):
    """Rather tasks that are solved sometimes: groups that all agree teach nothing.

    The weight of a task is 4 p (1 - p), where p is the recent success rate of the task or its
    category, but at least the floor, so that nothing starves: rates move as the policy does. What
    was never played counts as p = 1/2. Episodes in which the world broke count for nothing.

    Args:
        tasks, per_step, seed: as for every curriculum.
        by: whose rate; ``"task"`` where every task comes often.
        floor: least weight of a task, where 1 is the largest, in (0, 1].
    """

    def __init__(
        self,
        tasks: TaskSet,
        *,
        per_step: int,
        seed: int,
        by: Literal["category", "task"] = "category",
        floor: float = 0.1,
    ) -> None:
        super().__init__(tasks, per_step=per_step, seed=seed)
        self._by = arguments.one_of("owner of a success rate", by, ("category", "task"))
        self._floor = _share("floor", floor)
        self._counts: dict[str, list[float]] = {}  # decayed numbers of solved and played episodes
        self._keys, self._key_of_task = np.unique(list(map(self._key, tasks)), return_inverse=True)
        if len(self._keys) == 1:
            raise ValueError(
                f"the order 'success_rate' has nothing to choose: all {len(tasks)} tasks are "
                f"'{self._keys[0]}'; let it go by 'task', or take the order 'uniform'"
            )

    def _key(self, task: Task) -> str:
        return task.id if self._by == "task" else f"{task.family}/{task.category}"

    def _order(self, step: int) -> np.ndarray:
        solved, played = np.array([self._counts.get(key, (0.0, 0.0)) for key in self._keys]).T
        rate = (solved + 1.0) / (played + 2.0)
        weight = np.maximum(4.0 * rate * (1.0 - rate), self._floor)[self._key_of_task]
        # Waiting times at these rates: who comes next is a draw by weight among those left.
        return np.argsort(self._rng(step).exponential(size=len(weight)) / weight, kind="stable")

    def observe(self, step: int, episodes: Sequence[Episode]) -> None:
        found: dict[str, list[bool]] = {}
        for episode in episodes:
            if EpisodeOutcome.from_episode(episode).is_evidence:
                found.setdefault(self._key(episode.task), []).append(episode.success)
        for key, successes in found.items():
            solved, played = self._counts.get(key, (0.0, 0.0))
            now = (sum(successes), len(successes))
            self._counts[key] = [solved * _DECAY + now[0], played * _DECAY + now[1]]

    def state_dict(self) -> dict[str, Any]:
        return {key: list(counts) for key, counts in self._counts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._counts = {key: list(counts) for key, counts in state.items()}


class Mixture:
    """Several families: every step plays a fixed number of tasks of each, by weight.

    Numbers are whole tasks, the same in every step, so a weight that is rounded to none is refused
    rather than drawn now and then.

    Args:
        tasks: of all families; those of families without a weight are left out.
        weights: of each family.
        make: the curriculum of a family, from its tasks and how many of them a step plays.
        per_step: tasks of one round of a step.

    Raises:
        UnknownName: a family has no tasks.
        ValueError: a weight is not above 0, or its share of a step is less than a task.
    """

    def __init__(
        self,
        tasks: TaskSet,
        weights: Mapping[str, float],
        make: Callable[[TaskSet, int], TaskCurriculum],
        *,
        per_step: int,
    ) -> None:
        families = sorted({task.family for task in tasks})
        if unknown := [family for family in weights if family not in families]:
            raise UnknownName("family of a mixture", unknown[0], families)
        self._parts = {
            family: make(tasks.filter(_is_of(family)), count)
            for family, count in _whole_numbers(weights, per_step).items()
        }

    def step(self, step: int, round: int = 0) -> list[Task]:
        return [task for part in self._parts.values() for task in part.step(step, round)]

    def observe(self, step: int, episodes: Sequence[Episode]) -> None:
        for family, part in self._parts.items():
            part.observe(step, [e for e in episodes if e.task.family == family])

    def state_dict(self) -> dict[str, Any]:
        return {family: part.state_dict() for family, part in self._parts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for family, part in self._parts.items():
            part.load_state_dict(state[family])


def task_curriculum(
    order: str,
    tasks: TaskSet,
    *,
    per_step: int,
    seed: int,
    mix: Mapping[str, float] | None = None,
    **settings: Any,
) -> TaskCurriculum:
    """The curriculum called `order`.

    Args:
        order: ``"uniform"``, ``"difficulty"`` or ``"success_rate"``.
        tasks: what to draw from.
        per_step: tasks of one round of a step.
        seed: of the draws.
        mix: weights of families, as for `Mixture`; nothing for no mixture.
        settings: those of all three by their names, as a settings file has them; each takes its
            own.

    Raises:
        UnknownName: there is no such order, family or setting.
        ValueError: it cannot be made of these; says what to change.
    """
    kinds = {
        "uniform": (Uniform, ()),
        "difficulty": (Difficulty, ("start_share", "grow_steps")),
        "success_rate": (SuccessRate, ("by", "floor")),
    }
    kind, own = kinds[arguments.one_of("order of tasks", order, kinds)]
    known = [name for _, names in kinds.values() for name in names]
    for name in settings:
        arguments.one_of("setting of a task curriculum", name, known)
    chosen = {name: settings[name] for name in own if name in settings}

    def make(tasks: TaskSet, per_step: int) -> TaskCurriculum:
        made: TaskCurriculum = kind(tasks, per_step=per_step, seed=seed, **chosen)
        return made

    return Mixture(tasks, mix, make, per_step=per_step) if mix else make(tasks, per_step)


def _whole_numbers(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """How many of `total` each gets: by weight, the largest remainders rounded up."""
    numbers = [value for value in weights.values() if isinstance(value, int | float)]
    values = np.array(numbers, dtype=float)
    if len(values) < len(weights) or not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"weights of a mixture must be numbers above 0, got {dict(weights)}")
    shares = total * values / values.sum()
    counts = np.floor(shares)
    counts[np.argsort(counts - shares, kind="stable")[: total - int(counts.sum())]] += 1
    if not counts.all():
        least = list(weights)[int(counts.argmin())]
        raise ValueError(
            f"the weight of {least!r} in {dict(weights)} gives it less than one of {total} tasks "
            "of a step; raise it, leave it out, or take more tasks a step"
        )
    return {family: int(count) for family, count in zip(weights, counts, strict=True)}


def _is_of(family: str) -> Callable[[Task], bool]:
    return lambda task: task.family == family


def _share(name: str, value: float) -> float:
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{name} is a share above 0, up to 1; got {value}")
    return value
