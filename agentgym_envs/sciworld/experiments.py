"""The 30 experiments of ScienceWorld, their variations, and the package's own splits of them.

An experiment is a kind of task, ``boil``; a variation changes substances, places and what else
stands around. Numbers of variations and splits are facts of scienceworld 1.2.3 that a test
compares with the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.arguments import one_of
from agentgym_envs.errors import InvalidTask
from agentgym_envs.tasks import check_split


class Experiment(NamedTuple):
    """A kind of task.

    Attributes:
        number: the paper's number, ``"1-1"``.
        name: the package's name, ``"boil"``.
        num_variations: how many variations there are.
    """

    number: str
    name: str
    num_variations: int


EXPERIMENTS = (
    Experiment("1-1", "boil", 30),
    Experiment("1-2", "melt", 30),
    Experiment("1-3", "freeze", 30),
    Experiment("1-4", "change-the-state-of-matter-of", 30),
    Experiment("2-1", "use-thermometer", 540),
    Experiment("2-2", "measure-melting-point-known-substance", 436),
    Experiment("2-3", "measure-melting-point-unknown-substance", 300),
    Experiment("3-1", "power-component", 20),
    Experiment("3-2", "power-component-renewable-vs-nonrenewable-energy", 20),
    Experiment("3-3", "test-conductivity", 900),
    Experiment("3-4", "test-conductivity-of-unknown-substances", 600),
    Experiment("4-1", "find-living-thing", 300),
    Experiment("4-2", "find-non-living-thing", 300),
    Experiment("4-3", "find-plant", 300),
    Experiment("4-4", "find-animal", 300),
    Experiment("5-1", "grow-plant", 126),
    Experiment("5-2", "grow-fruit", 126),
    Experiment("6-1", "chemistry-mix", 32),
    Experiment("6-2", "chemistry-mix-paint-secondary-color", 36),
    Experiment("6-3", "chemistry-mix-paint-tertiary-color", 36),
    Experiment("7-1", "lifespan-longest-lived", 125),
    Experiment("7-2", "lifespan-shortest-lived", 125),
    Experiment("7-3", "lifespan-longest-lived-then-shortest-lived", 125),
    Experiment("8-1", "identify-life-stages-1", 14),
    Experiment("8-2", "identify-life-stages-2", 10),
    Experiment("9-1", "inclined-plane-determine-angle", 168),
    Experiment("9-2", "inclined-plane-friction-named-surfaces", 1386),
    Experiment("9-3", "inclined-plane-friction-unnamed-surfaces", 162),
    Experiment("10-1", "mendelian-genetics-known-plant", 120),
    Experiment("10-2", "mendelian-genetics-unknown-plant", 480),
)
"""All experiments in the paper's order."""

NAMES = tuple(experiment.name for experiment in EXPERIMENTS)

_BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
_ELECTRICAL = ("power-component", "conductivity")

NOT_IN_AGENTGYM = frozenset({"5-1", "5-2", "9-1", "9-2", "9-3", "10-1", "10-2"})
"""Numbers of the experiments that the list of AgentGym's server leaves out."""
NOT_IN_AGENTGYM_FILES = NOT_IN_AGENTGYM | {"2-3"}
"""Those that the list behind its published files of tasks leaves out."""
AGENTGYM_EXPERIMENTS = tuple(
    experiment.name for experiment in EXPERIMENTS if experiment.number not in NOT_IN_AGENTGYM
)

SIMPLIFICATIONS = (
    "teleportAction",
    "openDoors",
    "openContainers",
    "selfWateringFlowerPots",
    "noElectricalAction",
)
EASY = "easy"
"""Stands for all simplifications that the package calls so."""


def experiment(name: str) -> Experiment:
    """The experiment called `name`.

    Raises:
        UnknownName: there is none.
    """
    return _BY_NAME[one_of("experiment", name, NAMES)]


def split_of(name: str, variation: int) -> str:
    """The split that the package puts a variation into: 50 % train, 25 % dev, 25 % test.

    Args:
        name: of an experiment.
        variation: its number, from 0.
    """
    quarter = _BY_NAME[name].num_variations // 4
    return "train" if variation < 2 * quarter else "dev" if variation < 3 * quarter else "test"


def variations(name: str, split: str) -> range:
    """The variations of an experiment that are in a split.

    Raises:
        UnknownName: no such experiment or split.
    """
    total = experiment(name).num_variations
    quarter = total // 4
    bounds = {
        "train": (0, 2 * quarter),
        "dev": (2 * quarter, 3 * quarter),
        "test": (3 * quarter, total),
    }
    return range(*bounds[check_split(split)])


def agentgym_variation(number: int, left_out: frozenset[str] = NOT_IN_AGENTGYM) -> tuple[str, int]:
    """Experiment and variation of an item of AgentGym, ``sciworld_<number>``.

    Its list goes through the experiments in the paper's order and counts all variations of each,
    so that its items are of all three splits.

    Args:
        number: of the item, from 0.
        left_out: numbers of the experiments that the list leaves out.

    Raises:
        InvalidTask: there is no such item.
    """
    listed = [entry for entry in EXPERIMENTS if entry.number not in left_out]
    rest = number
    for entry in listed:
        if 0 <= rest < entry.num_variations:
            return entry.name, rest
        rest -= entry.num_variations
    total = sum(entry.num_variations for entry in listed)
    raise InvalidTask(f"AgentGym has {total} items of sciworld, from 0; got {number}")


def check_simplifications(names: Sequence[str]) -> tuple[str, ...]:
    """Return `names` without repetition if each is a simplification or ``"easy"``.

    Raises:
        UnknownName: one is neither.
    """
    known = (EASY, *SIMPLIFICATIONS)
    return tuple(dict.fromkeys(one_of("simplification", name, known) for name in names))


def can_be_done(name: str, chosen: Sequence[str]) -> bool:
    """Whether an experiment can be done under some simplifications: those about electricity cannot
    without electrical actions.
    """
    return "noElectricalAction" not in chosen or not any(part in name for part in _ELECTRICAL)


def simplifications_of(name: str, chosen: Sequence[str]) -> str:
    """The simplifications of one experiment as the simulator takes them, with commas.

    ``"easy"`` is teleporting, open doors, pots that water themselves, and no electrical actions
    except in experiments about electricity, as in the package.

    Raises:
        InvalidTask: an experiment about electricity cannot be done without electrical actions.
    """
    is_electrical = any(part in name for part in _ELECTRICAL)
    if not can_be_done(name, chosen):
        raise InvalidTask(
            f"{name} needs electrical actions; leave the simplification noElectricalAction out"
        )
    easy = {"teleportAction", "openDoors", "selfWateringFlowerPots"}
    if not is_electrical:
        easy.add("noElectricalAction")
    wanted = {*chosen, *(easy if EASY in chosen else ())}
    return ",".join(label for label in SIMPLIFICATIONS if label in wanted)
