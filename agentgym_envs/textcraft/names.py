"""Finding the item or kind that a text means.

A name counts as it stands in the book; besides, case, underscores, an article and the ending of
its last word are forgiven, the ending only where one name alone is meant: "sticks" is the stick,
but "nether bricks" and "nether brick" are two items.
"""

from __future__ import annotations

import difflib
import functools
import re

from agentgym_envs.actions.grammar import shorten
from agentgym_envs.errors import CommandError
from agentgym_envs.textcraft.recipes import RecipeBook

_NUM_NEAR = 3
_LONGEST_NAME = 60
"""Longer texts are cut before near names are looked for: the search is quadratic in them."""
_ARTICLE = re.compile(r"(?:a|an|the|some) ")
_ENDINGS = (
    ("ches", "ch"),
    ("shes", "sh"),
    ("ies", "y"),
    ("ves", "f"),
    ("xes", "x"),
    ("ie", "y"),
    ("xe", "x"),
    ("ss", "ss"),
    ("s", ""),
)
"""Endings of a last word and what stands for them when endings are ignored, longest first."""


class Names:
    """The names of a book's items and kinds.

    Args:
        book: whose.
    """

    def __init__(self, book: RecipeBook) -> None:
        self._names = {name.casefold(): name for name in (*book.items, *book.kinds)}
        self._by_stem: dict[str, list[str]] = {}
        for plain, name in self._names.items():
            self._by_stem.setdefault(_stem(plain), []).append(name)

    def find(self, text: str) -> str:
        """The item or kind that `text` means.

        Raises:
            CommandError: none, or more than one; the text suggests near names.
        """
        if text in self._names:
            return self._names[text]
        plain = " ".join(text.casefold().replace("_", " ").split()).removeprefix("minecraft:")
        for wanted in (plain, _ARTICLE.sub("", plain, count=1)):
            if wanted in self._names:
                return self._names[wanted]
            same_stem = self._by_stem.get(_stem(wanted), [])
            if len(same_stem) == 1:
                return same_stem[0]
        near = same_stem or self._near(plain)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise CommandError(f'There is no item called "{shorten(text)}".{hint}')

    def _near(self, plain: str) -> list[str]:
        cut = plain[:_LONGEST_NAME]
        near = difflib.get_close_matches(cut, self._names, n=_NUM_NEAR, cutoff=0.6)
        return [self._names[name] for name in near]


@functools.lru_cache(maxsize=8)
def names_of(book: RecipeBook) -> Names:
    """The names of a book; made once."""
    return Names(book)


def _stem(plain: str) -> str:
    for ending, instead in _ENDINGS:
        if plain.endswith(ending):
            return plain[: -len(ending)] + instead
    return plain
