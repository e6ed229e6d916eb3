"""The words of a query that are searched for.

A query is a model's text, never a query language: it is taken apart into runs of letters and
digits, and everything else in it is a gap. Words that stand in nearly every passage are dropped,
unless there are no others. What is longer than a question could be is cut, so that no query takes
longer than others do.
"""

from __future__ import annotations

import re

MAX_CHARACTERS = 2_000
MAX_TERMS = 64

_STOP_WORDS = """
a about after all also an and any are as at be been before being both but by can could did do
does doing during each for from had has have having he her here hers him his how i if in into
is it its itself just like many me more most much my no nor not of on one only or other our out
over same she should so some such than that the their them then there these they this those
through to too under up very was we were what when where which while who whom whose why will
with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_WORD = re.compile(r"[^\W_]+")


def terms_of(query: str) -> list[str]:
    """The different words to search for, in lower case and in order; none if there is no word.

    >>> terms_of('Who was the author of "Middlemarch"?')
    ['author', 'middlemarch']
    >>> terms_of("the who")
    ['the', 'who']
    """
    words = list(dict.fromkeys(_WORD.findall(query[:MAX_CHARACTERS].lower())))
    return ([word for word in words if word not in STOP_WORDS] or words)[:MAX_TERMS]
