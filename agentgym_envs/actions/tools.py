r"""The format `tools`: the tool calls of OpenAI's chat API.

A reply is the assistant's message as one line of JSON, in its canonical form (`reply_of_message`)::

    {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",
    "function":{"name":"go_to","arguments":"{\"target\":\"red ball 1\"}"}}]}

It holds exactly one call. The observation stays a text; `answer_to` says under which role and id it
goes back into the chat, and episode records keep both. `tool_schemas` is what the API is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentgym_envs.actions.base import Answer
from agentgym_envs.actions.calls import command_of_call, describe_functions
from agentgym_envs.actions.grammar import Grammar, shorten
from agentgym_envs.actions.json_call import read_call
from agentgym_envs.actions.json_text import read_json
from agentgym_envs.actions.verbs import Command, Parameter, Verb
from agentgym_envs.errors import FormatError
from agentgym_envs.spaces import to_utf8

CALL_ID = "call_1"
"""The id of a call that has none, and of rendered calls."""

_JSON_TYPES = {"str": "string", "int": "integer"}


class ToolsFormat:
    """One assistant message with one tool call."""

    name = "tools"

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        message = _message(reply)
        call = read_call(_only_tool_call(message))
        if call is None:
            raise FormatError("The tool call names no function.")
        if strict:
            _check_canonical(reply, message)
        return command_of_call(call, grammar, strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        function = {"name": command.verb.name, "arguments": _dump(command.arguments)}
        return reply_of_message(
            {"content": thought or None, "tool_calls": [{"function": function}]}
        )

    def describe(self, grammar: Grammar) -> str:
        return (
            f"{describe_functions(grammar, self._example)}\n\n"
            "Call exactly one function, as a tool, in each reply. As JSON, such a message is:\n"
            f"{self.render(grammar.parse(grammar.examples[0]))}"
        )

    def answer_to(self, reply: str) -> Answer:
        try:
            call = _only_tool_call(_message(reply))
        except FormatError:
            return Answer()
        call_id = call.get("id")
        return Answer("tool", to_utf8(call_id if call_id and isinstance(call_id, str) else CALL_ID))

    def _example(self, command: Command) -> str:
        return f"{command.verb.name} {_dump(command.arguments)}"


def tool_schemas(grammar: Grammar) -> list[dict[str, Any]]:
    """The list for the argument ``tools`` of OpenAI's chat API, one function a verb."""
    return [
        {
            "type": "function",
            "function": {
                "name": entry.name,
                "description": _description(entry, grammar),
                "parameters": {
                    "type": "object",
                    "properties": {it.name: _schema(it) for it in entry.parameters},
                    "required": [it.name for it in entry.parameters if it.required],
                    "additionalProperties": False,
                },
            },
        }
        for entry in grammar.verbs
    ]


def reply_of_message(message: Mapping[str, Any]) -> str:
    """The reply that stands for an assistant message of the chat API, in canonical form.

    Keys are `role`, `content`, `tool_calls`, then `id`, `type`, `function`, then `name`,
    `arguments`, in this order and no others; no blanks between tokens; characters beyond ASCII as
    they are. A message without tool calls keeps its content, and will be refused by `parse`.

    Args:
        message: as the API returns it, as plain data.

    Raises:
        ValueError: it has no such shape.
    """
    try:
        calls = [_canonical_call(call) for call in message.get("tool_calls") or ()]
        content = _typed(message.get("content"), str, type(None))
        canonical = {"role": "assistant", "content": content}
        return _dump(canonical | ({"tool_calls": calls} if calls else {}))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not an assistant message: {message!r:.200} ({error!r})") from error


def _canonical_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = _typed(function.get("arguments") or {}, str, dict)
    return {
        "id": _typed(call.get("id") or CALL_ID, str),
        "type": "function",
        "function": {
            "name": _typed(function["name"], str),
            "arguments": arguments if isinstance(arguments, str) else _dump(arguments),
        },
    }


def _typed(value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        raise TypeError(f"{value!r:.80} is none of {[kind.__name__ for kind in kinds]}")
    return value


def _description(entry: Verb, grammar: Grammar) -> str:
    """What the verb does, with its examples as arguments: kinds alone do not say how to write."""
    if not entry.parameters:
        return entry.description
    calls = dict.fromkeys(_dump(grammar.parse(example).arguments) for example in entry.examples)
    return f"{entry.description} Examples: {' '.join(calls)}"


def _schema(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _JSON_TYPES[parameter.kind]}
    return schema if parameter.default is None else schema | {"default": parameter.default}


def _message(reply: str) -> dict[str, Any]:
    message = read_json(reply) if reply.lstrip()[:1] == "{" else None
    if not isinstance(message, dict):
        raise FormatError(f'Expected an assistant message, a JSON object, got "{shorten(reply)}".')
    return message


def _only_tool_call(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or len(calls) != 1 or not isinstance(calls[0], dict):
        count = len(calls) if isinstance(calls, list) else 0
        raise FormatError(f"Expected exactly one tool call in the message, got {count}.")
    return calls[0]


def _check_canonical(reply: str, message: Mapping[str, Any]) -> None:
    try:
        canonical = reply_of_message(message)
    except ValueError:
        canonical = ""
    if reply != canonical:
        raise FormatError(f'Expected the message in its canonical form, got "{shorten(reply)}".')


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
