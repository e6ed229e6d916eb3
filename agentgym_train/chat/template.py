"""From texts to token ids that only ever grow: chat templates as frames around texts.

A chat template is a program that renders a whole conversation. Re-rendering it every turn is how
trainers end up updating on tokens that were never sampled: decoding and encoding a reply may give
other ids, and some templates rewrite earlier replies (they drop old thoughts). Here a template is
asked once, with marks for contents, what text stands around an observation; from then on the
tokens of a turn are appended to what is there. Replies stay exactly as sampled, thoughts included.

Texts of the world are text: a control string such as ``<|im_end|>`` inside an observation is
encoded letter by letter, never as the control token.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jinja2

from agentgym_train.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SYSTEM, _FIRST, _REPLY, _SECOND, _LATER, _THIRD = (
    f"Zq{name}qZ" for name in ("system", "first", "reply", "second", "later", "third")
)
# Some templates print today's date unless they are given one; transcripts must not change by day.
_DATE = "26 Jul 2024"
_TEMPLATE_ERRORS = (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError)


@dataclasses.dataclass(frozen=True)
class _Frame:
    """The text around contents.

    Attributes:
        pieces: one more than there are contents: before, between and after them.
        strip: for each content, whether the template strips white space from its ends.
    """

    pieces: tuple[str, ...]
    strip: tuple[bool, ...]

    def fit(self, contents: Sequence[str]) -> list[str]:
        return [
            content.strip() if strip else content
            for content, strip in zip(contents, self.strip, strict=True)
        ]


class ChatTemplate:
    """Encodes instructions, observations and replies for one tokenizer.

    An episode's tokens are ``open(…)``, the sampled reply, ``extend(…)``, the next reply, and so
    on, each appended to the last.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.

    Attributes:
        stop_ids: tokens that end a reply: the template's own, and the tokenizer's end of text.

    Raises:
        ModelError: no template, or one whose turns cannot be appended.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not tokenizer.chat_template:
            raise ModelError(
                "the tokenizer has no chat template; take the instruction-tuned model of the "
                "family, or add chat_template.jinja to its folder"
            )
        self._tokenizer = tokenizer
        self._open = self._derive((("user", _FIRST),))
        self._open_system = self._derive_system()
        self._turn = self._derive_turn(generation_prompt=True)
        self._tail = self._derive_turn(generation_prompt=False)
        self._closing = self._derive_closing()
        self._control = self._control_pattern()
        self.stop_ids = self._derive_stop_ids()

    def open(self, instructions: str, observation: str) -> list[int]:
        """The tokens before the first reply.

        Args:
            instructions: go into a system message, or, where the template has none, before the
                observation; "" for none.
            observation: the first observation.
        """
        if not instructions:
            return self._encode(self._open, [observation])
        if self._open_system:
            return self._encode(self._open_system, [instructions, observation])
        return self._encode(self._open, [f"{instructions}\n\n{observation}"])

    def extend(self, observation: str, *, closed: bool) -> list[int]:
        """The tokens between a reply and the next.

        Args:
            observation: what answers the reply.
            closed: whether the sampled reply ends with a stop token. If not, the end of the turn
                comes first here; it was not sampled.
        """
        ids = self._encode(self._turn, [observation])
        return ids[len(self._closing) :] if closed else ids

    def tail(self, observation: str, *, closed: bool) -> list[int]:
        """As `extend`, for an observation that no reply follows."""
        ids = self._encode(self._tail, [observation])
        return ids[len(self._closing) :] if closed else ids

    def encode_reply(self, text: str) -> list[int]:
        """A reply and the end of its turn, as a model that writes `text` would sample them.

        Control strings within `text` are encoded as text.
        """
        return self._encode(_Frame(("", ""), (False,)), [text]) + list(self._closing)

    def reply_text(self, sampled_ids: Sequence[int]) -> str:
        """The text of a sampled reply, without the stop token at its end.

        Other control tokens stay in the text as they are spelled: whoever reads the reply shall
        see everything that was sampled.
        """
        ended = bool(sampled_ids) and sampled_ids[-1] in self.stop_ids
        ids = list(sampled_ids[:-1] if ended else sampled_ids)
        text = self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(text)

    # ---------------------------------------------------------------------------------- encode

    def _encode(self, frame: _Frame, contents: Sequence[str]) -> list[int]:
        """Encode pieces and contents as one text, so that tokens may span their borders."""
        fitted = frame.fit(contents)
        text = frame.pieces[0] + "".join(
            content + piece for content, piece in zip(fitted, frame.pieces[1:], strict=True)
        )
        if not any(self._control.search(content) for content in fitted):
            return self._ids(text)
        ids = self._ids(frame.pieces[0])
        for content, piece in zip(fitted, frame.pieces[1:], strict=True):
            ids += self._encode_plain(content) + self._ids(piece)
        return ids

    def _encode_plain(self, text: str) -> list[int]:
        """Encode with every control string cut in two, so that none is recognized."""
        ids: list[int] = []
        start = 0
        while found := self._control.search(text, start):
            cut = found.start() + 1
            ids += self._ids(text[start:cut], plain=True)
            start = cut
        return ids + self._ids(text[start:], plain=True)

    def _ids(self, text: str, *, plain: bool = False) -> list[int]:
        ids: list[int] = self._tokenizer.encode(
            text, add_special_tokens=False, split_special_tokens=plain
        )
        return ids

    # ---------------------------------------------------------------------------------- derive

    def _render(self, turns: Sequence[tuple[str, str]], *, generation_prompt: bool) -> str:
        messages = [{"role": role, "content": content} for role, content in turns]
        try:
            text = self._tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=generation_prompt,
                date_string=_DATE,
            )
        except _TEMPLATE_ERRORS as error:
            roles = ", ".join(role for role, _ in turns)
            raise ModelError(f"the chat template fails on messages of {roles}: {error}") from error
        return str(text)

    def _derive(
        self, turns: Sequence[tuple[str, str]], *, generation_prompt: bool = True
    ) -> _Frame:
        """Find out what stands around the contents of `turns`, all of them marks."""
        text = self._render(turns, generation_prompt=generation_prompt)
        marks = [content for _, content in turns]
        parts = re.split(f"({'|'.join(marks)})", text)
        if parts[1::2] != marks:
            raise ModelError(
                "the chat template cannot be used turn by turn: it drops, repeats or reorders "
                f"messages (of {len(marks)} it rendered {len(parts) // 2}); take another template"
            )
        pieces = tuple(parts[0::2])
        strip = tuple(
            self._strips(turns, index, pieces, generation_prompt) for index in range(len(marks))
        )
        return _Frame(pieces, strip)

    def _strips(
        self, turns: Sequence[tuple[str, str]], index: int, pieces: Sequence[str], prompt: bool
    ) -> bool:
        """Whether content `index` loses white space; any other change is refused."""
        role, mark = turns[index]
        if role == "assistant":
            return False  # replies are never rendered
        content = f" \n<b> {{{{x}}}} &amp; {mark}\n "
        text = self._render(
            [*turns[:index], (role, content), *turns[index + 1 :]], generation_prompt=prompt
        )
        for strip in (False, True):
            contents = [shown for _, shown in turns]
            contents[index] = content.strip() if strip else content
            if text == pieces[0] + "".join(
                shown + piece for shown, piece in zip(contents, pieces[1:], strict=True)
            ):
                return strip
        raise ModelError(
            f"the chat template changes the text of a {role} message by more than stripping it; "
            "take another template"
        )

    def _derive_system(self) -> _Frame | None:
        """The opening with a system message, or None where it cannot be appended to."""
        opening = (("system", _SYSTEM), ("user", _FIRST))
        try:
            frame = self._derive(opening)
            before = self._render(opening, generation_prompt=False)
            after = self._derive(
                (*opening, ("assistant", _REPLY), ("user", _SECOND)), generation_prompt=True
            )
        except ModelError:
            return None
        start = before.rpartition(_FIRST)[0]
        stays = (after.pieces[0] + _SYSTEM + after.pieces[1]) == start
        return frame if stays else None

    def _derive_turn(self, *, generation_prompt: bool) -> _Frame:
        """What stands between a reply and an observation, and after it."""
        turns = (
            ("user", _FIRST),
            ("assistant", _REPLY),
            ("user", _SECOND),
            ("assistant", _LATER),
            ("user", _THIRD),
        )
        frame = self._derive(turns, generation_prompt=generation_prompt)
        _, _, second, _, third, after = frame.pieces
        if frame.pieces[0] != self._open.pieces[0] or second != third:
            raise ModelError(
                "the chat template does not extend by appending: what it puts around a message "
                "depends on the messages after it; take another template"
            )
        return _Frame((third, after), frame.strip[-1:])

    def _derive_closing(self) -> list[int]:
        """The tokens from the end of a reply to the first control token: the end of its turn."""
        ids = self._ids(self._turn.pieces[0])
        for index, token_id in enumerate(ids):
            if token_id in self._tokenizer.added_tokens_decoder:
                return ids[: index + 1]
        raise ModelError(
            "the chat template marks no end of a reply: no control token stands between a reply "
            f"and the next message, only {self._turn.pieces[0]!r}"
        )

    def _derive_stop_ids(self) -> frozenset[int]:
        stop = self._closing[-1]
        added = self._tokenizer.added_tokens_decoder
        between = [token_id for token_id in self._ids(self._turn.pieces[0]) if token_id in added]
        eos = self._tokenizer.eos_token_id
        if eos is None or len(between) == 1:
            # One token ends the reply and opens the next turn; an end of text would not open it.
            return frozenset({stop})
        return frozenset({stop, eos})

    def _control_pattern(self) -> re.Pattern[str]:
        """Matches what must not become a control token in a text: special tokens, and what
        separates turns. Other added tokens (``<think>``) are words like any other.
        """
        separators = set(self._ids(self._turn.pieces[0]))
        controls = [
            token.content
            for token_id, token in self._tokenizer.added_tokens_decoder.items()
            if token.special or token_id in separators
        ]
        longest_first = sorted(controls, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)))
