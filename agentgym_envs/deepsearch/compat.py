"""`compat="agentgym"`: the texts and rules of AgentGym's question answering (arXiv 2509.08755).

What its server says to a search, to an answer and to what is neither is said here, answers are
compared by the published rule, and a wrong one may be given again. Where the original is at fault
it is not followed:

- Retries have an end, `MAX_ANSWERS` unless the argument says otherwise; there, only the turns have
  one, so that a yes-or-no question is worth 1 to anybody. ``info["first_em"]``, or of a record
  `first_answer_is_right`, tells the first answer apart from the later ones.
- After the right answer the episode is over; there, the same answer is paid again.
- A reply with two actions or with an action in its thoughts is refused; there, the first search
  counts, or the last answer.
- Replies in other action formats than tags are refused in our own words, which say what is wrong.
- The rules are in words of our own.
- Long passages are cut, by words; there, nothing is, or the closing tag with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs.actions import action_format
from agentgym_envs.deepsearch.actions import GRAMMAR
from agentgym_envs.deepsearch.dialect import Dialect
from agentgym_envs.deepsearch.observation import first_observation, plain
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.world import DeepSearchWorld
from agentgym_envs.episodes import Episode
from agentgym_envs.errors import CommandError

MAX_ANSWERS = 5
"""How many answers may be given: as many as the original's trainer leaves turns."""

_REFUSAL = (
    "Your previous action is invalid. If you want to search, you should put the query between "
    "<search> and </search>. If you want to give the final answer, you should put the answer "
    "between <answer> and </answer>. Please try again."
)


def passages_text(found: Sequence[Passage], max_words: int) -> str:
    """What a search found; titles are in quotation marks."""
    lines = (
        f'Doc {number}(Title: "{plain(passage.title, max_words)}") '
        f"{plain(passage.text, max_words)}\n"
        for number, passage in enumerate(found, start=1)
    )
    return f"<information>{''.join(lines)}</information>"


def verdict(world: DeepSearchWorld) -> str:
    """What is said to an answer."""
    if world.is_right:
        return "Congratulations! You have answered the question correctly."
    return "Sorry, your answer is incorrect." + ("" if world.is_done else " Please try again.")


def refusal(error: CommandError) -> str:
    """What is said to a reply that is neither a search nor an answer, whatever it is."""
    return _REFUSAL


AGENTGYM = Dialect(
    prompt="prompt_agentgym.md",
    match="search_r1",
    max_answers=MAX_ANSWERS,
    first=first_observation,
    passages=passages_text,
    verdict=verdict,
    refusal=refusal,
)


def first_answer_is_right(episode: Episode) -> bool:
    """Whether the first answer of a recorded episode was right: its accuracy without retries."""
    chosen = action_format(episode.action_format)
    for turn in episode.turns:
        if turn.action_valid:
            command = chosen.parse(turn.reply, GRAMMAR, strict=False)
            if command.verb.name == "answer":
                return turn.score == 1.0
    return False
