"""Which split a fact belongs to, so that no fact that one split asks for helps in another.

A fact is a thing and a relation. Facts about countries, through which most chains lead, are split
one by one; so a country may be in all splits, but its capital is asked for, or passed through, in
one of them only. Of all other things the facts stay together: towns, airports and regions by the
square of four degrees where they lie (chains lead to what is near), elements by sixes in the order
of their numbers (chains lead to the next), isotopes one by one. The capital of a country is in the
split of its town.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentgym_envs.deepsearch.generator.facts import Entity
from agentgym_envs.deepsearch.generator.phrasings import choice

SHARES = {"dev": 9, "test": 15}
"""In percent, of things; the rest is for training."""

COUNTRY_SHARES = {"dev": 12, "test": 20}
"""Of facts about countries: chains need several of them, which must all be in one split."""

SQUARE = 4
"""Degrees."""


def split_of(entities: Mapping[str, Entity], entity: Entity, relation: str) -> str:
    """The split of a fact."""
    if entity.kind == "country":
        town = entities.get(entity.facts[relation].link) if relation == "capital" else None
        if town:
            return split_of(entities, town, "region")
        return _draw(f"{entity.id} {relation}", COUNTRY_SHARES)
    if entity.place:
        row, column = (int(degrees // SQUARE) for degrees in entity.place)
        return _draw(f"square {row} {column}", SHARES)
    if entity.kind == "element":
        return _draw(f"sixth {(int(entity.facts['number'].text) - 1) // 6}", SHARES)
    return _draw(entity.id, SHARES)


def fact_id(entity: Entity, relation: str) -> str:
    """The name of a fact in the records of questions."""
    return f"{entity.id} {relation}"


def _draw(key: str, shares: Mapping[str, int]) -> str:
    drawn = choice(f"split {key}", 100)
    for split, share in shares.items():
        if drawn < share:
            return split
        drawn -= share
    return "train"
