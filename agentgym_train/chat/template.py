"""From texts to token ids that only ever grow: chat templates as frames around texts.

A chat template is a program that renders a whole conversation. Re-rendering it every turn is how
trainers end up updating on tokens that were never sampled: decoding and encoding a reply may give
other ids, and some templates rewrite earlier replies (they drop old thoughts). Here a template is
asked once, with marks for contents, what text stands around them; from then on the tokens of a
turn are appended to what is there. Replies stay exactly as sampled, thoughts included.

Where a template extends a conversation by appending, the tokens equal its own rendering. One that
does otherwise is refused, but for two habits: thoughts that it would drop are kept, and a system
message that it does not have, or moves to a later turn, goes before the first observation.

Texts of the world are text: a control string such as ``<|im_end|>`` inside an observation is
encoded letter by letter, never as the control token. Where a template marks roles by plain words
(``[INST]`` in some vocabularies), a text can imitate them; no encoding can tell them apart.
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

# Goes before templates, some of which print today's date: transcripts must not change by day.
_FIXED_DATE = """\
{%- macro strftime_now(format) -%}
{{- format | replace("%d", "26") | replace("%b", "Jul") | replace("%B", "July")
           | replace("%m", "07") | replace("%Y", "2024") -}}
{%- endmacro -%}
"""
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
                f"the tokenizer in {tokenizer.name_or_path!r} has no chat template; take the "
                "instruction-tuned model of the family, or add chat_template.jinja to its folder"
            )
        self._tokenizer = tokenizer
        self._open = self._derive("user")
        self._turn, self._lead = self._derive_turn()
        self._open_system = self._derive_system()

        added, border = tokenizer.added_tokens_decoder, self._turn.pieces[0]
        border_ids = self._ids(border)
        separators = [token for token in border_ids if token in added]
        if not separators:
            raise ModelError(
                "the chat template marks no end of a reply: no control token stands between a "
                f"reply and the next message, only {border!r}"
            )
        stop, eos = separators[0], tokenizer.eos_token_id
        self._closing_ids = border_ids[: border_ids.index(stop) + 1]
        self._closing = "".join(border.partition(added[stop].content)[:2])
        # A single separator ends the reply and opens the next turn; an end of text would not.
        only_stop = eos is None or len(separators) == 1
        self.stop_ids = frozenset({stop} if only_stop else {stop, eos})
        # Other added tokens (``<think>``) are words like any other.
        controls = [t.content for i, t in added.items() if t.special or i in separators]
        longest_first = sorted(controls, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)))

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
        return ids[len(self._closing_ids) :] if closed else ids

    def encode_reply(self, text: str) -> list[int]:
        """A reply and the end of its turn, as a model that writes `text` would sample them.

        Control strings within `text` are encoded as text. Where the generation prompt opens a
        thought, the reply begins inside it.
        """
        # Behind the prompt, since some tokenizers put a blank before the first word of a text.
        prompt = self._turn.pieces[-1]
        before = self._ids(prompt)
        ids = self._encode(_Frame((prompt + self._lead, self._closing), (False,)), [text])
        if ids[: len(before)] == before:
            return ids[len(before) :]
        # A token spans the border: the prompt is there already, so the reply begins anew.
        return self._encode(_Frame((self._lead, self._closing), (False,)), [text])

    def reply_text(self, sampled_ids: Sequence[int]) -> str:
        """The text of a sampled reply, without the stop token at its end.

        Other control tokens stay in the text as they are spelled: whoever reads the reply shall
        see everything that was sampled.
        """
        ended = bool(sampled_ids) and sampled_ids[-1] in self.stop_ids
        return self.decode(sampled_ids[:-1] if ended else sampled_ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, control tokens as they are spelled."""
        text = self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(text)

    def rendered(self, instructions: str, texts: Sequence[str]) -> list[int]:
        """A conversation by the template itself and encoded as a whole, up to the next reply.

        Only for comparison with what was appended: control strings become control tokens here.

        Args:
            instructions: as for `open`.
            texts: observations and replies by turns, an observation first and last.

        Raises:
            ModelError: the template refuses the messages.
        """
        turns = [(("user", "assistant")[at % 2], text) for at, text in enumerate(texts)]
        if instructions and self._open_system:
            turns.insert(0, ("system", instructions))
        elif instructions:
            turns[0] = ("user", f"{instructions}\n\n{texts[0]}")
        return self._ids(self._render(*zip(*turns, strict=True)))

    # ---------------------------------------------------------------------------------- encode

    def _encode(self, frame: _Frame, contents: Sequence[str]) -> list[int]:
        """Encode pieces and contents as one text, so that tokens may span their borders."""
        pairs = zip(contents, frame.strip, strict=True)
        fitted = [content.strip() if strip else content for content, strip in pairs]
        start, *others = frame.pieces
        parts = list(zip(fitted, others, strict=True))
        if not any(self._control.search(content) for content in fitted):
            return self._ids(start + "".join(content + piece for content, piece in parts))
        ids = self._ids(start)
        for content, piece in parts:
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

    def _render(self, roles: Sequence[str], contents: Sequence[str]) -> str:
        pairs = zip(roles, contents, strict=True)
        try:
            text = self._tokenizer.apply_chat_template(
                [{"role": role, "content": content} for role, content in pairs],
                chat_template=_FIXED_DATE + self._tokenizer.get_chat_template(),
                tokenize=False,
                add_generation_prompt=True,
            )
        except _TEMPLATE_ERRORS as error:
            raise ModelError(
                f"the chat template fails on messages of {', '.join(roles)}: {error}"
            ) from error
        return str(text)

    def _derive(self, *roles: str) -> _Frame:
        """Find out what stands around the contents of messages, by rendering marks."""
        marks = [f"Zq{number}qZ" for number in range(len(roles))]
        parts = re.split(f"({'|'.join(marks)})", self._render(roles, marks))
        if parts[1::2] != marks:
            raise ModelError(
                "the chat template cannot be used turn by turn: it drops, repeats or reorders "
                f"messages (of {len(marks)} it rendered {len(parts) // 2}); take another template"
            )
        pieces, strip = parts[0::2], []
        # Replies are never rendered, so what happens to their texts does not matter.
        texts = [
            mark if role == "assistant" else f" \n<b> {{{{x}}}} &amp; {mark}\n "
            for role, mark in zip(roles, marks, strict=True)
        ]
        rest = self._render(roles, texts).removeprefix(pieces[0])
        for role, text, piece in zip(roles, texts, pieces[1:], strict=True):
            strip.append(not rest.startswith(text + piece))
            shown = (text.strip() if strip[-1] else text) + piece
            if not rest.startswith(shown):
                raise ModelError(
                    f"the chat template changes the text of a {role} message by more than "
                    "stripping it; take another template"
                )
            rest = rest.removeprefix(shown)
        return _Frame(tuple(pieces), tuple(strip))

    def _derive_turn(self) -> tuple[_Frame, str]:
        """What stands around an observation after a reply, and between a prompt and its reply."""
        frame = self._derive("user", "assistant", "user", "assistant", "user")
        start, prompt = self._open.pieces
        between, border = frame.pieces[1:3]
        if frame.pieces != (start, between, border, between, border, prompt):
            raise ModelError(
                "the chat template does not extend by appending: what it puts around a message "
                "depends on the messages after it; take another template"
            )
        if not prompt.startswith(between.rstrip()):
            raise ModelError(
                f"the chat template puts {between!r} before a reply, but a prompt for one ends "
                f"with {prompt!r}; let it heed add_generation_prompt"
            )
        lead = between.removeprefix(prompt) if between.startswith(prompt) else ""
        return _Frame((border, prompt), frame.strip[-1:]), lead

    def _derive_system(self) -> _Frame | None:
        """The opening with a system message, or None where it cannot be appended to."""
        try:
            frame = self._derive("system", "user")
            later = self._derive("system", "user", "assistant", "user").pieces
        except ModelError:
            return None
        stays = (*later[:2], *later[3:]) == (*frame.pieces[:2], *self._turn.pieces)
        return frame if stays else None
