"""Does an engine give the log-probabilities of the model? Two turns against one plain pass."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from agentgym_train.engines.base import Engine, Request
from agentgym_train.model import hidden_states, logits_of

_TURN = 5
_REPLY = 3
LENGTH = 2 * (_TURN + _REPLY)
"""Tokens of context that the test needs."""
_STREAM = -1


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
