"""The settings of a model: derived sizes, what real checkpoints need, and what is shown of them."""

import json
import pickle
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_twins import close, normal, papers_formula

from exformer import (
    DecoderLayer,
    DecoderLM,
    DecoderLMConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderLayer,
    EncoderLM,
    EncoderLMConfig,
    FeedForward,
    RecurrentLM,
    RopeScaling,
    TransformerConfig,
    load_model,
)
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.nn.embedding import embed
from exformer.nn.feedforward import default_d_ff
from exformer.nn.positions.absolute import SinusoidalPositions, sinusoidal_encoding
from exformer.nn.positions.rotary import RotaryPositions, rotate

# --- sizes that follow from others ---


@pytest.mark.parametrize(
    ("settings", "d_ff"),
    [
        ({}, 512),
        ({"d_model": 512}, 2048),
        ({"d_model": 384, "n_heads": 6, "activation": "relu"}, 1536),
        ({"activation": "swiglu"}, 344),  # 8/3 · 128 = 341.3
        ({"d_model": 4096, "activation": "swiglu"}, 10_928),
        ({"d_model": 96, "activation": "swiglu"}, 256),  # 8/3 · 96 to the point
        ({"d_model": 512, "d_ff": 100}, 100),
    ],
)
def test_d_ff(settings: dict, d_ff: int) -> None:
    config = DecoderLMConfig(65, **settings)
    assert config.d_ff == d_ff
    assert EncoderLayer(config).feed_forward.w_1.out_features == d_ff


def test_derived_sizes_in_copies() -> None:
    config = DecoderLMConfig(65, d_model=64, n_heads=4)
    wider = replace(config, d_model=96, n_heads=3)
    assert (wider.d_ff, wider.d_head) == (384, 32)
    assert (replace(wider, activation="swiglu").d_ff, replace(wider, n_heads=8).d_head) == (256, 12)
    fixed = replace(config, d_ff=7, d_head=10)
    assert (replace(fixed, d_model=96).d_ff, replace(fixed, d_model=96).d_head) == (7, 10)
    assert config == DecoderLMConfig(65, d_model=64, n_heads=4, d_ff=256, d_head=16)
    assert replace(pickle.loads(pickle.dumps(config)), d_model=8).d_ff == 32
    assert json.loads(json.dumps(asdict(config)))["d_ff"] == 256


@given(d_model=st.integers(1, 5000))
def test_gated_and_plain_parameters(d_model: int) -> None:
    plain, gated = (default_d_ff(d_model, activation=name) for name in ("gelu", "swiglu"))
    assert gated % 8 == 0
    assert 2 * d_model * plain <= 3 * d_model * gated < 2 * d_model * plain + 24 * d_model


def test_feed_forward_derives_its_width() -> None:
    assert FeedForward(6).w_1.out_features == 24
    assert FeedForward(6, activation="swiglu").w_3.out_features == 16


# --- settings of real checkpoints ---


@pytest.mark.parametrize("d_head", [2, 5, 16])
def test_d_head_by_shapes(d_head: int) -> None:
    model = DecoderLM(DecoderLMConfig(11, d_model=12, n_heads=6, n_kv_heads=2, d_head=d_head)).eval()
    attention = model.layers[0].self_attention
    shapes = [tuple(getattr(attention, f"w_{name}").weight.shape) for name in "qkvo"]
    assert shapes == [(6 * d_head, 12), (2 * d_head, 12), (2 * d_head, 12), (12, 6 * d_head)]
    ids, cache = torch.tensor([[1, 2, 3, 4]]), model.new_cache()
    steps = [model(ids[:, t : t + 1], cache=cache) for t in range(4)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(ids))


@pytest.mark.parametrize("n_heads", [5, 7])
def test_d_head_lifts_divisibility(n_heads: int) -> None:
    with pytest.raises(ValueError, match=r"must be divisible"):
        TransformerConfig(d_model=12, n_heads=n_heads)
    config = TransformerConfig(d_model=12, n_heads=n_heads, d_head=4)
    assert EncoderLayer(config)(torch.ones(1, 2, 12)).shape == (1, 2, 12)


@pytest.mark.parametrize(
    ("settings", "biased"),
    [
        ({}, {"w_q", "w_k", "w_v", "w_o", "w_1", "w_2"}),
        ({"qkv_bias": False}, {"w_o", "w_1", "w_2"}),
        ({"o_bias": False}, {"w_q", "w_k", "w_v", "w_1", "w_2"}),
        ({"bias": False, "qkv_bias": True}, {"w_q", "w_k", "w_v"}),  # as Qwen2
        ({"bias": False}, set()),
    ],
)
def test_attention_biases(settings: dict, biased: set[str]) -> None:
    config = TransformerConfig(d_model=8, n_heads=2, norm="rms", **settings)
    for layer in (EncoderLayer(config), DecoderLayer(config)):
        names = [name for name, _ in layer.named_parameters() if name.endswith("bias")]
        assert {name.split(".")[-2] for name in names} == biased
        assert all((layer.get_parameter(name) == 0).all() for name in names)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_norm_eps_everywhere(norm: str) -> None:
    config = DecoderLMConfig(5, d_model=8, n_heads=2, norm=norm, norm_eps=0.25, qk_norm=True)
    eps = [part.eps for part in DecoderLM(config).modules() if hasattr(part, "eps")]
    assert eps == [0.25] * (2 * 4 + 1)


def test_unscaled_embeddings() -> None:
    config = DecoderLMConfig(5, d_model=9, n_heads=3, positions="none", scale_embedding=False)
    plain, scaled = DecoderLM(config), DecoderLM(replace(config, scale_embedding=True))
    assert (plain.embedding.factor, scaled.embedding.factor) == (1.0, 3.0)
    config = EncoderDecoderConfig(5, 6, d_model=16, n_heads=2, scale_embedding=False)
    model = EncoderDecoder(config)
    assert (model.src_embedding.factor, model.tgt_embedding.factor) == (1.0, 1.0)


def test_output_bias_of_translators() -> None:
    model = EncoderDecoder(EncoderDecoderConfig(5, 6, d_model=8, n_heads=2, output_bias=True)).eval()
    src, tgt = torch.tensor([[3, 2]]), torch.tensor([[1, 4]])
    before = model(src, tgt)
    with torch.no_grad():
        model.output_bias[4] += 3.0
    torch.testing.assert_close(model(src, tgt) - before, 3.0 * torch.eye(6)[4].expand(1, 2, 6))


def test_untied_masked_lm() -> None:
    model = EncoderLM(EncoderLMConfig(7, d_model=8, n_heads=2, tie_output=False)).eval()
    before = model(torch.tensor([[3, 4]]))
    with torch.no_grad():
        model.output.weight.mul_(2.0)
    torch.testing.assert_close(model(torch.tensor([[3, 4]])), 2 * before)


def test_start_token_that_is_padding() -> None:
    """Marian begins a target with its padding; the decoder sees it, and a cache changes nothing."""
    torch.manual_seed(0)
    model = EncoderDecoder(EncoderDecoderConfig(7, 7, d_model=8, n_heads=2, pad_id=0)).eval()
    src, tgt, cache = torch.tensor([[3, 2]]), torch.tensor([[0, 4, 5]]), model.new_cache()
    wanted = model(src, tgt)
    with torch.no_grad():
        model.tgt_embedding.weight[0] += 5.0 * torch.randn(8)
    assert (model(src, tgt)[:, 1:] - wanted[:, 1:]).abs().max() > 1e-2
    memory = model.encode(src)
    steps = [model.decode(tgt[:, t : t + 1], memory=memory, src=src, cache=cache) for t in range(3)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(src, tgt))


# --- rotary frequencies ---


@pytest.mark.usefixtures("float64")
def test_linear_scaling_by_positions() -> None:
    """A factor of 4 puts position 8 where position 2 was."""
    x = normal(1, 6).detach()
    scaled = rotate(x, torch.tensor([8]), scaling=RopeScaling(4.0))
    close(scaled, rotate(x, torch.tensor([2])))
    q = k = normal(1, 2, 12, 6).detach()
    got = RotaryPositions(base=77.0, scaling=RopeScaling(4.0))(q, k)[0]
    close(got, rotate(q, torch.arange(12), base=77.0, scaling=RopeScaling(4.0)))


def test_rotary_settings_reach_the_layers() -> None:
    scaling = RopeScaling(8.0, original_max_len=8)
    config = DecoderLMConfig(
        5, d_model=8, n_heads=2, positions="rotary", rope_base=77.0, rope_scaling=scaling
    )
    for layer in DecoderLM(config).layers:
        positions = layer.self_attention.positions
        assert (positions.base, positions.scaling) == (77.0, scaling)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"factor": 0.5}, r"factor must be at least 1, got 0\.5"),
        ({"factor": 2.0, "original_max_len": 0}, "original_max_len must be at least 1, got 0"),
        (
            {"factor": 2.0, "low_freq_factor": 4.0},
            r"low_freq_factor must be above 0 and below high_freq_factor, got 4\.0 and 4\.0",
        ),
    ],
)
def test_rope_scaling_messages(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RopeScaling(**settings)


# --- sines and cosines ---


@pytest.mark.usefixtures("float64")
def test_sinusoidal_halves() -> None:
    pairs = papers_formula(13, d_model=10)
    halves = torch.cat((pairs[:, 0::2], pairs[:, 1::2]), dim=1)
    close(sinusoidal_encoding(13, d_model=10, halves=True), halves)
    model = DecoderLM(DecoderLMConfig(5, d_model=10, n_heads=1, max_len=13, positions="sinusoidal_halves"))
    close(model.positions.weight, halves)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_sinusoidal_digits(dtype: torch.dtype) -> None:
    """The encoding is rounded once from float64, whatever types the module has had before."""
    exact = sinusoidal_encoding(50, d_model=6, dtype=torch.float64)
    for positions in (
        SinusoidalPositions(6, max_len=50).to(dtype),
        SinusoidalPositions(6, max_len=50).half().to(dtype),
    ):
        x = torch.zeros(1, 50, 6, dtype=dtype)
        assert torch.equal(positions(x)[0], exact.to(dtype))
        assert positions(x).dtype == dtype
        assert positions(x.bfloat16()).dtype == torch.bfloat16
        assert not positions.state_dict()
        assert [name for name, _ in positions.named_buffers()] == ["weight"]


def test_sinusoidal_positions_from_the_meta_device() -> None:
    with torch.device("meta"):
        positions = SinusoidalPositions(6, max_len=50)
    assert positions.weight.is_meta
    filled = positions.to_empty(device="cpu")
    assert torch.equal(filled.weight, sinusoidal_encoding(50, d_model=6))


# --- what is shown ---


SHOWN = {
    "MultiHeadAttention": "n_heads=4, n_kv_heads=2, d_head=6, dropout=0.2, window=50",
    "FeedForward": "activation=swiglu",
    "TokenEmbedding": "TokenEmbedding(65, d_model=16, scale=4)",
    "RMSNorm": "RMSNorm(16, eps=0.001)",
    "EncoderLayer": "pre_norm=True",
    "Dropout": "Dropout(0.3)",
    "NoPositions": "NoPositions(None)",
    "RotaryPositions": "RotaryPositions(base=500, scaling=RopeScaling(factor=2.0,",
}


def test_print_shows_sizes() -> None:
    config = DecoderLMConfig(
        65,
        d_model=16,
        n_heads=4,
        n_kv_heads=2,
        d_head=6,
        max_len=77,
        window=50,
        dropout=0.3,
        attention_dropout=0.2,
        norm="rms",
        norm_eps=1e-3,
        activation="swiglu",
        positions="rotary",
        rope_base=500.0,
        rope_scaling=RopeScaling(2.0),
    )
    model = DecoderLM(config)
    kinds = {type(part).__name__ for part in model.modules()}
    assert kinds - {"DecoderLM", "ModuleList", "Linear"} == set(SHOWN)
    for text in SHOWN.values():
        assert text in str(model)


@pytest.mark.parametrize(
    ("positions", "shown"),
    [("learned", "LearnedPositions(9, d_model=8)"), ("sinusoidal", "SinusoidalPositions(9, d_model=8)")],
)
def test_print_shows_positions_and_layer_norms(positions: str, shown: str) -> None:
    text = str(DecoderLM(DecoderLMConfig(5, d_model=8, n_heads=2, max_len=9, positions=positions)))
    assert shown in text
    assert "LayerNorm(8, eps=1e-05, bias=True)" in text


# --- a model from a dict, ids that are no tensor of integers ---


MODELS = {
    "decoder": DecoderLM(DecoderLMConfig(7, d_model=8, n_heads=2)),
    "encoder": EncoderLM(EncoderLMConfig(7, d_model=8, n_heads=2)),
    "translator": EncoderDecoder(EncoderDecoderConfig(7, 7, d_model=8, n_heads=2)),
    "recurrent": RecurrentLM(7, d_model=8),
    "recurrent-translator": RecurrentEncoderDecoder(RecurrentConfig(7, 7, d_model=8)),
}
IDS = {
    "lists": ([[1, 2]], "ids must be a tensor of integers, got list: torch.tensor(ids) makes one"),
    "array": (np.array([[1, 2]]), "ids must be a tensor of integers, got ndarray: .* torch.from_numpy"),
    "floats": (torch.tensor([[1.0]]), "ids must be a tensor of integers, got torch.float32: ids.long()"),
    "booleans": (torch.tensor([[True]]), "ids must be a tensor of integers, got torch.bool"),
}


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("kind", MODELS)
def test_one_text_is_a_batch_of_one(kind: str) -> None:
    ids = torch.tensor([1])
    for inputs in ((ids, ids[None]), (ids[None], ids)) if "translator" in kind else ((ids,),):
        with pytest.raises(
            ValueError, match=r"ids must be \(batch, position\), got the shape .*: one \w+ is ids\[None\]"
        ):
            MODELS[kind](*inputs)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("given", IDS)
def test_ids_of_another_kind(kind: str, given: str) -> None:
    ids, message = IDS[given]
    pair = "translator" in kind
    pattern = ".*".join(re.escape(part) for part in message.split(".*"))
    with pytest.raises(ValueError, match=pattern):
        MODELS[kind](ids, ids) if pair else MODELS[kind](ids)
    if pair:
        with pytest.raises(ValueError, match=pattern):
            MODELS[kind](torch.tensor([[1, 2]]), ids)
    with pytest.raises(ValueError, match=pattern):
        embed(ids, torch.ones(7, 2))


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (DecoderLM, "DecoderLMConfig"),
        (EncoderLM, "EncoderLMConfig"),
        (EncoderDecoder, "EncoderDecoderConfig"),
        (RecurrentEncoderDecoder, "RecurrentConfig"),
        (EncoderLayer, "TransformerConfig"),
        (DecoderLayer, "TransformerConfig"),
    ],
)
def test_configuration_of_another_kind(build: type, kind: str) -> None:
    with pytest.raises(ValueError, match=rf"config must be a {kind}, got dict: {kind}\(\*\*settings\) makes"):
        build({"vocab_size": 5})
    with pytest.raises(ValueError, match=rf"config must be a {kind}, got int$"):
        build(5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"norm_eps": -1.0}, r"norm_eps must be at least 0, got -1\.0"),
        ({"rope_base": 0.0}, r"rope_base must be above 0, got 0\.0"),
        ({"d_head": 0}, "d_head must be at least 1, got 0"),
        ({"d_head": 5, "positions": "rotary"}, r"in pairs: d_head \(5\) must be even"),
    ],
)
def test_setting_messages(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**settings)


@pytest.mark.usefixtures("unchecked_shapes")
def test_rope_scaling_of_another_kind() -> None:
    with pytest.raises(ValueError, match=r"rope_scaling must be a RopeScaling or None, got 8\.0"):
        TransformerConfig(rope_scaling=8.0)


def test_cards_of_shipped_models_state_d_ff() -> None:
    for name in ("multi30k-en-de", "multi30k-de-en", "shakespeare-char", "shakespeare-bpe"):
        assert type(load_model(name).card["config"]["d_ff"]) is int
