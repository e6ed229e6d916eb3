"""Reading JSON that a policy wrote: bounded work, one meaning, and a sentence for what is wrong.

Beyond `json.loads`, which it calls: keys may not repeat, NaN and Infinity are no numbers, and
numbers and nesting are limited. Reading takes time linear in the text. JSON itself is never
forgiven: a trailing comma or single quotes are an error that names the place.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from agentgym_envs.actions.grammar import shorten
from agentgym_envs.errors import FormatError

MAX_DEPTH = 16
"""Deepest nesting of objects and lists; a tool call needs five."""
MAX_NUMBER = 40
"""Longest number, in characters."""

# Possessive, so that a text without end is read once and not once for each of its quotes.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


def read_json(text: str) -> Any:
    """The value that `text` is.

    Raises:
        FormatError: it is no JSON, or beyond the limits.
    """
    _extent(text, 0)
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_repeated_keys,
            parse_int=functools.partial(_number, int),
            parse_float=functools.partial(_number, float),
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        what = f"{error.msg} at character {error.pos + 1}"
        raise FormatError(f'"{shorten(text)}" is not JSON: {what}.') from None


def objects_in(text: str) -> Iterator[str]:
    """The outermost ``{...}`` of `text` that are closed, whatever stands around and in them.

    Raises:
        FormatError: a brace is never closed, or nesting is beyond the limit.
    """
    start = text.find("{")
    while start >= 0:
        end = _extent(text, start)
        if end is None:
            raise FormatError(f'The object "{shorten(text[start:])}" has no closing brace.')
        yield text[start:end]
        start = text.find("{", end)


def _extent(text: str, start: int) -> int | None:
    """Where the object or list that opens first from `start` on ends; None if it does not."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        char = token[0][0]
        depth += (char in "[{") - (char in "]}")
        if depth > MAX_DEPTH:
            raise FormatError(f"The JSON is nested more than {MAX_DEPTH} deep.")
        if char in "]}" and depth <= 0:
            return token.end()
    return None


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise FormatError(f'The key "{shorten(key)}" stands more than once in one object.')
        found[key] = value
    return found


def _number(convert: Callable[[str], int | float], text: str) -> int | float:
    if len(text) > MAX_NUMBER:
        raise FormatError(f"A number is written with more than {MAX_NUMBER} characters.")
    return convert(text)


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} is no number in JSON.")
