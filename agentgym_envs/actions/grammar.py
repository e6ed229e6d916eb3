"""Verbs as functions, and the grammar that finds the verb in a line of text.

A verb is a function whose first parameter is the world and whose others are text or whole
numbers. Its decorator lists the forms in which it may be written, its docstring is what the
prompt says about it, and its ``Examples:`` are parsed in a test. The grammar matches whole
lines only: nothing is found inside other text.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentgym_envs.errors import CommandError

MAX_ECHO = 80
"""How many characters of a refused command are repeated in the answer."""

MAX_COMMAND = 2_000
"""Longest line, in characters, that is matched at all: bounds the work on hostile text."""

_KINDS = {"str": r"\S(?:.*\S)?", "int": r"[0-9]{1,9}"}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An argument of a verb: its name, and ``"str"`` or ``"int"``."""

    name: str
    kind: str


@dataclasses.dataclass(frozen=True)
class Verb:
    """One thing a policy can do.

    Attributes:
        name: identifier of the verb, ``"go_to"``; the function name of call-like formats.
        forms: how it may be written, the first one is canonical: ``("go to {target}",)``.
        parameters: in the order of the function.
        description: what it does, one paragraph.
        examples: commands as they may be written.
        run: the function; called with the world and one keyword argument a parameter.
    """

    name: str
    forms: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    description: str
    examples: tuple[str, ...]
    run: Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Command:
    """A verb with its arguments; `text` is its canonical form."""

    verb: Verb
    arguments: Mapping[str, Any]

    @functools.cached_property
    def text(self) -> str:
        """The command in the verb's canonical form."""
        return self.verb.forms[0].format(**self.arguments)

    def __str__(self) -> str:
        return self.text


def verb(*forms: str) -> Callable[[Callable[..., Any]], Verb]:
    """Make a function into a `Verb`.

    Args:
        forms: how the command may be written, canonical form first; ``{name}`` stands for the
            argument `name`, and every form names every parameter but the world.

    Raises:
        TypeError: a form's fields differ from the parameters, or the docstring has no examples.
    """

    def decorate(function: Callable[..., Any]) -> Verb:
        parameters = tuple(
            Parameter(parameter.name, _kind(parameter.annotation))
            for parameter in list(inspect.signature(function).parameters.values())[1:]
        )
        names = sorted(parameter.name for parameter in parameters)
        for form in forms:
            fields = sorted(re.findall(r"\{(\w+)\}", form))
            if fields != names:
                raise TypeError(f"form {form!r} of {function.__name__} has {fields}, not {names}")
        description, _, examples = inspect.cleandoc(function.__doc__ or "").partition("Examples:")
        lines = tuple(line.strip() for line in examples.splitlines() if line.strip())
        if not lines or not description.strip():
            raise TypeError(f"verb {function.__name__} needs a docstring with 'Examples:'")
        summary = " ".join(description.split())
        return Verb(function.__name__, forms, parameters, summary, lines, function)

    return decorate


def _kind(annotation: Any) -> str:
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if kind not in _KINDS:
        raise TypeError(f"verb parameters are str or int, got {annotation!r}")
    return kind


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
        forms.sort(key=lambda item: -len(re.sub(r"\{\w+\}", "", item[0])))
        self._patterns = [(_pattern(form, entry), entry) for form, entry in forms]

    def parse(self, text: str, *, strict: bool = False) -> Command:
        """The command that the whole of `text` is.

        Lenient parsing ignores case, runs of blanks, and quotes, backticks or a full stop around
        the line. Strict parsing takes a form as it is written.

        Raises:
            CommandError: no form matches; the text lists the forms.
        """
        line = text if strict else _unwrapped(text)
        if len(line) <= MAX_COMMAND and line.isprintable():
            for pattern, entry in self._patterns:
                match = pattern.fullmatch(line)
                if match and (not strict or _same_case(pattern, line)):
                    return self.command(entry.name, **match.groupdict())
        raise CommandError(f'"{shorten(text)}" is not a command. Commands are: {self.forms()}.')

    def command(self, name: str, **arguments: Any) -> Command:
        """The command of verb `name` with `arguments`, checked and converted to their kinds.

        Raises:
            CommandError: no such verb, or other arguments than it takes.
        """
        entry = self._verb_by_name.get(name)
        if entry is None:
            known = ", ".join(self._verb_by_name)
            raise CommandError(f'"{shorten(name)}" is not a command. Commands are: {known}.')
        values: dict[str, Any] = {}
        for parameter in entry.parameters:
            text = str(arguments.pop(parameter.name, "")).strip()
            if not re.fullmatch(_KINDS[parameter.kind], text, re.DOTALL):
                wanted = "a whole number" if parameter.kind == "int" else "a text"
                raise CommandError(
                    f'{name} needs {parameter.name}: {wanted}, got "{shorten(text)}".'
                )
            values[parameter.name] = int(text) if parameter.kind == "int" else text
        if arguments:
            raise CommandError(f"{name} does not take {', '.join(map(shorten, arguments))}.")
        return Command(entry, values)

    def forms(self) -> str:
        """The canonical forms, with arguments in angle brackets, separated by commas."""
        return ", ".join(_readable(entry.forms[0]) for entry in self.verbs)

    def describe(self) -> str:
        """One line a verb, form and description, for the instructions."""
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
    return re.sub(r"\{(\w+)\}", r"<\1>", form)


def _pattern(form: str, entry: Verb) -> re.Pattern[str]:
    kinds = {parameter.name: _KINDS[parameter.kind] for parameter in entry.parameters}
    parts = re.split(r"\{(\w+)\}", form)
    text = "".join(
        f"(?P<{part}>{kinds[part]})" if index % 2 else re.escape(part)
        for index, part in enumerate(parts)
    )
    return re.compile(text, re.IGNORECASE)


def _same_case(pattern: re.Pattern[str], line: str) -> bool:
    return re.fullmatch(pattern.pattern, line) is not None
