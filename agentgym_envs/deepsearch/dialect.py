"""`Dialect`: how an environment talks, chosen once when it is made.

The world is the same in every dialect, and so are the two verbs. What differs is how things are
put into words, which answers count as right, and how many may be given. Ours is here; `compat` has
AgentGym's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

from agentgym_envs.deepsearch.observation import first_observation, passages_text, verdict
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.world import DeepSearchWorld
from agentgym_envs.errors import CommandError


@dataclass(frozen=True)
class Dialect:
    """One way of talking about a world.

    Attributes:
        prompt: name of the file with the rules of the world; ``{answers}`` in it stands for how
            many answers may be given.
        match: the rule of what is the same answer where nobody names one.
        max_answers: how many answers may be given where nobody says so.
        first: the first observation, of the question.
        passages: what a search found, of the passages and the most words of each.
        verdict: what is said to an answer.
        refusal: what is said to a reply in tags that could not be done.
    """

    prompt: str
    match: str
    max_answers: int
    first: Callable[[str], str]
    passages: Callable[[Sequence[Passage], int], str]
    verdict: Callable[[DeepSearchWorld], str]
    refusal: Callable[[CommandError], str] = str

    def rules(self, max_answers: int) -> str:
        """The rules of the world, which the action format follows with the verbs."""
        if max_answers == 1:
            answers = "Your answer ends the episode, so give it once you are sure."
        else:
            answers = (
                f"You are told whether it is right, and may answer {max_answers} times in all."
            )
        return _text(self.prompt).format(answers=answers)


OWN = Dialect(
    prompt="prompt.md",
    match="clean",
    max_answers=1,
    first=first_observation,
    passages=passages_text,
    verdict=verdict,
)


@functools.cache
def _text(name: str) -> str:
    return resources.files("agentgym_envs.deepsearch").joinpath(name).read_text("utf-8")
