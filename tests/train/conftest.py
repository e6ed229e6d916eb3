"""Episodes with tokens and tiny models for the trainer's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "envs"))  # the family of the tests
sys.path.insert(0, str(Path(__file__).parent))  # engines and models of the tests

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agentgym_envs.episodes import EndReason, Episode, Turn
from agentgym_envs.tasks import Task

torch.set_num_threads(1)  # models here are tiny: more threads only wait for one another

VOCABULARY = 29

TokenTurn = tuple[Sequence[int], Sequence[int], float]
"""Context ids, sampled ids and reward of one turn."""

MakeEpisode = Callable[..., Episode]
MakeModel = Callable[..., LlamaForCausalLM]


@pytest.fixture
def make_episode() -> MakeEpisode:
    """Builds an episode from `TokenTurn`s; log-probabilities are -1 unless given."""

    def make(
        turns: Sequence[TokenTurn],
        *,
        logprobs: Sequence[Sequence[float]] | None = None,
        end_reason: EndReason = EndReason.HORIZON,
        task_id: str = "t/0",
        member: int = 0,
        seed: int = 0,
    ) -> Episode:
        return Episode(
            task=Task("test", task_id, "train", "goal", "any", seed=None, horizon=20),
            seed=seed,
            horizon=20,
            instructions="",
            first_observation="",
            member=member,
            end_reason=end_reason,
            success=end_reason is EndReason.SUCCESS,
            turns=[
                Turn(
                    reply="",
                    observation="",
                    reward=reward,
                    score=0.0,
                    action_valid=True,
                    context_ids=list(context),
                    sampled_ids=list(sampled),
                    logprobs=list(logprobs[index]) if logprobs else [-1.0] * len(sampled),
                    finish_reason="stop",
                )
                for index, (context, sampled, reward) in enumerate(turns)
            ],
        )

    return make


@pytest.fixture
def random_groups(make_episode: MakeEpisode) -> Callable[..., list[list[Episode]]]:
    """Groups of episodes of random lengths, returns 0 or 1, both in every group; turns that are
    equally far from the start were taken in the same state.
    """

    def make(num_groups: int, group_size: int, *, seed: int = 0) -> list[list[Episode]]:
        rng = np.random.default_rng(seed)

        def ids(low: int, high: int) -> list[int]:
            return [int(i) for i in rng.integers(VOCABULARY, size=rng.integers(low, high))]

        groups = []
        for group in range(num_groups):
            episodes = []
            for member in range(group_size):
                turns = [(ids(1, 9), ids(1, 6), 0.0) for _ in range(rng.integers(1, 5))]
                turns[-1] = (*turns[-1][:2], float(member % 2))
                # Near the uniform distribution of an untrained model, and exact in fp32.
                logprobs = [
                    [float(np.float32(-np.log(VOCABULARY) + rng.normal(0, 0.2))) for _ in sampled]
                    for _, sampled, _ in turns
                ]
                episode = make_episode(
                    turns, logprobs=logprobs, task_id=f"t/{group}", member=member
                )
                episode.tail_ids = [1 + member % 3] * (1 + group)
                for index, turn in enumerate(episode.turns):
                    turn.state_key = f"{index}"
                episodes.append(episode)
            groups.append(episodes)
        return groups

    return make


@pytest.fixture
def tiny_model() -> MakeModel:
    """Makes Llama models of about 10,000 random weights."""

    def make(*, seed: int = 0, dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=128,
            tie_word_embeddings=True,
            initializer_range=0.2,
        )
        return LlamaForCausalLM(config).to(dtype)

    return make
