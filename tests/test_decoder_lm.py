"""The decoder-only model: parity with PyTorch's stack, causality, positions, and what it refuses."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import close, copy, normal, papers_formula, randomize, same_gradients, twins

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.nn.masks import causal_mask
from exformer.nn.multi_head import merge_heads, split_heads

pytestmark = pytest.mark.usefixtures("float64")
VOCAB, HEADS, D_MODEL, D_FF, LAYERS, MAX_LEN, BATCH, TIME = 17, 3, 30, 13, 2, 11, 2, 7
CONFIG = DecoderLMConfig(VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_layers=LAYERS, max_len=MAX_LEN)
IDS = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 14, 1, 8, 5]])
ALL_POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "none")


def build(seed: int = 0, **changes) -> DecoderLM:
    torch.manual_seed(seed)
    model = DecoderLM(dataclasses.replace(CONFIG, **changes)).eval()
    randomize(model, seed=seed)
    return model


@pytest.mark.parametrize("tie_output", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize(("pre_norm", "activation"), [(False, "relu"), (True, "gelu")])
def test_parity_with_torch(tie_output, positions, pre_norm, activation):
    ours = build(tie_output=tie_output, positions=positions, pre_norm=pre_norm, activation=activation)
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, 0.1, activation, batch_first=True, norm_first=pre_norm
    )
    theirs = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).eval()
    final = nn.LayerNorm(D_MODEL) if pre_norm else nn.Identity()
    for part in (theirs, final):
        randomize(part, seed=3)
    pairs = [pair for a, b in zip(ours.layers, theirs.layers, strict=True) for pair in twins(a, b)]
    pairs += twins(ours.norm, final) if pre_norm else []
    copy(pairs)
    table = ours.embedding.table.detach().clone().requires_grad_()
    added = papers_formula(MAX_LEN, d_model=D_MODEL) * (positions == "sinusoidal")
    if positions == "learned":
        added = ours.positions.table.detach()
    x = table[IDS] * math.sqrt(D_MODEL) + added[:TIME]
    hidden = final(theirs(x, mask=~causal_mask(TIME)))
    wanted = hidden @ (table if tie_output else ours.output.weight.detach()).T
    got = ours(IDS)
    close(got, wanted)
    direction = normal(*got.shape).detach()
    got.backward(direction)
    wanted.backward(direction)
    same_gradients(pairs)
    close(ours.embedding.table.grad, table.grad)


@pytest.mark.parametrize("positions", ALL_POSITIONS)
@settings(max_examples=10, deadline=None)
@given(place=st.integers(0, TIME - 1), seed=st.integers(0, 99))
def test_a_symbol_moves_its_own_future_only(positions, place, seed):
    model = build(seed, positions=positions)
    changed = IDS.clone()
    changed[:, place] = (changed[:, place] + 1) % VOCAB
    before, after = model(IDS), model(changed)
    close(after[:, :place], before[:, :place])
    assert ((after - before)[:, place:].abs().amax(dim=-1) > 1e-9).all()


@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_one_pass_equals_a_pass_for_each_prefix(positions):
    model = build(positions=positions)
    whole = model(IDS)
    for end in range(1, TIME + 1):
        close(model(IDS[:, :end])[:, -1], whole[:, end - 1])


@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_the_order_of_the_past_counts_where_there_are_positions(positions):
    """One layer sees the past as a set; the last symbol stays the last."""
    model = build(positions=positions, n_layers=1)
    mixed = IDS[:, [2, 0, 5, 1, 4, 3, 6]]
    moved = (model(mixed) - model(IDS))[:, -1].abs().max()
    assert moved < 1e-10 if positions == "none" else moved > 1e-3


@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_weights_are_those_of_the_forward_pass(positions):
    model = build(positions=positions)
    found = model.attention_weights(IDS)
    assert [weights.shape for weights in found] == [(BATCH, HEADS, TIME, TIME)] * LAYERS
    for weights in found:
        close(weights.sum(-1), torch.ones(BATCH, HEADS, TIME))
        assert (weights[..., ~causal_mask(TIME)] == 0).all()
    x = model.positions(model.embedding(IDS))
    for layer, weights in zip(model.layers, found, strict=True):
        h = layer.norm_attention(x)
        values = split_heads(layer.self_attention.w_v(h), n_heads=HEADS)
        rebuilt = layer.self_attention.w_o(merge_heads(weights @ values))
        close(rebuilt, layer.self_attention(h, h, h, mask=causal_mask(TIME)))
        x = layer(x, mask=causal_mask(TIME))


def test_no_layer_shares_its_relative_positions_with_a_parameter():
    assert len(list(build(positions="rotary").parameters())) == len(
        list(build(positions="none").parameters())
    )


def test_refusals():
    for name, value in (("vocab_size", 0), ("n_layers", 0), ("max_len", -1)):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
            dataclasses.replace(CONFIG, **{name: value})
    with pytest.raises(ValueError, match="one of sinusoidal, learned, rotary, alibi, none, got 'rope'"):
        dataclasses.replace(CONFIG, positions="rope")
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\), got 1.0"):
        dataclasses.replace(CONFIG, dropout=1.0)
    with pytest.raises(ValueError, match=r"d_model \(30\) must be divisible by n_heads \(4\)"):
        build(n_heads=4)
    with pytest.raises(ValueError, match="17"):
        build()(torch.tensor([[17]]))
    with pytest.raises(ValueError, match="nothing to embed"):
        build()(torch.zeros(1, 0, dtype=torch.int64))
    for positions in ALL_POSITIONS:
        with pytest.raises(ValueError, match=r"12.* max_len is 11"):
            build(positions=positions)(torch.zeros(1, 12, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"call model\.eval"):
        build().train().attention_weights(IDS)


@pytest.mark.usefixtures("unchecked_shapes")
def test_one_text_is_a_batch_of_one():
    with pytest.raises(
        ValueError, match=r"ids must be \(batch, position\), got the shape \(1,\): one text is ids"
    ):
        build()(torch.tensor([1]))
