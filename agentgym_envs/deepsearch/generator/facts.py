"""What the corpus is made of: things, and facts about them.

A fact has a form for sentences and the answers that are right when somebody asks for it. Facts that
age, or that two sources tell differently, have no answers: passages may tell them, with their
edition, but no question asks for them.
"""

from __future__ import annotations

import dataclasses
import math
import re
import unicodedata
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """One fact about one thing.

    Attributes:
        text: as it stands in a sentence.
        answers: what is right when it is asked for, the best first; none if it is never asked.
        number: its value where it is one, in the unit of the text; for comparisons.
        link: id of the thing that it names, if that is in the corpus too.
    """

    text: str
    answers: tuple[str, ...] = ()
    number: float | None = None
    link: str = ""


@dataclasses.dataclass(slots=True)
class Entity:
    """One thing of the corpus.

    Attributes:
        id: ``kind/key``.
        kind: which phrasings speak about it.
        name: its bare name; no other thing of the kind bears it if `asked`.
        phrase: its name within a sentence ("the Netherlands").
        facts: by the name of the relation.
        asked: whether questions may be asked about it.
        place: latitude and longitude in degrees, where it has one.
        weight: importance among its kind; for choosing.
    """

    id: str
    kind: str
    name: str
    phrase: str
    facts: dict[str, Fact]
    asked: bool = True
    place: tuple[float, float] | None = None
    weight: float = 0.0


def named(text: str, *aliases: str, link: str = "", asked: bool = True) -> Fact:
    """A fact whose value is a name."""
    return Fact(text, variants(text, *aliases) if asked else (), link=link)


def variants(*names: str) -> tuple[str, ...]:
    """Names, each also without its accents, none twice."""
    every = [form for name in names if name for form in (name, plain(name))]
    return tuple(dict.fromkeys(every))


def plain(name: str) -> str:
    """`name` without accents, and with straight apostrophes."""
    letters = {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "ß": "ss"}
    letters |= {"’": "'", "‘": "'", "ʼ": "'", "æ": "ae", "ð": "d", "þ": "th"}
    spelled = "".join(letters.get(char, char) for char in name)
    decomposed = unicodedata.normalize("NFKD", spelled)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


SINGULAR = {"meters": "meter", "feet": "foot", "kilometers": "kilometer", "years": "year"}


def measure(number: float, unit: str, *others: str, asked: bool = True) -> Fact:
    """A fact that is a number with a unit; `others` are the unit's other names."""
    written = digits(number)
    if number == 1:
        unit = SINGULAR.get(unit, unit)
    bare = written.replace(",", "")
    forms = [f"{written} {unit}", written, *(f"{written} {other}" for other in others)]
    if bare != written:
        forms += [bare, f"{bare} {unit}", *(f"{bare} {other}" for other in others)]
    return Fact(forms[0], tuple(forms) if asked else (), number)


def height(number: float, *, asked: bool = True) -> Fact:
    """A height above, or depth below, the level of the sea, in meters."""
    if number >= 0:
        return measure(number, "meters", "m", "metres", asked=asked)
    depth = measure(-number, "meters", "m", "metres")
    below = f"{depth.text} below sea level"
    answers = (below, *(f"-{form}" for form in depth.answers))
    return Fact(below, answers if asked else (), number)


def digits(number: float) -> str:
    """A number with commas at the thousands, and no more decimals than it has."""
    text = f"{number:,.10f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def date(text: str, *, asked: bool = True) -> Fact | None:
    """A fact of the date that `text` is, as in "12 December 1963"; None if it is none."""
    match = re.fullmatch(r"(\d{1,2}) (\w+) (\d{4})", text)
    if not match or match[2] not in MONTHS:
        return None
    day, month, year = match.groups()
    padded, number = f"{int(day):02}", f"{MONTHS.index(month) + 1:02}"
    american = f"{month} {day}, {year}"
    forms = (american, f"{day} {month} {year}", f"{year}-{number}-{padded}")
    return Fact(american, forms if asked else (), float(f"{year}{number}{padded}"))


def coordinates(latitude: float, longitude: float) -> str:
    """A place as in "1.28° S, 36.82° E"."""
    north = "N" if latitude >= 0 else "S"
    east = "E" if longitude >= 0 else "W"
    return f"{abs(latitude):.2f}° {north}, {abs(longitude):.2f}° {east}"


def distance_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Distance over the sphere of 6,371 km between two places in degrees."""
    (lat1, lon1), (lat2, lon2) = one, other
    lat1, lon1, lat2, lon2 = map(math.radians, (lat1, lon1, lat2, lon2))
    chord = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * 6371 * math.asin(min(1.0, math.sqrt(chord)))


def enumeration(items: Iterable[str]) -> str:
    """Items as in "A, B and C"."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last
