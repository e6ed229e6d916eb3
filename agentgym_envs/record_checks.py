"""Checks of token records, whoever trains on them.

A record is compared with a second way of getting the same: what was appended with what the chat
template renders, prompts with what passed through the engine, the mask with texts by decoding,
rewards with what the world pays when the replies are played again, log-probabilities with the
learner's. A check is a stream of gaps, one for each place that was looked at, and the largest must
be within a tolerance.

Left out: repairing. A record that fails has to be made anew.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import Episode
from agentgym_envs.sequences import FloatArray, TokenSequence, token_sequence
from agentgym_envs.vector import StepResult

Gap = tuple[float, str]
"""How far something is off, and where."""

Exchange = tuple[Sequence[int], Sequence[int]]
"""The tokens of a prompt and of its reply, as they passed through an engine."""

ToSequence = Callable[[Episode], TokenSequence]

_OBSERVATIONS = (
    "You see a red ball 1 and a door.",
    "You turned left.",
    "\n".join(f"A grey key {n} is {n} steps ahead." for n in range(1, 13)),
)
_REPLIES = {
    "plain replies": "go to red ball 1",
    "replies with thoughts": "<think>\nThe ball is near.\n</think>\n\ngo to red ball 1",
}


@dataclasses.dataclass(frozen=True)
class Check:
    """The outcome of a check.

    Attributes:
        name: what it is called.
        passed: whether everything is as it must be.
        figure: the largest gap that was found.
        tolerance: the largest gap that passes.
        detail: what the figure is and where it was found; on failure also what it means and what to
            do.
    """

    name: str
    passed: bool
    figure: float
    tolerance: float
    detail: str

    def __str__(self) -> str:
        outcome = "passed" if self.passed else "FAILED"
        bound = f"(at most {self.tolerance:.2g})"
        return f"{self.name:8} {outcome} {self.figure:8.2g} {bound:17} {self.detail}"


def judge(
    name: str, gaps: Iterable[Gap], tolerance: float = 0.0, *, what: str, meaning: str
) -> Check:
    """The check that passes if there are gaps to look at and none is above `tolerance`.

    Args:
        name: of the check.
        gaps: what was looked at; NaN never passes.
        tolerance: largest gap that passes.
        what: what a gap is, with its unit.
        meaning: on failure, what it means and what to do.
    """
    found = list(gaps) or [(float("nan"), "nothing was there to look at")]
    figure, where = max(found, key=lambda gap: (gap[0] != gap[0], gap[0]))
    beyond = sum(not gap <= tolerance for gap, _ in found)
    detail = f"{what} ({len(found)} looked at)" + (f": {where}" if figure else "")
    if beyond:
        detail += f"; {beyond} above the limit. {meaning}"
    return Check(name, not beyond, figure, tolerance, detail)


class Chat(Protocol):
    """What turns the texts of an episode into tokens and back."""

    def open(self, instructions: str, observation: str) -> list[int]:
        """The tokens before the first reply."""
        ...

    def extend(self, observation: str, *, closed: bool) -> list[int]:
        """The tokens between a reply and the next; `closed` if the reply's end was sampled."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, control tokens as they are spelled."""
        ...

    def encode_reply(self, text: str) -> list[int]:
        """A reply with the end of its turn, as a model that writes `text` would sample them."""
        ...

    def rendered(self, instructions: str, texts: Sequence[str]) -> list[int]:
        """A whole conversation by the template, up to the next reply; an observation first."""
        ...


def check_template(
    episodes: Sequence[Episode], chat: Chat, instructions: str, *, append: bool = False
) -> Check:
    """Whether appending gives what the template itself renders of a conversation, turn by turn.

    The conversations are made up, one with plain replies and one with thoughts. How many of the
    episodes would change is told and fails nothing: sampled tokens need not be those that their
    text encodes to, which is why they are kept.

    Args:
        episodes: records with tokens.
        chat: appends.
        instructions: what stands in front of the conversation.
        append: pass whatever the template renders: earlier turns are what was appended.
    """

    def gaps() -> Iterator[Gap]:
        for kind, reply in _REPLIES.items():
            texts, tokens = [], chat.open(instructions, _OBSERVATIONS[0])
            for turn, observation in enumerate(_OBSERVATIONS):
                if turn:
                    texts.append(reply)
                    tokens = tokens + chat.encode_reply(reply)
                    tokens = tokens + chat.extend(observation, closed=True)
                texts.append(observation)
                rendered = chat.rendered(instructions, texts)
                parting = "" if tokens == rendered else _rewriting(chat, tokens, rendered)
                yield float(bool(parting)), f"turn {turn} with {kind}{parting}"

    changed = sum(_rerendered(chat, instructions, ep) != _last_prompt(ep) for ep in episodes)
    return judge(
        "template",
        gaps(),
        float(append),
        what="prompts that the chat template renders otherwise; rendered again, "
        f"{changed} of {len(episodes)} sampled episodes would have other tokens",
        meaning="Sampler and learner both append, so training is exact; but a server that renders "
        "every conversation anew shows the model what it was not trained on. Take a template that "
        "keeps what was said, or name the policy, --append, and serve by appending too",
    )


def _rewriting(chat: Chat, appended: list[int], rendered: list[int]) -> str:
    """Where two sequences part, and whether only in tokens."""
    at = _common(appended, rendered)
    kind = "text" if chat.decode(appended) != chat.decode(rendered) else "tokens, the same text"
    ours, theirs = (chat.decode(ids[at : at + 12]) for ids in (appended, rendered))
    return f": other {kind} from token {at} on, {ours!r} appended, {theirs!r} rendered"


def _rerendered(chat: Chat, instructions: str, episode: Episode) -> list[int]:
    replies = [text for turn in episode.turns[:-1] for text in (turn.reply, turn.observation)]
    return chat.rendered(instructions, [episode.first_observation, *replies])


def _last_prompt(episode: Episode) -> list[int]:
    return episode.token_ids[: -len(episode.turns[-1].sampled_ids or ())]


def check_prompts(episodes: Iterable[Episode], exchanges: Collection[Exchange]) -> Check:
    """Whether each turn's prompt and reply passed through the engine as they are recorded.

    Args:
        episodes: records with tokens.
        exchanges: everything that passed through the engine.
    """
    sent = {(tuple(prompt), tuple(reply)) for prompt, reply in exchanges}

    def gaps() -> Iterator[Gap]:
        for episode in episodes:
            tokens: tuple[int, ...] = ()
            for number, turn in enumerate(episode.turns):
                prompt, reply = (*tokens, *(turn.context_ids or ())), (*(turn.sampled_ids or ()),)
                tokens = prompt + reply
                place = f"{_name(episode)}, turn {number}"
                if (prompt, reply) in sent:
                    yield 0.0, place
                else:
                    same_reply = [p + r for p, r in sent if r == reply]
                    yield 1.0, place + _parting(tokens, same_reply or [p + r for p, r in sent])

    return judge(
        "prompts",
        gaps(),
        what="turns whose prompt or reply is not the record",
        meaning="The learner would train in another context than replies were sampled in. Send the "
        "recorded tokens to the engine, never a conversation that was rendered or encoded again",
    )


def _parting(recorded: tuple[int, ...], sent: Iterable[tuple[int, ...]]) -> str:
    """Where a record parts from what is nearest to it of all that was sent."""
    nearest = max(sent, key=lambda other: _common(recorded, other), default=())
    at = _common(recorded, nearest)
    return (
        f": from token {at} on {list(nearest[at : at + 4])} at the engine, "
        f"{list(recorded[at : at + 4])} in the record"
    )


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """How long the beginning is that two sequences have in common."""
    same = (a == b for a, b in zip(one, other, strict=False))
    return sum(itertools.takewhile(bool, same))


def check_mask(
    episodes: Iterable[Episode],
    chat: Chat,
    instructions: str,
    to_sequence: ToSequence = token_sequence,
) -> Check:
    """Whether the tokens under the mask are the policy's words and all others are not, by decoding.

    Args:
        episodes: records with tokens.
        chat: turned the texts into tokens.
        instructions: what stood in front of the conversation.
        to_sequence: makes the sequence whose mask is looked at.
    """

    def gaps() -> Iterator[Gap]:
        for episode in episodes:
            found, expected = _read(to_sequence(episode), chat), _said(episode, chat, instructions)
            for number, (read, said) in enumerate(itertools.zip_longest(found, expected)):
                place = f"{_name(episode)}, stretch {number}"
                yield float(read != said), place if read == said else place + _misread(read, said)

    return judge(
        "mask",
        gaps(),
        what="stretches of tokens that decode to other words",
        meaning="The loss would fall on words that the policy did not choose, or miss some that it "
        "did. Store what was sampled when it is sampled; never find it again by its text",
    )


def _read(sequence: TokenSequence, chat: Chat) -> Iterator[tuple[bool, str]]:
    """The texts of the runs of tokens with the same mask."""
    tokens = zip(sequence.sampled_mask.tolist(), sequence.token_ids.tolist(), strict=True)
    for sampled, run in itertools.groupby(tokens, key=lambda token: token[0]):
        yield sampled, chat.decode([token for _, token in run])


def _said(episode: Episode, chat: Chat, instructions: str) -> Iterator[tuple[bool, str]]:
    """What world and policy said in turns: from the texts of the record, not from its tokens."""
    context = chat.open(instructions, episode.first_observation)
    for turn in episode.turns:
        closed = turn.finish_reason == "stop"
        yield False, chat.decode(context)
        yield True, turn.reply + chat.decode(list(turn.sampled_ids or ())[-1:] if closed else [])
        context = chat.extend(turn.observation, closed=closed)


def _misread(read: tuple[bool, str] | None, said: tuple[bool, str] | None) -> str:
    mask, text = read or (False, "")
    expected_mask, expected = said or (False, "")
    at = _common(text, expected)
    kinds = ("given", "sampled")
    return (
        f": from letter {at} on {kinds[mask]} {text[at : at + 40]!r} instead of "
        f"{kinds[expected_mask]} {expected[at : at + 40]!r}"
    )


class TippedEnvs:
    """A vector of environments that pays ``2**-n`` more for turn n, counted from 1.

    An untrained policy earns nothing, and nothing shows whether rewards are lost or counted twice
    on their way into the record. `with_tips` adds the same to what the world pays.

    Args:
        envs: a `TextVectorEnv`, used by ``send``, ``send_reset`` and ``recv``.
    """

    def __init__(self, envs: Any) -> None:
        self._envs = envs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._envs, name)

    def recv(self, timeout: float | None = None) -> list[tuple[int, StepResult]]:
        """As `TextVectorEnv.recv`."""
        return [
            (index, result if result.is_reset or result.fault else _tipped(result))
            for index, result in self._envs.recv(timeout)
        ]


def _tipped(result: StepResult) -> StepResult:
    return result._replace(reward=result.reward + 0.5 ** result.info["turn"])


def with_tips(rewards: Iterable[float]) -> list[float]:
    """Rewards turn by turn, as `TippedEnvs` pays them."""
    return [reward + 0.5**turn for turn, reward in enumerate(rewards, start=1)]


def play_again(env: TextEnv, episode: Episode) -> list[float]:
    """The rewards that the replies of `episode` earn in another environment, turn by turn."""
    env.reset(seed=episode.seed, options={"task": episode.task, "horizon": episode.horizon})
    return [float(env.step(turn.reply)[1]) for turn in episode.turns]


def check_rewards(
    episodes: Sequence[Episode],
    paid: Iterable[Sequence[float]],
    to_sequence: ToSequence = token_sequence,
) -> Check:
    """Whether the sampled tokens of an episode carry all its rewards, each turn's on its own.

    Every episode is looked at as it is and cut after each of its turns; and, because an untrained
    policy earns nothing, both once more with ``2**-k`` for turn k.

    Args:
        episodes: records with tokens.
        paid: the rewards of each episode's turns as the world pays them.
        to_sequence: makes the sequence whose rewards are looked at.
    """

    def gaps() -> Iterator[Gap]:
        for episode, rewards in zip(episodes, paid, strict=True):
            for count in range(1, len(episode.turns) + 1):
                real = to_sequence(_cut(episode, [turn.reward for turn in episode.turns[:count]]))
                marks = 0.5 ** np.arange(count)
                marked = to_sequence(_cut(episode, marks.tolist()))
                placed = np.bincount(marked.turn_index, marked.rewards, minlength=count)
                place = f"{_name(episode)}, cut after turn {count - 1}"
                yield abs(float(real.rewards.sum()) - sum(rewards[:count])), place
                yield float(np.abs(placed - marks).max()), f"{place}, turns paid {marks.tolist()}"

    return judge(
        "rewards",
        gaps(),
        1e-9,
        what="difference between rewards on tokens and rewards of the world",
        meaning="What the world pays does not reach the tokens that earned it. Put a turn's reward "
        "on its last sampled token; if instead the world does not repeat itself, which python -m "
        "agentgym_envs check tells, mend the world",
    )


def check_logprobs(
    sequences: Iterable[TokenSequence], scored: Iterable[FloatArray], tolerance: float
) -> Check:
    """Whether a learner gives sampled tokens the log-probabilities that the sampler gave.

    Args:
        sequences: with the sampler's log-probabilities.
        scored: the learner's, of the sampled tokens of each sequence: (n,).
        tolerance: what rounding may do, in nats.
    """

    def gaps() -> Iterator[Gap]:
        for sequence, logprobs in zip(sequences, scored, strict=True):
            if sequence.old_logprobs is None:
                continue
            tokens = sequence.token_ids[sequence.sampled_mask]
            for at, gap in enumerate(np.abs(logprobs - sequence.old_logprobs).tolist()):
                turn = sequence.turn_index[at]
                yield gap, f"token {tokens[at]}, turn {turn}, {sequence.origin}"

    return judge(
        "logprobs",
        gaps(),
        tolerance,
        what="nats between sampler and learner",
        meaning="They have different distributions, so every ratio would be wrong from the start. "
        "Look for another temperature, top-k or top-p, precision, or for weights that the sampler "
        "did not load",
    )


def _cut(episode: Episode, rewards: Sequence[float]) -> Episode:
    """The first turns of an episode, with other rewards."""
    pairs = zip(episode.turns, rewards, strict=False)
    turns = [dataclasses.replace(turn, reward=reward) for turn, reward in pairs]
    return dataclasses.replace(episode, turns=turns)


def _name(episode: Episode) -> str:
    return f"task {episode.task.id!r}, member {episode.member}"
