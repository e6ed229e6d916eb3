"""Function calls: what the formats `json`, `code` and `tools` share.

A verb is a function and its parameters are the function's. Lenient reading of a call forgives the
case of its name, blanks or hyphens in it, numbers written as texts and the other way round, and
null for what may be left out. Strict reading takes names, kinds and texts as a rendered call has
them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentgym_envs.actions.grammar import Grammar, shorten
from agentgym_envs.actions.verbs import Command, Parameter, Verb
from agentgym_envs.errors import CommandError, FormatError


@dataclasses.dataclass(frozen=True)
class Call:
    """A call as it was written.

    Attributes:
        name: of the function.
        arguments: those given by name; values of any kind.
        positional: those given by position.
    """

    name: str
    arguments: Mapping[str, Any]
    positional: tuple[Any, ...] = ()


def command_of_call(call: Call, grammar: Grammar, *, strict: bool) -> Command:
    """The command that a call stands for.

    Raises:
        CommandError: no such function, or other arguments than it takes.
        FormatError: strict, and an argument is not as it would be rendered.
    """
    entry = grammar.verb(call.name if strict else _folded(call.name, grammar))
    arguments = dict(call.arguments)
    for number, value in enumerate(call.positional):
        if number >= len(entry.parameters):
            raise CommandError(
                f"{entry.name} takes {len(entry.parameters)} arguments, got {len(call.positional)}."
            )
        name = entry.parameters[number].name
        if name in arguments:
            raise CommandError(f"{entry.name} got {name} twice: by position and by name.")
        arguments[name] = value
    command = grammar.command(entry.name, **arguments)
    if strict:
        _check_rendered(arguments, command)
    return command


def describe_functions(grammar: Grammar, example: Callable[[Command], str]) -> str:
    """One line a function, signature and description, for the instructions.

    Args:
        grammar: knows the functions.
        example: writes a command in the format.
    """
    return "Functions:\n" + "\n".join(
        f"- {_signature(entry)}: {entry.description} "
        f"Example: {example(grammar.parse(entry.examples[0]))}"
        for entry in grammar.verbs
    )


def _check_rendered(arguments: Mapping[str, Any], command: Command) -> None:
    for name, given in arguments.items():
        expected = command.arguments.get(name)
        if given != expected or given is None:
            raise FormatError(
                f"Expected {name} of {command.verb.name} as {expected!r:.80}, "
                f"got {shorten(repr(given))}."
            )


def _folded(name: str, grammar: Grammar) -> str:
    wanted = re.sub(r"[\s-]+", "_", name.strip()).casefold()
    return next((entry.name for entry in grammar.verbs if entry.name.casefold() == wanted), name)


def _signature(entry: Verb) -> str:
    return f"{entry.name}({', '.join(map(_annotated, entry.parameters))})"


def _annotated(parameter: Parameter) -> str:
    text = f"{parameter.name}: {parameter.kind}"
    if parameter.required:
        return text
    return f"{text}{' | None' if parameter.default is None else ''} = {parameter.default!r}"
