"""Commands, the grammar of verbs, and the formats in which a reply carries a command.

`grammar` turns functions into verbs and text into `Command`s; each action format is one file
with one class. `action_format` finds a format by name and imports only that file.
"""

from __future__ import annotations

import importlib

from agentgym_envs.actions.base import ActionFormat
from agentgym_envs.actions.grammar import Command, Grammar, Parameter, Verb, verb
from agentgym_envs.arguments import one_of

_FORMATS = {
    "command": "agentgym_envs.actions.command:CommandFormat",
    "react": "agentgym_envs.actions.react:ReactFormat",
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
    "Command",
    "Grammar",
    "Parameter",
    "Verb",
    "action_format",
    "verb",
]
