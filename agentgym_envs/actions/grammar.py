"""The grammar of a world: it finds the verb in a line of text, and checks arguments.

It matches whole lines only: nothing is found inside other text.

Arguments are the same whichever format carried them: a text is one line with single blanks and
without control characters, whatever else of Unicode it holds.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

from agentgym_envs.actions.verbs import FIELD, Command, Parameter, Verb
from agentgym_envs.errors import CommandError

MAX_ECHO = 80
"""How many characters of a refused command are repeated in the answer."""

MAX_COMMAND = 2_000
"""Longest command, in characters, in its canonical form: bounds the work on hostile text."""

MAX_DIGITS = 18
"""Most digits of a whole number."""

_PATTERNS = {"str": r"\S(?:.*\S)?", "int": rf"[+-]?[0-9]{{1,{MAX_DIGITS}}}"}
_VALUES = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}
_NOUNS = {"str": "a text", "int": "a whole number"}
_WANTED = {
    "str": f"{_NOUNS['str']} without control characters",
    "int": f"{_NOUNS['int']} of up to {MAX_DIGITS} digits",
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Grammar:
    """All verbs of a world, and how to read and describe them.

    Args:
        verbs: in the order in which the prompt lists them. Where two forms match the same line,
            the form with more literal characters wins, then the earlier verb.

    Raises:
        TypeError: two verbs have the same name.
    """

    def __init__(self, verbs: Iterable[Verb]) -> None:
        self.verbs = tuple(verbs)
        self._verb_by_name = {entry.name: entry for entry in self.verbs}
        if len(self._verb_by_name) < len(self.verbs):
            raise TypeError(f"verb names must differ: {[entry.name for entry in self.verbs]}")
        forms = [(form, entry) for entry in self.verbs for form in entry.forms]
        forms.sort(key=lambda item: -len(FIELD.sub("", item[0])))
        self._patterns = [(_pattern(form, entry), entry) for form, entry in forms]

    def parse(self, text: str, *, strict: bool = False) -> Command:
        """The command that the whole of `text` is.

        Lenient parsing ignores case, runs of blanks, and quotes, backticks or a full stop around
        the line. Strict parsing takes a form as it is written, with single blanks.

        Raises:
            CommandError: no form matches; the text lists the forms. Or it is too long.
        """
        line = text if strict else _unwrapped(text)
        _check_length(line)
        if not _CONTROL.search(line) and line == " ".join(line.split()):
            for pattern, entry in self._patterns:
                match = pattern.fullmatch(line)
                if match and (not strict or _same_case(pattern, line)):
                    return self.command(entry.name, **match.groupdict())
        raise CommandError(f'"{shorten(text)}" is not a command. Commands are: {self.forms()}.')

    def verb(self, name: str) -> Verb:
        """The verb called `name`.

        Raises:
            CommandError: there is none; the text lists the names.
        """
        if name not in self._verb_by_name:
            known = ", ".join(self._verb_by_name)
            raise CommandError(f'"{shorten(name)}" is not a command. Commands are: {known}.')
        return self._verb_by_name[name]

    def command(self, name: str, /, **arguments: Any) -> Command:
        """The command of verb `name` with `arguments`, checked and converted to their kinds.

        Parameters with a default may be left out. Where no form of the verb names just the
        arguments given, the defaults of all others are filled in, so that it can be written.

        Args:
            name: of the verb.
            **arguments: texts or whole numbers, either may stand for the other; None stands for
                what is not given.

        Raises:
            CommandError: no such verb, or other arguments than it takes.
        """
        entry = self.verb(name)
        values: dict[str, Any] = {}
        for parameter in entry.parameters:
            given = arguments.pop(parameter.name, None)
            if given is not None or parameter.required:
                values[parameter.name] = _value(name, parameter, given)
        if arguments:
            unknown = ", ".join(map(shorten, itertools.islice(arguments, 5)))
            takes = ", ".join(it.name for it in entry.parameters) or "no arguments"
            raise CommandError(f"{name} does not take {unknown}; it takes {takes}.")
        if entry.form_of(values) is None:
            values = {it.name: values.get(it.name, it.default) for it in entry.parameters}
        command = Command(entry, values)
        _check_length(command.text)
        return command

    def forms(self) -> str:
        """The canonical forms, with arguments in angle brackets, separated by commas."""
        return ", ".join(_readable(entry.forms[0]) for entry in self.verbs)

    def describe(self) -> str:
        """One line a verb, form and description, as the formats of bare commands list them."""
        return "\n".join(
            f"- {_readable(entry.forms[0])}: {entry.description} Example: {entry.examples[0]}"
            for entry in self.verbs
        )

    @property
    def examples(self) -> tuple[str, ...]:
        """All examples of all verbs."""
        return tuple(example for entry in self.verbs for example in entry.examples)


def shorten(text: str) -> str:
    """`text` on one line, cut to `MAX_ECHO` characters, control characters blanked."""
    head = text[: MAX_ECHO + 1]
    line = "".join(char if char.isprintable() else " " for char in head)
    return line[:MAX_ECHO] + "…" if len(text) > MAX_ECHO else line


def _check_length(text: str) -> None:
    if len(text) > MAX_COMMAND:
        raise CommandError(
            f"The command is {len(text)} characters long; {MAX_COMMAND} are allowed."
        )


def _value(verb_name: str, parameter: Parameter, given: Any) -> str | int:
    """`given` as a value of the parameter's kind."""
    text = _as_text(given)
    if not _VALUES[parameter.kind].fullmatch(text) or _CONTROL.search(text):
        wanted = _WANTED[parameter.kind] if given is not None else _NOUNS[parameter.kind]
        raise CommandError(f"{verb_name} needs {parameter.name}, {wanted}; got {_shown(given)}.")
    return int(text) if parameter.kind == "int" else text


def _shown(given: Any) -> str:
    if isinstance(given, str):
        return f'"{shorten(given)}"'
    return "nothing" if given is None else f"a value of type {type(given).__name__}"


def _as_text(given: Any) -> str:
    """A text with single blanks, or a number that is small enough to be written, as text."""
    if isinstance(given, str):
        return " ".join(given.split())
    is_number = isinstance(given, int) and not isinstance(given, bool)
    return str(given) if is_number and abs(given) < 10**MAX_DIGITS else ""


def _unwrapped(text: str) -> str:
    """`text` with single blanks, without a full stop at the end or quotes around all of it."""
    line = " ".join(text.split())
    if len(line) > MAX_COMMAND:
        return line
    while True:
        line = line.strip(" ").rstrip(".! ")
        if len(line) < 2 or line[0] != line[-1] or line[0] not in "`'\"*":
            return line
        line = line[1:-1]


def _readable(form: str) -> str:
    return FIELD.sub(r"<\1>", form)


def _pattern(form: str, entry: Verb) -> re.Pattern[str]:
    kinds = {parameter.name: _PATTERNS[parameter.kind] for parameter in entry.parameters}
    parts = FIELD.split(form)
    text = "".join(
        f"(?P<{part}>{kinds[part]})" if index % 2 else re.escape(part)
        for index, part in enumerate(parts)
    )
    return re.compile(text, re.IGNORECASE)


def _same_case(pattern: re.Pattern[str], line: str) -> bool:
    return re.fullmatch(pattern.pattern, line) is not None
