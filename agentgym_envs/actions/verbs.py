"""Verbs: functions of a world as commands that a policy may write.

The first parameter of the function is the world; the others are texts or whole numbers. The
decorator lists the forms in which the command may be written, the docstring is what the prompt
says about it, and its ``Examples:`` are parsed in a test.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

KINDS = ("str", "int")
"""Kinds of arguments: texts and whole numbers."""

FIELD = re.compile(r"\{(\w+)\}")
"""The place of an argument in a form."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An argument of a verb.

    Attributes:
        name: as in the function.
        kind: ``"str"`` or ``"int"``.
        required: whether it has to be given.
        default: its value where it is not given, None if there is none.
    """

    name: str
    kind: str
    required: bool = True
    default: str | int | None = None


@dataclasses.dataclass(frozen=True)
class Verb:
    """One thing a policy can do.

    Attributes:
        name: identifier of the verb, ``"go_to"``; the function name of call-like formats.
        forms: how it may be written, the first one is canonical: ``("go to {target}",)``.
        parameters: in the order of the function.
        description: what it does, one paragraph.
        examples: commands as they may be written.
        run: the function; called with the world and one keyword argument a given parameter.
    """

    name: str
    forms: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    description: str
    examples: tuple[str, ...]
    run: Callable[..., Any]

    def form_of(self, names: Iterable[str]) -> str | None:
        """The first form that names exactly the parameters `names`, or None."""
        return self._form_of_fields.get(frozenset(names))

    @functools.cached_property
    def _form_of_fields(self) -> Mapping[frozenset[str], str]:
        return {frozenset(FIELD.findall(form)): form for form in reversed(self.forms)}


@dataclasses.dataclass(frozen=True)
class Command:
    """A verb with its arguments, as `Grammar.command` makes it.

    Attributes:
        verb: what to do.
        arguments: by name, those that were given; the function knows the defaults of the others.
    """

    verb: Verb
    arguments: Mapping[str, Any]

    @functools.cached_property
    def text(self) -> str:
        """The canonical form: the verb's first one that names exactly the arguments given."""
        form = self.verb.form_of(self.arguments)
        assert form is not None, f"{self.verb.name} cannot be written with {[*self.arguments]}"
        return form.format(**self.arguments)

    def __str__(self) -> str:
        return self.text


def verb(*forms: str) -> Callable[[Callable[..., Any]], Verb]:
    """Make a function into a `Verb`.

    Args:
        forms: how the command may be written, canonical form first; ``{name}`` stands for the
            argument `name`. Every form names every parameter but the world and those with a
            default value, which may be left out; at least one form names all of them. A default
            is a value that could be given, or None, annotated as ``int | None``.

    Raises:
        TypeError: a form's fields do not fit the parameters, a default is of another kind, or
            the docstring has no examples.
    """

    def decorate(function: Callable[..., Any]) -> Verb:
        signature = list(inspect.signature(function).parameters.values())[1:]
        parameters = tuple(_parameter(function.__name__, entry) for entry in signature)
        description, _, examples = inspect.cleandoc(function.__doc__ or "").partition("Examples:")
        lines = tuple(line.strip() for line in examples.splitlines() if line.strip())
        if not lines or not description.strip():
            raise TypeError(f"verb {function.__name__} needs a docstring with 'Examples:'")
        summary = " ".join(description.split())
        made = Verb(function.__name__, forms, parameters, summary, lines, function)
        _check_forms(made)
        return made

    return decorate


def _parameter(owner: str, parameter: inspect.Parameter) -> Parameter:
    annotation, default = parameter.annotation, parameter.default
    written = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    kind = written.removesuffix(" | None")
    if kind not in KINDS:
        raise TypeError(f"verb parameters are str or int, got {written!r}")
    if default is inspect.Parameter.empty and kind == written:
        return Parameter(parameter.name, kind)
    expected = f"{kind} | None" if default is None else type(default).__name__
    if written != expected or default == "":
        raise TypeError(f"{parameter.name} of {owner} is {written!r}, its default is {default!r}")
    return Parameter(parameter.name, kind, required=False, default=default)


def _check_forms(entry: Verb) -> None:
    names = sorted(parameter.name for parameter in entry.parameters)
    required = {parameter.name for parameter in entry.parameters if parameter.required}
    for form in entry.forms:
        fields = sorted(FIELD.findall(form))
        if not required <= set(fields) <= set(names) or len(set(fields)) < len(fields):
            raise TypeError(f"form {form!r} of {entry.name} has {fields}, not {names}")
    if entry.form_of(names) is None:
        raise TypeError(f"no form of {entry.name} names all of {names}")
    for given in _choices(entry):
        unwritable = [it for it in entry.parameters if it.name not in given and it.default is None]
        if unwritable and entry.form_of(given) is None:
            raise TypeError(f"no form of {entry.name} names just {given}")


def _choices(entry: Verb) -> Iterable[list[str]]:
    """Every set of arguments that may be given."""
    required = [it.name for it in entry.parameters if it.required]
    optional = [it.name for it in entry.parameters if not it.required]
    for count in range(len(optional) + 1):
        for chosen in itertools.combinations(optional, count):
            yield [*required, *chosen]
