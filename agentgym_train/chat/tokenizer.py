"""A small tokenizer of one's own, for models trained from scratch.

Byte-level BPE over transcripts, so every text can be encoded and decoding gives it back, and a
chat template that spends one token on each role: ``<|user|>…<|assistant|>…<|end|>``. Only
replies are closed; an observation ends where the next role begins.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from agentgym_train.errors import ModelError

SPECIAL_TOKENS = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role not in ("system", "user", "assistant") -%}
{{- raise_exception("expected the role system, user or assistant, got " ~ message.role) -}}
{%- endif -%}
{{- "<|" ~ message.role ~ "|>" ~ message.content -}}
{%- if message.role == "assistant" -%}{{- "<|end|>" -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|assistant|>" -}}{%- endif -%}
"""


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer with special tokens and a chat template.

    The same texts in the same order give the same tokenizer, whatever the number of threads.

    Args:
        texts: what the model will read and write: instructions, observations, replies.
        vocab_size: most token ids, special tokens included; few texts may give fewer.

    Raises:
        ModelError: `vocab_size` leaves no room for all bytes.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    smallest = len(alphabet) + len(SPECIAL_TOKENS)
    if vocab_size < smallest:
        raise ModelError(
            f"a byte-level vocabulary needs at least {smallest} ids, one for each byte and "
            f"special token; got vocab_size {vocab_size}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        additional_special_tokens=SPECIAL_TOKENS[2:],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
