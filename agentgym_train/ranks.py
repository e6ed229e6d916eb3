"""Sums over the processes of a run; in one process they change nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

Part = TypeVar("Part")


def sum_over_ranks(values: NDArray[np.float64], device: torch.device) -> NDArray[np.float64]:
    """The sum of an array over all ranks, in float64; every rank must call it."""
    if not _in_several_processes():
        return values
    total = torch.from_numpy(values).to(device)
    distributed.all_reduce(total)
    summed: NDArray[np.float64] = total.cpu().numpy()
    return summed


def sum_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Sum gradients over all ranks; a rank without samples adds zeros."""
    if not _in_several_processes():
        return
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        distributed.all_reduce(parameter.grad)


def of_all_ranks(part: Part) -> list[Part]:
    """The objects of all ranks, in their order."""
    if not _in_several_processes():
        return [part]
    parts: list[Part] = [part] * distributed.get_world_size()
    distributed.all_gather_object(parts, part)
    return parts


def _in_several_processes() -> bool:
    return distributed.is_available() and distributed.is_initialized()
