"""Questions that compare two things: which is more, by how much, or whether they share something.

Each needs one passage about each thing. Pairs are far enough apart for rounding not to matter, and
yes and no are equally frequent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from agentgym_envs.deepsearch.generator.corpus import Corpus, names_of
from agentgym_envs.deepsearch.generator.facts import Entity, distance_km, measure
from agentgym_envs.deepsearch.generator.makers import Candidate, Step
from agentgym_envs.deepsearch.generator.phrasings import capitalize, choice, phrasings_of, pick
from agentgym_envs.deepsearch.generator.splits import fact_id, split_of
from agentgym_envs.deepsearch.matching import normalize

SET = "atlas-compare"
WHICH, HOW_MUCH, WHETHER = "which", "how much", "whether"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One family of comparisons.

    Attributes:
        kind: of both things.
        relation: the fact that is compared.
        form: `WHICH` of two is more, `HOW_MUCH` more the first is, `WHETHER` both have the same.
        share: of the set, in percent.
        texts: wordings with ``{a}`` and ``{b}``; the last is for the test split only.
        margin: least ratio of the larger to the smaller number.
        units: of a difference, the best first.
        least_is_right: whether the smaller number is asked for.
    """

    kind: str
    relation: str
    form: str
    share: int
    texts: str
    margin: float = 1.0
    units: tuple[str, ...] = ()
    least_is_right: bool = False

    @property
    def type(self) -> str:
        """The name of the family."""
        return f"{self.form}: {self.kind} {self.relation}"


COMPARISONS = (
    Comparison("airport", "elevation", WHICH, 7, """
Which airport lies higher above the sea, {a} or {b}?
Of {a} and {b}, which has the greater elevation?
Which of the two airports is higher, {a} or {b}?
Does {a} or {b} have the higher elevation?
Between {a} and {b}, which airport is at the greater elevation?
Which stands higher above sea level: {a} or {b}?
Comparing {a} with {b}, at which airport is one farther above the sea?
""", margin=1.3),
    Comparison("airport", "elevation", HOW_MUCH, 16, """
How many feet higher does {a} lie than {b}?
By how many feet is {a} higher than {b}?
What is the difference in elevation, in feet, between {a} and {b}?
In feet, how much higher is {a} than {b}?
{A} is how many feet higher than {b}?
How many feet must be added to the elevation of {b} to get that of {a}?
Subtract the elevation of {b} from that of {a}: how many feet are left?
""", margin=1.1, units=("feet", "ft")),
    Comparison("country", "area", WHICH, 6, """
Which country is larger by total area, {a} or {b}?
Of {a} and {b}, which has the greater total area?
Which of the two covers more ground in total, {a} or {b}?
Does {a} or {b} have the larger total area?
Between {a} and {b}, which country is the larger one by area?
Which takes up more square kilometers: {a} or {b}?
Laid side by side, which would cover the other, {a} or {b}?
""", margin=1.15),
    Comparison("country", "coastline", WHICH, 5, """
Which country has the longer coastline, {a} or {b}?
Of {a} and {b}, which has more kilometers of coast?
Which of the two has the longer coast, {a} or {b}?
Does {a} or {b} have the longer coastline?
Between {a} and {b}, which country has the longer coast?
Which has the greater length of coast: {a} or {b}?
Whose shores run longer, those of {a} or those of {b}?
""", margin=1.2),
    Comparison("country", "coastline", HOW_MUCH, 6, """
How many kilometers longer is the coastline of {a} than that of {b}?
By how many kilometers is the coast of {a} longer than that of {b}?
What is the difference in kilometers between the coastlines of {a} and {b}?
In kilometers, how much longer is the coast of {a} than the coast of {b}?
How many kilometers more of coast does {a} have than {b}?
The coastline of {a} exceeds that of {b} by how many kilometers?
Subtract the length of the coastline of {b} from that of {a}: how many kilometers are left?
""", margin=1.1, units=("kilometers", "km", "kilometres")),
    Comparison("country", "highest_m", WHICH, 5, """
Which country has the higher highest point, {a} or {b}?
Of {a} and {b}, which rises to the greater height?
In which of the two is the highest point higher, {a} or {b}?
Does {a} or {b} reach the greater elevation?
Between {a} and {b}, which country rises higher above the sea?
Which has the higher top: {a} or {b}?
Whose highest point lies farther above the sea, that of {a} or that of {b}?
""", margin=1.1),
    Comparison("country", "highest_m", HOW_MUCH, 7, """
How many meters higher is the highest point of {a} than that of {b}?
By how many meters does the highest point of {a} exceed that of {b}?
What is the difference in meters between the highest points of {a} and {b}?
In meters, how much higher does {a} rise than {b}?
How many meters more than the top of {b} does the top of {a} reach?
The highest point of {a} is how many meters above the highest point of {b}?
Subtract the height of the highest point of {b} from that of {a}: how many meters are left?
""", margin=1.05, units=("meters", "m", "metres")),
    Comparison("country", "independence", WHICH, 5, """
Which country became independent first, {a} or {b}?
Of {a} and {b}, which gained its independence earlier?
Which of the two has been independent longer, {a} or {b}?
Did {a} or {b} become independent earlier?
Between {a} and {b}, which country became independent first?
Which was the first to gain independence: {a} or {b}?
Whose independence is of the earlier date, that of {a} or that of {b}?
""", margin=1.0001, least_is_right=True),
    Comparison("element", "melting", WHICH, 5, """
Which element melts at the higher temperature, {a} or {b}?
Of {a} and {b}, which has the higher melting point?
Which of the two has to be made hotter to melt, {a} or {b}?
Does {a} or {b} have the higher melting point?
Between {a} and {b}, which element melts later when both are heated?
Which has the greater melting point: {a} or {b}?
Heated slowly together, which stays solid longer, {a} or {b}?
""", margin=1.05),
    Comparison("element", "density", WHICH, 4, """
Which element is denser, {a} or {b}?
Of {a} and {b}, which has the greater density?
Which of the two weighs more by volume, {a} or {b}?
Does {a} or {b} have the higher density?
Between {a} and {b}, which element is the denser one?
Which has more mass in a cubic centimeter: {a} or {b}?
Of two equal cubes, one of {a} and one of {b}, which is the heavier?
""", margin=1.05),
    Comparison("isotope", "half_life", WHICH, 6, """
Which isotope has the longer half-life, {a} or {b}?
Of {a} and {b}, which decays more slowly?
Which of the two lives longer on average, {a} or {b}?
Does {a} or {b} have the longer half-life?
Between {a} and {b}, which isotope has the greater half-life?
Which is the longer-lived isotope: {a} or {b}?
From equal samples of {a} and {b}, of which isotope is more left after a while?
""", margin=1.3),
    Comparison("isotope", "discovered", HOW_MUCH, 6, """
How many years after {b} was {a} discovered?
By how many years was the discovery of {a} later than that of {b}?
How many years lie between the discoveries of {b} and {a}?
How many years passed from the discovery of {b} to that of {a}?
In years, how much later than {b} was {a} discovered?
The isotope {a} was discovered how many years after {b}?
Counting from the discovery of {b}, after how many years was {a} found?
""", margin=1.001, units=("years",)),
    Comparison("town", "place", WHICH, 6, """
Which town lies farther north, {a} or {b}?
Of {a} and {b}, which is the more northern town?
Which of the two towns is farther north, {a} or {b}?
Does {a} or {b} lie farther north?
Between {a} and {b}, which town is at the more northern latitude?
Which is the more northerly: {a} or {b}?
Going north, which of the two does one pass last, {a} or {b}?
"""),
    Comparison("town", "country", WHETHER, 8, """
Do {a} and {b} lie in the same country?
Are {a} and {b} in the same country?
Is {a} in the same country as {b}?
Do the towns {a} and {b} belong to one country?
Are {a} and {b} towns of one and the same country?
Does {a} lie in the same country as {b}?
Is the country where {a} lies also that of {b}?
"""),
    Comparison("airport", "country", WHETHER, 8, """
Are {a} and {b} in the same country?
Do {a} and {b} lie in the same country?
Is {a} in the same country as {b}?
Do the airports {a} and {b} belong to one country?
Are {a} and {b} airports of one and the same country?
Does {a} lie in the same country as {b}?
Would a flight from {a} to {b} be a domestic one, within one country?
"""),
)  # fmt: skip


class ComparisonMaker:
    """Makes the questions of one family in one split.

    Args:
        corpus: all facts.
        comparison: the family.
        split: name of the split.
    """

    def __init__(self, corpus: Corpus, comparison: Comparison, split: str) -> None:
        self._corpus = corpus
        self._comparison = comparison
        self._split = split

    def candidates(self) -> Iterator[Candidate]:
        """Questions in random order, the same each time; a thing may be in several of them."""
        usable = [
            entity
            for entity in self._corpus.of_kind(self._comparison.kind)
            if entity.asked and self._usable(entity)
        ]
        make: dict[str, Callable[[Sequence[Entity]], Iterator[Candidate]]] = {
            WHICH: self._which,
            HOW_MUCH: self._how_much,
            WHETHER: self._whether,
        }
        for number in range(12):
            shuffled = sorted(usable, key=lambda entity: self._draw(f"{number} {entity.id}"))
            yield from make[self._comparison.form](shuffled)

    def _usable(self, entity: Entity) -> bool:
        relation = self._comparison.relation
        fact = entity.facts.get(relation)
        if not fact or not (fact.answers or relation == "place"):
            return False
        passage = self._corpus.passage_of(entity, relation)
        split = split_of(self._corpus.entities, entity, relation)
        return passage is not None and split == self._split

    def _number(self, entity: Entity) -> float:
        if self._comparison.relation == "place":
            assert entity.place is not None
            return entity.place[0]
        number = entity.facts[self._comparison.relation].number
        assert number is not None
        return number

    def _pairs(self, shuffled: Sequence[Entity]) -> Iterator[tuple[Entity, Entity]]:
        """Neighbors in the order given: the one with the larger number, and the other."""
        for one, other in zip(shuffled[::2], shuffled[1::2], strict=False):
            more, less = sorted((one, other), key=self._number, reverse=True)
            if self._comparison.relation == "place":
                if self._number(more) - self._number(less) > 0.3:
                    yield more, less
            elif 0 < self._number(less) * self._comparison.margin <= self._number(more):
                yield more, less

    def _which(self, shuffled: Sequence[Entity]) -> Iterator[Candidate]:
        for more, less in self._pairs(shuffled):
            right = less if self._comparison.least_is_right else more
            flipped = self._draw(f"order {more.id} {less.id}") % 2 == 0
            pair = (less, more) if flipped else (more, less)
            yield self._candidate(pair, self._names(right))

    def _names(self, entity: Entity) -> tuple[str, ...]:
        return tuple(names_of(entity))

    def _how_much(self, shuffled: Sequence[Entity]) -> Iterator[Candidate]:
        for more, less in self._pairs(shuffled):
            difference = round(self._number(more) - self._number(less), 6)
            if difference:
                fact = measure(difference, *self._comparison.units)
                yield self._candidate((more, less), fact.answers)

    def _whether(self, shuffled: Sequence[Entity]) -> Iterator[Candidate]:
        """A yes and a no in turn; the no has two countries whose things lie near."""
        by_country: dict[str, list[Entity]] = {}
        for entity in shuffled:
            by_country.setdefault(entity.facts["country"].link, []).append(entity)
        for members in by_country.values():
            for one, other in zip(members[:6:2], members[1:6:2], strict=False):
                if normalize(one.name) == normalize(other.name):
                    continue
                yield self._candidate((one, other), ("yes",))
                foreign = self._near_abroad(one, shuffled)
                if foreign:
                    yield self._candidate((one, foreign), ("no",))

    def _near_abroad(self, entity: Entity, others: Sequence[Entity]) -> Entity | None:
        country, place = entity.facts["country"].link, entity.place
        assert place is not None
        abroad = [
            (distance_km(place, other.place), other.id, other)
            for other in others[:400]
            if other.facts["country"].link != country and other.place
        ]
        return min(abroad, key=lambda item: item[:2])[2] if abroad else None

    def _candidate(self, pair: tuple[Entity, Entity], answers: tuple[str, ...]) -> Candidate:
        comparison, (a, b) = self._comparison, pair
        texts = comparison.texts.strip().split("\n")
        usable = texts if self._split == "test" else texts[:-1]
        template = pick(usable, f"{comparison.type} {a.id} {b.id}")
        question = template.format(a=a.phrase, b=b.phrase, A=capitalize(a.phrase))
        steps = tuple(self._step(entity) for entity in pair)
        return Candidate(SET, self._split, comparison.type, question, answers, steps)

    def _step(self, entity: Entity) -> Step:
        relation = self._comparison.relation
        phrasings = phrasings_of(entity.kind)
        ask = phrasings.asks.get(relation)
        query = ask.query if ask else "{name} coordinates"
        passage = self._corpus.passage_of(entity, relation)
        assert passage is not None
        fact = entity.facts[relation]
        answer = fact.answers[0] if fact.answers else fact.text
        return Step(query.format(name=entity.name), passage.id, answer, fact_id(entity, relation))

    def _draw(self, key: str) -> int:
        return choice(f"{self._comparison.type} {self._split} {key}", 2**60)
