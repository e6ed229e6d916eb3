"""All checks together."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium

from agentgym_envs.testing import contract, determinism, playing, state, text, vectors
from agentgym_envs.testing.base import Check, ConformanceError, MakeEnv
from agentgym_envs.testing.wrapping import wrapped

CHECKS: tuple[Check, ...] = (
    contract.check_gymnasium,
    contract.check_info,
    contract.check_observations,
    contract.check_fresh_objects,
    contract.check_horizon,
    contract.check_order,
    contract.check_reset_errors,
    contract.check_arguments,
    contract.check_capabilities,
    contract.check_tasks,
    contract.check_spec,
    contract.check_render,
    text.check_instructions,
    text.check_action_formats,
    text.check_hostile_text,
    determinism.check_fresh_instances,
    determinism.check_drawn_tasks,
    determinism.check_threads,
    determinism.check_processes,
    determinism.check_silence,
    state.check_save_load,
    state.check_state_refusals,
    state.check_clone,
    state.check_state_key,
    playing.check_oracle,
    playing.check_admissible,
    playing.check_rewards,
    vectors.check_text_vector,
    vectors.check_stock_vector,
)
"""Every check, quick ones first."""


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """How one check went.

    Attributes:
        name: of the check.
        promise: what it checks, a sentence.
        error: what is wrong, or "".
        seconds: how long it took.
    """

    name: str
    promise: str
    error: str
    seconds: float


def run_checks(make: MakeEnv, checks: Iterable[Check] = CHECKS) -> Iterator[CheckResult]:
    """Run checks one after the other, also after one has failed.

    Args:
        make: makes an environment from the family's keyword arguments.
        checks: which, in this order.
    """
    for check in checks:
        start = time.perf_counter()
        error = ""
        try:
            check(make)
        except ConformanceError as failure:
            error = str(failure)
        promise = (check.__doc__ or "").splitlines()[0]
        yield CheckResult(check.__name__, promise, error, time.perf_counter() - start)


def check_text_env(make: MakeEnv, checks: Iterable[Check] = CHECKS) -> None:
    """Run checks on the environments that `make` makes.

    Args:
        make: makes an environment from the family's keyword arguments, for example
            ``functools.partial(gymnasium.make, "AgentGym/BabyAI-v0", levels=["GoToRedBall"])``.
        checks: which.

    Raises:
        ConformanceError: promises are broken; the text lists all of them.
    """
    failed = [
        f"{result.name}: {result.error}" for result in run_checks(make, checks) if result.error
    ]
    if failed:
        raise ConformanceError("\n".join([f"{len(failed)} checks failed.", *failed]))


def check_family(env_id: str, **kwargs: Any) -> None:
    """Run every check on the environments of an id, bare and inside a `TextWrapper`.

    Args:
        env_id: a registered id.
        **kwargs: arguments of the family.

    Raises:
        ConformanceError: promises are broken; the text lists all of them.
    """
    check_text_env(functools.partial(gymnasium.make, env_id, **kwargs))
    check_text_env(wrapped(env_id, **kwargs))
