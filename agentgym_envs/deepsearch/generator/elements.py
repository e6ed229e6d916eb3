"""Facts about chemical elements and isotopes, from mendeleev.

Who discovered an element is told and asked only where one person, or a pair, is credited without
dispute; `DISCOVERERS` has them in the spelling of encyclopedias, as that of the source is not sure.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentgym_envs.deepsearch.generator.facts import Entity, Fact, digits, measure, named, variants
from agentgym_envs.deepsearch.generator.sources import MENDELEEV, files_of

DISCOVERERS = {
    "H": "Henry Cavendish", "N": "Daniel Rutherford", "F": "Henri Moissan",
    "Na": "Humphry Davy", "K": "Humphry Davy", "Ca": "Humphry Davy", "Ba": "Humphry Davy",
    "Mg": "Humphry Davy", "Al": "Hans Christian Ørsted", "Si": "Jöns Jacob Berzelius",
    "P": "Hennig Brand", "Cl": "Carl Wilhelm Scheele", "Sc": "Lars Fredrik Nilson",
    "Ti": "William Gregor", "Cr": "Louis Nicolas Vauquelin", "Mn": "Johan Gottlieb Gahn",
    "Co": "Georg Brandt", "Ni": "Axel Fredrik Cronstedt",
    "Ga": "Paul-Émile Lecoq de Boisbaudran", "Ge": "Clemens Winkler",
    "Se": "Jöns Jacob Berzelius", "Br": "Antoine Jérôme Balard",
    "Kr": "William Ramsay and Morris Travers", "Ne": "William Ramsay and Morris Travers",
    "Xe": "William Ramsay and Morris Travers", "Rb": "Robert Bunsen and Gustav Kirchhoff",
    "Cs": "Robert Bunsen and Gustav Kirchhoff", "Zr": "Martin Heinrich Klaproth",
    "U": "Martin Heinrich Klaproth", "Nb": "Charles Hatchett", "Mo": "Carl Wilhelm Scheele",
    "Tc": "Carlo Perrier and Emilio Segrè", "Ru": "Karl Ernst Claus",
    "Rh": "William Hyde Wollaston", "Pd": "William Hyde Wollaston",
    "Cd": "Friedrich Stromeyer", "In": "Ferdinand Reich and Theodor Richter",
    "I": "Bernard Courtois", "La": "Carl Gustaf Mosander", "Er": "Carl Gustaf Mosander",
    "Tb": "Carl Gustaf Mosander", "Sm": "Paul-Émile Lecoq de Boisbaudran",
    "Dy": "Paul-Émile Lecoq de Boisbaudran", "Eu": "Eugène-Anatole Demarçay",
    "Pr": "Carl Auer von Welsbach", "Tm": "Per Teodor Cleve",
    "Gd": "Jean Charles Galissard de Marignac", "Yb": "Jean Charles Galissard de Marignac",
    "Hf": "Dirk Coster and George de Hevesy", "Ta": "Anders Gustaf Ekeberg",
    "W": "Fausto and Juan José Elhuyar", "Tl": "William Crookes",
    "Po": "Marie and Pierre Curie", "Ra": "Marie and Pierre Curie",
    "Fr": "Marguerite Perey", "Ac": "André-Louis Debierne", "Th": "Jöns Jacob Berzelius",
    "Os": "Smithson Tennant", "Np": "Edwin McMillan and Philip Abelson",
    "Te": "Franz-Joseph Müller von Reichenstein",
}  # fmt: skip

DISCOVERER_ALIASES = {
    "Hans Christian Ørsted": ["Hans Christian Oersted"],
    "Jöns Jacob Berzelius": ["Jöns Berzelius"],
    "Louis Nicolas Vauquelin": ["Louis Vauquelin", "Louis-Nicolas Vauquelin"],
    "Humphry Davy": ["Sir Humphry Davy"],
    "Axel Fredrik Cronstedt": ["Axel Cronstedt"],
    "Antoine Jérôme Balard": ["Antoine Balard"],
    "Martin Heinrich Klaproth": ["Martin Klaproth"],
    "Karl Ernst Claus": ["Karl Klaus", "Karl Claus"],
    "William Hyde Wollaston": ["William Wollaston"],
    "Carl Gustaf Mosander": ["Carl Mosander"],
    "Eugène-Anatole Demarçay": ["Eugène Demarçay"],
    "Per Teodor Cleve": ["Per Theodor Cleve"],
    "Jean Charles Galissard de Marignac": ["Jean de Marignac", "Marignac"],
    "Anders Gustaf Ekeberg": ["Anders Ekeberg"],
    "Marie and Pierre Curie": ["Pierre and Marie Curie", "Marie Curie and Pierre Curie"],
    "André-Louis Debierne": ["André Debierne"],
    "Johan Gottlieb Gahn": ["Johann Gahn", "Johan Gahn"],
    "Lars Fredrik Nilson": ["Lars Nilson"],
    "Franz-Joseph Müller von Reichenstein": ["Franz Müller von Reichenstein"],
    "Fausto and Juan José Elhuyar": ["Fausto and Juan José de Elhuyar", "Elhuyar brothers"],
    "Dirk Coster and George de Hevesy": ["Dirk Coster and Georg von Hevesy"],
    "Carl Auer von Welsbach": ["Auer von Welsbach"],
}

UNSURE_YEARS = {"Co", "F", "Kr", "Ne", "Os", "Se", "Th", "Ti", "Te", "Ni", "Tm", "Si"}
"""Elements whose year of discovery differs from one account to the next."""

PLACES = {
    "United States": "US", "Sweden": "SE", "Germany": "DE", "France": "FR", "Russia": "RU",
    "Denmark": "DK", "Spain": "ES", "Austria": "AT", "Switzerland": "CH", "Italy": "IT",
    "Romania": "RO", "England": "", "Scotland": "",
}  # fmt: skip
"""Codes of the countries of discovery; none where it is a part of one."""

STRUCTURES = {
    "HEX": "hexagonal", "BCC": "body-centered cubic", "FCC": "face-centered cubic",
    "DIA": "diamond cubic", "TET": "tetragonal", "ORC": "orthorhombic", "RHL": "rhombohedral",
    "MCL": "monoclinic", "SC": "simple cubic",
}  # fmt: skip

UNITS = {
    "psec": "picoseconds", "nsec": "nanoseconds", "usec": "microseconds", "msec": "milliseconds",
    "sec": "seconds", "minute": "minutes", "hour": "hours", "day": "days", "year": "years",
    "kyear": "thousand years", "Myear": "million years", "Gyear": "billion years",
    "Tyear": "trillion years", "Pyear": "quadrillion years", "Eyear": "quintillion years",
}  # fmt: skip
SHORT_UNITS = {"usec": "µs", "msec": "ms", "sec": "s", "minute": "min", "hour": "h", "day": "d",
               "nsec": "ns", "year": "y"}  # fmt: skip
SECONDS = {
    "psec": 1e-12, "nsec": 1e-9, "usec": 1e-6, "msec": 1e-3, "sec": 1.0, "minute": 60.0,
    "hour": 3600.0, "day": 86400.0, "year": 3.156e7, "kyear": 3.156e10, "Myear": 3.156e13,
    "Gyear": 3.156e16, "Tyear": 3.156e19, "Pyear": 3.156e22, "Eyear": 3.156e25,
}  # fmt: skip

DECAYS = {
    "B-": "beta-minus decay", "B+": "beta-plus decay or electron capture", "EC": "electron capture",
    "A": "alpha decay", "SF": "spontaneous fission", "p": "proton emission",
    "n": "neutron emission", "2p": "two-proton emission", "2n": "two-neutron emission",
}  # fmt: skip

BRITISH = {"Aluminum": "aluminium", "Cesium": "caesium", "Sulfur": "sulphur"}


def read() -> list[Entity]:
    """All elements by number, then all isotopes that are stable or have a known half-life."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "elements.db"
        path.write_bytes(files_of(MENDELEEV)["elements.db"])
        database = sqlite3.connect(path)
        database.row_factory = sqlite3.Row
        try:
            isotopes = list(_isotopes(database))
            elements = list(_elements(database))
        finally:
            database.close()
    return elements + isotopes


def names_of(entity: Entity) -> tuple[str, ...]:
    """The name of an element, and its British spelling."""
    british = BRITISH.get(entity.name)
    return variants(entity.name, *([british] if british else []))


def _elements(database: sqlite3.Connection) -> Iterator[Entity]:
    series = {row["id"]: row["name"].lower() for row in database.execute("select * from series")}
    heats = _heats(database)
    natural = _most_abundant(database)
    rows = database.execute("select * from elements order by atomic_number")
    for row in rows:
        name, number = row["name"], row["atomic_number"]
        told: dict[str, Fact | None] = {
            "symbol": Fact(row["symbol"], (row["symbol"],)),
            "number": Fact(str(number), (str(number),), float(number)),
            "cas": Fact(row["cas"], (row["cas"],)),
            "period": Fact(str(row["period"])),
            "block": Fact(row["block"]),
            "series": _series(series.get(row["series_id"], "")),
            "group": Fact(str(row["group_id"])) if row["group_id"] else None,
            "electronegativity": _ratio(row["en_pauling"]),
            "configuration": _configuration(row["electronic_configuration"]),
            "weight": _weight(row),
            "isotope": natural.get(number, (None, None))[0],
            "isotope_share": natural.get(number, (None, None))[1],
        }
        if number <= 92:
            grams = ("g/cm3", "g/cm³", "grams per cubic centimetre")
            structure = STRUCTURES.get(row["lattice_structure"])
            told["density"] = measure(row["density"], "grams per cubic centimeter", *grams)
            told["structure"] = Fact(structure) if structure else None
            told["heat"] = _quantity(row["specific_heat_capacity"], "J/(g K)", asked=True)
            told["conductivity"] = _quantity(row["thermal_conductivity"], "W/(m K)", asked=False)
        told |= heats.get(number, {}) | _discovery(row)
        kept = {relation: fact for relation, fact in told.items() if fact}
        yield Entity(f"element/{row['symbol']}", "element", name, name.lower(), kept)


def _series(name: str) -> Fact | None:
    if not name:
        return None
    singular = name.removesuffix("s")
    post = ("post-transition metals", "post-transition metal") if name == "poor metals" else ()
    return Fact(name, (name, singular, f"{singular} element", *post))


def _ratio(number: float | None) -> Fact | None:
    if number is None:
        return None
    text = f"{number:.2f}"
    return Fact(text, (text, digits(number)), number)


def _configuration(text: str) -> Fact:
    return Fact(text, (text, text.replace(" ", "")))


def _weight(row: sqlite3.Row) -> Fact:
    text = digits(round(row["atomic_weight"], 4)).replace(",", "")
    asked = not row["is_radioactive"]
    answers = (text, f"{text} u", f"{text} atomic mass units")
    return Fact(text, answers if asked else (), row["atomic_weight"])


def _quantity(number: float | None, unit: str, *, asked: bool) -> Fact | None:
    return measure(number, unit, asked=asked) if number is not None else None


def _heats(database: sqlite3.Connection) -> dict[int, dict[str, Fact | None]]:
    """Melting and boiling points of the elements that have one of each."""
    rows = database.execute("select * from phasetransitions order by id").fetchall()
    numbers = [row["atomic_number"] for row in rows]
    found: dict[int, dict[str, Fact | None]] = {}
    for row in rows:
        number = row["atomic_number"]
        if numbers.count(number) > 1 or row["melting_point"] is None or number > 96:
            continue
        if row["is_sublimation_point"]:
            continue
        kelvins = round(row["melting_point"], 2)
        celsius = round(row["melting_point"] - 273.15, 2)
        found[number] = {
            "melting": measure(kelvins, "kelvins", "K", "kelvin"),
            "melting_c": Fact(f"{digits(celsius)} °C".replace("-", "−")),
        }
        if row["boiling_point"] is not None:
            boiling = round(row["boiling_point"], 2)
            found[number]["boiling"] = measure(boiling, "kelvins", "K", "kelvin")
    return found


def _most_abundant(database: sqlite3.Connection) -> dict[int, tuple[Fact, Fact]]:
    """The commonest isotope of each element with at least two natural ones, and its share."""
    rows = database.execute(
        "select i.*, e.name, e.symbol from isotopes i join elements e using (atomic_number) "
        "where abundance is not null order by atomic_number, abundance desc"
    ).fetchall()
    found: dict[int, tuple[Fact, Fact]] = {}
    numbers = [row["atomic_number"] for row in rows]
    for row in rows:
        number = row["atomic_number"]
        if number in found or numbers.count(number) < 2:
            continue
        name = f"{row['name'].lower()}-{row['mass_number']}"
        short = f"{row['symbol']}-{row['mass_number']}"
        answers = (name, short, f"{row['mass_number']}{row['symbol']}")
        link = f"isotope/{row['symbol']}-{row['mass_number']}"
        found[number] = (Fact(name, answers, link=link), Fact(_percent(row["abundance"])))
    return found


def _discovery(row: sqlite3.Row) -> dict[str, Fact | None]:
    symbol, place = row["symbol"], row["discovery_location"]
    if symbol not in DISCOVERERS or not row["discovery_year"]:
        return {}
    name = DISCOVERERS[symbol]
    year = "1885" if symbol == "Pr" else str(row["discovery_year"])
    told: dict[str, Fact | None] = {
        "discoverer": named(name, *DISCOVERER_ALIASES.get(name, ())),
        "discovery_year": Fact(year, () if symbol in UNSURE_YEARS else (year,), float(year)),
    }
    if place in PLACES:
        code = PLACES[place]
        phrase = "the United States" if place == "United States" else place
        aliases = ("US", "USA", "United States of America") if code == "US" else ()
        link = f"country/{code}" if code else ""
        told["discovery_place"] = named(phrase, *aliases, link=link, asked=bool(code))
    return told


def _isotopes(database: sqlite3.Connection) -> Iterator[Entity]:
    decays = _decays(database)
    rows = database.execute(
        "select i.*, e.name, e.symbol from isotopes i join elements e using (atomic_number) "
        "order by atomic_number, mass_number, i.id"
    ).fetchall()
    for row in rows:
        told = _isotope(row, decays.get(row["id"]))
        if told:
            name = f"{row['name']}-{row['mass_number']}"
            key = f"isotope/{row['symbol']}-{row['mass_number']}"
            weight = float(row["abundance"] or 0.0)
            yield Entity(key, "isotope", name, name.lower(), told, weight=weight)


def _isotope(row: sqlite3.Row, decay: str | None) -> dict[str, Fact]:
    """What is told about one isotope; nothing if it is neither stable nor well known."""
    half_life, unit = row["half_life"], row["half_life_unit"]
    if row["abundance"] is None and (unit not in UNITS or not half_life):
        return {}
    if row["discovery_year"] is None or row["mass_number"] < 2:
        return {}
    year = str(row["discovery_year"])
    mass = f"{row['mass']:.6f}".rstrip("0").rstrip(".")
    told = {
        "element": Fact(row["name"].lower(), link=f"element/{row['symbol']}"),
        "discovered": Fact(year, (year,), float(year)),
        "mass": Fact(f"{mass} u", (f"{mass} u", mass, f"{mass} Da"), row["mass"]),
    }
    if row["abundance"] is not None:
        told["abundance"] = Fact(_percent(row["abundance"]), (), row["abundance"])
    else:
        told["half_life"] = _half_life(half_life, unit)
        if decay:
            told["decay"] = Fact(decay)
    return told


def _half_life(number: float, unit: str) -> Fact:
    written = digits(float(f"{number:.6g}"))
    name = UNITS[unit]
    singular = name.removesuffix("s")
    text = f"{written} {singular if written == '1' and ' ' not in name else name}"
    forms = [text, f"{written} {singular}"]
    if unit in SHORT_UNITS:
        forms.append(f"{written} {SHORT_UNITS[unit]}")
    return Fact(text, tuple(dict.fromkeys(forms)), number * SECONDS[unit])


def _percent(number: float) -> str:
    return f"{digits(float(f'{number:.4g}'))} %"


def _decays(database: sqlite3.Connection) -> dict[int, str]:
    """The main mode of decay by isotope, where one is known to be the most frequent."""
    best: dict[int, Any] = {}
    rows = database.execute("select * from isotopedecaymodes order by id")
    for row in rows:
        if row["intensity"] is None or row["mode"] not in DECAYS:
            continue
        if row["intensity"] > 50 and row["relation"] == "=":
            best[row["isotope_id"]] = DECAYS[row["mode"]]
    return best
