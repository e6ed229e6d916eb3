"""Which models can be sampled from: by their settings, and by a test against themselves.

The test needs no more than the `Engine` protocol and the model's own forward pass, so it refuses
in one place what a cache cannot serve (ALiBi, recurrent layers) and models whose logits are more
than their output layer's. What a short test cannot show is read from the settings.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from agentgym_train.engines.base import Engine, Request
from agentgym_train.errors import ConfigError, ModelError

_NEW = 5
_REPLY = 3
_STREAM = -1


def check_settings(model: PreTrainedModel, max_context: int) -> None:
    """Refuse a model by its settings.

    Raises:
        ConfigError: the model does not see `max_context` tokens at once.
        ModelError: the model caps its logits.
    """
    config: Any = model.config.get_text_config()
    name = type(model).__name__
    limits = [getattr(config, "max_position_embeddings", None)]
    limits += [
        getattr(layer, "sliding_window", None) for layer in DynamicCache(config=config).layers
    ]
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":  # there a later token would turn all earlier ones
        limits.append(rope.get("original_max_position_embeddings"))
    visible = min((limit for limit in limits if limit), default=max_context)
    if max_context > visible:
        raise ConfigError(
            f"the context of {max_context} tokens exceeds the {visible} that {name} sees at once "
            "(positions, attention window); lower it, or take a model with a longer one"
        )
    if cap := getattr(config, "final_logit_softcapping", None):
        raise ModelError(
            f"{name} caps its logits (final_logit_softcapping = {cap}), which is not supported; "
            "take a model without it"
        )


def check_parity(engine: Engine, model: PreTrainedModel, *, tolerance: float) -> None:
    """Refuse a model whose log-probabilities an idle engine does not give.

    Samples two turns of a stream and scores each in a forward pass of the model without a cache.
    A context that is too short for them is not tested.

    Args:
        engine: samples from `model`.
        model: the model.
        tolerance: largest difference in nats. Rounding alone gives 1e-5 in float32; keys and
            values that are missing, stale or at wrong positions give 1e-2 and more.

    Raises:
        ModelError: the engine fails on the model, or differs from it by more.
    """
    if engine.max_context < 2 * (_NEW + _REPLY):
        return
    name = type(model).__name__
    try:
        gap = _largest_gap(engine, model)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise ModelError(
            f"{name} cannot run on this engine's cache: {error}; take a decoder-only model with "
            "full attention, loaded with attn_implementation='sdpa'"
        ) from error
    if not gap <= tolerance:
        raise ModelError(
            f"sampling from {name} differs from its plain forward pass by {gap:.1e} nats (up to "
            f"{tolerance:.0e} is rounding): its attention does not work with a cache, or its "
            "logits are not those of its output layer; take a model of another architecture"
        )


def _largest_gap(engine: Engine, model: PreTrainedModel) -> float:
    vocab_size = model.config.get_text_config().vocab_size
    ids: list[int] = []
    gaps = []
    for turn in range(2):
        ids += [(7 * turn + 3 * step) % vocab_size for step in range(_NEW)]
        engine.submit(Request(_STREAM, ids, seed=turn, max_tokens=_REPLY))
        while not (finished := engine.poll()):
            pass
        sampled, logprobs = finished[0].token_ids, finished[0].logprobs
        ids += sampled
        with torch.inference_mode():
            logits = model(torch.tensor([ids], device=model.device), use_cache=False).logits[0]
        expected = logits[-len(sampled) - 1 : -1].double().log_softmax(-1).cpu()
        chosen = expected[range(len(sampled)), sampled]
        gaps.append(float((chosen - torch.tensor(logprobs)).abs().max()))
    engine.release(_STREAM)
    return max(gaps)
