"""The oracle of Deep Search: makes the searches of the question's chain, then answers.

It knows the answer, and gives it only if its searches have found every passage of the chain, as
one would have to who does not know it.
"""

from __future__ import annotations

from typing import Protocol

from agentgym_envs.actions import Grammar
from agentgym_envs.deepsearch.world import DeepSearchWorld
from agentgym_envs.errors import NoPlan


class _Env(Protocol):
    """Where the world is found; it may be another one after a reset."""

    @property
    def world(self) -> DeepSearchWorld: ...

    @property
    def grammar(self) -> Grammar: ...


class DeepSearchOracle:
    """Gives the commands of the chain.

    Args:
        env: the environment to play in.
    """

    def __init__(self, env: _Env) -> None:
        self._env = env

    def next_command(self) -> str:
        """The next command from the state as it is now.

        Raises:
            NoPlan: the question has no chain, or its searches do not find what they should.
        """
        world, grammar = self._env.world, self._env.grammar
        question = world.question
        if not question.chain:
            raise NoPlan(
                f"nobody knows the way to the answer of {question.text!r}: it has no chain"
            )
        for step in question.chain:
            command = grammar.parse(f"search {step.query}")
            if command.arguments["query"] not in world.queries:
                return command.text
        missing = [step for step in question.chain if step.passage_id not in world.seen]
        if missing:
            raise NoPlan(
                f"the search for {missing[0].query!r} does not find the passage "
                f"{missing[0].passage_id!r} with this corpus, engine and top_k"
            )
        return grammar.parse(f"answer {question.answers[0]}").text
