"""The two verbs, and some of the commands that would be done now.

What a verb returns is put into words by the dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentgym_envs.actions import Grammar, verb
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.world import DeepSearchWorld
from agentgym_envs.errors import CommandError


@verb("search {query}", "search for {query}")
def search(world: DeepSearchWorld, query: str) -> Sequence[Passage]:
    """Search for the passages that fit a query best, such as a name and what to know about it.

    Examples:
        search capital of Bolivia
    """
    return world.search(query)


@verb("answer {answer}")
def answer(world: DeepSearchWorld, answer: str) -> None:
    """Answer the question with as few words as say it: a name, a number, yes or no.

    Examples:
        answer Sucre
    """
    world.answer(answer)


GRAMMAR = Grammar((search, answer))


def admissible(world: DeepSearchWorld) -> list[str]:
    """Some of the commands that would be done now: everything else can be searched for, too.

    Searches for the question and for the titles that were seen; as answers yes and no, and what
    the titles name.
    """
    return list(dict.fromkeys(_writable(_suggested(world))))


def _suggested(world: DeepSearchWorld) -> Iterator[str]:
    yield f"search {world.question.text}"
    for title in world.seen.values():
        yield f"search {title}"
    yield "answer yes"
    yield "answer no"
    for title in world.seen.values():
        yield f"answer {subject_of(title)}"


def subject_of(title: str) -> str:
    """What a title names: the part in front of the section, ``"Peru"`` of ``"Peru: Rivers"``."""
    return title.partition(": ")[0]


def _writable(commands: Iterator[str]) -> Iterator[str]:
    """Commands in canonical form, without those that some action format could not carry."""
    for text in commands:
        try:
            command = GRAMMAR.parse(text).text
        except CommandError:
            continue
        if "<" not in command:
            yield command
