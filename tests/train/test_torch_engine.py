from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from agentgym_train.engines import Completion, Request
from agentgym_train.engines.sampling import sample, uniforms_of
from agentgym_train.engines.torch import TorchEngine
from agentgym_train.errors import ConfigError, ContextError, ModelError, NonFinite, TokenError
from agentgym_train.model import hidden_states, logits_of

V = 61
STOP = 7


TINY = {
    "vocab_size": V,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def make_model(model_type: str = "llama", *, seed: int = 0, **settings: object) -> PreTrainedModel:
    """Weights large enough that every token's context shows in the logits."""
    config = AutoConfig.for_model(model_type, **(TINY | settings))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(12)
    return model


def make_engine(model: PreTrainedModel | None = None, **options: object) -> TorchEngine:
    settings: dict[str, object] = {"stop_ids": {STOP}, "max_streams": 8, "max_context": 200}
    return TorchEngine(model or make_model(), **(settings | options))  # type: ignore[arg-type]


def tokens(seed: int, length: int) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(0, V, length)]


def run(engine: TorchEngine, *requests: Request) -> list[Completion]:
    """Submit all at once and poll until all are done; in the order of `requests`."""
    for request in requests:
        engine.submit(request)
    finished: dict[int, Completion] = {}
    for _ in range(1000):
        finished |= {done.stream: done for done in engine.poll()}
        if len(finished) == len(requests):
            return [finished[request.stream] for request in requests]
    raise AssertionError(f"only {sorted(finished)} finished")


def play(
    engine: TorchEngine, streams: Sequence[int], *, turns: int = 3, per_poll: int = 2
) -> dict[int, list[tuple[list[int], Completion]]]:
    """Episodes of ragged turns that arrive `per_poll` at a time: prompts and replies."""
    played: dict[int, list[tuple[list[int], Completion]]] = {stream: [] for stream in streams}
    arriving = list(streams)

    def submit(stream: int, prompt: list[int]) -> None:
        turn = len(played[stream])
        played[stream].append((prompt, None))  # type: ignore[arg-type]
        engine.submit(
            Request(
                stream,
                prompt,
                seed=100 * stream + turn,
                max_tokens=1 + (3 * stream + turn) % 7,
                temperature=(1.0, 0.7, 1.3)[stream % 3],
            )
        )

    for _ in range(1000):
        for stream in arriving[:per_poll]:
            submit(stream, tokens(stream, 1 + (7 * stream) % 30))
        del arriving[:per_poll]
        for done in engine.poll():
            prompt, _ = played[done.stream][-1]
            played[done.stream][-1] = (prompt, done)
            if len(played[done.stream]) < turns:
                observation = tokens(1000 + done.stream, 1 + done.stream % 11)
                submit(done.stream, prompt + done.token_ids + observation)
        if not arriving and all(
            len(turns_of) == turns and turns_of[-1][1] for turns_of in played.values()
        ):
            return played
    raise AssertionError("the episodes did not end")


def expected_logprobs(
    model: PreTrainedModel, prompt: list[int], reply: Completion, temperature: float
) -> torch.Tensor:
    """By one plain forward pass over the whole prefix, without a cache."""
    with torch.no_grad():
        ids = torch.tensor([prompt + reply.token_ids])
        logits = logits_of(model, hidden_states(model, ids)[0, len(prompt) - 1 : -1])
    chosen = torch.tensor(reply.token_ids)[:, None]
    return (logits / temperature).log_softmax(-1).gather(-1, chosen)[:, 0]


def max_gap(model: PreTrainedModel, played: dict[int, list[tuple[list[int], Completion]]]) -> float:
    return max(
        float(
            (
                expected_logprobs(model, prompt, reply, (1.0, 0.7, 1.3)[stream % 3]).double()
                - torch.tensor(reply.logprobs, dtype=torch.float64)
            )
            .abs()
            .max()
        )
        for stream, turns in played.items()
        for prompt, reply in turns
    )


# ------------------------------------------------------------------------------ log-probabilities


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=str
)
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_logprobs_are_those_of_a_plain_forward_pass_over_ragged_turns_and_late_arrivals(
    architecture: str, dtype: torch.dtype, tolerance: float
) -> None:
    model = make_model(architecture).to(dtype)
    played = play(make_engine(model, max_streams=20), range(20))

    assert max_gap(model, played) < tolerance
    assert any(reply.finish_reason == "stop" for turns in played.values() for _, reply in turns)
    assert any(reply.finish_reason == "length" for turns in played.values() for _, reply in turns)


def test_the_model_of_these_tests_looks_at_all_of_its_context() -> None:
    model = make_model()
    ids = torch.tensor([tokens(0, 30)])
    other = ids.clone()
    other[0, 0] = (ids[0, 0] + 1) % V
    with torch.no_grad():
        gap = (hidden_states(model, ids) - hidden_states(model, other))[0, -1].abs().max()
    assert float(gap) > 0.01


def test_logprobs_stay_right_when_streams_lose_their_slots() -> None:
    model = make_model()
    played = play(make_engine(model, max_streams=3), range(10), per_poll=10)
    assert max_gap(model, played) < 1e-5


def test_a_prompt_longer_than_a_forward_pass_is_computed_in_pieces() -> None:
    model = make_model()
    engine = make_engine(model, prefill_tokens=16)
    prompt = tokens(3, 70)
    (reply,) = run(engine, Request(0, prompt, seed=0, max_tokens=4))

    torch.testing.assert_close(
        torch.tensor(reply.logprobs), expected_logprobs(model, prompt, reply, 1.0)
    )
    assert engine.stats["prefilled_tokens"] == 70
    assert engine.stats["forward_calls"] == 5 + len(reply.token_ids) - 1  # 70 = 4 * 16 + 6


@pytest.mark.parametrize("seed", range(8))
def test_logprobs_are_right_whatever_the_order_of_calls(seed: int) -> None:
    model = make_model().double()
    rng = np.random.default_rng(seed)
    engine = make_engine(
        model,
        max_streams=int(rng.integers(1, 6)),
        max_context=256,
        prefill_tokens=int(rng.choice([8, 16, 64])),
        stop_ids=range(int(rng.integers(6))),
    )
    beginnings = [tokens(seed * 10 + i, 60) for i in range(3)]
    held: dict[int, list[int]] = {}
    in_flight: dict[int, Request] = {}

    def submit(stream: int) -> None:
        temperature = float(rng.choice([0.0, 0.7, 1.0]))
        request = Request(stream, held[stream], stream, int(rng.integers(1, 8)), temperature)
        engine.submit(request)
        in_flight[stream] = request

    for step in range(120):
        for stream in list(held):
            if len(held[stream]) > 220 or rng.random() < 0.02:
                engine.release(stream)
                del held[stream]
                in_flight.pop(stream, None)
            elif stream not in in_flight and rng.random() < 0.5:
                held[stream] = held[stream] + tokens(step, int(rng.integers(0, 9)))
                submit(stream)
        if len(held) < 8 and rng.random() < 0.4:
            beginning = beginnings[rng.integers(3)]
            held[step] = beginning[: rng.integers(1, 61)] + tokens(step, 2)
            submit(step)
        if not in_flight:
            engine.load_weights(None, step)
        for done in engine.poll():
            temperature = in_flight.pop(done.stream).temperature or 1.0
            expected = expected_logprobs(model, held[done.stream], done, temperature)
            assert done.logprobs == pytest.approx(expected.tolist(), abs=1e-9)
            held[done.stream] = held[done.stream] + done.token_ids
    assert engine.stats["sampled_tokens"] > 100
    assert engine.stats["shared_tokens"] > 0


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [
        ("qwen3", {"head_dim": 8}),
        ("mistral", {"sliding_window": None}),
        ("mistral", {"sliding_window": 200}),  # the whole context
        ("gpt2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}),
        ("gpt_neox", {}),
        ("phi3", {"sliding_window": None}),
        ("gemma", {"head_dim": 8}),
        ("gemma3_text", {"head_dim": 8, "sliding_window": 200}),
        ("olmo2", {}),
        ("qwen2_moe", {"num_experts": 4, "moe_intermediate_size": 32}),
    ],
)
def test_models_of_other_families_are_sampled_right(
    model_type: str, settings: dict[str, object]
) -> None:
    model = make_model(model_type, **settings)
    played = play(make_engine(model), range(8), turns=2)
    assert max_gap(model, played) < 2e-5


def test_a_context_may_fill_all_positions_of_a_model_beside_shorter_streams() -> None:
    settings = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    model = make_model("gpt2", **settings)
    engine = make_engine(model, max_context=64, stop_ids=())
    full = tokens(0, 58)
    (reply,) = run(engine, Request(0, full, 0, max_tokens=2))
    full = full + reply.token_ids + [1]
    requests = [Request(0, full, 1, max_tokens=3), Request(1, tokens(1, 15), 1, max_tokens=3)]
    replies = run(engine, *requests)
    assert len(full + replies[0].token_ids) == 64
    for request, reply in zip(requests, replies, strict=True):
        expected = expected_logprobs(model, list(request.prompt_ids), reply, 1.0)
        assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


# --------------------------------------------------------------------------------------- sampling


def test_greedy_replies_equal_those_of_generate() -> None:
    model = make_model()
    engine = make_engine(model, stop_ids=())
    prompts = [tokens(seed, length) for seed, length in enumerate((3, 17, 30))]
    replies = run(
        engine,
        *(Request(i, prompt, i, max_tokens=20, temperature=0) for i, prompt in enumerate(prompts)),
    )
    for prompt, reply in zip(prompts, replies, strict=True):
        ids = torch.tensor([prompt])
        expected = model.generate(  # type: ignore[operator]
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=20
        )
        assert reply.token_ids == expected[0, len(prompt) :].tolist()
        torch.testing.assert_close(
            torch.tensor(reply.logprobs), expected_logprobs(model, prompt, reply, 1.0)
        )


def test_a_reply_is_the_same_alone_and_among_sixteen_others() -> None:
    model = make_model()
    together = play(make_engine(model, max_streams=17), range(17), per_poll=5)
    for stream in range(17):
        alone = play(make_engine(model, max_streams=1), [stream])
        assert [reply.token_ids for _, reply in alone[stream]] == [
            reply.token_ids for _, reply in together[stream]
        ]


def test_the_same_calls_give_the_same_completions_in_the_same_order() -> None:
    def transcript() -> list[Completion]:
        engine = make_engine(max_streams=4)
        for stream in range(9):
            engine.submit(Request(stream, tokens(stream, 9), seed=stream, max_tokens=5))
        return [done for _ in range(40) for done in engine.poll()]

    first = transcript()
    assert len(first) == 9
    assert first == transcript()


def test_replies_follow_their_seed_and_nothing_else() -> None:
    engine = make_engine(stop_ids=())
    prompt = tokens(0, 10)
    requests = [Request(i, prompt, seed, max_tokens=12) for i, seed in enumerate((5, 5, 6, -1))]
    replies = [reply.token_ids for reply in run(engine, *requests)]
    assert replies[0] == replies[1]
    assert replies[0] != replies[2]
    assert len(set(map(tuple, replies))) == 3


def test_tokens_are_drawn_as_often_as_the_tempered_distribution_says() -> None:
    model = make_model()
    prompt = tokens(1, 12)
    with torch.no_grad():
        logits = logits_of(model, hidden_states(model, torch.tensor([prompt]))[0, -1:])[0]
    count = 4000
    for temperature in (1.0, 0.5):
        engine = make_engine(model, max_streams=count, max_context=32)
        replies = run(
            engine, *(Request(i, prompt, i, 1, temperature=temperature) for i in range(count))
        )
        drawn = np.bincount([reply.token_ids[0] for reply in replies], minlength=V)
        expected = count * (logits / temperature).softmax(-1).double().numpy()
        often = expected >= 5
        chi_square = ((drawn - expected)[often] ** 2 / expected[often]).sum()
        degrees = int(often.sum()) - 1
        assert chi_square < degrees + 5 * math.sqrt(2 * degrees)


def test_a_uniform_number_picks_the_token_whose_share_it_falls_into() -> None:
    # Shares 0.25, 0, 0.5, 0.25: the borders are 0.25, 0.25 and 0.75.
    logits = torch.log(torch.tensor([[1.0, 0.0, 2.0, 1.0]])).repeat(6, 1)
    below_one = np.nextafter(1.0, 0.0)
    uniforms = torch.tensor([0.0, 0.249, 0.25, 0.749, 0.751, below_one], dtype=torch.float64)
    drawn, logprobs = sample(logits, uniforms, torch.ones(6, dtype=torch.float64))
    assert drawn.tolist() == [0, 0, 2, 2, 3, 3]
    shares = torch.tensor([0.25, 0.25, 0.5, 0.5, 0.25, 0.25])
    torch.testing.assert_close(logprobs, shares.log())


def test_no_uniform_number_picks_a_token_of_share_zero() -> None:
    never = -torch.inf
    rng = np.random.default_rng(0)
    shown = torch.from_numpy(rng.normal(size=(1000, 2))).float()
    logits = torch.cat([torch.full((1000, 1), never), shown, torch.full((1000, 2), never)], dim=1)
    temperatures = torch.from_numpy(rng.uniform(0.5, 2, 1000))
    for uniform, expected in ((0.0, 1), (np.nextafter(1.0, 0.0), 2)):
        uniforms = torch.full((1000,), uniform, dtype=torch.float64)
        drawn, _ = sample(logits, uniforms, temperatures)
        assert (drawn == expected).all()


def test_temperature_tempers_the_draw_and_zero_takes_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 1.0]]).repeat(3, 1)
    uniforms = torch.tensor([0.15, 0.15, 0.0], dtype=torch.float64)
    drawn, logprobs = sample(logits, uniforms, torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64))
    assert drawn.tolist() == [0, 1, 1]  # shares of token 0: 0.269, 0.119, none
    expected = [-math.log(1 + math.e), -math.log(1 + math.exp(-2)), -math.log(1 + math.exp(-1))]
    torch.testing.assert_close(logprobs, torch.tensor(expected))


def test_the_numbers_of_a_reply_are_those_of_its_seed() -> None:
    expected = np.random.Generator(np.random.Philox(key=2**64 - 1)).random(3)
    assert uniforms_of(-1).random(3).tolist() == expected.tolist()


# ---------------------------------------------------------------------------------------- the end


def test_a_reply_ends_with_a_stop_token_or_at_its_limit() -> None:
    model = make_model()
    prompt = tokens(4, 8)
    (free,) = run(make_engine(model, stop_ids=()), Request(0, prompt, 3, max_tokens=9))
    third = free.token_ids[2]
    assert third not in free.token_ids[:2]

    (stopped,) = run(make_engine(model, stop_ids={third}), Request(0, prompt, 3, max_tokens=9))
    assert stopped.token_ids == free.token_ids[:3]
    assert stopped.finish_reason == "stop"
    (at_limit,) = run(make_engine(model, stop_ids={third}), Request(0, prompt, 3, max_tokens=3))
    assert at_limit.finish_reason == "stop"
    (cut,) = run(make_engine(model, stop_ids={third}), Request(0, prompt, 3, max_tokens=1))
    assert (cut.token_ids, cut.finish_reason) == (free.token_ids[:1], "length")
    assert (free.finish_reason, len(free.token_ids), len(free.logprobs)) == ("length", 9, 9)


# --------------------------------------------------------------------------------- what is reused


def test_a_turn_computes_only_what_is_new_in_it() -> None:
    engine = make_engine(stop_ids=())
    prompt = tokens(0, 40)
    (first,) = run(engine, Request(0, prompt, 0, max_tokens=6))
    assert engine.stats["prefilled_tokens"] == 40
    assert engine.stats["sampled_tokens"] == 6

    prompt = prompt + first.token_ids + tokens(1, 20)
    run(engine, Request(0, prompt, 1, max_tokens=6))
    # The last sampled token was never fed to the model, so it comes with the observation.
    assert engine.stats["prefilled_tokens"] == 40 + 1 + 20
    assert engine.stats["forward_calls"] == 2 * 6
    assert engine.stats["shared_tokens"] == 0


def test_a_group_computes_its_common_prompt_once() -> None:
    model = make_model()
    prompt = tokens(0, 40)
    requests = [Request(i, prompt, seed=i, max_tokens=5) for i in range(8)]
    engine = make_engine(model)
    together = run(engine, *requests)
    # Each of the seven others copies 39 tokens and computes the last one, for its logits.
    assert engine.stats["prefilled_tokens"] == 40 + 7
    assert engine.stats["shared_tokens"] == 7 * 39

    for request, reply in zip(requests, together, strict=True):
        (alone,) = run(make_engine(model), dataclasses.replace(request, stream=0))
        assert alone.token_ids == reply.token_ids
        assert alone.logprobs == pytest.approx(reply.logprobs, abs=1e-5)


def test_groups_that_share_instructions_compute_them_once() -> None:
    model = make_model()
    instructions = tokens(0, 30)
    prompts = [instructions + tokens(group, 20) for group in (1, 2, 3)]
    engine = make_engine(model)
    replies = run(
        engine,
        *(Request(i, prompts[i // 2], seed=i, max_tokens=5) for i in range(6)),
    )
    assert engine.stats["prefilled_tokens"] == 50 + 1 + 2 * (20 + 1)
    for i, reply in enumerate(replies):
        expected = expected_logprobs(model, prompts[i // 2], reply, 1.0)
        assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


def test_instructions_are_remembered_after_their_stream_has_gone() -> None:
    engine = make_engine(max_streams=2, stop_ids=())
    run(engine, Request(9, tokens(9, 5), 0, max_tokens=1))
    prompt = tokens(0, 40)
    (reply,) = run(engine, Request(0, prompt, 0, max_tokens=3))
    engine.release(0)
    run(engine, Request(1, prompt[:30] + [(prompt[30] + 1) % V] * 10, 0, max_tokens=3))
    assert engine.stats["shared_tokens"] == 30
    engine.release(1)

    (reply,) = run(engine, Request(2, prompt, 0, max_tokens=3))
    engine.release(2)
    run(engine, Request(3, prompt + reply.token_ids + [1], 0, max_tokens=3))
    assert engine.stats["shared_tokens"] == 30 + 30 + 42  # all of the reply but its last token


def test_an_engine_without_streams_is_like_a_new_one() -> None:
    model = make_model()
    prompts = [tokens(0, 30) + tokens(group, 10) for group in (1, 1, 2, 3)]
    requests = [Request(i, prompt, seed=i, max_tokens=6) for i, prompt in enumerate(prompts)]
    engine = make_engine(model)
    play(engine, range(10, 20))
    for stream in range(10, 20):
        engine.release(stream)
    assert run(engine, *requests) == run(make_engine(model), *requests)  # to the last bit


def test_what_a_slot_held_before_its_present_stream_is_not_shared() -> None:
    model = make_model()
    engine = make_engine(model, max_streams=3)
    long = tokens(0, 40)
    run(engine, Request(9, tokens(9, 5), 0, max_tokens=1))
    run(engine, Request(0, long, 0, max_tokens=1))
    engine.release(0)
    run(engine, Request(1, long[:20], 0, max_tokens=1))  # takes the slot of the first
    (reply,) = run(engine, Request(2, long, 0, max_tokens=5))
    assert engine.stats["shared_tokens"] == 19 + 20
    expected = expected_logprobs(model, long, reply, 1.0)
    assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


def test_short_common_beginnings_are_not_worth_a_copy() -> None:
    engine = make_engine()
    run(engine, Request(0, tokens(0, 12), 0, 1), Request(1, tokens(0, 12), 1, 1))
    assert engine.stats["shared_tokens"] == 0
    assert engine.stats["prefilled_tokens"] == 24


# ------------------------------------------------------------------------------------------ slots


def test_more_streams_than_slots_wait_for_their_turn() -> None:
    engine = make_engine(max_streams=2, stop_ids=())
    for stream in range(5):
        engine.submit(Request(stream, tokens(stream, 6), seed=stream, max_tokens=2))
    # A poll samples a prompt's first token and one more, so two replies end in each.
    assert [[done.stream for done in engine.poll()] for _ in range(4)] == [[0, 1], [2, 3], [4], []]


def test_a_released_stream_frees_its_slot_for_others() -> None:
    engine = make_engine(max_streams=2)
    for stream in range(20):
        run(engine, Request(stream, tokens(stream, 6), seed=0, max_tokens=3))
        engine.release(stream)
    kept = run(engine, Request(50, tokens(50, 6), 0, 3), Request(51, tokens(51, 6), 0, 3))
    before = engine.stats["prefilled_tokens"]
    continued = [
        Request(50 + i, tokens(50 + i, 6) + done.token_ids + [1, 2], 0, 3)
        for i, done in enumerate(kept)
    ]
    run(engine, *continued)
    assert engine.stats["prefilled_tokens"] == before + 2 * 3  # both still had their slots


def test_the_stream_that_idled_longest_is_the_one_computed_again() -> None:
    engine = make_engine(max_streams=2, stop_ids=())
    held = {stream: tokens(stream, 30) for stream in (0, 1, 2)}

    def turn(stream: int) -> int:
        """How many tokens a turn of this stream had to compute."""
        before = engine.stats["prefilled_tokens"]
        (reply,) = run(engine, Request(stream, held[stream], 0, max_tokens=2))
        held[stream] += [*reply.token_ids, 1]
        return engine.stats["prefilled_tokens"] - before

    assert [turn(stream) for stream in (0, 1, 0)] == [30, 30, 2]
    assert turn(2) == 30  # takes the slot of 1
    assert [turn(stream) for stream in (0, 1, 0)] == [2, 33, 2]


def test_a_running_stream_may_be_released_and_begun_anew() -> None:
    model = make_model()
    engine = make_engine(model, stop_ids=(), max_streams=2)
    engine.submit(Request(0, tokens(0, 9), 0, max_tokens=50))
    engine.submit(Request(1, tokens(1, 9), 1, max_tokens=4))
    engine.poll()
    engine.release(0)
    engine.release(99)
    engine.submit(Request(0, tokens(2, 9), 2, max_tokens=4))
    engine.submit(Request(2, tokens(2, 9), 2, max_tokens=4))
    engine.release(2)  # while it waits
    done = {reply.stream: reply for _ in range(10) for reply in engine.poll()}
    assert sorted(done) == [0, 1]
    (alone,) = run(make_engine(model, stop_ids=()), Request(0, tokens(2, 9), 2, max_tokens=4))
    assert done[0].token_ids == alone.token_ids


def test_polling_without_requests_does_nothing() -> None:
    engine = make_engine()
    assert engine.poll() == []
    assert engine.stats["forward_calls"] == 0


# ---------------------------------------------------------------------------------------- weights


def perturb(model: PreTrainedModel) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.2)


def test_new_weights_drop_every_cache() -> None:
    model = make_model()
    engine = make_engine(model)
    prompt = tokens(0, 40)
    (old,) = run(engine, Request(0, prompt, 0, max_tokens=6))
    perturb(model)
    engine.load_weights(None, 5)

    longer = prompt + old.token_ids + tokens(1, 4)
    (new, other) = run(
        engine, Request(0, longer, 1, max_tokens=6), Request(1, prompt, 1, max_tokens=6)
    )
    assert (old.weights_version, new.weights_version) == (0, 5)
    for before, reply in ((longer, new), (prompt, other)):
        expected = expected_logprobs(model, before, reply, 1.0)
        assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-5)
    assert engine.stats["prefilled_tokens"] == 40 + len(longer) + 1


def test_weights_of_another_module_are_copied_in() -> None:
    learner = make_model(seed=1, tie_word_embeddings=True)
    engine = make_engine(make_model(seed=0, tie_word_embeddings=True))
    engine.load_weights(learner.state_dict().items(), 1)
    prompt = tokens(0, 20)
    (reply,) = run(engine, Request(0, prompt, 0, max_tokens=6))
    expected = expected_logprobs(learner, prompt, reply, 1.0)
    assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-5)

    with pytest.raises(RuntimeError, match=r"size mismatch for model\.norm\.weight"):
        engine.load_weights({**learner.state_dict(), "model.norm.weight": torch.ones(2)}.items(), 2)
    with pytest.raises(RuntimeError, match=r'Unexpected key.* "nothing"'):
        engine.load_weights({**learner.state_dict(), "nothing": torch.ones(2)}.items(), 2)


def test_weights_do_not_change_under_a_running_reply() -> None:
    engine = make_engine(stop_ids=())
    engine.submit(Request(0, tokens(0, 5), 0, max_tokens=20))
    with pytest.raises(RuntimeError, match="1 requests are in flight"):
        engine.load_weights(None, 1)
    engine.poll()
    with pytest.raises(RuntimeError, match="1 requests are in flight"):
        engine.load_weights(None, 1)
    engine.release(0)
    engine.load_weights(None, 1)


def test_replies_are_sampled_without_dropout_and_the_module_can_still_learn() -> None:
    model = make_model(attention_dropout=0.5).train()
    engine = make_engine(model)
    assert not any(module.training for module in model.modules())
    run(engine, Request(0, tokens(0, 9), 0, max_tokens=3))

    ids = torch.tensor([tokens(0, 9)])
    logits_of(model, hidden_states(model, ids)[0]).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


# ------------------------------------------------------------------------------------------ errors


def test_a_prompt_must_extend_its_stream() -> None:
    engine = make_engine(stop_ids=())
    (reply,) = run(engine, Request(3, [1, 2, 3], 0, max_tokens=2))
    with pytest.raises(TokenError, match=r"stream 3 .* from position 1 on expected tokens \[2, 3"):
        engine.submit(Request(3, [1, 9, 3, *reply.token_ids, 4], 0, max_tokens=2))
    with pytest.raises(TokenError, match=r"from position 4 on expected tokens \[\d+\], got \[\]"):
        engine.submit(Request(3, [1, 2, 3, reply.token_ids[0]], 0, max_tokens=2))
    run(engine, Request(3, [1, 2, 3, *reply.token_ids, 4], 0, max_tokens=2))


def test_a_stream_samples_one_reply_at_a_time() -> None:
    engine = make_engine(stop_ids=())
    engine.submit(Request(0, [1, 2], 0, max_tokens=9))
    with pytest.raises(TokenError, match="stream 0 is still sampling"):
        engine.submit(Request(0, [1, 2, 3], 0, max_tokens=9))


def test_prompt_and_reply_must_fit_the_context() -> None:
    engine = make_engine(max_context=32, stop_ids=())
    with pytest.raises(ContextError, match=r"30 tokens and a reply of up to 3 .* context of 32"):
        engine.submit(Request(0, tokens(0, 30), 0, max_tokens=3))
    (reply,) = run(engine, Request(0, tokens(0, 30), 0, max_tokens=2))
    assert len(reply.token_ids) == 2


@pytest.mark.parametrize("token", [-1, V])
def test_a_prompt_has_tokens_that_the_model_knows(token: int) -> None:
    with pytest.raises(TokenError, match=rf"token {token}; the model knows 0 to {V - 1}"):
        make_engine().submit(Request(0, [1, token, 2], 0, max_tokens=2))


@pytest.mark.parametrize(
    "request_",
    [Request(0, [], 0, 1), Request(0, [1], 0, 0), Request(0, [1], 0, 1, temperature=-1.0)],
    ids=["no prompt", "no token", "negative temperature"],
)
def test_a_request_that_asks_for_nothing_is_refused(request_: Request) -> None:
    with pytest.raises(ValueError, match="a request needs a prompt"):
        make_engine().submit(request_)


def test_logits_that_are_not_finite_are_an_error_and_leave_no_trace() -> None:
    model = make_model()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    engine = make_engine(model)
    with torch.no_grad():
        model.base_model.layers[0].input_layernorm.weight.fill_(torch.nan)
    engine.submit(Request(0, tokens(0, 40), 0, max_tokens=4))
    with pytest.raises(NonFinite, match="logits are not finite"):
        engine.poll()
    engine.release(0)

    engine.load_weights(weights.items(), 1)
    prompts = [tokens(0, 3), tokens(1, 30)]  # the short one lies where the broken one lay
    replies = run(engine, *(Request(i, prompt, 0, 4) for i, prompt in enumerate(prompts)))
    for prompt, reply in zip(prompts, replies, strict=True):
        expected = expected_logprobs(model, prompt, reply, 1.0)
        assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 4,
    "long_factor": [2.0] * 4,
    "original_max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    ("model_type", "settings", "limit"),
    [
        ("llama", {"max_position_embeddings": 64}, "the 64 that LlamaForCausalLM sees at once"),
        ("mistral", {"sliding_window": 64}, "the 64 that MistralForCausalLM sees at once"),
        (
            "qwen2",
            {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1},
            "the 64 that Qwen2ForCausalLM sees at once",
        ),
        (
            "phi3",
            {"rope_parameters": LONGROPE, "original_max_position_embeddings": 64},
            "the 64 that Phi3ForCausalLM sees at once",
        ),
    ],
    ids=["positions", "window", "window in some layers", "longrope"],
)
def test_a_context_that_the_model_does_not_see_at_once_is_refused(
    model_type: str, settings: dict[str, object], limit: str
) -> None:
    model = make_model(model_type, **settings)
    with pytest.raises(ConfigError, match=f"context of 65 tokens exceeds {limit}"):
        make_engine(model, max_context=65)
    make_engine(model, max_context=64)


@pytest.mark.parametrize(
    ("model_type", "settings", "reason"),
    [
        ("bloom", {"n_layer": 2, "n_head": 4}, "cannot run on this engine's cache"),
        ("mamba", {"state_size": 4}, "cannot run on this engine's cache"),
        (
            "lfm2",
            {"layer_types": ["conv", "full_attention"]},
            "cannot run on this engine's cache",
        ),
        ("cohere", {}, "differs from its plain forward pass by"),
        ("granite", {"logits_scaling": 3.0}, "differs from its plain forward pass by"),
        ("gemma2", {"head_dim": 8}, r"caps its logits \(final_logit_softcapping = 30.0\)"),
    ],
    ids=["ALiBi", "recurrent", "convolution", "scaled", "divided", "capped"],
)
def test_models_that_cannot_be_sampled_right_are_refused(
    model_type: str, settings: dict[str, object], reason: str
) -> None:
    with pytest.raises(ModelError, match=reason):
        make_engine(make_model(model_type, **settings))


def test_a_cache_that_changes_the_results_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    decoder = type(model.base_model)
    forward = decoder.forward

    @functools.wraps(forward)
    def shifted(self: object, **arguments: object) -> object:
        if arguments.get("use_cache"):
            arguments["position_ids"] = arguments["position_ids"] * 2  # type: ignore[operator]
        return forward(self, **arguments)

    monkeypatch.setattr(decoder, "forward", shifted)
    with pytest.raises(
        ModelError, match=r"differs from its plain forward pass by .* does not work with a cache"
    ):
        make_engine(model)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_gpu_samples_in_bf16_with_the_logprobs_of_the_learner(dtype: torch.dtype) -> None:
    model = make_model().to("cuda", dtype)  # type: ignore[arg-type]
    played = play(make_engine(model, max_streams=20), range(20))
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == torch.float32):
        gaps = [
            (
                expected_logprobs(model, prompt, reply, (1.0, 0.7, 1.3)[stream % 3])
                - torch.tensor(reply.logprobs)
            ).abs()
            for stream, turns in played.items()
            for prompt, reply in turns
        ]
    assert float(torch.cat(gaps).mean()) < 0.05
