"""A model in a folder: it comes back the same; a stranger's folder can do no harm."""

import json
import os
from dataclasses import replace
from os import replace as rename
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch_twins import random_model

from exformer.hub import shipped
from exformer.hub.pretrained import load_model, save_model
from exformer.hub.shipped import shipped_models
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.nn.positions.rotary import RopeScaling
from exformer.recipes import RECIPES, Recipe, find_recipe
from exformer.storage.upgrade import upgrade_recipe
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer
from exformer.tokenizers.loading import load_tokenizer

TEXTS = ["the red fox sleeps", "a fox"]
WORDS = WordTokenizer.from_texts(TEXTS)
CHARACTERS = CharTokenizer.from_texts(TEXTS)
PAIRS = BPETokenizer.from_texts(TEXTS, n_merges=2)
TEACHERS = ("multi30k-en-de-alone", "multi30k-de-en-alone")
NOT_SHIPPED = (*TEACHERS, "shakespeare-char-classic", "english-italian-small")
SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 7, "n_layers": 1, "max_len": 11, "dropout": 0.25}


def language_model() -> DecoderLM:
    torch.manual_seed(0)
    return DecoderLM(DecoderLMConfig(WORDS.vocab_size, **SIZES))


def saved(folder: Path) -> Path:
    save_model(folder, language_model(), WORDS, card={"seed": 0, "loss": 2.5})
    return folder


LLAMA = {"norm": "rms", "activation": "swiglu", "positions": "rotary", "bias": False}
REST = {"norm_eps": 1e-5, "rope_base": 5e5, "qkv_bias": True, "scale_embedding": False, "tie_output": False}


@pytest.mark.parametrize(
    "settings",
    [
        {"positions": "learned"},
        {"positions": "sinusoidal"},
        {"d_ff": None},
        {"d_ff": None, "d_head": 3},
        {"d_ff": None, "d_model": 9, "d_head": 4},
        {"d_ff": 12},
        LLAMA,
        LLAMA | REST | {"rope_scaling": RopeScaling(8.0, original_max_len=64)},
        {"positions": "rotary", "qk_norm": True, "zero_init": True, "activation": "squared_relu"},
        {"positions": "rotary", "window": 4},
        {"n_experts": 5, "experts_per_token": 1},
    ],
    ids=str,
)
def test_a_language_model_comes_back(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = DecoderLMConfig(CHARACTERS.vocab_size, **SIZES | settings)
    model = random_model(DecoderLM, config)
    save_model(tmp_path, model, CHARACTERS, card={"seed": 3})
    found = load_model(tmp_path)
    ids = torch.tensor([CHARACTERS.encode("a fox")])
    assert torch.equal(found.model(ids), model(ids))
    assert not found.model.training
    assert found.model.config == config
    assert replace(found.model.config, d_model=64) == replace(config, d_model=64)  # derived sizes still are
    assert found.card["seed"] == 3
    assert isinstance(found.tokenizer, CharTokenizer)


@pytest.mark.parametrize(("begin", "wanted"), [(None, None), ("ox", CHARACTERS.encode("x")[0])])
def test_what_every_text_begins_with(tmp_path: Path, begin: str | None, wanted: int | None) -> None:
    model = DecoderLM(DecoderLMConfig(CHARACTERS.vocab_size, **SIZES))
    save_model(tmp_path, model, CHARACTERS, card={"begin": begin})
    assert load_model(tmp_path).model.config.begin_id == wanted
    save_model(tmp_path, DecoderLM(replace(model.config, begin_id=5)), CHARACTERS, card={"begin": begin})
    assert load_model(tmp_path).model.config.begin_id == 5  # the model itself knows best
    for wrong in ("", 3):
        save_model(tmp_path, model, CHARACTERS, card={"begin": wrong})
        with pytest.raises(ValueError, match="begin must be a text of a character or more, got"):
            load_model(tmp_path)


def test_the_other_kinds_come_back(tmp_path: Path) -> None:
    config = EncoderDecoderConfig(WORDS.vocab_size, PAIRS.vocab_size, **SIZES)
    save_model(tmp_path / "two", EncoderDecoder(config), (WORDS, PAIRS), card={})
    found = load_model(tmp_path / "two")
    assert found.model.config == config
    assert found.tokenizer[1].encode("the fox") == PAIRS.encode("the fox")
    encoder = EncoderLM(EncoderLMConfig(WORDS.vocab_size, **SIZES))
    save_model(tmp_path / "one", encoder, WORDS, card={})
    assert isinstance(load_model(tmp_path / "one").model, EncoderLM)


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"model must be one of DecoderLM, .*, got Linear"):
        save_model(tmp_path, nn.Linear(1, 1), WORDS, card={})
    with pytest.raises(ValueError, match="DecoderLM needs tokenizer, got 2"):
        save_model(tmp_path, language_model(), (WORDS, WORDS), card={})
    translator = EncoderDecoder(EncoderDecoderConfig(WORDS.vocab_size, PAIRS.vocab_size, **SIZES))
    with pytest.raises(ValueError, match="EncoderDecoder needs src_tokenizer and tgt_tokenizer, got 1"):
        save_model(tmp_path, translator, WORDS, card={})


def test_a_card_does_not_change_the_model(tmp_path: Path) -> None:
    old = load_model(saved(tmp_path / "old"))
    other = DecoderLM(replace(old.model.config, n_heads=4, activation="gelu")).eval()
    save_model(tmp_path / "new", other, WORDS, card={**old.card, "kind": "x", "seed": 2})
    found = load_model(tmp_path / "new")
    assert found.model.config == other.config
    assert (found.card["seed"], found.card["loss"]) == (2, 2.5)
    ids = torch.tensor([[3, 4, 5]])
    assert torch.equal(found.model(ids), other(ids))


def test_a_save_that_is_refused_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in saved(tmp_path).iterdir()}
    other = WordTokenizer.from_texts(["a fox runs there now"])
    model = DecoderLM(replace(language_model().config, vocab_size=other.vocab_size))
    broken = DecoderLM(model.config)
    with torch.no_grad():
        broken.embedding.weight[0, 0] = torch.nan
    for one, tokenizer, card, message in (
        (broken, other, {}, "embedding.weight has numbers that are not finite"),
        (model, other, {"seed": {1}}, "expected a card of what JSON can hold: .*set"),
        (
            model,
            WordTokenizer.from_texts(["a"]),
            {},
            "the DecoderLM to save: tokenizer has 4 tokens, the model",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            save_model(tmp_path, one, tokenizer, card=card)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    save_model(tmp_path, model, other, card={})
    assert load_model(tmp_path).tokenizer.vocab_size == other.vocab_size


def test_a_save_that_is_cut_leaves_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.no_grad():  # of the same sizes: nothing but the card tells them apart
        new = language_model()
        new.embedding.weight.add_(1.0)
    others = WordTokenizer.from_texts(["il lupo rosso", "sogna ora"])
    assert others.vocab_size == WORDS.vocab_size
    for whole in range(3):  # files that are written before the cut
        folder, left = saved(tmp_path / str(whole)), [None] * whole

        def cut(part: Path, path: Path, left: list = left) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop()
            rename(part, path)

        with monkeypatch.context() as changes:
            changes.setattr(os, "replace", cut)
            with pytest.raises(KeyboardInterrupt):
                save_model(folder, new, others, card={"seed": 1})
        with pytest.raises(ValueError, match="there is no card"):
            load_model(folder)
        save_model(folder, new, others, card={"seed": 1})
        found = load_model(folder)
        assert torch.equal(found.model.embedding.weight, new.embedding.weight)
        assert (found.card["seed"], found.tokenizer.decode([3])) == (1, others.decode([3]))


def test_a_full_disk_leaves_the_older_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in saved(tmp_path).iterdir()}
    synchronize = os.fsync
    for whole in range(2):  # the weights, then the card
        left = [None] * whole

        def full(descriptor: int, left: list = left) -> None:
            if not left:
                raise OSError(28, "No space left on device")
            left.pop()
            synchronize(descriptor)

        with monkeypatch.context() as changes:
            changes.setattr(os, "fsync", full)
            with pytest.raises(OSError, match=r"No space left .*model\."):
                save_model(tmp_path, language_model(), WORDS, card={"seed": 1})
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_there_is_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no model .*nowhere: expected a folder with model\.safe"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="there is no model"):
        load_model(tmp_path)
    (saved(tmp_path) / "model.json").unlink()
    with pytest.raises(ValueError, match=r"there is no card .*model\.json: it is written last, so saving"):
        load_model(tmp_path)


def test_the_folder_of_a_run_names_its_model(tmp_path: Path) -> None:
    saved(tmp_path / "run" / "model")
    with pytest.raises(ValueError, match=r"run is the folder of a run: its model is .*run.model$"):
        load_model(tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": ["DecoderLM"]}, "kind of model must be one of DecoderLM, .*, got .'DecoderLM'."),
        ({"kind": "Pickle"}, "kind of model must be one of DecoderLM, .*, got 'Pickle'"),
        ({"config": None}, "config must have settings of DecoderLMConfig"),
        ({"config": {"vocab_size": 8, "surprise": 1}}, "config must have settings of DecoderLMConfig"),
        ({"config": {}}, "the card's config makes no model: .*vocab_size"),
        ({"d_model": 10**12}, "config has d_model 1000000000000, expected at most 16777216"),
        ({"max_len": 2**17 + 1}, "config has max_len 131073, expected at most 131072"),
        ({"d_model": "6"}, "config has d_model '6', expected int"),
        ({"n_heads": True}, "config has n_heads True, expected int"),
        ({"dropout": 1.5}, r"the card's config makes no model: dropout must lie in \[0, 1\)"),
        ({"dropout": True}, "config has dropout True, expected float"),
        ({"norm_eps": "0"}, "config has norm_eps '0', expected"),
        ({"rope_scaling": {"factor": "8"}}, "config has factor '8', expected float"),
        ({"rope_scaling": {"speed": 8.0}}, "the card's config must have settings of RopeScaling"),
        ({"rope_scaling": {"factor": 0.1}}, "makes no model: factor must be at least 1"),
        ({"rope_scaling": 8.0}, "config has rope_scaling 8.0, expected"),
        ({"n_layers": 1_000_000}, "numbers, the card's config makes 240,000,... or more"),
        ({"n_experts": 2**24}, "does not fit the model: .* numbers, the card's config makes"),
        ({"n_layers": 2}, "weights missing"),
        ({"d_model": 2**20}, "does not fit the model: .* numbers, the card's config makes"),
        ({"vocab_size": 9}, "tokenizer has 8 tokens, the model was made for 9"),
    ],
)
def test_cards_that_lie(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = saved(tmp_path) / "model.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        (card if name in card else card["config"])[name] = value
    path.write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_model(tmp_path)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    path = saved(tmp_path) / "model.safetensors"
    tensors = load_file(path)
    name = next(iter(tensors))
    save_file(tensors | {name: tensors[name][:1].clone()}, path)
    with pytest.raises(ValueError, match="does not fit the model"):
        load_model(tmp_path)
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match="is truncated or corrupt: expected a safetensors file"):
        load_model(tmp_path)


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    CHARACTERS.save(saved(tmp_path) / "tokenizer.json")
    with pytest.raises(ValueError, match=f"tokenizer has {CHARACTERS.vocab_size} tokens, the model was made"):
        load_model(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="as a tokenizer file: No such file"):
        load_model(tmp_path)


def test_a_tokenizer_of_any_kind(tmp_path: Path) -> None:
    for tokenizer in (WORDS, CHARACTERS, PAIRS):
        tokenizer.save(tmp_path / "t.json")
        found = load_tokenizer(tmp_path / "t.json")
        assert type(found) is type(tokenizer)
        assert found.encode("a fox") == tokenizer.encode("a fox")
    text = (tmp_path / "t.json").read_text(encoding="utf-8").replace("byte-pair", "syllable")
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="one of word, character, byte-pair, hugging-face, got 'syllable'"):
        load_tokenizer(tmp_path / "t.json")


def test_a_name_is_a_model_that_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "_SHIPPED", tmp_path / "shipped")
    assert shipped_models() == {}
    folder = saved(tmp_path / "shipped" / "small")
    (tmp_path / "shipped" / "empty").mkdir()
    assert shipped_models() == {"small": folder}
    assert load_model("small").card == load_model(folder).card
    with pytest.raises(
        ValueError, match=r"there is no model smaller: expected a folder with .* one of small"
    ):
        load_model("smaller")
    assert load_model("small/").card == load_model(folder).card
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()  # holds no model: it hides none
    assert load_model("small").card == load_model(folder).card
    other = saved(tmp_path / "small")
    (other / "model.json").write_text(
        (other / "model.json").read_text().replace('"kind"', '"mine": 1, "kind"')
    )
    assert load_model("small").card["mine"] == 1
    (other / "model.safetensors").unlink()  # a copy that was cut: the shipped one must not stand in for it
    with pytest.raises(ValueError, match=r"model\.safetensors can't be read: No such file"):
        load_model("small")


def contains(settings: dict[str, Any], part: dict[str, Any]) -> bool:
    """Return whether settings, those of the training too, have the values of a part of them."""
    return settings == {**settings, **part, "training": settings["training"] | part["training"]}


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_shipped(name: str) -> None:
    if name not in shipped_models():
        assert name in NOT_SHIPPED
        return
    found = load_model(name)
    assert all(value.isfinite().all() for value in found.model.state_dict().values())
    assert {value.dtype for value in found.model.parameters()} == {torch.float32}
    recipe = Recipe.from_settings(found.card["recipe"])
    committed = find_recipe(recipe.name).with_training(seed=recipe.training.seed)
    assert recipe == replace(committed, teachers_seed=recipe.teachers_seed)
    assert contains(
        recipe.settings(), upgrade_recipe(found.card["recipe"])
    )  # a newer setting has its default
    assert found.card["parameters"] == sum(p.numel() for p in found.model.parameters()) <= 3_000_000
    assert found.card["history"][-1]["step"] == found.card["steps"]


def test_what_is_shipped_is_small() -> None:
    sizes = {file: file.stat().st_size for folder in shipped_models().values() for file in folder.iterdir()}
    assert sum(sizes.values()) <= 12 * 2**20
    assert sum(size for file, size in sizes.items() if file.suffix == ".safetensors") <= 12e6


def test_settings_at_their_bounds_are_read(tmp_path: Path) -> None:
    path = saved(tmp_path) / "model.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    card["config"] |= {"max_len": 2**17, "positions": "rotary"}
    path.write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(ValueError, match=r"0 weights missing \(none\), 1 unknown \(positions"):
        load_model(tmp_path)  # nothing is wrong with the settings themselves


def test_weights_load_in_the_default_dtype(tmp_path: Path) -> None:
    model, card = language_model(), {"seed": 0}
    save_model(tmp_path, model, WORDS, card=card, dtype=torch.float16)
    assert card == {"seed": 0}
    assert {tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()} == {torch.float16}
    table = load_model(tmp_path).model.embedding.weight
    assert table.dtype == model.embedding.weight.dtype == torch.float32
    assert torch.equal(table, model.embedding.weight.half().float())


def test_kinds_of_shipped_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "_SHIPPED", tmp_path)
    for name in ("b", "a"):
        save_model(tmp_path / name, language_model(), WORDS, card={"name": name})
    encoder = EncoderLM(EncoderLMConfig(WORDS.vocab_size, **SIZES))
    save_model(tmp_path / "0", encoder, WORDS, card={})
    assert list(shipped_models()) == ["0", "a", "b"]
    assert shipped_models(kind="DecoderLM") == {"a": tmp_path / "a", "b": tmp_path / "b"}
    assert load_model("a").card["name"] == "a"
