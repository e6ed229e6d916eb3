"""Faults of engines and losses that others have had, to be planted where a check must see them.

They are in a module of their own, so that other processes can import them.
"""

from __future__ import annotations

import dataclasses
import itertools

from agentgym_train.algorithms.grpo import GRPO


class Rerendering:
    """Sends the engine what the text of a prompt encodes to, as a server without state would."""

    def __init__(self, engine, tokenizer) -> None:
        self._engine, self._tokenizer = engine, tokenizer
        self._streams, self._fresh = {}, itertools.count(1000)
        self.max_context = engine.max_context

    def submit(self, request) -> None:
        text = self._tokenizer.decode(request.prompt_ids)
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        stream = next(self._fresh)
        self._streams[stream] = request.stream
        self._engine.submit(dataclasses.replace(request, stream=stream, prompt_ids=ids))

    def poll(self):
        done = self._engine.poll()
        return [dataclasses.replace(one, stream=self._streams[one.stream]) for one in done]

    def release(self, stream: int) -> None:
        for own, theirs in self._streams.items():
            if theirs == stream:
                self._engine.release(own)


class Colder:
    """Samples at another temperature than it was asked to."""

    def __init__(self, engine, tokenizer) -> None:
        self._engine = engine
        self.max_context = engine.max_context

    def submit(self, request) -> None:
        self._engine.submit(dataclasses.replace(request, temperature=0.9 * request.temperature))

    def __getattr__(self, name):
        return getattr(self._engine, name)


class MeanOfMeans(GRPO):
    """Divides the loss of a micro-batch by a count of that micro-batch."""

    def loss(self, inputs):
        return super().loss(dataclasses.replace(inputs, normalizer=len(inputs.logprobs)))


class PaddingCounts(GRPO):
    """Lets padding stand in the denominator."""

    def loss(self, inputs):
        share = inputs.batch.lengths.float().mean() / inputs.batch.token_ids.shape[1]
        output = super().loss(inputs)
        return dataclasses.replace(output, loss=output.loss * share)


class Flipped(GRPO):
    def loss(self, inputs):
        output = super().loss(inputs)
        return dataclasses.replace(output, loss=-output.loss)


class Swapped(GRPO):
    """Gives each sample the advantage of the next."""

    def weigh(self, samples):
        advantages = [float(sample.advantages[0]) for sample in samples]
        turned = zip(samples, advantages[1:] + advantages[:1], strict=True)
        ordered = [sample.with_advantages(advantage) for sample, advantage in turned]
        return super().weigh(ordered)


class FlippedCredit(GRPO):
    def credit(self, samples, total):
        credited = super().credit(samples, total)
        return [sample.with_advantages(-sample.advantages) for sample in credited]
