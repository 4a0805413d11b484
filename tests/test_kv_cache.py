"""Attention over kept keys and values, against the attention and the layers that compute all positions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_twins import close, normal, randomize

from exformer.alibi import ALiBi
from exformer.kv_cache import KeysValues, attend_kept, decoder_layer_step, encoder_layer_step, keys_values
from exformer.layers import DecoderLayer, EncoderLayer
from exformer.masks import causal_mask
from exformer.multi_head import MultiHeadAttention
from exformer.rotary import RotaryPositions

pytestmark = pytest.mark.usefixtures("float64")
BATCH, TIME, SRC, D_MODEL, HEADS, D_FF = 2, 7, 5, 18, 3, 11
POSITIONS = {"none": lambda: None, "rotary": RotaryPositions, "alibi": ALiBi}
MASK = causal_mask(TIME) & torch.tensor([[[True] * 7], [[False, True, True, True, True, True, True]]])
MEMORY_MASK = torch.tensor([[[True] * 5], [[True, True, True, False, False]]])


def x(*, seed: int = 1, time: int = TIME) -> torch.Tensor:
    return normal(BATCH, time, D_MODEL, seed=seed).detach()


def randomized(module):
    randomize(module, seed=4)
    return module.eval()


def test_join_and_take_by_hand():
    old = KeysValues(torch.tensor([[[[1.0]]], [[[2.0]]]]), torch.tensor([[[[3.0]]], [[[4.0]]]]))
    new = KeysValues(torch.tensor([[[[5.0]]], [[[6.0]]]]), torch.tensor([[[[7.0]]], [[[8.0]]]]))
    both = old.join(new)
    assert both.k.tolist() == [[[[1.0], [5.0]]], [[[2.0], [6.0]]]]
    assert both.v.tolist() == [[[[3.0], [7.0]]], [[[4.0], [8.0]]]]
    assert both.take(torch.tensor([1, 1, 0])).k[:, 0, :, 0].tolist() == [[2, 6], [2, 6], [1, 5]]
    assert both.take(torch.tensor([1, 1, 0])).v[:, 0, :, 0].tolist() == [[4, 8], [4, 8], [3, 7]]
    assert old.k.shape == (2, 1, 1, 1)  # nothing is changed in place


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("start", range(TIME))
def test_the_newest_queries_get_what_they_get_among_all(positions, start):
    attention = randomized(MultiHeadAttention(D_MODEL, n_heads=HEADS, positions=POSITIONS[positions]()))
    whole = attention(x(), x(), x(), mask=MASK)
    kept = keys_values(attention, x()[:, :start]).join(keys_values(attention, x()[:, start:]))
    close(attend_kept(attention, x()[:, start:], kept, mask=MASK[:, start:]), whole[:, start:])


def steps(step, cuts: list[int], **options):
    """Go through all positions in pieces that end at the cuts; return all outputs side by side."""
    found, past = [], None
    for start, end in zip([0, *cuts], [*cuts, TIME], strict=True):
        new, past = step(x()[:, start:end], past=past, mask=MASK[:, start:end, :end], **options)
        assert past.k.size(2) == past.v.size(2) == end
        found.append(new)
    return torch.cat(found, dim=1)


CUTS = st.lists(st.integers(1, TIME - 1), unique=True).map(sorted)


@settings(max_examples=30)
@given(cuts=CUTS, positions=st.sampled_from([*POSITIONS]), pre_norm=st.booleans())
def test_an_encoder_layer_in_pieces_is_the_layer_at_once(cuts, positions, pre_norm):
    options = {"positions": POSITIONS[positions](), "pre_norm": pre_norm}
    layer = randomized(EncoderLayer(D_MODEL, n_heads=HEADS, d_ff=D_FF, **options))
    got = steps(lambda *args, **rest: encoder_layer_step(layer, *args, **rest), cuts)
    close(got, layer(x(), mask=MASK))


@settings(max_examples=30)
@given(cuts=CUTS, positions=st.sampled_from([*POSITIONS]), pre_norm=st.booleans())
def test_a_decoder_layer_in_pieces_is_the_layer_at_once(cuts, positions, pre_norm):
    options = {"positions": POSITIONS[positions](), "pre_norm": pre_norm}
    layer = randomized(DecoderLayer(D_MODEL, n_heads=HEADS, d_ff=D_FF, **options))
    memory = x(seed=2, time=SRC)
    kept = keys_values(layer.cross_attention, memory)
    got = steps(
        lambda *args, **rest: decoder_layer_step(layer, *args, **rest),
        cuts,
        memory=kept,
        memory_mask=MEMORY_MASK,
    )
    close(got, layer(x(), memory, mask=MASK, memory_mask=MEMORY_MASK))
