"""Chat templates as models of the field have them, and tiny models to go with them."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from agentgym_train.chat.tokenizer import train_tokenizer

_TEXTS = [
    f"red ball {i % 3} f{i % 7} l2 , grey key 1 f1 . wall f{i % 5}\ngo to red ball 1"
    for i in range(200)
]
_TOKENIZER = train_tokenizer(_TEXTS, 400)
_MARKERS = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    *("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("[INST]", "[/INST]", "<s>", "</s>", "<start_of_turn>", "<end_of_turn>"),
)

CHATML = """\
{%- for m in messages -%}
{{- "<|im_start|>" + m.role + "\\n" + m.content + "<|im_end|>\\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|im_start|>assistant\\n" -}}{%- endif -%}
"""
DEFAULT_SYSTEM = (
    """\
{%- if messages[0].role != "system" -%}
{{- "<|im_start|>system\\nBe helpful.<|im_end|>\\n" -}}
{%- endif -%}
"""
    + CHATML
)
THOUGHT_STRIPPING = """\
{%- set state = namespace(last=0) -%}
{%- for m in messages -%}
{%- if m.role == "user" -%}{%- set state.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
{%- set content = m.content -%}
{%- if m.role == "assistant" and "</think>" in content and loop.index0 < state.last -%}
{%- set content = content.split("</think>")[-1].lstrip("\\n") -%}
{%- endif -%}
{{- "<|im_start|>" + m.role + "\\n" + content + "<|im_end|>\\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|im_start|>assistant\\n" -}}{%- endif -%}
"""
HEADERS = """\
{{- "<s>" -}}
{%- for m in messages -%}
{{- "<|start_header_id|>" + m.role + "<|end_header_id|>\\n\\n" + m.content | trim -}}
{{- "<|eot_id|>" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- "<|start_header_id|>assistant<|end_header_id|>\\n\\n" -}}
{%- endif -%}
"""
INST = """\
{{- "<s>" -}}
{%- for m in messages -%}
{%- if m.role == "system" -%}{{- raise_exception("only user and assistant roles") -}}{%- endif -%}
{%- if m.role == "user" -%}{{- "[INST] " + m.content + " [/INST]" -}}
{%- else -%}{{- m.content + "</s>" -}}{%- endif -%}
{%- endfor -%}
"""
TURNS = """\
{{- "<s>" -}}
{%- for m in messages -%}
{%- set role = "model" if m.role == "assistant" else m.role -%}
{%- if role == "system" -%}{{- raise_exception("System role not supported") -}}{%- endif -%}
{{- "<start_of_turn>" + role + "\\n" + m.content | trim + "<end_of_turn>\\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<start_of_turn>model\\n" -}}{%- endif -%}
"""
BY_POSITION = """\
{%- for m in messages -%}
{{- "<|im_start|>" + m.role + (" last" if loop.revindex <= 2 else "") + "\\n" + m.content -}}
{{- "<|im_end|>\\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|im_start|>assistant\\n" -}}{%- endif -%}
"""

_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 4096,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
}


def with_template(template: str) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer that knows the markers of all templates."""
    tokenizer = copy.deepcopy(_TOKENIZER)
    tokenizer.add_special_tokens({"additional_special_tokens": list(_MARKERS)})
    tokenizer.bos_token = tokenizer.eos_token = "<|endoftext|>"
    tokenizer.chat_template = template
    return tokenizer


def merging_tokenizer() -> PreTrainedTokenizerFast:
    """Its tokens span words, and its roles are words: a reply merges with what stands before it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["</s>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["\nassistant: go to red ball 1"] * 50, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="</s>",
        chat_template="{%- for m in messages -%}{{- '\n' + m.role + ': ' + m.content + '</s>' -}}"
        "{%- endfor -%}{%- if add_generation_prompt -%}{{- '\nassistant: ' -}}{%- endif -%}",
    )


def save_chat_model(
    folder: Path, template: str, architecture: str = "llama", **settings: object
) -> str:
    """Write a model folder with random weights, as `save_pretrained` does."""
    tokenizer = with_template(template)
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokenizer), **_SIZES | {"num_key_value_heads": 2} | settings
    )
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
