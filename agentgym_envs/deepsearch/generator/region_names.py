"""Names of first-level regions as one reads them in English.

GeoNames and ISO 3166-2 give the official form of the country, often with the kind of region in its
language, or turned around after a comma.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentgym_envs.deepsearch.generator.country_names import codes
from agentgym_envs.deepsearch.generator.facts import plain

ENGLISH = {
    "AE.01": "Abu Dhabi", "AE.03": "Dubai", "AE.04": "Fujairah", "AE.05": "Ras al Khaimah",
    "AE.06": "Sharjah", "AE.07": "Umm al Quwain", "AT.02": "Carinthia", "AT.03": "Lower Austria",
    "AT.04": "Upper Austria", "AT.06": "Styria", "AT.07": "Tyrol", "AT.09": "Vienna",
    "BE.BRU": "Brussels-Capital Region", "BE.VLG": "Flanders", "BE.WAL": "Wallonia",
    "BY.01": "Brest Region", "BY.02": "Gomel Region", "BY.03": "Grodno Region", "BY.04": "Minsk",
    "BY.05": "Minsk Region", "BY.06": "Mogilev Region", "BY.07": "Vitebsk Region",
    "CN.13": "Xinjiang", "CN.14": "Tibet", "CN.16": "Guangxi", "CN.20": "Inner Mongolia",
    "CN.21": "Ningxia", "CZ.52": "Prague", "CZ.80": "Vysočina Region",
    "CZ.81": "Karlovy Vary Region", "CZ.90": "Zlín Region", "DE.02": "Bavaria", "DE.05": "Hesse",
    "DE.06": "Lower Saxony", "DE.07": "North Rhine-Westphalia", "DE.08": "Rhineland-Palatinate",
    "DE.12": "Mecklenburg-Western Pomerania", "DE.13": "Saxony", "DE.14": "Saxony-Anhalt",
    "DE.15": "Thuringia", "ES.07": "Balearic Islands", "ES.29": "Community of Madrid",
    "ES.31": "Region of Murcia", "ES.32": "Navarre", "ES.34": "Asturias", "ES.51": "Andalusia",
    "ES.53": "Canary Islands", "ES.55": "Castile and León", "ES.56": "Catalonia",
    "ES.59": "Basque Country", "ES.60": "Valencian Community", "FR.53": "Brittany",
    "FR.94": "Corsica", "FR.28": "Normandy", "GR.736572": "Mount Athos",
    "GR.ESYE11": "East Macedonia and Thrace", "GR.ESYE12": "Central Macedonia",
    "GR.ESYE13": "West Macedonia", "GR.ESYE14": "Thessaly", "GR.ESYE21": "Epirus",
    "GR.ESYE22": "Ionian Islands", "GR.ESYE23": "West Greece", "GR.ESYE24": "Central Greece",
    "GR.ESYE25": "Peloponnese", "GR.ESYE31": "Attica", "GR.ESYE41": "North Aegean",
    "GR.ESYE42": "South Aegean", "GR.ESYE43": "Crete", "IT.09": "Lombardy", "IT.12": "Piedmont",
    "IT.13": "Apulia", "IT.14": "Sardinia", "IT.15": "Sicily", "IT.16": "Tuscany",
    "IT.19": "Aosta Valley", "KP.01": "Chagang", "KP.03": "South Hamgyong",
    "KP.06": "South Hwanghae", "KP.07": "North Hwanghae", "KP.09": "Kangwon",
    "KP.11": "North Pyongan", "KP.12": "Pyongyang", "KP.13": "Ryanggang",
    "KP.15": "South Pyongan", "KP.17": "North Hamgyong", "KP.18": "Rason", "RU.04": "Altai Krai",
    "RU.05": "Amur Oblast", "RU.09": "Belgorod Oblast", "RU.21": "Ivanovo Oblast",
    "RU.23": "Kaliningrad Oblast", "RU.25": "Kaluga Oblast", "RU.37": "Kostroma Oblast",
    "RU.38": "Krasnodar Krai", "RU.41": "Kursk Oblast", "RU.42": "Leningrad Oblast",
    "RU.44": "Magadan Oblast", "RU.48": "Moscow", "RU.49": "Murmansk Oblast",
    "RU.52": "Novgorod Oblast", "RU.55": "Orenburg Oblast", "RU.57": "Penza Oblast",
    "RU.59": "Primorsky Krai", "RU.60": "Pskov Oblast", "RU.61": "Rostov Oblast",
    "RU.63": "Sakha", "RU.66": "Saint Petersburg", "RU.69": "Smolensk Oblast",
    "RU.70": "Stavropol Krai", "RU.72": "Tambov Oblast", "RU.76": "Tula Oblast",
    "RU.77": "Tver Oblast", "RU.78": "Tyumen Oblast", "RU.83": "Vladimir Oblast",
    "RU.84": "Volgograd Oblast", "RU.85": "Vologda Oblast", "RU.93": "Zabaykalsky Krai",
    "UA.11": "Crimea",
}  # fmt: skip
"""By the code of GeoNames, where the rules below do not lead to the English name."""

OWN_MACRONS = ("LV", "LT", "NZ", "WS", "TO", "US")
"""Countries that write with macrons themselves; elsewhere they are marks of a transcription."""

EAST_ASIAN_KINDS = {
    "KR": "-(si|gun|eup|myeon)$",
    "JP": " (Shi|Gun|Ku|Machi)$",
    "CN": " (Shi|Qu|Xian)$",
}

ARABIC = codes("AE BH DZ EG IQ JO KW LB LY MA MR OM PS QA SA SD SY TN YE")
"""Countries whose names are transcribed from Arabic."""

KINDS = {
    "CZ": "Region",
    "PL": "Voivodeship",
    "RU": "Oblast|oblast|Krai|Kray|Republic|Autonomous Okrug|Autonomous Oblast",
    "UA": "Oblast",
}
"""What English names of regions end with in countries where an alias is the better name."""


def region_name(name: str, code: str, aliases: Sequence[str]) -> str:
    """The name of a region as one reads it in English.

    Args:
        name: as in ISO 3166-2.
        code: of GeoNames; begins with that of the country.
        aliases: other names.
    """
    if code in ENGLISH:
        return ENGLISH[code]
    country = code.split(".")[0]
    if country in KINDS:
        kind = re.compile(rf"[A-Z](?!.*(skaya|s’ka|skiy))[\w’' –-]+ ({KINDS[country]})")
        english = [alias for alias in aliases if kind.fullmatch(alias)]
        if english:
            return english[0].replace("’", "").replace("oblast", "Oblast")
    if country == "CN":
        name = re.sub(r" (Sheng|Shi)$", "", name)
    if ", " in name:
        first, _, rest = name.partition(", ")
        name = f"{rest} {first}"
        name = name[0].upper() + name[1:]
    return romanized(name, country)


def romanized(name: str, country: str) -> str:
    """`name` without marks of a scholarly transcription, or kinds of place of East Asia."""
    if country in EAST_ASIAN_KINDS:
        name = re.sub(EAST_ASIAN_KINDS[country], "", name)
    name = re.sub("[‘’]", "'", name).strip("'")
    marks = "[āīūōēĀĪŪŌĒḩḨḑḐẕẔ]|z̧|Z̧"
    if country in ARABIC:
        marks += "|[şŞţŢ]"
    if country not in OWN_MACRONS and re.search(marks, name):
        return plain(name)
    return name
