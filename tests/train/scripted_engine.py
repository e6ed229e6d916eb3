"""An engine without a model: it "samples" what a script says.

It keeps the whole contract of `Engine`: prompts must extend their streams, replies are cut at
`max_tokens`, requests in flight forbid new weights. Completions may come out in any order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence

import torch

from agentgym_train.engines.base import Completion, FinishReason, Request, check_request


@dataclasses.dataclass(frozen=True)
class ScriptedReply:
    """What to answer to one request.

    Attributes:
        token_ids: the tokens, with the stop token where the reply shall stop by itself.
        logprobs: one a token; None for -1 each.
        polls: how many calls of `poll` it takes.
    """

    token_ids: Sequence[int]
    logprobs: Sequence[float] | None = None
    polls: int = 1


Script = Callable[[Request], ScriptedReply | Sequence[int]]


class ScriptedEngine:
    """Answers requests from a script.

    Args:
        script: gives the reply to a request; or the replies themselves, in order of submission.
        stop_ids: tokens that end a reply; nothing is answered after the first.
        max_context: most tokens of prompt and reply together.

    Attributes:
        requests: all requests so far, as submitted.
        released: all streams released so far.
    """

    def __init__(
        self,
        script: Script | Iterable[ScriptedReply | Sequence[int]],
        *,
        stop_ids: Collection[int] = (),
        max_context: int = 1_000_000,
    ) -> None:
        self._script = script if callable(script) else _in_order(script)
        self._stop_ids = frozenset(stop_ids)
        self._max_context = max_context
        self._version = 0
        self._held: dict[int, list[int]] = {}
        self._in_flight: dict[int, tuple[Request, ScriptedReply]] = {}
        self.requests: list[Request] = []
        self.released: list[int] = []

    @property
    def max_context(self) -> int:
        return self._max_context

    def submit(self, request: Request) -> None:
        self._held[request.stream] = check_request(
            request,
            self._held.get(request.stream, []),
            in_flight=request.stream in self._in_flight,
            max_context=self._max_context,
        )
        self.requests.append(request)
        reply = self._script(request)
        if not isinstance(reply, ScriptedReply):
            reply = ScriptedReply(reply)
        self._in_flight[request.stream] = request, reply

    def poll(self) -> list[Completion]:
        finished = []
        for stream, (request, reply) in list(self._in_flight.items()):
            if reply.polls > 1:
                waits = dataclasses.replace(reply, polls=reply.polls - 1)
                self._in_flight[stream] = request, waits
                continue
            del self._in_flight[stream]
            finished.append(self._complete(request, reply))
        return finished

    def release(self, stream: int) -> None:
        self.released.append(stream)
        self._held.pop(stream, None)
        self._in_flight.pop(stream, None)

    def load_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]] | None, version: int
    ) -> None:
        if self._in_flight:
            raise RuntimeError(
                f"{len(self._in_flight)} requests are in flight; poll until they are done, or "
                "release their streams, before loading weights"
            )
        self._version = version

    def _complete(self, request: Request, reply: ScriptedReply) -> Completion:
        ids = list(reply.token_ids)[: request.max_tokens]
        stop = next((at for at, token in enumerate(ids) if token in self._stop_ids), None)
        reason: FinishReason = "length" if stop is None else "stop"
        if stop is not None:
            ids = ids[: stop + 1]
        logprobs = [-1.0] * len(ids) if reply.logprobs is None else list(reply.logprobs)[: len(ids)]
        self._held[request.stream] = self._held[request.stream] + ids
        return Completion(request.stream, ids, logprobs, reason, self._version)


def _in_order(replies: Iterable[ScriptedReply | Sequence[int]]) -> Script:
    remaining = iter(replies)

    def next_reply(request: Request) -> ScriptedReply | Sequence[int]:
        try:
            return next(remaining)
        except StopIteration:
            raise IndexError(f"the script has no reply left for stream {request.stream}") from None

    return next_reply
