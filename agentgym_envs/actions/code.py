r"""The format `code`: one Python call, ``go_to(target="red ball 1")``, parsed and never executed.

`ast` reads it, and is guarded: Python's parser may run out of stack on deep nesting and warns of
odd escapes and numbers, and both would reach whoever runs the environment. So what is outside of
strings is limited to names, whole numbers and the signs that a call needs, and to few of them.

Left out: prefixes of strings, and escapes other than those of JSON, ``\'``, ``\x`` and ``\U``.
A model that writes another one in a call means a backslash.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from typing import Any

from agentgym_envs.actions.base import Answer
from agentgym_envs.actions.calls import Call, command_of_call, describe_functions
from agentgym_envs.actions.fences import fenced_blocks
from agentgym_envs.actions.grammar import Grammar, shorten
from agentgym_envs.actions.verbs import Command
from agentgym_envs.errors import FormatError

MAX_SOURCE = 50_000
"""Longest call, in characters: the longest command with every character escaped, and then some."""
MAX_TOKENS = 200
"""Most names, numbers, signs and strings in a call."""

# Possessive, so that a string without end is read once and not once for each of its quotes.
_TOKEN = re.compile(
    r"""
    (?P<string>
        \"{3}(?:[^"\\]|\\.|"(?!""))*+(?:\"{3})?
      | '{3}(?:[^'\\]|\\.|'(?!''))*+(?:'{3})?
      | "(?:[^"\\\n]|\\.)*+"?
      | '(?:[^'\\\n]|\\.)*+'?
    )
    | (?P<comment>\#[^\n]*)
    | (?P<prefixed>\w++["'])
    | (?P<code>[^\W\d]\w*|[0-9]++(?!\w)|[(),=+-])
    | (?P<other>\S)
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:[\\\"'bfnrt\n]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|(?P<odd>.?))", re.DOTALL
)
_EXPECTED = 'Reply with one call such as name(text="red ball 1", number=3).'


class CodeFormat:
    """One call of a function with texts and whole numbers, by position or by name."""

    name = "code"

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        source = reply if strict else _source(reply)
        _check(source, strict=strict)
        return command_of_call(_read_call(source), grammar, strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        arguments = (
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in command.arguments.items()
        )
        return f"{command.verb.name}({', '.join(arguments)})"

    def describe(self, grammar: Grammar) -> str:
        return (
            f"{describe_functions(grammar, self.render)}\n\n"
            "Reply with exactly one function call in Python and nothing else, for example:\n"
            f"{self.render(grammar.parse(grammar.examples[0]))}"
        )

    def answer_to(self, reply: str) -> Answer:
        return Answer()


def _source(reply: str) -> str:
    """The one fenced block of a reply, or all of it if there is none."""
    blocks = fenced_blocks(reply)
    if len(blocks) > 1:
        raise FormatError(f"Expected one block of code, got {len(blocks)}. {_EXPECTED}")
    return (blocks[0] if blocks else reply).replace("\r", "\n").strip()


def _check(source: str, *, strict: bool) -> None:
    """Refuse what Python's parser should not see.

    Raises:
        FormatError: it can be no call of the allowed kind.
    """
    if not source.strip():
        raise FormatError(f"There is no code in the reply. {_EXPECTED}")
    if len(source) > MAX_SOURCE:
        raise FormatError(f"The code is longer than {MAX_SOURCE} characters. {_EXPECTED}")
    if strict and (source != source.strip() or "\r" in source):
        raise FormatError(f"Expected a call without blanks around it. {_EXPECTED}")
    calls = 0
    for number, token in enumerate(_TOKEN.finditer(source)):
        calls += token[0] == "("
        if number >= MAX_TOKENS or calls > 1:
            raise FormatError(f'Expected exactly one call, got "{shorten(source)}". {_EXPECTED}')
        if _is_foreign(token, strict=strict):
            raise FormatError(f'"{shorten(token[0])}" cannot stand in a call. {_EXPECTED}')
        if token.lastgroup == "string":
            _check_escapes(token[0])


def _is_foreign(token: re.Match[str], *, strict: bool) -> bool:
    if token.lastgroup == "code":  # Python would read another name, made of compatible letters
        return not unicodedata.is_normalized("NFKC", token[0])
    return token.lastgroup in ("other", "prefixed") or (strict and token.lastgroup == "comment")


def _check_escapes(string: str) -> None:
    for escape in _ESCAPE.finditer(string):
        if escape["odd"] is not None:
            raise FormatError(
                f'There is no escape "{shorten(escape[0])}" in texts here; '
                "for a backslash write two of them."
            )


def _read_call(source: str) -> Call:
    try:
        node = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        node = None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise FormatError(f'"{shorten(source)}" is not one Python call. {_EXPECTED}')
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in keywords:
            raise FormatError(f"The argument {keyword.arg} stands more than once in the call.")
        keywords[keyword.arg] = _literal(keyword.value)
    return Call(node.func.id, keywords, tuple(_literal(value) for value in node.args))


def _literal(node: ast.expr) -> Any:
    """The text or whole number that `node` is."""
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, (ast.USub, ast.UAdd))
        and isinstance(node.operand, ast.Constant)
        and type(node.operand.value) is int
    ):
        return -node.operand.value if isinstance(node.op, ast.USub) else node.operand.value
    source = shorten(ast.unparse(node))
    raise FormatError(f'Arguments are texts in quotes and whole numbers, got "{source}".')
