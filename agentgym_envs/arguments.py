"""Checks on the arguments of environments, which are JSON values.

Python would take more than that and do something else than was meant: ``bool("False")`` is true, a
text is a sequence of letters, and the order of a set depends on `PYTHONHASHSEED`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from agentgym_envs.errors import UnknownName


def one_of(kind: str, value: Any, known: Iterable[Any]) -> Any:
    """Return `value` if it is one of `known`.

    Args:
        kind: what it is, as a noun.
        value: what the caller gave, of any type.
        known: texts, and None where nothing needs to be given.

    Raises:
        UnknownName: it is none of them.
    """
    choices = list(known)
    if value not in choices:
        raise UnknownName(kind, value, [name for name in choices if name is not None])
    return value


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False.

    Raises:
        TypeError: it is anything else.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def text_list(name: str, values: Any) -> list[str]:
    """`values`, a list or tuple of texts, as a list.

    Raises:
        TypeError: it is anything else.
    """
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} must be a list of texts, got {values!r}")
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of texts, but it holds {value!r}")
    return list(values)


def turns(horizon: Any) -> int:
    """Return `horizon` as an `int` if it is a number of turns.

    Raises:
        ValueError: it is no whole number or less than 1.
    """
    if not isinstance(horizon, (int, np.integer)) or isinstance(horizon, bool) or horizon < 1:
        raise ValueError(f"a horizon is a number of turns, at least 1; got {horizon!r}")
    return int(horizon)


def whole_number(name: str, value: Any, *, least: int) -> int:
    """Return `value` as an `int` if it is a whole number of at least `least`.

    Raises:
        ValueError: it is anything else.
    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def finite(name: str, value: Any, *, least: float = -math.inf) -> float:
    """Return `value` as a `float` if it is a finite number of at least `least`.

    Raises:
        ValueError: it is anything else.
    """
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < least:
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise ValueError(f"{name} must be a finite number{bound}, got {value!r}")
    return float(value)
