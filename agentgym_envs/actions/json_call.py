"""The format `json`: a function call as a JSON object.

Canonical is ``{"name": "go_to", "arguments": {"target": "red ball 1"}}`` and nothing around it.
Lenient parsing looks for the one object of this shape in the reply, so it may stand in a fenced
block or behind a thought. Two calls are refused, not the first one taken: unlike the actions of
`react`, nothing says which of them the model meant to be carried out.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from agentgym_envs.actions.base import Answer
from agentgym_envs.actions.calls import Call, command_of_call, describe_functions
from agentgym_envs.actions.grammar import Grammar, shorten
from agentgym_envs.actions.json_text import objects_in, read_json
from agentgym_envs.actions.verbs import Command
from agentgym_envs.errors import FormatError

SHAPE = '{"name": "…", "arguments": {…}}'

_NAMES = ("name", "function")
_ARGUMENTS = ("arguments", "parameters", "args")
_MAX_OBJECTS = 100


class JsonFormat:
    """One object with the name of a function and its arguments."""

    name = "json"

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        call = _strict_call(reply) if strict else _only_call(reply)
        return command_of_call(call, grammar, strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        call = {"name": command.verb.name, "arguments": dict(command.arguments)}
        return json.dumps(call, ensure_ascii=False)

    def describe(self, grammar: Grammar) -> str:
        return (
            f"{describe_functions(grammar, self.render)}\n\n"
            "Reply with exactly one function call, a JSON object with its name and arguments, "
            f"for example:\n{self.render(grammar.parse(grammar.examples[0]))}"
        )

    def answer_to(self, reply: str) -> Answer:
        return Answer()


def read_call(data: Any) -> Call | None:
    """The call that `data` is, as models write it, or None if it is nothing like one.

    Forgiven: ``function`` for ``name`` or around all of the call; ``parameters`` or ``args`` for
    ``arguments``; arguments as a JSON text, empty, null or not there; other keys.

    Raises:
        FormatError: it looks like a call and is not to be understood as one.
    """
    if isinstance(data, dict) and isinstance(data.get("function"), dict):
        data = _only(data, (*_NAMES, *_ARGUMENTS))
    if not isinstance(data, dict):
        return None
    name, arguments = _only(data, _NAMES), _only(data, _ARGUMENTS)
    if not isinstance(name, str):
        return None
    if isinstance(arguments, str):
        arguments = read_json(arguments) if arguments.strip() else None
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise FormatError("The arguments of the call are no object.")
    return Call(name, arguments)


def _only(data: dict[str, Any], keys: tuple[str, ...]) -> Any:
    found = [key for key in keys if key in data]
    if len(found) > 1:
        raise FormatError(f'The call has both "{found[0]}" and "{found[1]}".')
    return data[found[0]] if found else None


def _only_call(reply: str) -> Call:
    calls: list[Call] = []
    mistakes: list[str] = []
    texts = list(itertools.islice(objects_in(reply), _MAX_OBJECTS + 1))
    if len(texts) > _MAX_OBJECTS:
        raise FormatError(f"There are more than {_MAX_OBJECTS} objects in the reply.")
    for text in texts:
        try:
            calls += filter(None, [read_call(read_json(text))])
        except FormatError as error:
            mistakes.append(str(error))
    if len(calls) == 1:
        return calls[0]
    if calls:
        raise FormatError(f"Expected one function call, got {len(calls)}. Reply with one of them.")
    problem = mistakes[0] if mistakes else "There is no function call in the reply."
    raise FormatError(f"{problem} Reply with {SHAPE}.")


def _strict_call(reply: str) -> Call:
    data = read_json(reply) if reply[:1] == "{" and reply[-1:] == "}" else None
    if not isinstance(data, dict) or sorted(data) != ["arguments", "name"]:
        raise FormatError(f'Expected {SHAPE} and nothing else, got "{shorten(reply)}".')
    name, arguments = data["name"], data["arguments"]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise FormatError(f'Expected a text and an object in {SHAPE}, got "{shorten(reply)}".')
    return Call(name, arguments)
