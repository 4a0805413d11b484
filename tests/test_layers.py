"""The layers: residual sums in the right order, parity with PyTorch's layers, the weights that they use."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import backward, close, copy, normal, randomize, same_gradients, twins

from exformer.nn.layers import DecoderLayer, EncoderLayer, residual
from exformer.nn.masks import causal_mask, from_torch_mask, padding_mask
from exformer.nn.multi_head import merge_heads, split_heads
from exformer.nn.positions.rotary import RotaryPositions

pytestmark = pytest.mark.usefixtures("float64")
BATCH, TGT, SRC, HEADS, D_FF = 2, 5, 7, 3, 13
D_MODEL = HEADS * 11
SIZES = {"n_heads": HEADS, "d_ff": D_FF}
KINDS = pytest.mark.parametrize(
    ("pre_norm", "activation"), [(False, "relu"), (True, "relu"), (False, "gelu"), (True, "gelu")]
)


class TenTimes(nn.Module):
    def forward(self, x):
        return 10 * x


@pytest.mark.parametrize(
    ("pre_norm", "drop", "factor"), [(False, 0, 30), (True, 0, 21), (False, 1, 10), (True, 1, 1)]
)
def test_residual_by_hand(pre_norm, drop, factor):
    # The sublayer doubles, the norm multiplies by 10.
    #   post-norm: 10(x + 2x) = 30x            pre-norm: x + 2·10x = 21x
    #   and if dropout takes the sublayer away:  10x, and x
    x = torch.tensor([[[1.0, -3.0]]])
    got = residual(x, lambda h: 2 * h, norm=TenTimes(), dropout=nn.Dropout(float(drop)), pre_norm=pre_norm)
    close(got, factor * x)


def silent(layer: nn.Module) -> nn.Module:
    """Make the sublayers give 0, but for the last bias, which is (10, 20, 30)."""
    with torch.no_grad():
        for attention in (layer.self_attention, getattr(layer, "cross_attention", layer.self_attention)):
            attention.w_o.weight.zero_()
        layer.feed_forward.w_2.weight.zero_()
        layer.feed_forward.w_2.bias.copy_(torch.tensor([10.0, 20, 30]))
    return layer.eval()


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_pre_norm_layer_by_hand(kind):
    # The input goes straight through all sums; only the last bias is added: (3, 1, 2) + (10, 20, 30).
    layer = silent(kind(3, n_heads=1, d_ff=5, pre_norm=True))
    memory = [normal(1, 2, 3)] if kind is DecoderLayer else []
    close(layer(torch.tensor([[[3.0, 1, 2]]]), *memory), torch.tensor([[[13.0, 21, 32]]]))


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_post_norm_layer_by_hand(kind):
    # (1, 2, 3) is normalized to √1.5·(-1, 0, 1), the bias is added, and the sum (10 - √1.5, 20, 30 + √1.5)
    # normalized again: to √1.5·(-1, 0, 1). The ε in the norms changes the sixth digit.
    layer = silent(kind(3, n_heads=1, d_ff=5, pre_norm=False))
    memory = [normal(1, 2, 3)] if kind is DecoderLayer else []
    got = layer(torch.tensor([[[1.0, 2, 3]]]), *memory)
    torch.testing.assert_close(got, math.sqrt(1.5) * torch.tensor([[[-1.0, 0, 1]]]), atol=2e-5, rtol=0)


TGT_IDS = torch.tensor([[4, 4, 4, 4, 0], [4, 4, 0, 0, 0]])
SRC_IDS = torch.tensor([[4, 4, 4, 4, 4, 4, 0], [4, 4, 4, 0, 0, 0, 0]])
CAUSAL, TGT_PADDING = causal_mask(TGT), padding_mask(TGT_IDS, pad_id=0)
CROSS = torch.rand(TGT, SRC, generator=torch.Generator().manual_seed(0)) < 0.5  # True = blocked
CROSS[:, 0] = False
ENCODER_MASKS = {
    "no mask": ({}, None),
    "causal": ({"src_mask": ~CAUSAL}, CAUSAL),
    "padding": ({"src_key_padding_mask": TGT_IDS == 0}, TGT_PADDING),
    "both": ({"src_mask": ~CAUSAL, "src_key_padding_mask": TGT_IDS == 0}, CAUSAL & TGT_PADDING),
}


@KINDS
@pytest.mark.parametrize("mask", ENCODER_MASKS)
def test_encoder_layer_parity_with_torch(pre_norm, activation, mask):
    theirs = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, 0.1, activation, batch_first=True, norm_first=pre_norm
    ).eval()
    ours = EncoderLayer(D_MODEL, **SIZES, dropout=0.1, pre_norm=pre_norm, activation=activation).eval()
    randomize(theirs)
    pairs = twins(ours, theirs)
    copy(pairs)
    torch_masks, our_mask = ENCODER_MASKS[mask]
    x = normal(BATCH, TGT, D_MODEL)
    got, wanted = ours(x, mask=our_mask), theirs(x, **torch_masks)
    close(got, wanted)
    close(backward(got, (x,))[0], backward(wanted, (x,))[0])
    same_gradients(pairs)


DECODER_MASKS = {
    "no mask": ({}, {}),
    "causal": ({"tgt_mask": ~CAUSAL}, {"mask": CAUSAL}),
    "padding": (
        {"tgt_mask": ~CAUSAL, "tgt_key_padding_mask": TGT_IDS == 0},
        {"mask": CAUSAL & TGT_PADDING},
    ),
    "memory padding": (
        {"tgt_mask": ~CAUSAL, "memory_key_padding_mask": SRC_IDS == 0},
        {"mask": CAUSAL, "memory_mask": padding_mask(SRC_IDS, pad_id=0)},
    ),
    "memory mask": ({"memory_mask": CROSS}, {"memory_mask": from_torch_mask(CROSS)}),
}


@KINDS
@pytest.mark.parametrize("mask", DECODER_MASKS)
def test_decoder_layer_parity_with_torch(pre_norm, activation, mask):
    theirs = nn.TransformerDecoderLayer(
        D_MODEL, HEADS, D_FF, 0.1, activation, batch_first=True, norm_first=pre_norm
    ).eval()
    ours = DecoderLayer(D_MODEL, **SIZES, dropout=0.1, pre_norm=pre_norm, activation=activation).eval()
    randomize(theirs)
    pairs = twins(ours, theirs)
    copy(pairs)
    torch_masks, our_masks = DECODER_MASKS[mask]
    inputs = normal(BATCH, TGT, D_MODEL), normal(BATCH, SRC, D_MODEL, seed=2)
    got, wanted = ours(*inputs, **our_masks), theirs(*inputs, **torch_masks)
    close(got, wanted)
    for mine, other in zip(backward(got, inputs), backward(wanted, inputs), strict=True):
        close(mine, other)
    same_gradients(pairs)


def attend(attention, weights, values):
    """Compute attention's output from its weights."""
    return attention.w_o(merge_heads(weights @ split_heads(attention.w_v(values), n_heads=HEADS)))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**20), pre_norm=st.booleans())
def test_encoder_layer_can_be_rebuilt_from_its_weights(seed, pre_norm):
    layer = EncoderLayer(D_MODEL, **SIZES, pre_norm=pre_norm).eval()
    randomize(layer, seed=seed)
    x, mask = normal(BATCH, TGT, D_MODEL, seed=seed), normal(BATCH, TGT, TGT, seed=seed + 1) > 0
    weights = layer.attention_weights(x, mask=mask)
    if pre_norm:
        x = x + attend(layer.self_attention, weights, layer.norm_attention(x))
        wanted = x + layer.feed_forward(layer.norm_feed_forward(x))
    else:
        x = layer.norm_attention(x + attend(layer.self_attention, weights, x))
        wanted = layer.norm_feed_forward(x + layer.feed_forward(x))
    close(layer(normal(BATCH, TGT, D_MODEL, seed=seed), mask=mask), wanted)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**20), pre_norm=st.booleans())
def test_decoder_layer_can_be_rebuilt_from_its_weights(seed, pre_norm):
    layer = DecoderLayer(D_MODEL, **SIZES, pre_norm=pre_norm).eval()
    randomize(layer, seed=seed)
    start, memory = normal(BATCH, TGT, D_MODEL, seed=seed), normal(BATCH, SRC, D_MODEL, seed=seed + 1)
    masks = {"mask": CAUSAL, "memory_mask": normal(BATCH, TGT, SRC, seed=seed + 2) > 0}
    own, cross = layer.attention_weights(start, memory, **masks)
    if pre_norm:
        x = start + attend(layer.self_attention, own, layer.norm_self(start))
        x = x + attend(layer.cross_attention, cross, memory)
        wanted = x + layer.feed_forward(layer.norm_feed_forward(x))
    else:
        x = layer.norm_self(start + attend(layer.self_attention, own, start))
        x = layer.norm_cross(x + attend(layer.cross_attention, cross, memory))
        wanted = layer.norm_feed_forward(x + layer.feed_forward(x))
    close(layer(start, memory, **masks), wanted)


@pytest.mark.parametrize("pre_norm", [False, True])
def test_weights_are_shown_without_dropout(pre_norm):
    torch.manual_seed(0)
    x, memory = normal(BATCH, TGT, D_MODEL), normal(BATCH, SRC, D_MODEL, seed=2)
    encoder, decoder = (
        kind(D_MODEL, **SIZES, dropout=0.5, pre_norm=pre_norm) for kind in (EncoderLayer, DecoderLayer)
    )
    in_training = encoder.attention_weights(x), *decoder.attention_weights(x, memory)
    encoder.eval(), decoder.eval()
    for got, wanted in zip(
        in_training, (encoder.attention_weights(x), *decoder.attention_weights(x, memory)), strict=True
    ):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_dropout_works_in_training_and_is_off_in_evaluation(kind, pre_norm):
    torch.manual_seed(0)
    layer, without = (kind(D_MODEL, **SIZES, dropout=drop, pre_norm=pre_norm) for drop in (0.5, 0.0))
    without.load_state_dict(layer.state_dict())
    inputs = [normal(BATCH, TGT, D_MODEL)] + [normal(BATCH, SRC, D_MODEL)] * (kind is DecoderLayer)
    assert not torch.equal(layer(*inputs), layer(*inputs))
    assert torch.equal(layer.eval()(*inputs), without(*inputs))


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_fully_masked_rows_give_finite_outputs_and_gradients(kind, pre_norm):
    layer, x = kind(D_MODEL, **SIZES, pre_norm=pre_norm).eval(), normal(BATCH, TGT, D_MODEL)
    nothing = torch.zeros(TGT, TGT, dtype=torch.bool)
    inputs, masks = ((x, x), {"memory_mask": nothing}) if kind is DecoderLayer else ((x,), {})
    output = layer(*inputs, mask=nothing, **masks)
    assert output.isfinite().all()
    assert backward(output, (x,))[0].isfinite().all()


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_sizes_that_make_no_layer_are_refused(kind):
    with pytest.raises(ValueError, match=r"d_model \(10\) must be divisible by n_heads \(4\)"):
        kind(10, n_heads=4, d_ff=7)
    with pytest.raises(ValueError, match="must be one of relu, gelu, silu, squared_relu, got 'swish'"):
        kind(12, n_heads=4, d_ff=7, activation="swish")


@pytest.mark.usefixtures("unchecked_shapes")
def test_inputs_that_do_not_fit_are_refused():
    x, memory = torch.ones(BATCH, TGT, D_MODEL), torch.ones(BATCH, SRC, D_MODEL)
    encoder, decoder = EncoderLayer(D_MODEL, **SIZES), DecoderLayer(D_MODEL, **SIZES)
    with pytest.raises(ValueError, match="must be boolean with True = may attend"):
        encoder(x, mask=torch.zeros(TGT, TGT))
    with pytest.raises(ValueError, match=r"must fit scores of the shape \(2, 5, 7\)"):
        decoder(x, memory, memory_mask=CAUSAL)
    with pytest.raises(ValueError, match=r"key must be .*batch of 2 .*got the shape \(1, 7, 33\)"):
        decoder(x, memory[:1])
    with pytest.raises(ValueError, match=r"query must be .*a width of 33, got the shape \(2, 5, 32\)"):
        encoder(x[..., :-1])


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_relative_positions_act_in_the_self_attention_only(kind):
    torch.manual_seed(0)
    turned = kind(D_MODEL + 3, **SIZES, positions=RotaryPositions()).eval()
    plain = kind(D_MODEL + 3, **SIZES).eval()
    plain.load_state_dict(turned.state_dict())
    x, memory = normal(BATCH, TGT, D_MODEL + 3), normal(BATCH, SRC, D_MODEL + 3)
    inputs = (x, memory) if kind is DecoderLayer else (x,)
    assert (turned(*inputs) - plain(*inputs)).abs().max() > 1e-3
    if kind is DecoderLayer:  # five target positions could not be placed among the seven of the source
        assert turned.cross_attention.positions is None
