"""Checks on what callers give to `TextVectorEnv`: a mistake is refused before anything is sent."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from agentgym_envs.errors import UnknownName
from agentgym_envs.tasks import Task


def positive_int(name: str, value: Any) -> int:
    """`value` as an `int` of at least 1.

    Raises:
        ValueError: it is none.
    """
    return _whole_number(name, value, least=1)


def autoreset_mode(value: AutoresetMode | str) -> AutoresetMode:
    """The mode itself, or the one called ``"NextStep"``, ``"next_step"`` or alike.

    Raises:
        UnknownName: there is none.
    """
    if isinstance(value, AutoresetMode):
        return value
    by_name = {mode.name.replace("_", "").casefold(): mode for mode in AutoresetMode}
    found = by_name.get(str(value).replace("_", "").casefold())
    if found is None:
        raise UnknownName("autoreset mode", value, [mode.name.lower() for mode in AutoresetMode])
    return found


def texts(values: Sequence[str], count: int) -> list[str]:
    """`values` as a list of `count` texts.

    Raises:
        TypeError: it is one text, or holds something else.
        ValueError: there are more or fewer.
    """
    if isinstance(values, str):
        raise TypeError(f"expected a sequence of {count} texts, got one str")
    batch = list(values)
    if len(batch) != count:
        raise ValueError(f"expected {count} texts, one an environment; got {len(batch)}")
    for text in batch:
        if not isinstance(text, str):
            raise TypeError(f"an action is a str, the policy's reply; got {type(text).__name__}")
    return batch


def entries(name: str, values: Sequence[Any] | None, count: int) -> list[Any]:
    """One entry an environment for ``"tasks"``, ``"seeds"`` or ``"horizons"``; None stays None.

    Raises:
        TypeError: no sequence, or an entry of a wrong kind.
        ValueError: more or fewer than `count`, or a number that is too small.
    """
    if values is None:
        return [None] * count
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a sequence of {count} entries, got {values!r}")
    if len(values) != count:
        raise ValueError(f"{name} must have {count} entries, one an env; got {len(values)}")
    check = _CHECKS[name]
    return [None if value is None else check(value) for value in values]


def reset_calls(
    seed: Any, options: Mapping[str, Any], num_envs: int
) -> list[tuple[int, Any, Any, Any, Mapping[str, Any]]]:
    """What `TextVectorEnv.reset` asks of each environment.

    Returns:
        (index, task, seed, horizon, options for all) of each environment that is to be reset.

    Raises:
        TypeError: an option of a wrong kind.
        ValueError: entries for another number of environments, or a number that is too small.
    """
    shared = dict(options)
    indices = masked_indices(shared.pop("reset_mask", None), num_envs)
    given = {name: shared.pop(name, None) for name in ("tasks", "seeds", "horizons")}
    for name, check in _SHARED_CHECKS.items():
        if shared.get(name) is not None:
            check(shared[name])
    if seed is not None:
        if given["seeds"] is not None:
            raise ValueError('give either seed= or options["seeds"], not both')
        counts_up = isinstance(seed, (int, np.integer))
        given["seeds"] = [seed + i for i in range(num_envs)] if counts_up else seed
    columns = [entries(name, values, num_envs) for name, values in given.items()]
    return [(index, *(column[index] for column in columns), shared) for index in indices]


def masked_indices(mask: Any, num_envs: int) -> list[int]:
    """The indices at which a reset mask is true; all of them if there is no mask.

    Raises:
        TypeError: it is no array of bool.
        ValueError: another shape than (num_envs,), or true nowhere.
    """
    if mask is None:
        return list(range(num_envs))
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f'options["reset_mask"] must be an array of bool, got {mask!r}')
    if mask.shape != (num_envs,):
        raise ValueError(
            f'options["reset_mask"] must have shape ({num_envs},), one entry an environment; '
            f"got {mask.shape}"
        )
    if not mask.any():
        raise ValueError('options["reset_mask"] is true for no environment')
    return [int(index) for index in np.flatnonzero(mask)]


def distinct_indices(indices: Iterable[int], num_envs: int) -> list[int]:
    """`indices` as a list.

    Raises:
        TypeError: no sequence.
        ValueError: an index is no whole number from 0 to ``num_envs - 1``, or comes twice.
    """
    if not isinstance(indices, Iterable):
        raise TypeError(f"indices must be a sequence of whole numbers, got {indices!r}")
    chosen = [_whole_number("an environment index", index, least=0) for index in indices]
    for index in chosen:
        if index >= num_envs:
            raise ValueError(f"environment {index} does not exist; there are {num_envs}")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"each environment can take one request; got indices {chosen}")
    return chosen


def _whole_number(name: str, value: Any, *, least: int) -> int:
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return number


def _task(value: Any) -> Task | str | int:
    if isinstance(value, (Task, str)):
        return value
    return _whole_number("a task that is no id and no Task", value, least=0)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "tasks": _task,
    "seeds": lambda value: _whole_number("a seed", value, least=0),
    "horizons": lambda value: _whole_number("a horizon", value, least=1),
}
_SHARED_CHECKS = {
    "task": _CHECKS["tasks"],
    "horizon": _CHECKS["horizons"],
    "max_horizon": _CHECKS["horizons"],
}
