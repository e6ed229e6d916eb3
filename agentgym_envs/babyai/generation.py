"""Levels of minigrid that generate within bounds, print nothing and draw no observation.

This is the only file that imports minigrid, and it does so inside a function: minigrid imports
pygame, which greets on stdout. A level's class is taken from Gymnasium's registry and some of its
methods are replaced in a subclass; minigrid itself is not changed, so stock environments in the
same process stay what they are. The random numbers drawn are those of stock minigrid, in the same
order, so equal seeds give equal worlds.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.errors import EnvFault, UnknownName, Unsupported

MAX_ATTEMPTS = 1_000
"""How many missions a level may reject before its generation counts as broken."""
MAX_DRAWS = 1_000_000
"""How many whole numbers one generation may draw: some loops of minigrid have no bound."""

_PREFIX = "BabyAI-"
_GREETING_SWITCH = "PYGAME_HIDE_SUPPORT_PROMPT"
_import_lock = threading.Lock()


@functools.cache
def registered_levels() -> Mapping[str, EnvSpec]:
    """The BabyAI levels of minigrid by bare name; the highest version where there are several."""
    _import_minigrid()
    levels: dict[str, EnvSpec] = {}
    for spec in gymnasium.registry.values():
        if spec.id.startswith(_PREFIX) and str(spec.entry_point).startswith("minigrid."):
            name = spec.name.removeprefix(_PREFIX)
            if name not in levels or (spec.version or 0) > (levels[name].version or 0):
                levels[name] = spec
    return MappingProxyType(levels)


def make_level(name: str) -> Any:
    """A minigrid environment of level `name`; its observations are None.

    Raises:
        UnknownName: there is no such level.
    """
    levels = registered_levels()
    if name not in levels:
        raise UnknownName("level", name, levels)
    return _bounded(str(levels[name].entry_point))(**levels[name].kwargs)


def generate(level: Any, seed: int) -> None:
    """Build the world of `seed` in an environment from `make_level`.

    Raises:
        EnvFault: the generation did not end within its bounds.
    """
    level.draws_left = MAX_DRAWS
    if hasattr(level, "locked_room"):
        level.locked_room = None  # minigrid before 3.2 keeps the one of the last world
    level.reset(seed=seed)


def clauses(instruction: Any) -> Iterator[Any]:
    """A mission's instruction and all those that it is made of, in a fixed order."""
    yield instruction
    for part in ("instr_a", "instr_b"):
        if hasattr(instruction, part):
            yield from clauses(getattr(instruction, part))


def minigrid_module(name: str) -> Any:
    """A module of minigrid, ``"core.roomgrid"``; whoever needs one gets it here.

    Raises:
        Unsupported: minigrid is not installed, or set up to end missions in another way.
    """
    _import_minigrid()
    return importlib.import_module(f"minigrid.{name}")


@functools.cache
def _import_minigrid() -> None:
    with _import_lock:
        before = os.environ.get(_GREETING_SWITCH)
        os.environ[_GREETING_SWITCH] = "hide"
        try:
            verifier = importlib.import_module("minigrid.envs.babyai.core.verifier")
        except ModuleNotFoundError as error:
            raise Unsupported(
                f"BabyAI needs the package minigrid ({error}); "
                "install it with: pip install 'agentgym-suite[babyai]'"
            ) from error
        finally:
            if before is None:
                del os.environ[_GREETING_SWITCH]
            else:
                os.environ[_GREETING_SWITCH] = before
    if verifier.use_done_actions:
        raise Unsupported(
            "minigrid was imported with BABYAI_DONE_ACTIONS set, so missions end only at an "
            "action that is not offered here; unset the variable"
        )


@functools.cache
def _bounded(entry_point: str) -> Any:
    """The level class at `entry_point` with the methods below in place of minigrid's."""
    module, _, name = entry_point.partition(":")
    level_class = getattr(importlib.import_module(module), name)
    methods: dict[str, Callable[..., Any]] = {
        "_gen_grid": _gen_grid,
        "_rand_int": _rand_int,
        "gen_obs": lambda level: None,
        "_reward": lambda level: 1,  # 0 stands for failure; minigrid's own may be 0 at success
    }
    return type(name, (level_class,), methods)


def _gen_grid(level: Any, width: int, height: int) -> None:
    """Draw layouts and missions until one is valid."""
    room_grid = minigrid_module("core.roomgrid").RoomGrid
    rejection = minigrid_module("envs.babyai.core.roomgrid_level").RejectSampling
    for _ in range(MAX_ATTEMPTS):
        try:
            room_grid._gen_grid(level, width, height)
            level.gen_mission()
            level.validate_instrs(level.instrs)
        except (rejection, RecursionError):  # the second is minigrid's word for a timeout
            continue
        level.instrs = _winnable(level.instrs)
        level.surface = level.mission = level.instrs.surface(level)
        return
    raise EnvFault(
        f"minigrid rejected {MAX_ATTEMPTS} worlds of {type(level).__name__}", retryable=False
    )


def _rand_int(level: Any, low: int, high: int) -> Any:
    level.draws_left -= 1
    if level.draws_left < 0:
        raise EnvFault(
            f"the generation of {type(level).__name__} drew more than {MAX_DRAWS} numbers",
            retryable=False,
        )
    return level.np_random.integers(low, high)


def _winnable(instruction: Any) -> Any:
    """The same instruction, unless it is one that nobody can follow.

    minigrid shows the action that completes the first clause of "A, then B" to the second clause
    as well. If B says "open" strictly, opening the door of A is opening a wrong door to it, and
    the mission fails. Here the second clause begins with the next action.
    """
    name = type(instruction).__name__
    first, second = {"BeforeInstr": ("a", "b"), "AfterInstr": ("b", "a")}.get(name, ("", ""))
    last = getattr(instruction, f"instr_{second}", None)
    if type(last).__name__ != "OpenInstr" or not getattr(last, "strict", False):
        return instruction
    patient = _patient(name, first)
    return patient(instruction.instr_a, instruction.instr_b, strict=instruction.strict)


@functools.cache
def _patient(name: str, first: str) -> Any:
    kind = getattr(minigrid_module("envs.babyai.core.verifier"), name)

    def verify(instruction: Any, action: int) -> str:
        if getattr(instruction, f"{first}_done") == "success":
            return str(kind.verify(instruction, action))
        done = getattr(instruction, f"instr_{first}").verify(action)
        setattr(instruction, f"{first}_done", done)
        return "failure" if done == "failure" else "continue"

    return type(name, (kind,), {"verify": verify})
