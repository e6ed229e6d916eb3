"""Every check passes on what is right and fails, under its own name, on a planted fault."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from chat_models import DEFAULT_SYSTEM, THOUGHT_STRIPPING, merging_tokenizer, with_template
from planted_faults import (
    Colder,
    Flipped,
    FlippedCredit,
    MeanOfMeans,
    PaddingCounts,
    Rerendering,
    Swapped,
)

from agentgym_envs.record_checks import (
    TippedEnvs,
    check_logprobs,
    check_mask,
    check_prompts,
    check_rewards,
    check_template,
    judge,
    play_again,
    with_tips,
)
from agentgym_envs.sequences import token_sequence
from agentgym_train.algorithms import algorithm
from agentgym_train.algorithms.grpo import GRPO
from agentgym_train.algorithms.settings import LossConfig
from agentgym_train.assemble import Policy, build_collector
from agentgym_train.batching import sample_from_episode
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.checks import (
    Subject,
    TappedEngine,
    check_gradient,
    check_update,
    rescored,
)
from agentgym_train.config import config_from_dict
from agentgym_train.critic import CriticConfig
from agentgym_train.model import create_model
from agentgym_train.rollout.collector import group_jobs
from agentgym_train.world import build_world

SETTINGS = {
    "env": {"num_envs": 6, "arguments": {"levels": "redball", "obs_style": "compact"}},
    "model": {"max_context": 1024},
    "batch": {"tasks_per_step": 3, "group_size": 2},
    "eval": {"tasks": 1},
}
INSTRUCTIONS = "Be brief."


def play(
    *, engine=None, temperature=1.0, algorithm="gigpo", sharpness=6.0, tipped=False
) -> SimpleNamespace:
    """Six short episodes of a random policy, and all that they were played with.

    Args:
        engine: wraps the engine, between it and the tap.
        temperature: of sampling.
        algorithm: of the run.
        sharpness: what the random policy's embeddings are multiplied by, so that some tokens are
            much likelier than others.
        tipped: whether the environments pay known amounts.
    """
    config = config_from_dict(
        SETTINGS | {"run": {"algorithm": algorithm}, "sampling": {"temperature": temperature}}
    )
    tokenizer = with_template(DEFAULT_SYSTEM)
    sizes = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "max_context": 1024}
    model = create_model(len(tokenizer), **sizes, seed=0)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(sharpness)
    world = build_world(config)
    chat = ChatTemplate(tokenizer)
    collector = build_collector(config, world.splits.env, Policy(model, tokenizer, chat))
    collector = dataclasses.replace(
        collector,
        context=dataclasses.replace(collector.context, instructions={"babyai": INSTRUCTIONS}),
        show_instructions=True,
    )
    tap = TappedEngine(collector.engine)
    collector.engine = engine(tap, tokenizer) if engine else tap
    if tipped:
        collector.envs = TippedEnvs(collector.envs)
    jobs = list(group_jobs(world.curriculum.step(0), group_size=2, horizon=4, seed=0))
    with contextlib.closing(collector.envs):
        episodes = collector.collect(jobs, purpose="check")
        collector.engine.max_context = 1024
    return SimpleNamespace(
        episodes=episodes, exchanges=tap.exchanges, chat=chat, model=model, world=world
    )


@pytest.fixture(scope="module")
def played() -> SimpleNamespace:
    return play()


def failed(check, name: str, *words: str) -> None:
    """The check failed under its name, and says what is there to say."""
    assert (check.name, check.passed) == (name, False)
    assert check.figure > check.tolerance
    for word in words:
        assert word in str(check)


# -------------------------------------------------------------------------------------- judgement


def test_the_largest_gap_decides_and_is_named() -> None:
    check = judge("size", [(0.1, "a"), (0.3, "b"), (0.2, "c")], 0.3, what="m", meaning="Mend it")
    assert (check.passed, check.figure, check.detail) == (True, 0.3, "m (3 looked at): b")
    check = judge("size", [(0.1, "a"), (0.3, "b"), (0.2, "c")], 0.15, what="m", meaning="Mend it")
    assert check.detail == "m (3 looked at): b; 2 above the limit. Mend it"
    assert str(check) == f"size     FAILED      0.3 (at most 0.15)    {check.detail}"


def test_what_is_no_number_or_was_not_looked_at_does_not_pass() -> None:
    for gaps in ([], [(0.0, "a"), (float("nan"), "b"), (0.1, "c")]):
        check = judge("size", gaps, 1.0, what="m", meaning="Mend it")
        assert not check.passed
        assert np.isnan(check.figure)
    assert ": b; 1 above" in check.detail


# ----------------------------------------------------------------------------------- chat template


def test_a_template_that_appends_passes(played) -> None:
    check = check_template(played.episodes, played.chat, INSTRUCTIONS)
    assert check.passed
    assert "sampled episodes would have other tokens (6 looked at)" in check.detail


def test_a_template_that_cuts_long_observations_fails(played) -> None:
    class Cutting(ChatTemplate):
        def extend(self, observation, *, closed):
            return super().extend(observation[:60], closed=closed)

    check = check_template(played.episodes, Cutting(played.chat._tokenizer), INSTRUCTIONS)
    failed(check, "template", "turn 2 with plain replies: other text from token")


def test_a_template_that_drops_thoughts_fails_unless_appending_is_chosen(played) -> None:
    chat = ChatTemplate(with_template(THOUGHT_STRIPPING))
    check = check_template(played.episodes, chat, INSTRUCTIONS)
    failed(check, "template", "turn 1 with replies with thoughts: other text", "--append")
    assert "2 above the limit" in check.detail  # turns 1 and 2; plain replies agree
    assert "'<think>" in check.detail
    chosen = check_template(played.episodes, chat, INSTRUCTIONS, append=True)
    assert chosen.passed
    assert "turn 1 with replies with thoughts: other text" in chosen.detail


def test_tokens_that_merge_across_the_border_of_a_reply_fail(played) -> None:
    chat = ChatTemplate(merging_tokenizer())
    check = check_template(played.episodes, chat, "")
    failed(check, "template", "turn 1 with plain replies: other tokens, the same text from token")
    assert check_template(played.episodes, chat, "", append=True).passed


# ----------------------------------------------------------------------------------------- prompts


def test_recorded_prompts_that_went_through_the_engine_pass(played) -> None:
    check = check_prompts(played.episodes, played.exchanges)
    assert check.passed
    turns = sum(len(episode.turns) for episode in played.episodes)
    assert f"({turns} looked at)" in check.detail


def test_prompts_that_were_rendered_again_fail() -> None:
    again = play(engine=Rerendering)
    check = check_prompts(again.episodes, again.exchanges)
    failed(check, "prompts", ": from token ", "] at the engine, [", "] in the record")
    assert "turn 0" not in check.detail  # first prompts hold no reply


def test_a_reply_that_was_not_sampled_fails(played) -> None:
    episode = played.episodes[0]
    turn = episode.turns[1]
    other = dataclasses.replace(turn, sampled_ids=[*turn.sampled_ids[:-1], 7])
    turns = [*episode.turns[:1], other, *episode.turns[2:]]
    check = check_prompts([dataclasses.replace(episode, turns=turns)], played.exchanges)
    failed(check, "prompts", f"{len(turns) - 1} above the limit")


# -------------------------------------------------------------------------------------------- mask


def masked(episode, change):
    """The sequence of an episode, and one token of the world behind it, under another mask."""
    sequence = token_sequence(episode)
    return dataclasses.replace(
        sequence,
        token_ids=np.append(sequence.token_ids, 0),
        sampled_mask=change(np.append(sequence.sampled_mask, False)),
    )


def test_the_mask_decodes_to_what_was_said_on_either_side(played) -> None:
    check = check_mask(played.episodes, played.chat, INSTRUCTIONS)
    assert check.passed
    turns = sum(len(episode.turns) for episode in played.episodes)
    assert f"({2 * turns} looked at)" in check.detail
    assert {turn.finish_reason for ep in played.episodes for turn in ep.turns} >= {"length"}


@pytest.mark.parametrize("by", [-1, 1])
def test_a_mask_shifted_by_one_fails(played, by) -> None:
    check = check_mask(
        played.episodes,
        played.chat,
        INSTRUCTIONS,
        functools.partial(masked, change=lambda mask: np.roll(mask, by)),
    )
    failed(check, "mask", "stretch 0: from letter ", " instead of given ")


def test_an_end_of_turn_that_was_not_sampled_must_not_be_under_the_mask(played) -> None:
    """A reply that was cut is closed by the template; the closing is no word of the policy."""
    episode = next(ep for ep in played.episodes if ep.turns[0].finish_reason == "length")
    start = len(episode.turns[0].context_ids)
    end = start + len(episode.turns[0].sampled_ids)

    def take_the_end_for_the_first_token(mask):
        mask = mask.copy()
        mask[[start, end]] = [False, True]
        return mask

    check = check_mask(
        [episode],
        played.chat,
        INSTRUCTIONS,
        functools.partial(masked, change=take_the_end_for_the_first_token),
    )
    failed(check, "mask", "stretch 0")


def test_an_observation_that_is_not_in_the_tokens_fails(played) -> None:
    episode = dataclasses.replace(played.episodes[0], first_observation="another world")
    failed(check_mask([episode], played.chat, INSTRUCTIONS), "mask", "another world")
    failed(check_mask(played.episodes, played.chat, ""), "mask", "stretch 0")


# ----------------------------------------------------------------------------------------- rewards


def solved(world):
    """An episode that earns something, from the oracle, with a token a reply."""
    from agentgym_envs.policies import run_episode

    episode = run_episode(world.splits.env, task=world.splits.test[0], seed=3, horizon=20)
    for turn in episode.turns:
        turn.context_ids, turn.sampled_ids, turn.logprobs = [1], [2, 3], [-1.0, -1.0]
    return episode


def test_rewards_of_sampled_tokens_are_what_the_world_pays(played) -> None:
    episodes = [*played.episodes, solved(played.world)]
    paid = [play_again(played.world.splits.env, episode) for episode in episodes]
    assert sum(paid[-1]) > 0
    check = check_rewards(episodes, paid)
    assert (check.passed, check.figure) == (True, 0.0)


def test_a_reward_that_the_record_lost_fails(played) -> None:
    episode = solved(played.world)
    paid = play_again(played.world.splits.env, episode)
    episode.turns[-1].reward = 0.0
    last = len(episode.turns) - 1
    failed(check_rewards([episode], [paid]), "rewards", f"cut after turn {last}")


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_rewards_that_change_on_their_way_into_the_record_fail(factor, monkeypatch) -> None:
    """Nobody earns anything here; the tips show it."""
    played = play(tipped=True)
    paid = [with_tips(play_again(played.world.splits.env, episode)) for episode in played.episodes]
    assert check_rewards(played.episodes, paid).passed
    for episode in played.episodes:
        assert [turn.reward for turn in episode.turns] == [0.5, 0.25, 0.125, 0.0625]
        for turn in episode.turns:
            turn.reward *= factor
    failed(check_rewards(played.episodes, paid), "rewards", "cut after turn 3")


def test_a_reward_on_a_masked_token_fails_though_nothing_was_earned(played) -> None:
    """It was put on the last token, an observation's, and the mask took it away."""

    def lose_the_last(episode):
        sequence = token_sequence(episode)
        rewards = sequence.rewards.copy()
        rewards[-1] = 0.0
        return dataclasses.replace(sequence, rewards=rewards)

    paid = [[0.0] * len(episode.turns) for episode in played.episodes]
    check = check_rewards(played.episodes, paid, lose_the_last)
    failed(check, "rewards", "cut after turn 0, turns paid [1.0]")
    assert check.figure == 1.0


def test_a_reward_on_another_turn_fails(played) -> None:
    def all_at_the_end(episode):
        sequence = token_sequence(episode)
        rewards = np.zeros_like(sequence.rewards)
        rewards[-1] = sequence.rewards.sum()
        return dataclasses.replace(sequence, rewards=rewards)

    paid = [[0.0] * len(episode.turns) for episode in played.episodes]
    check = check_rewards(played.episodes, paid, all_at_the_end)
    failed(check, "rewards", "turns paid [1.0, 0.5")


# ------------------------------------------------------------------------------- log-probabilities


def subject_of(played, chosen=None, **settings) -> Subject:
    return Subject(played.model, chosen or GRPO(), **settings)


def logprobs_of(played, model):
    """The check of what was played against a learner of `model`."""
    subject = Subject(model, GRPO())
    samples = [sample_from_episode(episode) for episode in played.episodes]
    return check_logprobs(samples, rescored(subject.learner(), samples), subject.tolerances[0])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampler_and_learner_agree_at_any_temperature(temperature) -> None:
    played = play(temperature=temperature)
    check = logprobs_of(played, played.model)
    assert check.passed
    assert 0 < check.figure < 1e-5


def test_a_sampler_at_another_temperature_fails() -> None:
    played = play(engine=Colder)
    check = logprobs_of(played, played.model)
    failed(check, "logprobs", "nats between sampler and learner", "token ", "episode of task")
    assert check.figure > 0.05


def test_a_sampler_with_other_weights_fails(played) -> None:
    other = create_model(
        played.model.config.vocab_size,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        max_context=1024,
        seed=1,
    )
    check = logprobs_of(played, other)
    failed(check, "logprobs", "weights that the sampler did not load")


# ---------------------------------------------------------------------------------------- gradient

ALGORITHMS = {
    "grpo": {},
    "rloo": {"loss": LossConfig(aggregation="sequence", ratio="sequence")},
    "reinforce_pp": {"loss": LossConfig(kl_coefficient=0.1, importance_cap=2.0)},
    "ppo": {"loss": LossConfig(aggregation="group", ratio="turn")},
    "gigpo": {"loss": LossConfig(aggregation="constant", aggregation_constant=64)},
}


def learning(played, name: str) -> Subject:
    critic = CriticConfig(learning_rate=1e-3) if name == "ppo" else None
    return subject_of(played, algorithm(name, **ALGORITHMS[name]), critic=critic)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_learner_passes_with_every_algorithm(played, name) -> None:
    subject = learning(played, name)
    before = {key: value.clone() for key, value in played.model.state_dict().items()}
    samples = subject.credited(played.episodes)
    gradient, update = check_gradient(subject, samples), check_update(subject, samples)
    assert gradient.passed
    assert update.passed
    assert update.figure < -1e-6
    after = played.model.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)  # to the bit
    assert all(parameter.grad is None for parameter in played.model.parameters())


@pytest.mark.parametrize("name", ["grpo", "ppo", "gigpo"])
def test_a_policy_that_is_sure_of_itself_passes(name) -> None:
    """It says the same twice, with a probability of 1."""
    sure = play(sharpness=1000.0)
    texts = [[turn.reply for turn in episode.turns] for episode in sure.episodes]
    assert texts[::2] == texts[1::2]
    subject = learning(sure, name)
    samples = subject.credited(sure.episodes)
    gradient, update = check_gradient(subject, samples), check_update(subject, samples)
    assert gradient.passed
    assert update.passed
    assert logprobs_of(sure, sure.model).passed


def test_a_flipped_sign_of_a_policy_that_is_sure_of_itself_fails() -> None:
    sure = play(sharpness=1000.0)
    subject = subject_of(sure, Flipped())
    failed(check_update(subject, subject.credited(sure.episodes)), "update", "flipped sign")


def test_a_mean_of_micro_batch_means_fails(played) -> None:
    subject = subject_of(played, MeanOfMeans())
    check = check_gradient(subject, subject.credited(played.episodes))
    failed(check, "gradient", "micro-batch", "Divide losses by a count of the whole batch")
    assert check.figure > 0.01


def test_a_loss_that_counts_padding_fails(played) -> None:
    subject = subject_of(played, PaddingCounts())
    check = check_gradient(subject, subject.credited(played.episodes))
    failed(check, "gradient", "without padding")


# ------------------------------------------------------------------------------------------ update


@pytest.mark.parametrize(
    ("chosen", "where"),
    [
        (Flipped(), "above the limit"),
        (FlippedCredit(), "successes against failures; 1 above"),
    ],
)
def test_a_flipped_sign_fails(played, chosen, where) -> None:
    subject = subject_of(played, chosen)
    check = check_update(subject, subject.credited(played.episodes))
    failed(check, "update", where, "flipped sign")
    assert check.figure > 1e-5


def test_advantages_on_other_samples_fail(played) -> None:
    subject = subject_of(played, Swapped())
    pair = subject.credited(played.episodes)[:2]
    failed(check_update(subject, pair), "update", "successes against failures; 1 above")


def test_an_update_that_moves_nothing_fails(played) -> None:
    subject = subject_of(played)
    check = check_update(subject, subject.credited(played.episodes), learning_rate=0.0)
    failed(check, "update", "3 above", "frozen weights")
