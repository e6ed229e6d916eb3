"""Names of levels and suites of levels.

A level is named without its frame: ``"GoToRedBall"`` is ``BabyAI-GoToRedBall-v0`` in Gymnasium's
registry, and ``"GoToObjS6"`` is ``BabyAI-GoToObjS6-v1``, the only version that minigrid has.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs.arguments import text_list
from agentgym_envs.babyai.generation import registered_levels
from agentgym_envs.errors import UnknownName

AGENTGYM = (
    "GoToRedBallGrey",
    "GoToRedBall",
    "GoToRedBallNoDists",
    "GoToObjS6",
    "GoToLocalS8N7",
    "GoToObjMazeS7",
    "GoToImpUnlock",
    "GoToSeqS5R2",
    "GoToRedBlueBall",
    "GoToDoor",
    "GoToObjDoor",
    "Open",
    "OpenRedDoor",
    "OpenDoorLoc",
    "OpenRedBlueDoorsDebug",
    "OpenDoorsOrderN4Debug",
    "Pickup",
    "UnblockPickup",
    "PickupLoc",
    "PickupDistDebug",
    "PickupAbove",
    "PutNextLocalS6N4",
    "PutNextS7N4Carrying",
    "Unlock",
    "UnlockLocalDist",
    "KeyInBox",
    "UnlockPickupDist",
    "BlockedUnlockPickup",
    "UnlockToUnlock",
    "ActionObjDoor",
    "FindObjS7",
    "KeyCorridorS6R3",
    "OneRoomS20",
    "MoveTwoAcrossS8N9",
    "SynthS5R2",
    "SynthLoc",
    "SynthSeq",
    "MiniBossLevel",
    "BossLevel",
    "BossLevelNoUnlock",
)
"""The 40 levels of AgentGym (arXiv 2406.04151) in its order; its level number is the index + 1."""

RED_BALL = ("GoToRedBallGrey", "GoToRedBall", "GoToRedBallNoDists")

SINGLE_ROOM = (
    "GoToRedBlueBall",
    "GoToObj",
    "GoToLocalS5N2",
    "GoToLocal",
    "PickupDist",
    "PickupLoc",
    "PutNextLocalS5N3",
    "PutNextLocalS6N4",
    "OpenDoorColor",
    "ActionObjDoor",
)
"""Ten levels whose goal names what to look up and which need no second room and no key."""

SUITES = ("agentgym", "all", "redball", "single_room")


def all_levels() -> tuple[str, ...]:
    """Every level: AgentGym's in their order, then minigrid's others by name."""
    return AGENTGYM + tuple(sorted(set(registered_levels()).difference(AGENTGYM)))


def resolve_levels(levels: str | Sequence[str]) -> tuple[str, ...]:
    """The levels that a name, the name of a suite, or a list of both stands for.

    Raises:
        UnknownName: a name is neither.
        TypeError: neither a text nor a list of texts.
        ValueError: the list is empty.
    """
    names = [levels] if isinstance(levels, str) else text_list("levels", levels)
    if not names:
        raise ValueError("levels is empty; give the name of a level or a suite, or a list of them")
    found = [level for name in names for level in _expand(name)]
    return tuple(dict.fromkeys(found))


def check_level(level: str) -> str:
    """Return `level` if there is one of this name.

    Raises:
        UnknownName: there is none.
    """
    if level not in AGENTGYM and level not in registered_levels():
        raise UnknownName("level", level, all_levels())
    return level


def _expand(name: str) -> tuple[str, ...]:
    suites = {"agentgym": AGENTGYM, "redball": RED_BALL, "single_room": SINGLE_ROOM}
    if name in suites:
        return suites[name]
    if name == "all":
        return all_levels()
    if name not in AGENTGYM and name not in registered_levels():
        raise UnknownName("level", name, (*all_levels(), *SUITES))
    return (name,)
