"""Checks of text going in: action formats, prompts, and replies meant to do harm."""

from __future__ import annotations

from typing import Any

from agentgym_envs.actions import ACTION_FORMATS, Command, action_format
from agentgym_envs.actions.tools import tool_schemas
from agentgym_envs.core import TextEnv
from agentgym_envs.testing.base import (
    JUNK,
    MakeEnv,
    Script,
    bare,
    conformance_check,
    has,
    made,
    require,
    require_equal,
    turns,
    write_scripts,
)
from agentgym_envs.testing.child import play_in_child

MAX_REFUSAL = 5_000
"""How much longer, in characters, the answer to any reply may be than to an empty one."""


_BLANK = ("", " ", "\n", "\r\n\t\v\f", "\n" * 100_000, " \n" * 50_000)
_CONTROL = ("".join(map(chr, range(32))), "\x7f\x80\x9f", "\x1b[31mred\x1b[0m", "\x00" * 999)
_UNICODE = (
    "".join(chr((plane << 16) + 0x61) for plane in range(17)),
    "\uffff\U0010ffff",
    "\ud800",
    "\udfff\ud83d",
    "\ud83d\ude00",
    "e" + "\u0301" * 10_000,
    "\u202e\u200b\u200d\ufeff\u2028\u2029\x85",
    "\U0001f9d1\u200d\U0001f52c" * 1_000,
)
_LONG = (
    "x" * 100_000,
    "word " * 20_000,
    "next to " * 5_000,
    "a next to " * 200,
    "(" * 100_000,
    "[" * 100_000,
    '{"a":' * 20_000,
    '{"name":"' * 10_000,
    "{}" * 50_000,
    '{"' + '\\"' * 50_000,
    '{"tool_calls":' + "[" * 50_000,
    "f(" * 50_000,
    "f(" + "-" * 50_000 + "1)",
    "f(" + "not " * 10_000 + "1)",
    "f(" + "1if 2else " * 5_000 + "3)",
    "f'" + "{f'" * 20_000,
    '"""' * 30_001,
    "f('" + "\\" * 50_001,
    "```\n" * 20_001,
    "Action:" * 10_000,
    "Action:\n" * 10_000,
    "Thought:\n" * 10_000,
    "\n".join(["line"] * 20_000),
    "`" * 100_000,
    "<think>" * 20_000,
    "<think></think>" * 10_000,
    '"' * 1_999,
    "'\"" * 1_000,
)
_LOOKALIKES = (
    "{x}",
    "{0}{1!r:>{width}}",
    "{",
    "%s %d %(x)s",
    "\\",
    "\\1\\g<0>",
    "$(reboot)",
    "__import__('os').abort()",
    '{"name": "go", "arguments": {"x": NaN}}',
    '{"name": "go", "name": "stop"}',
    '{"name": "go", "arguments": "{\\"x\\": 1e999}"}',
    '{"name": "\\ud800", "arguments": {"\\udfff": "\\u0000"}}',
    '{"tool_calls": [{"id": "\\ud800", "function": {"name": 3, "arguments": "{"}}]}',
    '{"tool_calls": [{}, {}], "content": []}',
    "f(**{'x': 1})",
    "f('\\d', '\\N{DIGIT ONE}', \"\\777\")",
    "f(x for x in (1).__class__.__mro__)",
    "(lambda: f)()",
    "<tool_call>{}</tool_call>",
    "<think>{}</think><answer>42</answer>",
    "<|endoftext|>",
    "None",
    "-1",
    "9" * 5_000,
    "quit",
    "restart",
)
HOSTILE_TEXTS = (*_BLANK, *_CONTROL, *_UNICODE, *_LONG, *_LOOKALIKES)
"""Replies that break careless parsers: long, odd, and made to look like something else."""


def hostile_replies(env: TextEnv) -> list[str]:
    """`HOSTILE_TEXTS`, bare, inside the action format, and glued to real commands."""
    replies = list(HOSTILE_TEXTS)
    for frame, rest in _frames(env):
        replies += [f"{frame}{text}{rest}" for text in HOSTILE_TEXTS]
    replies += _replies_with_hostile_arguments(env)
    for command in env.grammar.examples:
        reply = env.render_command(command)
        frame, marker, rest = reply.rpartition(command)
        glue = marker and (frame or rest)
        for text in (f"{command} " * 300, f"{command} {'x' * 100_000}", f"{command}\x00"):
            replies.append(f"{frame}{text}{rest}" if glue else text)
        replies += [reply * 2, f"{reply}\x00", f"{reply[:-1]}"]
    return replies


def _frames(env: TextEnv) -> list[tuple[str, str]]:
    """What stands around a command, or an argument of it, in the action format."""
    command = env.grammar.parse(env.grammar.examples[0])
    reply = env.render_command(command.text)
    parts = [command.text, *(str(value) for value in command.arguments.values())]
    split = [reply.rpartition(part) for part in parts]
    return [(frame, rest) for frame, marker, rest in split if marker and frame]


def _replies_with_hostile_arguments(env: TextEnv) -> list[str]:
    """Replies in the action format, well formed, whose arguments are hostile."""
    chosen = action_format(env.action_format)
    verbs = [entry for entry in env.grammar.verbs if entry.parameters]
    return [
        chosen.render(Command(entry, {it.name: text for it in entry.parameters}))
        for entry in verbs[:1]
        for text in HOSTILE_TEXTS
    ]


@conformance_check
def check_hostile_text(make: MakeEnv) -> None:
    """No reply raises, hangs, or plays for free."""
    with made(make) as env:
        info_keys = ("state_key",) if has(env, "state_key") else ()
        task_id = env.tasks[0].id
        env.reset(options={"task": task_id})
        replies = hostile_replies(env)
    with made(make, info_keys=info_keys) as env:
        # A reply that happens to be a command may end the episode: go on in another one.
        chunks = [tuple(replies[start : start + 20]) for start in range(0, len(replies), 20)]
        scripts = [Script(task_id, 0, ("", *chunk), len(chunk) + 2) for chunk in chunks]
        transcripts = play_in_child(env, scripts).transcripts
        for script, (first, *entries) in zip(scripts, transcripts, strict=True):
            before = first[1]
            longest = len(entries[0][0]) + MAX_REFUSAL
            for reply, (observation, _, _, _, info) in zip(script.replies, entries, strict=False):
                what = f"after {reply[:60]!r} ({len(reply)} characters)"
                require_equal(info["turn"], before["turn"] + 1, f"the turn {what}")
                require(observation in env.observation_space, f"Not in space {what}.")
                require(len(observation) <= longest, f"{len(observation)} characters {what}.")
                if info_keys and not info["action_valid"]:
                    require_equal(info["state_key"], before["state_key"], f"the state {what}")
                before = info


@conformance_check
def check_action_formats(make: MakeEnv) -> None:
    """In every action format, all examples parse, and the same commands do the same."""
    script = write_scripts(lambda: make(action_format="command"), num_tasks=1)[0]
    with made(make, action_format="command") as env:
        expected = _transitions(env, script)
    for name in ACTION_FORMATS:
        with made(make, action_format=name) as env:
            require_equal(_transitions(env, script), expected, f"what commands do in {name!r}")
            require_equal(env.tools, tool_schemas(env.grammar), "env.tools")
            grammar, chosen = env.grammar, action_format(name)
            require_equal(env.action_format, name, "env.action_format")
            require(chosen.describe(grammar) in env.instructions, f"{name} is not explained.")
            for entry in grammar.verbs:
                for example in entry.examples:
                    command = grammar.parse(example)
                    require(command.verb is entry, f"{example!r} is parsed as {command.verb.name}.")
                    require_equal(grammar.parse(command.text), command, f"{command.text!r} parsed")
                    require_equal(
                        env.render_command(example), chosen.render(command), "render_command()"
                    )
                    for strict in (False, True):
                        reply = chosen.render(command, "a thought\nof two lines")
                        parsed = chosen.parse(reply, grammar, strict=strict)
                        require_equal(parsed, command, f"{reply!r} parsed, strict={strict}")


def _transitions(env: TextEnv, script: Script) -> list[list[Any]]:
    """What the world answers to the commands of a script that are commands."""
    world = bare(env)  # a wrapper may repeat replies in its observations
    world.reset(seed=script.seed, options={"task": script.task_id})
    commands = [reply for reply in script.replies if reply != JUNK]
    return list(turns(world, [world.render_command(command) for command in commands]))


@conformance_check
def check_instructions(make: MakeEnv) -> None:
    """The instructions name every verb; they do not change, and go first where asked to."""
    with made(make) as env, made(make, instructions_in_observation=True) as told:
        options = {"task": env.tasks[0].id}
        observation, _ = env.reset(options=options)
        instructions = env.instructions
        words = instructions.casefold()
        for entry in env.grammar.verbs:
            literal = entry.forms[0].partition("{")[0].strip().casefold()
            named = literal in words or entry.name.casefold() in words
            require(named, f"The instructions do not mention {literal!r}.")
        told_observation, _ = told.reset(options=options)
        require_equal(told_observation, f"{instructions}\n\n{observation}", "the first observation")
        env.step("")
        require_equal(env.instructions, instructions, "the instructions after a step")
