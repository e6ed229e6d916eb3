"""The format `tags`: thoughts in ``<think>``, the action in a tag named like its verb.

::

    <think>First the river.</think>
    <search>longest river of Peru</search>

It is the form of Search-R1 (arXiv 2503.09516), for any grammar: the tag of a verb with one
argument holds the argument, that of several a tag for each, ``<put><thing>key</thing>
<place>box</place></put>``, and that of none is empty.

Thoughts are taken out first, so nothing in them is an action: what stands before ``</think>``
where nothing opened it, as chat templates open it themselves, and what stands behind ``<think>``
where nothing closes it. Of the rest exactly one tag may be an action's. Two are refused, not the
first one taken: a reply may not hedge. Nothing is escaped, so an argument that holds a tag of the
grammar cannot be written.
"""

from __future__ import annotations

import itertools
import re

from agentgym_envs.actions.base import Answer
from agentgym_envs.actions.calls import Call, command_of_call
from agentgym_envs.actions.grammar import MAX_DIGITS, Grammar
from agentgym_envs.actions.verbs import Command, Verb
from agentgym_envs.errors import FormatError

_THINK = re.compile(r"<(?P<closing>/?)think>", re.IGNORECASE)
_MARKS = ["<think>", "</think>"]
_NUMBER = re.compile(rf"-?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})")


class TagsFormat:
    """An optional ``<think>`` and one tag with the name of a verb.

    Lenient parsing takes any text around the action, tags in upper and lower case, and
    ``<wait/>``. Strict parsing takes at most one thought, in front, and nothing but blanks around
    thought, action and argument.
    """

    name = "tags"

    def parse(self, reply: str, grammar: Grammar, *, strict: bool) -> Command:
        said = _without_thoughts(reply)
        entry, inside, around = _only_action(said, grammar, strict=strict)
        if strict and (around.strip() or not _is_in_order(reply)):
            raise FormatError(
                "Expected at most one thought and then one action, with nothing around them. "
                f"{_expected(grammar)}"
            )
        return command_of_call(_call(entry, inside, strict=strict), grammar, strict=strict)

    def render(self, command: Command, thought: str = "") -> str:
        given = command.arguments
        if len(command.verb.parameters) == 1:
            inside = "".join(map(str, given.values()))
        else:
            inside = "".join(f"<{name}>{value}</{name}>" for name, value in given.items())
        action = f"<{command.verb.name}>{inside}</{command.verb.name}>"
        if not thought:
            return action
        said = _THINK.sub("think:", thought)  # or it would end the thought
        return f"<think>{said}</think>\n{action}"

    def describe(self, grammar: Grammar) -> str:
        lines = "\n".join(
            f"- {_shape(entry)}: {entry.description} "
            f"Example: {self.render(grammar.parse(entry.examples[0]))}"
            for entry in grammar.verbs
        )
        return (
            f"Actions:\n{lines}\n\n"
            "Think between <think> and </think> if you like. Then reply with exactly one action, "
            f"for example:\n{self.render(grammar.parse(grammar.examples[0]))}"
        )

    def answer_to(self, reply: str) -> Answer:
        return Answer()


def _is_in_order(reply: str) -> bool:
    """Whether the only thought, if there is one, is in front, written to the letter."""
    marks = [mark[0] for mark in _THINK.finditer(reply)]
    return not marks or (marks == _MARKS and reply.lstrip().startswith(_MARKS[0]))


def _without_thoughts(reply: str) -> str:
    """What a reply says outside of its thoughts; where one was, a line ends."""
    said: list[str] = []
    start = 0
    is_thinking = False
    for mark in _THINK.finditer(reply):
        if mark["closing"]:
            if not is_thinking:
                said.clear()
            is_thinking = False
            start = mark.end()
        elif not is_thinking:
            said.append(reply[start : mark.start()])
            is_thinking = True
    if not is_thinking:
        said.append(reply[start:])
    return "\n".join(said)


def _only_action(said: str, grammar: Grammar, *, strict: bool) -> tuple[Verb, str, str]:
    """The verb of the one action, what its tag holds, and what stands around it.

    Raises:
        FormatError: there is no action, or anything but one.
    """
    verb_of = {entry.name.casefold(): entry for entry in grammar.verbs}
    names = "|".join(re.escape(entry.name) for entry in grammar.verbs)
    flags = re.NOFLAG if strict else re.IGNORECASE
    tag = re.compile(rf"<(?P<closing>/?)(?P<name>{names})(?P<empty>[ ]?/)?>", flags)
    found = list(itertools.islice(tag.finditer(said), 3))
    if not found:
        raise FormatError(f"There is no action in the reply. {_expected(grammar)}")
    first, last = found[0], found[-1]
    entry = verb_of[first["name"].casefold()]
    if len(found) == 1 and first["empty"] and not strict:
        return entry, "", said[: first.start()] + said[first.end() :]
    if len(found) == 1 and not first["closing"]:
        raise FormatError(f"<{entry.name}> is not closed. {_expected(grammar)}")
    is_pair = len(found) == 2 and [bool(mark["closing"]) for mark in found] == [False, True]
    is_same = first["name"].casefold() == last["name"].casefold()
    if not (is_pair and is_same) or first["empty"] or last["empty"]:
        raise FormatError(f"Expected exactly one action in the reply. {_expected(grammar)}")
    return entry, said[first.end() : last.start()], said[: first.start()] + said[last.end() :]


def _call(entry: Verb, inside: str, *, strict: bool) -> Call:
    """The call that an action's tag stands for."""
    if len(entry.parameters) == 1:
        texts = {entry.parameters[0].name: inside.strip()}
        if not entry.parameters[0].required and not inside.strip():
            texts = {}
    else:
        texts = _arguments(entry, inside, strict=strict)
    kinds = {parameter.name: parameter.kind for parameter in entry.parameters}
    return Call(entry.name, {name: _value(text, kinds[name]) for name, text in texts.items()})


def _arguments(entry: Verb, inside: str, *, strict: bool) -> dict[str, str]:
    """The texts in the tags inside of an action's tag, by name."""
    names = "|".join(re.escape(parameter.name) for parameter in entry.parameters) or r"(?!)"
    tag = re.compile(rf"<(?P<closing>/?)(?P<name>{names})>", re.NOFLAG if strict else re.IGNORECASE)
    known = {parameter.name.casefold(): parameter.name for parameter in entry.parameters}
    marks = list(itertools.islice(tag.finditer(inside), 2 * len(known) + 1))
    texts: dict[str, str] = {}
    around, end = "", 0
    for opening, closing in itertools.zip_longest(marks[::2], marks[1::2]):
        name = known[opening["name"].casefold()]
        is_pair = closing is not None and closing["closing"] and not opening["closing"]
        if not is_pair or closing["name"] != opening["name"] or name in texts:
            raise FormatError(f"<{entry.name}> takes one <{name}>…</{name}>: {_shape(entry)}.")
        around += inside[end : opening.start()]
        texts[name] = inside[opening.end() : closing.start()].strip()
        end = closing.end()
    if (around + inside[end:]).strip():
        raise FormatError(f"There is text between the tags in <{entry.name}>: {_shape(entry)}.")
    return texts


def _value(text: str, kind: str) -> str | int:
    return int(text) if kind == "int" and _NUMBER.fullmatch(text) else text


def _shape(entry: Verb) -> str:
    names = [parameter.name for parameter in entry.parameters]
    inside = names[0] if len(names) == 1 else "".join(f"<{name}>…</{name}>" for name in names)
    return f"<{entry.name}>{inside}</{entry.name}>"


def _expected(grammar: Grammar) -> str:
    return f"Reply with one of {', '.join(map(_shape, grammar.verbs))}."
