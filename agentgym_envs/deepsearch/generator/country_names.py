"""Names of countries and currencies in English, and what about countries is not sure.

They are ours: the sources spell differently, or leave open what one would say in a sentence.
"""

from __future__ import annotations


def codes(text: str) -> frozenset[str]:
    """The words of a text, as codes of countries."""
    return frozenset(text.split())


NAMES = {
    "BN": "Brunei", "CI": "Ivory Coast", "CV": "Cape Verde", "CZ": "Czechia", "FM": "Micronesia",
    "MM": "Myanmar", "NL": "Netherlands", "PS": "Palestine", "ST": "São Tomé and Príncipe",
    "SZ": "Eswatini", "TL": "East Timor", "VA": "Vatican City", "BQ": "Caribbean Netherlands",
    "CC": "Cocos (Keeling) Islands", "AX": "Åland", "CW": "Curaçao", "RE": "Réunion",
    "BL": "Saint Barthélemy", "PN": "Pitcairn Islands", "MO": "Macau",
}  # fmt: skip
"""Names other than those of GeoNames."""

ALIASES = {
    "AE": ["UAE"], "BA": ["Bosnia"], "CD": ["DR Congo", "DRC", "Congo-Kinshasa"],
    "CG": ["Congo-Brazzaville"], "CI": ["Côte d'Ivoire"], "CV": ["Cabo Verde"],
    "CZ": ["Czech Republic"], "FM": ["Federated States of Micronesia"], "GB": ["UK", "Britain"],
    "KP": ["DPRK"], "KR": ["Republic of Korea", "Korea"], "MK": ["Macedonia"], "MM": ["Burma"],
    "NL": ["Holland"], "RU": ["Russian Federation"], "SZ": ["Swaziland"], "TL": ["Timor-Leste"],
    "TR": ["Türkiye"], "US": ["USA", "United States of America", "America", "U.S."],
    "VA": ["Holy See", "Vatican"], "CN": ["People's Republic of China"], "BS": ["The Bahamas"],
    "GM": ["The Gambia"], "SA": ["KSA"]
}  # fmt: skip

WITH_ARTICLE = codes(
    "AE BS CD CF CG DO GB GM KM MH MV NL PH SB SC US BQ CC CK FK FO IM IO KY MP PN TC TF UM VG VI"
)
"""Countries and territories that take "the" in a sentence."""

TERRITORIES = codes(
    "AI AQ AS AW AX BL BM BQ BV CC CK CW CX EH FK FO GF GG GI GL GP GS GU HK HM IM IO JE KY MF MO "
    "MP MQ MS NC NF NU PF PM PN PR PS RE SH SJ SX TC TF TK TW UM VG VI WF XK YT"
)
"""Codes of which no question is asked: dependent, contested, or without people."""

GONE = {"AN", "CS"}
"""Codes of GeoNames for what is no more."""

UNSURE_CAPITALS = codes("BO CI BJ LK ZA GQ ID NR SZ IL PW BI KZ TZ MY")
"""Countries with several capitals, or a capital that is contested or moving."""

UNSURE_CURRENCIES = codes("PA SV BT LS NA CU ZW VE HT TL KP SS")
"""Countries that use several currencies, or have changed theirs often."""

CAPITALS = {"KZ": "Astana", "MM": "Naypyidaw", "CO": "Bogotá", "BR": "Brasília", "PY": "Asunción",
            "CM": "Yaoundé", "TG": "Lomé", "MV": "Malé", "US": "Washington, D.C.", "MD": "Chișinău",
            "IS": "Reykjavík", "CR": "San José", "ST": "São Tomé", "TO": "Nukuʻalofa",
            "AG": "Saint John's", "GD": "Saint George's", "NC": "Nouméa"}  # fmt: skip
"""Capitals in a better spelling than that of GeoNames' list of countries."""

CAPITAL_ALIASES = {"UA": ["Kiev"], "US": ["Washington", "Washington DC"], "VN": ["Ha Noi"],
                   "MM": ["Nay Pyi Taw", "Naypyitaw"], "KZ": ["Nur-Sultan"], "MN": ["Ulan Bator"],
                   "CH": ["Berne"], "IN": ["Delhi"], "YE": ["Sana'a"]}  # fmt: skip

CURRENCY_NAMES = {
    "EUR": "euro", "USD": "United States dollar", "XOF": "West African CFA franc",
    "XAF": "Central African CFA franc", "XCD": "East Caribbean dollar", "GBP": "pound sterling",
    "CNY": "Chinese yuan (renminbi)", "AED": "UAE dirham", "BRL": "Brazilian real",
    "ALL": "Albanian lek", "AOA": "Angolan kwanza", "BAM": "convertible mark",
    "BDT": "Bangladeshi taka", "BIF": "Burundian franc", "BOB": "boliviano", "BWP": "Botswana pula",
    "CDF": "Congolese franc", "CRC": "Costa Rican colón", "CZK": "Czech koruna",
    "DJF": "Djiboutian franc", "ETB": "Ethiopian birr", "GEL": "Georgian lari",
    "GHS": "Ghanaian cedi", "GMD": "Gambian dalasi", "GNF": "Guinean franc",
    "GTQ": "Guatemalan quetzal", "HNL": "Honduran lempira", "HTG": "Haitian gourde",
    "HUF": "Hungarian forint", "IDR": "Indonesian rupiah", "ILS": "Israeli new shekel",
    "ISK": "Icelandic króna", "JPY": "Japanese yen", "KGS": "Kyrgyzstani som",
    "KHR": "Cambodian riel", "KMF": "Comorian franc", "KRW": "South Korean won",
    "KZT": "Kazakhstani tenge", "LAK": "Lao kip", "MGA": "Malagasy ariary",
    "MKD": "Macedonian denar", "MMK": "Myanmar kyat", "MNT": "Mongolian tögrög",
    "MRU": "Mauritanian ouguiya", "MUR": "Mauritian rupee", "MVR": "Maldivian rufiyaa",
    "MWK": "Malawian kwacha", "MYR": "Malaysian ringgit", "MZN": "Mozambican metical",
    "NGN": "Nigerian naira", "NIO": "Nicaraguan córdoba", "PEN": "Peruvian sol",
    "PGK": "Papua New Guinean kina", "PKR": "Pakistani rupee", "PLN": "Polish złoty",
    "PYG": "Paraguayan guaraní", "QAR": "Qatari riyal", "RON": "Romanian leu",
    "RWF": "Rwandan franc", "SAR": "Saudi riyal", "SEK": "Swedish krona",
    "SLE": "Sierra Leonean leone",
    "STN": "São Tomé and Príncipe dobra", "THB": "Thai baht", "TJS": "Tajikistani somoni",
    "TMT": "Turkmenistan manat", "TOP": "Tongan paʻanga", "TRY": "Turkish lira",
    "UAH": "Ukrainian hryvnia", "UYU": "Uruguayan peso", "UZS": "Uzbekistani sum",
    "VND": "Vietnamese đồng", "VUV": "Vanuatu vatu", "WST": "Samoan tala", "YER": "Yemeni rial",
    "ZAR": "South African rand", "ZMW": "Zambian kwacha", "AFN": "Afghan afghani",
    "AMD": "Armenian dram", "AZN": "Azerbaijani manat", "ERN": "Eritrean nakfa",
    "ARS": "Argentine peso", "CHF": "Swiss franc", "COP": "Colombian peso", "CLP": "Chilean peso",
    "DKK": "Danish krone", "NOK": "Norwegian krone", "IQD": "Iraqi dinar", "IRR": "Iranian rial",
    "LKR": "Sri Lankan rupee", "MDL": "Moldovan leu", "OMR": "Omani rial", "PHP": "Philippine peso",
    "SZL": "Swazi lilangeni", "SBD": "Solomon Islands dollar", "NPR": "Nepalese rupee",
    "SCR": "Seychellois rupee", "TTD": "Trinidad and Tobago dollar", "TZS": "Tanzanian shilling",
    "UGX": "Ugandan shilling", "CVE": "Cape Verdean escudo", "BYN": "Belarusian ruble",
    "RSD": "Serbian dinar", "MAD": "Moroccan dirham", "DOP": "Dominican peso",
    "BSD": "Bahamian dollar", "RUB": "Russian ruble", "NZD": "New Zealand dollar",
    "XPF": "CFP franc", "VES": "Venezuelan bolívar", "XCG": "Caribbean guilder",
}  # fmt: skip
"""Currencies by code where the table of ISO 4217 has no name that one would use in a sentence."""

ADOPTED = {"BG": "EUR"}
"""Currencies that are newer than GeoNames' list of countries in this edition."""

OTHER_NAMES = {
    "Burma": "MM", "Cote d'Ivoire": "CI", "Côte d'Ivoire": "CI", "Czech Republic": "CZ",
    "Democratic Republic of the Congo": "CD", "Republic of the Congo": "CG", "UK": "GB", "US": "US",
    "Holy See": "VA", "Holy See (Vatican City)": "VA", "Timor-Leste": "TL", "UAE": "AE",
    "The Gambia": "GM", "Cabo Verde": "CV", "Turkey (Turkiye)": "TR", "DRC": "CD",
    "Congo (Brazzaville)": "CG", "Congo (Kinshasa)": "CD", "Swaziland": "SZ", "Macedonia": "MK",
    "Vatican City": "VA", "Bosnia": "BA", "Hong Kong": "HK", "Macau": "MO", "Turkiye": "TR",
}  # fmt: skip
"""Names that the Factbook uses for neighbors."""
