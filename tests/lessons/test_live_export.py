"""A model as a script for a page: what stands in it, and that nothing of the weights is lost."""

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from exformer.hub.pretrained import load_model, save_model
from exformer.hub.shipped import shipped_models
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.nn.lora import add_lora
from exformer.tokenizers.characters_and_words import WordTokenizer
from exformer_lessons.__main__ import run
from exformer_lessons.live.export import export_live, live_script, model_script

SIZES = {"d_model": 6, "n_heads": 2, "d_ff": 7, "n_layers": 1, "max_len": 5}


@dataclass(frozen=True, kw_only=True)
class LaterConfig(DecoderLMConfig):
    """A configuration with a setting that came after the page's engine."""

    head_gates: bool = False


@pytest.fixture
def mine(tmp_path: Path) -> tuple[Path, DecoderLM, WordTokenizer]:
    """Save a small model; return its folder, the model and its tokenizer."""
    tokenizer = WordTokenizer.from_texts(["the fox"])
    model = DecoderLM(DecoderLMConfig(tokenizer.vocab_size, **SIZES))
    save_model(tmp_path / "mine", model, tokenizer, card={})
    return tmp_path / "mine", model, tokenizer


def parts(script: str) -> tuple[str, dict, bytes]:
    """Read a script as a page would: three values of JSON."""
    name, header, text = json.loads("[" + script.removeprefix("exformer.provide(").removesuffix(");\n") + "]")
    return name, header, base64.b64decode(text, validate=True)


@pytest.mark.parametrize("name", shipped_models())
def test_all_that_is_needed_and_nothing_lost(name: str) -> None:
    model, tokenizer, card = load_model(name)
    found, header, data = parts(live_script(name)[1])
    assert (found, header["kind"], header["dtype"]) == (name, type(model).__name__, "float16")
    assert header["config"] == vars(model.config)
    assert header["card"]["parameters"] == card["parameters"]
    numbers = np.frombuffer(data, np.float16).astype(np.float32)
    start = 0
    for key, *shape in header["tensors"]:
        tensor = model.state_dict()[key]
        assert list(tensor.shape) == shape
        assert np.array_equal(numbers[start : start + tensor.numel()], tensor.numpy().ravel())
        start += tensor.numel()
    assert start == len(numbers)
    assert [key for key, *_ in header["tensors"]] == list(model.state_dict())
    pair = tokenizer if isinstance(tokenizer, tuple) else (tokenizer,)
    if len(pair) == 2 and pair[0].merges == pair[1].merges:
        pair = pair[:1]  # what both languages share is written once
    for content, each in zip(header["tokenizers"], pair, strict=True):
        if content["kind"] == "byte-pair":
            assert [*zip(content["merges"][::2], content["merges"][1::2], strict=True)] == [*each.merges]
        else:
            assert tuple(content["symbols"]) == each.vocabulary.tokens[3:]


def test_weights_that_need_it_stay_in_float32(mine) -> None:
    folder, model, _ = mine
    name, header, data = parts(live_script(folder)[1])
    assert (name, header["dtype"], header["card"]) == ("mine", "float32", {})
    numbers = torch.cat([tensor.flatten() for tensor in model.state_dict().values()])
    assert np.array_equal(np.frombuffer(data, np.float32), numbers.numpy())


def test_the_name_of_the_file_changes_with_what_is_in_it(mine, tmp_path: Path) -> None:
    folder, model, tokenizer = mine
    first, again = (export_live(folder, tmp_path / "site") for _ in range(2))
    torch.nn.init.zeros_(model.embedding.weight)
    save_model(folder, model, tokenizer, card={})
    other = export_live(folder, tmp_path / "site")
    assert first == again != other
    assert re.fullmatch(r"mine\.[0-9a-f]{12}\.js", first.name)
    assert first.read_text(encoding="utf-8").startswith('exformer.provide("mine",{')


def test_model_name_by_any_path(mine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, *_ = mine
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    for path in (".", tmp_path / "link", folder / ".." / "mine"):
        assert live_script(path)[0] == "mine"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run(["export-live", "--model", "shakespeare-char", "--out", str(tmp_path)]) == 0
    [path] = tmp_path.iterdir()
    assert capsys.readouterr().out.startswith(f"{path}: 2.")
    assert run(["export-live", "--model", "nowhere", "--out", str(tmp_path)]) == 2
    assert "there is no model nowhere" in capsys.readouterr().err


def test_what_a_page_is_told_of_a_model_and_its_two_tokenizers(tmp_path: Path) -> None:
    words = [WordTokenizer.from_texts([text]) for text in ("the fox", "la volpe")]
    model = EncoderDecoder(EncoderDecoderConfig(5, 5, **SIZES))
    told = {"parameters": 9, "steps": 8, "seed": 7, "scores": {"BLEU": 6}, "data_licenses": ["free"]}
    script = model_script("two", model, (words[0], words[1]), {"recipe": "x", **told, "machine": {}})
    _, header, _ = parts(script)
    assert header["card"] == told
    assert [each["symbols"] for each in header["tokenizers"]] == [["fox", "the"], ["la", "volpe"]]
    _, header, _ = parts(model_script("one", model, (words[0], WordTokenizer.from_texts(["the fox"]))))
    assert header["card"] == {}
    assert [each["symbols"] for each in header["tokenizers"]] == [["fox", "the"]]
    assert script.isascii()


def test_lora_is_merged_before_it_is_on_a_page() -> None:
    model = add_lora(DecoderLM(DecoderLMConfig(5, **SIZES)))
    with pytest.raises(ValueError, match=r"the model has LoRA: merge_lora\(model\) first"):
        model_script("one", model, WordTokenizer.from_texts(["the fox"]))


@pytest.mark.parametrize(
    "settings",
    [
        {"norm_eps": 1e-3},
        {"positions": "rotary", "rope_base": 500.0},
        {"scale_embedding": False},
        {"positions": "sinusoidal_halves"},
        {"activation": "gelu_tanh"},
        {"window": 3},
        {"n_experts": 2},
        {"d_head": 4},
        {"head_gates": True},
    ],
)
def test_settings_that_a_page_lacks(settings: dict) -> None:
    model = DecoderLM(LaterConfig(5, **(SIZES | {"n_heads": 1} | settings)))
    with pytest.raises(ValueError, match=f"does not compute with these settings: .*{list(settings)[-1]}"):
        model_script("one", model, WordTokenizer.from_texts(["the fox"]))


def test_a_page_lacks_an_activation_that_came_later() -> None:
    model = DecoderLM(LaterConfig(5, **SIZES))
    model_script("one", model, WordTokenizer.from_texts(["the fox"]))
    object.__setattr__(model.config, "activation", "mish")
    with pytest.raises(ValueError, match=r"does not compute with these settings: \{'activation': 'mish'\}"):
        model_script("one", model, WordTokenizer.from_texts(["the fox"]))
