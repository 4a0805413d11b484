"""The layers: residual sums in order, parity with PyTorch, weights, what a configuration switches on."""

import math
from dataclasses import asdict

import pytest
import torch
from torch import nn
from torch_twins import backward, close, copy, normal, randomize, same_gradients, twins

from exformer.nn.config import TransformerConfig
from exformer.nn.layers import DecoderLayer, EncoderLayer, residual
from exformer.nn.masks import causal_mask, from_torch_mask, padding_mask
from exformer.nn.normalization import LayerNorm, RMSNorm
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions

pytestmark = pytest.mark.usefixtures("float64")
BATCH, TGT, SRC, HEADS, D_FF = 2, 5, 7, 3, 13
D_MODEL = HEADS * 11
KINDS = pytest.mark.parametrize(
    ("pre_norm", "activation"), [(False, "relu"), (True, "relu"), (False, "gelu"), (True, "gelu")]
)


BOTH = pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])


def config(d_model: int = D_MODEL, **changes) -> TransformerConfig:
    return TransformerConfig(d_model=d_model, **{"n_heads": HEADS, "d_ff": D_FF, "dropout": 0.0} | changes)


def inputs_of(kind: type, width: int = D_MODEL) -> list[torch.Tensor]:
    """Return the input of a layer, and for a decoder's the memory too."""
    return [normal(BATCH, TGT, width), normal(BATCH, SRC, width, seed=2)][: 1 + (kind is DecoderLayer)]


def test_layers_are_the_papers_unless_told_otherwise():
    sizes = {"d_model": 128, "n_heads": 4, "n_kv_heads": None, "d_ff": 512, "n_layers": 2, "max_len": 128}
    rates = {"dropout": 0.1, "attention_dropout": 0.0}
    choices = {"pre_norm": False, "norm": "layer", "activation": "relu", "positions": "none", "bias": True}
    later = {"qk_norm": False, "zero_init": False, "norm_eps": None, "qkv_bias": None, "o_bias": None}
    later |= {"d_head": 32, "rope_base": 10_000.0, "rope_scaling": None, "window": None}
    later |= {"n_experts": None, "experts_per_token": 2, "balance_weight": 0.01}
    assert (sizes | rates | choices | later).items() <= asdict(TransformerConfig()).items()


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


@BOTH
def test_pre_norm_layer_by_hand(kind):
    # The input goes straight through all sums; only the last bias is added: (3, 1, 2) + (10, 20, 30).
    layer = silent(kind(config(3, n_heads=1, pre_norm=True)))
    memory = [normal(1, 2, 3)] if kind is DecoderLayer else []
    close(layer(torch.tensor([[[3.0, 1, 2]]]), *memory), torch.tensor([[[13.0, 21, 32]]]))


@BOTH
def test_post_norm_layer_by_hand(kind):
    # (1, 2, 3) is normalized to √1.5·(-1, 0, 1), the bias is added, and the sum (10 - √1.5, 20, 30 + √1.5)
    # normalized again: to √1.5·(-1, 0, 1). The ε in the norms changes the sixth digit.
    layer = silent(kind(config(3, n_heads=1, pre_norm=False)))
    memory = [normal(1, 2, 3)] if kind is DecoderLayer else []
    got = layer(torch.tensor([[[1.0, 2, 3]]]), *memory)
    torch.testing.assert_close(got, math.sqrt(1.5) * torch.tensor([[[-1.0, 0, 1]]]), atol=2e-5, rtol=0)


TGT_IDS = torch.tensor([[4, 4, 4, 4, 0], [4, 4, 0, 0, 0]])
SRC_IDS = torch.tensor([[4, 4, 4, 4, 4, 4, 0], [4, 4, 4, 0, 0, 0, 0]])
CAUSAL, TGT_PADDING = causal_mask(TGT), padding_mask(TGT_IDS, pad_id=0)
CROSS = torch.rand(TGT, SRC, generator=torch.Generator().manual_seed(0)) < 0.5  # True = blocked
CROSS[:, 0] = False
MASKS: dict[tuple[type, str], tuple[dict, dict]] = {
    (EncoderLayer, "no mask"): ({}, {}),
    (EncoderLayer, "causal"): ({"src_mask": ~CAUSAL}, {"mask": CAUSAL}),
    (EncoderLayer, "padding"): ({"src_key_padding_mask": TGT_IDS == 0}, {"mask": TGT_PADDING}),
    (EncoderLayer, "both"): (
        {"src_mask": ~CAUSAL, "src_key_padding_mask": TGT_IDS == 0},
        {"mask": CAUSAL & TGT_PADDING},
    ),
    (DecoderLayer, "no mask"): ({}, {}),
    (DecoderLayer, "causal"): ({"tgt_mask": ~CAUSAL}, {"mask": CAUSAL}),
    (DecoderLayer, "padding"): (
        {"tgt_mask": ~CAUSAL, "tgt_key_padding_mask": TGT_IDS == 0},
        {"mask": CAUSAL & TGT_PADDING},
    ),
    (DecoderLayer, "memory padding"): (
        {"tgt_mask": ~CAUSAL, "memory_key_padding_mask": SRC_IDS == 0},
        {"mask": CAUSAL, "memory_mask": padding_mask(SRC_IDS, pad_id=0)},
    ),
    (DecoderLayer, "memory mask"): ({"memory_mask": CROSS}, {"memory_mask": from_torch_mask(CROSS)}),
}


def check_parity(kind, mask, *, pre_norm, activation):
    peer = nn.TransformerEncoderLayer if kind is EncoderLayer else nn.TransformerDecoderLayer
    theirs = peer(D_MODEL, HEADS, D_FF, 0.1, activation, batch_first=True, norm_first=pre_norm).eval()
    ours = kind(config(dropout=0.1, pre_norm=pre_norm, activation=activation)).eval()
    randomize(theirs)
    pairs = twins(ours, theirs)
    copy(pairs)
    torch_masks, our_masks = MASKS[kind, mask]
    inputs = inputs_of(kind)
    got, wanted = ours(*inputs, **our_masks), theirs(*inputs, **torch_masks)
    close(got, wanted)
    for mine, other in zip(backward(got, inputs), backward(wanted, inputs), strict=True):
        close(mine, other)
    same_gradients(pairs)


@KINDS
@pytest.mark.parametrize("mask", [mask for kind, mask in MASKS if kind is EncoderLayer])
def test_encoder_layer_parity_with_torch(pre_norm, activation, mask):
    check_parity(EncoderLayer, mask, pre_norm=pre_norm, activation=activation)


@KINDS
@pytest.mark.parametrize("mask", [mask for kind, mask in MASKS if kind is DecoderLayer])
def test_decoder_layer_parity_with_torch(pre_norm, activation, mask):
    check_parity(DecoderLayer, mask, pre_norm=pre_norm, activation=activation)


@pytest.mark.parametrize("pre_norm", [False, True])
@BOTH
def test_dropout_works_in_training_and_is_off_in_evaluation(kind, pre_norm):
    torch.manual_seed(0)
    layer, without = (kind(config(dropout=drop, pre_norm=pre_norm)) for drop in (0.5, 0.0))
    without.load_state_dict(layer.state_dict())
    inputs = inputs_of(kind)
    assert not torch.equal(layer(*inputs), layer(*inputs))
    assert torch.equal(layer.eval()(*inputs), without(*inputs))


@BOTH
def test_dropout_spares_the_attention_weights(kind):
    """``dropout`` is that of sublayers' outputs, ``attention_dropout`` that of weights."""
    torch.manual_seed(0)
    for changes, dropped in (({"dropout": 0.5}, False), ({"attention_dropout": 0.5}, True)):
        layer = kind(config(**changes))
        inputs = inputs_of(kind)
        for attention in (layer.self_attention, getattr(layer, "cross_attention", layer.self_attention)):
            qkv = inputs[0], inputs[-1], inputs[-1]
            assert torch.equal(attention(*qkv), attention(*qkv)) != dropped
        assert torch.equal(layer.feed_forward(inputs[0]), layer.feed_forward(inputs[0]))
        assert torch.equal(layer(*inputs), layer(*inputs)) is False


@BOTH
@pytest.mark.parametrize("pre_norm", [False, True])
def test_fully_masked_rows_give_finite_outputs_and_gradients(kind, pre_norm):
    layer, x = kind(config(pre_norm=pre_norm)).eval(), normal(BATCH, TGT, D_MODEL)
    nothing = torch.zeros(TGT, TGT, dtype=torch.bool)
    inputs, masks = ((x, x), {"memory_mask": nothing}) if kind is DecoderLayer else ((x,), {})
    output = layer(*inputs, mask=nothing, **masks)
    assert output.isfinite().all()
    assert backward(output, (x,))[0].isfinite().all()


@pytest.mark.usefixtures("unchecked_shapes")
def test_inputs_that_do_not_fit_are_refused():
    x, memory = torch.ones(BATCH, TGT, D_MODEL), torch.ones(BATCH, SRC, D_MODEL)
    encoder, decoder = EncoderLayer(config()), DecoderLayer(config())
    with pytest.raises(ValueError, match="must be boolean with True = may attend"):
        encoder(x, mask=torch.zeros(TGT, TGT))
    with pytest.raises(ValueError, match=r"must fit scores of the shape \(2, 5, 7\)"):
        decoder(x, memory, memory_mask=CAUSAL)
    with pytest.raises(ValueError, match=r"key must be .*batch of 2 .*got the shape \(1, 7, 33\)"):
        decoder(x, memory[:1])
    with pytest.raises(ValueError, match=r"query must be .*a width of 33, got the shape \(2, 5, 32\)"):
        encoder(x[..., :-1])


@BOTH
def test_relative_positions_act_in_the_self_attention_only(kind):
    torch.manual_seed(0)
    plain = kind(config(D_MODEL + 3)).eval()
    inputs = inputs_of(kind, D_MODEL + 3)
    for name, positions in (("rotary", RotaryPositions), ("alibi", ALiBi)):
        layer = kind(config(D_MODEL + 3, positions=name)).eval()
        layer.load_state_dict(plain.state_dict())
        assert (layer(*inputs) - plain(*inputs)).abs().max() > 1e-3
        assert type(layer.self_attention.positions) is positions
        if kind is DecoderLayer:  # five target positions have no place among the seven of the source
            assert layer.cross_attention.positions is None


@BOTH
def test_what_a_configuration_switches_on_is_built_in_every_part(kind):
    layer = kind(
        config(
            D_MODEL + 3, n_heads=6, n_kv_heads=2, norm="rms", activation="swiglu", bias=False, qk_norm=True
        )
    )
    names = {name for name, _ in layer.named_parameters()}
    assert not any(name.endswith("bias") for name in names)
    assert all(isinstance(part, RMSNorm) for name, part in layer.named_modules() if "norm" in name)
    assert "feed_forward.w_3.weight" in names
    attentions = ["self_attention"] + ["cross_attention"] * (kind is DecoderLayer)
    for name in attentions:
        attention = layer.get_submodule(name)
        assert {f"{name}.norm_q.weight", f"{name}.norm_k.weight"} <= names
        assert attention.w_k.weight.shape == attention.w_v.weight.shape == (12, 36)
    plain = kind(config(D_MODEL + 3))
    assert all(isinstance(part, LayerNorm) for name, part in plain.named_modules() if "norm" in name)
    assert not plain.pre_norm


@BOTH
def test_a_layer_without_biases_is_one_whose_biases_are_zero(kind):
    torch.manual_seed(0)
    with_biases, without = (kind(config(pre_norm=True, bias=bias)).eval() for bias in (True, False))
    randomize(without)
    state = {name: torch.zeros_like(p) for name, p in with_biases.state_dict().items()}
    with_biases.load_state_dict(state | without.state_dict())
    inputs = inputs_of(kind)
    close(without(*inputs), with_biases(*inputs))


@BOTH
@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_with_zero_init_a_pre_norm_layer_begins_as_the_identity(kind, activation):
    layer = kind(config(pre_norm=True, zero_init=True, activation=activation)).eval()
    inputs = inputs_of(kind)
    assert torch.equal(layer(*inputs), inputs[0])
    assert not torch.equal(kind(config(pre_norm=True, activation=activation))(*inputs), inputs[0])
