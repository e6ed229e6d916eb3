"""From outcomes to what `TextVectorEnv` returns: rows, results, and batches of infos."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.episodes import EndReason
from agentgym_envs.spaces import to_utf8
from agentgym_envs.tasks import Task
from agentgym_envs.vector.base import Failure, Request, message_of

_logger = logging.getLogger(__name__)

FAULT_OBSERVATION = "The environment broke. This episode is over."
"""Stands for the observation that a broken environment could not give."""

Info = dict[str, Any]
Row = tuple[str, float, bool, bool, Info]
"""observation, reward, terminated, truncated, info"""


class StepResult(NamedTuple):
    """What came of one step or reset of one environment.

    Attributes:
        observation: the text; `FAULT_OBSERVATION` after a fault.
        reward: reward of the step; 0.0 for a reset and after a fault.
        terminated: whether the world ended.
        truncated: whether the episode was cut off, by the horizon or by a fault.
        info: the environment's own, and ``fault``. After a fault only the keys that every `info`
            has: the score is the last known one, the turn counts the broken step.
        is_reset: whether this answers a reset.
        fault: what broke, or "". After a fault the environment needs a reset.
        retryable: after a fault, whether the same task may work on a fresh environment.
    """

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: Info
    is_reset: bool
    fault: str = ""
    retryable: bool = True


def is_mistake(outcome: Any) -> bool:
    """Whether the caller asked for something impossible, such as a task that does not exist."""
    return isinstance(outcome, Failure) and not outcome.is_fault


def step_row(index: int, outcome: Any, last_info: Mapping[str, Any]) -> Row:
    """The row of a step.

    Args:
        index: which environment it is, for the log.
        outcome: of the step.
        last_info: the `info` before, for what a broken world cannot say.
    """
    if isinstance(outcome, Failure):
        return _fault_row(index, outcome.error, last_info, last_info.get("turn", 0) + 1)
    row: Row = outcome
    _, _, _, truncated, info = row
    info["fault"] = ""
    if truncated and info.get("end_reason") == EndReason.RUNNING:  # by an outer TimeLimit
        info["end_reason"] = str(EndReason.HORIZON)
    return row


def reset_row(outcome: Any, request: Request) -> Row:
    """The row of a reset: no reward, and truncated if it failed."""
    if isinstance(outcome, Failure):
        task = (request.kwargs["options"] or {}).get("task")
        task_id = task.id if isinstance(task, Task) else task if isinstance(task, str) else ""
        return _fault_row(request.index, outcome.error, {"task_id": task_id}, turn=0)
    observation, info = outcome
    info["fault"] = ""
    return observation, 0.0, False, False, info


def _fault_row(index: int, error: Exception, last_info: Mapping[str, Any], turn: int) -> Row:
    _logger.warning("environment %d broke", index, exc_info=error)
    info = {
        "task_id": last_info.get("task_id", ""),
        "turn": turn,
        "score": last_info.get("score", 0.0),
        "success": False,
        "action_valid": False,
        "format_errors": last_info.get("format_errors", 0),
        "end_reason": str(EndReason.FAULT),
        "fault": to_utf8(message_of(error)) or type(error).__name__,
    }
    return FAULT_OBSERVATION, 0.0, False, True, info


def batch_infos(infos: Sequence[Mapping[str, Any] | None]) -> Info:
    """Infos of N environments in Gymnasium's form: an array (N,) and a mask ``_key`` for each key.

    The same as `gymnasium.vector.VectorEnv` makes of them one by one, at half the cost, but that
    values which have no kind or shape in common, or are too large, come as objects.

    Args:
        infos: one entry an environment; None where there is nothing to tell.
    """
    batch: Info = {}
    count = len(infos)
    for key in dict.fromkeys(key for info in infos if info for key in info):
        rows = [index for index, info in enumerate(infos) if info and key in info]
        values = [info[key] for info in infos if info and key in info]
        batch[key] = _column(values, rows, count)
        mask = np.zeros(count, dtype=np.bool_)
        mask[rows if len(rows) < count else slice(None)] = True
        batch[f"_{key}"] = mask
    return batch


def _column(values: Sequence[Any], rows: Sequence[int], count: int) -> Any:
    kind = _common_kind(values)
    if issubclass(kind, dict):
        nested = dict(zip(rows, values, strict=True))
        return batch_infos([nested.get(index) for index in range(count)])
    if issubclass(kind, np.ndarray) and len({(each.shape, each.dtype) for each in values}) == 1:
        shape = (count, *values[0].shape)
        return _filled(np.zeros(shape, dtype=values[0].dtype), rows, values)
    if _is_number(kind):
        with contextlib.suppress(OverflowError):  # Python's numbers know no bounds
            return _filled(np.zeros(count, dtype=kind), rows, values)
    return _filled(np.empty(count, dtype=object), rows, values)  # None where there is nothing


def _common_kind(values: Sequence[Any]) -> type:
    kinds = set(map(type, values))
    if len(kinds) == 1:
        return kinds.pop()
    return np.result_type(*kinds).type if all(map(_is_number, kinds)) else object


def _is_number(kind: type) -> bool:
    return kind in (int, float, bool) or issubclass(kind, np.number)


def _filled(column: np.ndarray, rows: Sequence[int], values: Sequence[Any]) -> np.ndarray:
    for index, value in zip(rows, values, strict=True):
        column[index] = value
    return column
