"""When an answer is right: exact match, token F1 and containment, under two rules of what is equal.

``"search_r1"`` is the rule that Search-R1 and AgentGym publish figures with: lower case, ASCII
punctuation dropped, articles dropped, blanks squeezed. It is kept with its edges: accents, dashes
and curly quotes tell answers apart, "3.5" is "35", and a gold answer that is nothing but articles
is contained in anything.

``"clean"`` compares words and numbers. Case, accents and width of letters do not count, nor do
punctuation and articles; "10,381,222" is "10381222", "7.50" is "7.5", "three" is "3", "&" is "and",
"St." is "Saint"; "3.5" is not "35", and an answer without words or numbers must be the same text.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agentgym_envs.arguments import one_of

_ARTICLES = frozenset({"a", "an", "the"})
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)

_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
    | {"&": " and ", "%": " percent ", "\u2212": "-", "\u2019": "'", "\u02bc": "'", "`": "'"}
)
_IN_WORD = re.compile(r"(?<=[^\W\d_])[.'](?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TOKEN = re.compile(r"(?<!\w)-\d+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+")
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_SAME: Mapping[str, str] = {
    "st": "saint",
    "mt": "mount",
    **{word: str(number) for number, word in enumerate(_NUMBER_WORDS.split())},
}
_CLOSED = frozenset({"yes", "no", "noanswer"})


class Grades(NamedTuple):
    """How good an answer is by each measure, 0..1."""

    em: float = 0.0
    f1: float = 0.0
    sub_em: float = 0.0


def grade(prediction: str, answers: Sequence[str], *, match: str = "clean") -> Grades:
    """An answer by all measures; arguments as for `exact_match`."""
    return Grades(
        float(exact_match(prediction, answers, match=match)),
        f1(prediction, answers, match=match),
        float(sub_em(prediction, answers, match=match)),
    )


def normalize(text: str, *, match: str = "clean") -> str:
    """`text` in the form in which it is compared.

    Raises:
        UnknownName: there is no such rule.
    """
    return _RULES[one_of("matching rule", match, _RULES)](text)


def exact_match(prediction: str, answers: Sequence[str], *, match: str = "clean") -> bool:
    """Whether `prediction` is one of the `answers`.

    Args:
        prediction: what was answered.
        answers: the gold answer and its aliases.
        match: name of the rule.
    """
    said = normalize(prediction, match=match)
    return any(said == normalize(answer, match=match) for answer in answers)


def f1(prediction: str, answers: Sequence[str], *, match: str = "clean") -> float:
    """Token F1 against the nearest of the `answers`, 0..1; yes and no share nothing.

    The measure of SQuAD (arXiv 1606.05250), with HotpotQA's rule on closed answers.
    """
    said = normalize(prediction, match=match)
    return max((_f1(said, normalize(answer, match=match)) for answer in answers), default=0.0)


def sub_em(prediction: str, answers: Sequence[str], *, match: str = "clean") -> bool:
    """Whether one of the `answers` is contained in `prediction`; as whole words by ``"clean"``."""
    said = normalize(prediction, match=match)
    golds = [normalize(answer, match=match) for answer in answers]
    if match == "search_r1":
        return any(gold in said for gold in golds)
    return any(f" {gold} " in f" {said} " for gold in golds)


def _search_r1(text: str) -> str:
    bare = text.lower().translate(_ASCII_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def _clean(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(map(_plain_character, plain)).translate(_LETTERS)
    plain = _THOUSANDS.sub("", _IN_WORD.sub("", plain))
    words = [_SAME.get(word, word) for word in map(_plain_number, _TOKEN.findall(plain))]
    telling = [word for word in words if word not in _ARTICLES]
    return " ".join(telling or words) or " ".join(text.casefold().split())


def _plain_character(char: str) -> str:
    """A combining mark as nothing, a dash or a digit of any kind as that of ASCII."""
    if char.isascii():
        return char
    category = unicodedata.category(char)
    if category == "Pd":
        return "-"
    if category == "Nd":
        return str(unicodedata.decimal(char))
    return "" if category == "Mn" else char


def _plain_number(word: str) -> str:
    """A number without the zeros that say nothing; any other word as it is."""
    digits = word.removeprefix("-")
    if not digits[0].isdigit():
        return word
    whole, _, part = digits.partition(".")
    part = part.rstrip("0")
    number = (whole.lstrip("0") or "0") + (f".{part}" if part else "")
    return f"-{number}" if word[0] == "-" and number != "0" else number


def _f1(said: str, gold: str) -> float:
    if said != gold and (said in _CLOSED or gold in _CLOSED):
        return 0.0
    said_words, gold_words = said.split(), gold.split()
    shared = (Counter(said_words) & Counter(gold_words)).total()
    if shared == 0:
        return 0.0
    return 2 * shared / (len(said_words) + len(gold_words))


_RULES: Mapping[str, Callable[[str], str]] = {"clean": _clean, "search_r1": _search_r1}

MATCHES = tuple(_RULES)
"""Names of the matching rules."""
