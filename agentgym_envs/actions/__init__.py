"""Commands, the grammar of verbs, and the formats in which a reply carries a command.

`verbs` turns functions into verbs, `grammar` turns text into `Command`s; each action format is one
file with one class. `action_format` finds a format by name and imports only what that file needs.
"""

from __future__ import annotations

import importlib

from agentgym_envs.actions.base import ActionFormat, Answer
from agentgym_envs.actions.grammar import Grammar
from agentgym_envs.actions.verbs import Command, Parameter, Verb, verb
from agentgym_envs.arguments import one_of

_FORMATS = {
    "command": "agentgym_envs.actions.command:CommandFormat",
    "react": "agentgym_envs.actions.react:ReactFormat",
    "json": "agentgym_envs.actions.json_call:JsonFormat",
    "code": "agentgym_envs.actions.code:CodeFormat",
    "tools": "agentgym_envs.actions.tools:ToolsFormat",
    "tags": "agentgym_envs.actions.tags:TagsFormat",
}

ACTION_FORMATS = tuple(_FORMATS)
"""Names of the action formats."""


def action_format(name: str) -> ActionFormat:
    """The action format called `name`.

    Raises:
        UnknownName: there is none.
    """
    module, _, attribute = _FORMATS[one_of("action format", name, _FORMATS)].partition(":")
    found: ActionFormat = getattr(importlib.import_module(module), attribute)()
    return found


__all__ = [
    "ACTION_FORMATS",
    "ActionFormat",
    "Answer",
    "Command",
    "Grammar",
    "Parameter",
    "Verb",
    "action_format",
    "verb",
]
