"""Arguments of an environment with their help, read from signatures and docstrings.

`TextEnv` documents the shared arguments under ``Args:``; a family lists its own under
``## Arguments``, one item each: ``- ``name``: what it means``, or ``- ``name=value``: …`` for what
one value of a shared argument means there.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

_SECTION = re.compile(
    r"^(?:Args:|## Arguments)\n(.*?)(?=^\S+:\n|^## |\Z)", re.DOTALL | re.MULTILINE
)
_ITEM = re.compile(
    r"^(?:    |- ``)(\w+)(?:``)?(=\S+)?: (.*(?:\n(?:        |  )\S.*)*)", re.MULTILINE
)


@dataclasses.dataclass(frozen=True)
class Argument:
    """A keyword argument of an environment; `kind` is its annotation, `help` may be ""."""

    name: str
    kind: str
    default: Any
    help: str


def arguments_of(env_class: type) -> list[Argument]:
    """The keyword arguments of a class and its bases, the most special class first."""
    helps = {name: text for base in reversed(env_class.mro()) for name, text in _helps(base)}
    found: dict[str, Argument] = {}
    for base in env_class.mro():
        own_init = vars(base).get("__init__") if base is not object else None
        parameters = inspect.signature(own_init).parameters.values() if own_init else ()
        for parameter in parameters:
            if parameter.default is inspect.Parameter.empty or parameter.name in found:
                continue
            name, kind = parameter.name, str(parameter.annotation)
            found[name] = Argument(name, kind, parameter.default, helps.get(name, ""))
    return list(found.values())


def summary(documented: Any) -> str:
    """The first paragraph of a docstring, without marks."""
    text = (inspect.getdoc(documented) or "").partition("\n\n")[0]
    return _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def _helps(env_class: type) -> list[tuple[str, str]]:
    text = inspect.cleandoc(vars(env_class).get("__doc__") or "")
    return [
        (match[1], _plain(f"{match[2][1:]} for {match[3]}" if match[2] else match[3]))
        for section in _SECTION.finditer(text)
        for match in _ITEM.finditer(section[1])
    ]
