"""Rewards of Deep Search, by the measures of a turn that the environment hands them.

Each measure of an answer (`matching.Grades`) is the gain over the answers before it, so a return
is the best that was answered; with one answer it is the grade of that. The last turn of an episode
that ended with an answer also has the format's part: ``penalty`` if a reply was malformed, which
is taken from what the answer is worth, and ``bonus`` for form and passages found, the least that
it is worth. Both are 0 unless the arguments ask for them. In the form of Search-R1's format
reward: a right answer in right form pays 1, whatever the weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentgym_envs.deepsearch.matching import Grades
from agentgym_envs.deepsearch.settings import Settings
from agentgym_envs.deepsearch.world import DeepSearchWorld
from agentgym_envs.outcomes import RewardFunction, RewardInput


def measures(world: DeepSearchWorld, settings: Settings, *, is_malformed: bool) -> dict[str, float]:
    """What the rewards look at after an answer.

    Args:
        world: in which the last turn was an answer.
        settings: with the weights.
        is_malformed: whether a reply of the episode held no command in the expected format.
    """
    num_answers = len(world.answers)
    best, before = world.best_grades(num_answers), world.best_grades(num_answers - 1)
    found = {name: now - then for name, now, then in zip(Grades._fields, best, before, strict=True)}
    found |= {"penalty": 0.0, "bonus": 0.0}
    if not world.is_done:
        return found
    found["penalty" if is_malformed else "bonus"] = settings.format_weight
    if gold := world.question.gold_passages:
        found["bonus"] += settings.retrieval_weight * world.num_gold_found / len(gold)
    return found


def em(turn: RewardInput) -> float:
    """1 for the right answer, which is the score."""
    return _paid(turn, "em")


def f1(turn: RewardInput) -> float:
    """The share of words that the answer and the nearest right one have in common, token F1."""
    return _paid(turn, "f1")


def sub_em(turn: RewardInput) -> float:
    """1 if the answer contains a right one."""
    return _paid(turn, "sub_em")


def _paid(turn: RewardInput, measure: str) -> float:
    if turn.measures is None:
        return 0.0
    worth = turn.measures[measure]
    return max(worth - turn.measures["penalty"], turn.measures["bonus"], 0.0)


REWARDS: Mapping[str, RewardFunction] = {"default": em, "f1": f1, "sub_em": sub_em}
"""The reward functions by name."""
