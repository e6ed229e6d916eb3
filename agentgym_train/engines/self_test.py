"""Which models an engine can sample from: by their settings, and by a test against themselves."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from agentgym_train.engines.base import Engine, Request
from agentgym_train.errors import ConfigError, ModelError
from agentgym_train.model import hidden_states, logits_of

_TURN = 5
_REPLY = 3
_STREAM = -1


def check_architecture(model: PreTrainedModel, max_context: int) -> None:
    """Refuse a model that does not see all of `max_context` tokens with plain attention.

    Raises:
        ConfigError: the context exceeds the model's positions.
        ModelError: an encoder-decoder, windowed, recurrent or otherwise unfit model.
    """
    config = model.config.get_text_config()
    name = type(model).__name__
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and max_context > positions:
        raise ConfigError(
            f"the context of {max_context} tokens exceeds the {positions} positions of {name}; "
            "lower it, or take a model with a longer context"
        )
    if model.config.is_encoder_decoder:
        raise ModelError(f"{name} is an encoder-decoder model; take a decoder-only one")
    implementation = config._attn_implementation
    if implementation not in ("sdpa", "eager"):
        raise ModelError(
            f"the torch engine needs the attention 'sdpa' or 'eager', got {implementation!r}; "
            "load the model with attn_implementation='sdpa'"
        )
    kinds = set(getattr(config, "layer_types", None) or ())
    window = getattr(config, "sliding_window", None)
    slides = "sliding_attention" in kinds or (
        not kinds and window is not None and getattr(config, "use_sliding_window", True)
    )
    if kinds - {"full_attention", "sliding_attention"} or (
        slides and (window is None or window < max_context)
    ):
        raise ModelError(
            f"{name} has attention that does not see all tokens (layers {sorted(kinds)}, window "
            f"{window}); lower the context to the window, or take a model with full attention"
        )


def check_parity(engine: Engine, model: PreTrainedModel, *, exact: bool) -> None:
    """Refuse a model whose log-probabilities an idle engine does not give.

    Args:
        engine: samples from `model`; too short a context for two turns is not tested.
        model: the model.
        exact: whether the engine computes in the model's own precision.

    Raises:
        ModelError: the engine fails on the model, or differs from it by more than rounding.
    """
    if engine.max_context < 2 * (_TURN + _REPLY):
        return
    name = type(model).__name__
    try:
        gap = max_logprob_gap(engine, model)
    except (ValueError, TypeError, IndexError) as error:
        raise ModelError(f"{name} cannot run on this engine's cache: {error}") from error
    limit = 1e-3 if exact and model.dtype in (torch.float32, torch.float64) else 0.5
    if not gap <= limit:
        raise ModelError(
            f"sampling from {name} with a cache differs from its plain forward pass by {gap:.1e} "
            f"nats (up to {limit:.0e} is rounding); its attention is not supported, take a model "
            "of another architecture"
        )


def max_logprob_gap(engine: Engine, model: PreTrainedModel) -> float:
    """The largest difference between an engine's log-probabilities and the model's own.

    Samples two turns of a stream and scores all tokens in one forward pass without a cache. The
    engine must be idle; the stream is released.

    Returns:
        The difference in nats. Rounding alone gives 1e-5 in float32; keys and values that are
        missing, stale or at wrong positions give 1e-2 and more.
    """
    vocab_size = model.config.get_text_config().vocab_size
    ids: list[int] = []
    sampled_at: list[int] = []
    logprobs: list[float] = []
    for turn in range(2):
        ids += [(7 * len(ids) + 3 * step + turn) % vocab_size for step in range(_TURN)]
        engine.submit(Request(_STREAM, ids, seed=turn, max_tokens=_REPLY))
        while not (finished := engine.poll()):
            pass
        sampled_at += range(len(ids), len(ids) + len(finished[0].token_ids))
        ids = ids + finished[0].token_ids
        logprobs += finished[0].logprobs
    engine.release(_STREAM)
    with torch.inference_mode():
        tokens = torch.tensor([ids], device=model.device)
        before = torch.tensor(sampled_at, device=model.device) - 1
        expected = logits_of(model, hidden_states(model, tokens)[0, before]).log_softmax(-1)
        chosen = expected.gather(-1, tokens[0, before + 1][:, None])[:, 0]
        return float((chosen.double() - torch.tensor(logprobs, device=model.device)).abs().max())
