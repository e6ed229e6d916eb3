"""Replies meant to do harm, made from a seed; `hostile.py` sends them."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import Unsupported
from agentgym_envs.testing import HOSTILE_TEXTS

_SHORT = [text for text in HOSTILE_TEXTS if len(text) <= 2_000]
_LONG = [text for text in HOSTILE_TEXTS if len(text) > 2_000]
_NUMBERS = ("0", "-1", "007", "1e9", "99999999999", "9" * 400, "0x10", "NaN", "1.5", "²", "٣", "½")
_GLUE = (" ", "\n", "\t", ", ", ": ", "", "\u00a0", "\u2028", " and ", "```", "\\n", '"', "'", "()")
_VALUES = (
    "",
    None,
    True,
    float("nan"),
    float("inf"),
    -0.0,
    10**400,
    [],
    {},
    [[]],
    "\ud800",
    "a\nb",
)
_FRAMES = (
    "```json\n{}\n```",
    "```python\n{}\n```",
    "Action: {}",
    "Action:\n{}",
    "Thought: {}",
    "<tool_call>{}</tool_call>",
    '"{}"',
    "{}.",
    "[{}]",
    "// {}",
)
_CODE = (
    "{name}(*{value})",
    "{name}(**{value})",
    "{name}({name}({value}))",
    "{name}(lambda: {value})",
    "{name}(f'{{{value}}}')",
    "{name}(x := {value})",
    "{name}({value}) or {name}()",
    "{name}.__class__({value})",
    "{name}({value}",
    "{name}({value}); {name}({value})",
    "print({name}, {value})",
    "'\\d' if {value} else {name}",
    "{name}({value} is 1)",
    "import os; os.abort()",
)


class Attacker:
    """Makes replies to one environment.

    Args:
        env: where they go; its grammar is what they are made from.
        rng: the only source of chance.
    """

    def __init__(self, env: TextEnv, rng: random.Random) -> None:
        self._env = env
        self._rng = rng
        self._examples = env.grammar.examples
        self._names = [entry.name for entry in env.grammar.verbs]
        self._words = re.findall(r"\w+|[{}<>]", " ".join(self._examples)) + self._names
        self._origins: Sequence[Callable[[], str]] = (
            self._valid,
            self._valid,
            self._example,
            self._pieces,
            self._json,
            self._code,
            self._unicode,
            lambda: rng.choice(_SHORT),
        )
        self._changes: Sequence[Callable[[str], str]] = (
            self._cut,
            self._repeat,
            self._insert,
            self._renumber,
            self._wrap,
            lambda text: text + rng.choice(_GLUE) + self._origin(),
            lambda text: text.swapcase()[::-1],
            lambda text: text.replace('"', rng.choice(("'", "\\", "“", ""))),
        )

    def reply(self) -> str:
        """The next reply."""
        if self._rng.random() < 0.003:
            return self._rng.choice(_LONG)
        text = self._origin()
        for _ in range(self._rng.choice((0, 0, 1, 1, 2, 5))):
            text = self._rng.choice(self._changes)(text)
        return text

    def _origin(self) -> str:
        return self._rng.choice(self._origins)()

    def _valid(self) -> str:
        with contextlib.suppress(Unsupported):
            if commands := self._env.admissible():
                return self._env.render_command(self._rng.choice(commands))
        return self._example()

    def _example(self) -> str:
        return self._env.render_command(self._rng.choice(self._examples), "so\nbe it")

    def _pieces(self) -> str:
        pieces = [self._rng.choice(self._words) for _ in range(self._rng.randrange(12))]
        return self._rng.choice(_GLUE).join(pieces)

    def _json(self) -> str:
        value: Any = self._rng.choice(_VALUES)
        for _ in range(self._rng.choice((0, 1, 3, 60))):
            value = [value] if self._rng.random() < 0.5 else {self._rng.choice(self._words): value}
        name = self._rng.choice((*self._names, None, "", value))
        shapes: tuple[Any, ...] = (
            {"name": name, "arguments": value},
            {"name": name, "arguments": json.dumps(value)},
            {"tool_calls": [{"function": {"name": name, "arguments": json.dumps(value)}}] * 2},
            {"role": "assistant", "content": value, "tool_calls": value},
            value,
        )
        return json.dumps(self._rng.choice(shapes), ensure_ascii=self._rng.random() < 0.5)

    def _code(self) -> str:
        value = repr(self._rng.choice((*_VALUES[:6], *_SHORT[:4], self._rng.choice(self._words))))
        return self._rng.choice(_CODE).format(name=self._rng.choice(self._names), value=value)

    def _unicode(self) -> str:
        top = self._rng.choice((0x7F, 0x2FF, 0xFFFF, 0x10FFFF))
        return "".join(chr(self._rng.randint(0, top)) for _ in range(self._rng.randrange(80)))

    def _span(self, text: str) -> tuple[int, int]:
        start = self._rng.randint(0, len(text))
        return start, min(len(text), start + self._rng.choice((1, 2, 9, 200)))

    def _cut(self, text: str) -> str:
        start, end = self._span(text)
        return text[:start] + text[end:]

    def _repeat(self, text: str) -> str:
        start, end = self._span(text)
        return text[:end] + text[start:end] * self._rng.choice((1, 2, 30)) + text[end:]

    def _insert(self, text: str) -> str:
        start, _ = self._span(text)
        return text[:start] + self._rng.choice((*_GLUE, *_NUMBERS, *_SHORT)) + text[start:]

    def _renumber(self, text: str) -> str:
        return re.sub(r"\d+", lambda _: self._rng.choice(_NUMBERS), text[:2_000])

    def _wrap(self, text: str) -> str:
        return self._rng.choice(_FRAMES).replace("{}", text)
