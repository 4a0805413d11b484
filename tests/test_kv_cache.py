"""Attention over kept keys and values, against the attention and the layers that compute all positions."""

import math

import pytest
import torch
from exformer.nn.cached_layers import decoder_layer_step, encoder_layer_step
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_twins import close, normal, randomize

from exformer.nn.cache import Cache, KeysValues, attend_kept, keys_values
from exformer.nn.layers import DecoderLayer, EncoderLayer
from exformer.nn.masks import causal_mask
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions

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


def numbers(*rows: float) -> torch.Tensor:
    """Give one head of width 1: a row a sequence, a number a position."""
    return torch.tensor(rows)[:, None, :, None]


def test_positions_are_put_behind_by_hand():
    cache = Cache()
    for n, (first, second) in enumerate(((1.0, 2.0), (5.0, 6.0), (7.0, 8.0), (9.0, 4.0)), start=1):
        k = numbers([first], [second])
        kept = cache.append(KeysValues(k, -k))
        assert cache.n == n
    assert kept.k[:, 0, :, 0].tolist() == [[1, 5, 7, 9], [2, 6, 8, 4]]
    assert kept.v[:, 0, :, 0].tolist() == [[-1, -5, -7, -9], [-2, -6, -8, -4]]
    cache.append(KeysValues(k + 1, k))
    assert kept.k[:, 0, :, 0].tolist() == [[1, 5, 7, 9], [2, 6, 8, 4]]  # what was handed out is still there


def test_rows_change_places_by_hand():
    cache = Cache()
    with pytest.raises(ValueError, match="nothing to reorder yet: score the first texts"):
        cache.reorder(torch.tensor([0]))
    cache.append(KeysValues(numbers([1.0, 5.0], [2.0, 6.0]), numbers([3.0, 7.0], [4.0, 8.0])))
    cache.reorder(torch.tensor([1, 1, 0]))
    kept = cache.append(KeysValues(numbers([9.0], [10.0], [11.0]), numbers([9.0], [10.0], [11.0])))
    assert kept.k[:, 0, :, 0].tolist() == [[2, 6, 9], [2, 6, 10], [1, 5, 11]]
    assert kept.v[:, 0, :, 0].tolist() == [[4, 8, 9], [4, 8, 10], [3, 7, 11]]


@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_few_positions_are_moved(lengths):
    """Room is made anew at most as often as the number of positions doubles."""
    cache, rooms = Cache(), []
    for length in lengths:
        kept = cache.append(KeysValues(torch.zeros(1, 1, length, 1), torch.zeros(1, 1, length, 1)))
        if kept.k.untyped_storage().data_ptr() not in rooms:
            rooms.append(kept.k.untyped_storage().data_ptr())
    assert cache.n == sum(lengths)
    assert len(rooms) <= 1 + math.log2(cache.n)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("start", range(TIME))
def test_the_newest_queries_get_what_they_get_among_all(positions, start):
    attention = randomized(MultiHeadAttention(D_MODEL, n_heads=HEADS, positions=POSITIONS[positions]()))
    whole = attention(x(), x(), x(), mask=MASK)
    cache = Cache()
    for part in filter(torch.numel, (x()[:, :start], x()[:, start:])):
        kept = cache.append(keys_values(attention, part))
    close(attend_kept(attention, x()[:, start:], kept, mask=MASK[:, start:]), whole[:, start:])


def test_masks_mean_what_they_mean_to_attention():
    attention = randomized(MultiHeadAttention(D_MODEL, n_heads=HEADS))
    kept = keys_values(attention, x())
    for mask in (MASK, MASK[1], MASK[:1], MASK[:, -1:], MASK[1, -1:]):  # (query, key) too
        close(attend_kept(attention, x(), kept, mask=mask), attention(x(), x(), x(), mask=mask))


@pytest.mark.usefixtures("unchecked_shapes")
def test_masks_that_do_not_fit_are_refused():
    attention = randomized(MultiHeadAttention(D_MODEL, n_heads=HEADS))
    kept = keys_values(attention, x())
    with pytest.raises(ValueError, match="a mask must be boolean"):
        attend_kept(attention, x(), kept, mask=MASK.double())
    with pytest.raises(ValueError, match="a mask must fit scores of the shape"):
        attend_kept(attention, x(), kept, mask=MASK[..., :-1])


def steps(step, cuts: list[int], **options):
    """Go through all positions in pieces that end at the cuts; return all outputs side by side."""
    found, cache = [], Cache()
    for start, end in zip([0, *cuts], [*cuts, TIME], strict=True):
        found.append(step(x()[:, start:end], cache=cache, mask=MASK[:, start:end, :end], **options))
        assert cache.n == end
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


def test_rows_of_one_source_ask_its_memory_together():
    layer = randomized(DecoderLayer(D_MODEL, n_heads=HEADS, d_ff=D_FF))
    memory, three_each = x(seed=2, time=SRC), torch.arange(BATCH).repeat_interleave(3)
    new = normal(3 * BATCH, 2, D_MODEL, seed=3).detach()
    kept, mask = keys_values(layer.cross_attention, memory), causal_mask(2)[None]
    got = decoder_layer_step(layer, new, cache=Cache(), memory=kept, mask=mask, memory_mask=MEMORY_MASK)
    close(got, layer(new, memory[three_each], mask=mask, memory_mask=MEMORY_MASK[three_each]))


def test_without_a_mask_all_is_seen():
    attention = randomized(MultiHeadAttention(D_MODEL, n_heads=HEADS))
    close(
        attend_kept(attention, x(), keys_values(attention, x(seed=2, time=SRC))),
        attention(x(), *[x(seed=2, time=SRC)] * 2),
    )
