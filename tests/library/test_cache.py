"""The key-value cache by itself, and the attention that goes through it in pieces."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_twins import close, normal, randomize, recorded

from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.nn.cache import Cache, KVCache, MemoryCache
from exformer.nn.masks import causal_mask
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions

pytestmark = pytest.mark.usefixtures("float64")
BATCH, LENGTH, SRC, D_MODEL, HEADS, D_FF = 2, 7, 5, 18, 3, 11
POSITIONS = {"none": lambda: None, "rotary": RotaryPositions, "alibi": ALiBi}
MASK = causal_mask(LENGTH) & torch.tensor([[[True] * 7], [[False, True, True, True, True, True, True]]])
MEMORY_MASK = torch.tensor([[[True] * 5], [[True, True, True, False, False]]])


def x(*, seed: int = 1, length: int = LENGTH) -> torch.Tensor:
    return normal(BATCH, length, D_MODEL, seed=seed).detach()


def ready(module):
    randomize(module, seed=4)
    return module.eval()


def numbers(*rows: float) -> torch.Tensor:
    """Make one head of width 1: a row per sequence, a number per position."""
    return torch.tensor(rows)[:, None, :, None]


def test_positions_are_appended_by_hand():
    cache = KVCache()
    assert (cache.length, cache.batch_size) == (0, None)
    for n, (first, second) in enumerate(((1.0, 2.0), (5.0, 6.0), (7.0, 8.0), (9.0, 4.0)), start=1):
        new = numbers([first], [second])
        k, v = cache.append(new, -new)
        assert (cache.length, cache.batch_size) == (n, 2)
    assert k[:, 0, :, 0].tolist() == [[1, 5, 7, 9], [2, 6, 8, 4]]
    assert v[:, 0, :, 0].tolist() == [[-1, -5, -7, -9], [-2, -6, -8, -4]]
    cache.append(new + 1, new)
    assert k[:, 0, :, 0].tolist() == [[1, 5, 7, 9], [2, 6, 8, 4]]  # what was handed out is still there


def test_rows_change_by_hand():
    cache = KVCache()
    with pytest.raises(ValueError, match="nothing to reorder yet: run the model with this cache first"):
        cache.reorder(torch.tensor([0]))
    cache.append(numbers([1.0, 5.0], [2.0, 6.0]), numbers([3.0, 7.0], [4.0, 8.0]))
    cache.reorder(torch.tensor([1, 1, 0]))
    assert cache.batch_size == 3
    k, v = cache.append(*[numbers([9.0], [10.0], [11.0])] * 2)
    assert k[:, 0, :, 0].tolist() == [[2, 6, 9], [2, 6, 10], [1, 5, 11]]
    assert v[:, 0, :, 0].tolist() == [[4, 8, 9], [4, 8, 10], [3, 7, 11]]


@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_few_positions_are_moved(lengths):
    """Room is made anew at most as often as the number of positions doubles."""
    cache, rooms = KVCache(), []
    for length in lengths:
        k, _ = cache.append(torch.zeros(1, 1, length, 1), torch.zeros(1, 1, length, 1))
        if k.untyped_storage().data_ptr() not in rooms:
            rooms.append(k.untyped_storage().data_ptr())
    assert cache.length == sum(lengths)
    assert len(rooms) <= 1 + math.log2(cache.length)


def test_room_is_made_only_where_there_is_none():
    cache, rooms = KVCache(), []
    for length in (1, 1, 1, 3):  # room for 2, then for 6
        rooms.append(cache.append(*[torch.zeros(1, 1, length, 1)] * 2)[0].untyped_storage().data_ptr())
    assert rooms[0] == rooms[1] != rooms[2] == rooms[3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cache_keeps_the_type_of_the_numbers(dtype):
    cache = KVCache()
    for _ in range(2):
        k, v = cache.append(*[torch.zeros(1, 1, 2, 3, dtype=dtype)] * 2)
        assert (k.dtype, v.dtype) == (dtype, dtype)


def test_more_or_fewer_sequences_are_refused():
    cache = KVCache()
    cache.append(*[torch.zeros(2, 1, 3, 1)] * 2)
    for n in (1, 3, 4):
        message = f"the cache holds 2 sequences, got {n}: make a new cache for another batch"
        with pytest.raises(ValueError, match=message):
            cache.append(*[torch.zeros(n, 1, 1, 1)] * 2)
    assert cache.length == 3


def test_a_cache_keeps_no_graph():
    cache, k = KVCache(), normal(1, 1, 2, 3)
    assert not any(kept.requires_grad for kept in cache.append(k, k))
    assert not any(kept.requires_grad for kept in MemoryCache().get_or_compute(lambda: (k, k)))


def test_a_memory_is_projected_once():
    cache, calls = MemoryCache(), []

    def project():
        calls.append("projected")
        return numbers([1.0], [2.0]), numbers([3.0], [4.0])

    first, again = cache.get_or_compute(project), cache.get_or_compute(project)
    assert calls == ["projected"]
    assert all(map(torch.equal, first, again))
    cache.select(torch.tensor([1, 0, 1]))
    k, v = cache.get_or_compute(project)
    assert k.flatten().tolist() == [2, 1, 2]
    assert v.flatten().tolist() == [4, 3, 4]


def test_a_beam_within_its_sentences_moves_no_memory():
    """Nor is a memory copied for each row of its own: only the rows of the targets change."""
    cache, memory = Cache(1, cross=True), [numbers([1.0], [2.0])] * 2
    cache.layers[0].append(*[numbers([1.0], [2.0], [3.0], [4.0])] * 2)
    kept, _ = cache.memories[0].get_or_compute(lambda: memory)
    cache.reorder(torch.tensor([1, 1, 2, 2]))
    assert cache.memories[0].k is kept
    cache.reorder(torch.tensor([3, 0]))
    assert cache.memories[0].k.flatten().tolist() == [2, 1]
    assert cache.batch_size == 2


def test_rows_of_a_sentence_that_is_left_share_its_memory():
    cache, memory = Cache(1, cross=True), [numbers([1.0], [2.0], [3.0])] * 2
    cache.layers[0].append(*[numbers([1.0], [2.0], [3.0], [4.0], [5.0], [6.0])] * 2)
    cache.memories[0].get_or_compute(lambda: memory)
    cache.memory_mask = torch.tensor([[[True]], [[False]], [[True]]])
    cache.reorder(torch.tensor([3, 3, 5, 4]))  # of sentences 1 and 2
    assert cache.memories[0].k.flatten().tolist() == [2, 3]
    assert cache.memory_mask.flatten().tolist() == [False, True]
    assert cache.batch_size == 4


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("start", range(LENGTH))
def test_the_newest_queries_get_what_they_get_among_all(positions, start):
    attention = ready(MultiHeadAttention(D_MODEL, n_heads=HEADS, positions=POSITIONS[positions]()))
    whole, weights = recorded(attention, x(), x(), x(), mask=MASK)
    cache, parts = KVCache(), []
    for first, end in ((0, start), (start, LENGTH)):
        if first < end:
            new = x()[:, first:end]
            parts.append(recorded(attention, new, new, new, mask=MASK[:, first:end, :end], cache=cache))
    close(torch.cat([output for output, _ in parts], dim=1), whole)
    close(parts[-1][1]["MultiHeadAttention"], weights["MultiHeadAttention"][:, :, start:])
    assert cache.length == LENGTH


def test_a_mask_of_a_step_spans_all_keys():
    attention = ready(MultiHeadAttention(D_MODEL, n_heads=HEADS))
    for mask in (MASK, MASK[1], MASK[:1], MASK[:, -1:], MASK[1, -1:]):  # (query, key) too
        cache = KVCache()
        attention(*[x()[:, :3]] * 3, cache=cache)
        new, last = x()[:, 3:], mask if mask.size(-2) == 1 else mask[..., 3:, :]
        close(attention(new, new, new, mask=last, cache=cache), attention(new, x(), x(), mask=last))


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_mask_of_the_new_keys_alone_is_refused():
    attention, cache, new = ready(MultiHeadAttention(D_MODEL, n_heads=HEADS)), KVCache(), x()[:, 3:]
    attention(*[x()[:, :3]] * 3, cache=cache)
    with pytest.raises(ValueError, match=r"a mask must fit scores of the shape \(2, 4, 7\)"):
        attention(new, new, new, mask=MASK[:, 3:, 3:], cache=cache)


def test_rows_of_one_source_attend_to_its_memory_together():
    attention = ready(MultiHeadAttention(D_MODEL, n_heads=HEADS))
    memory, three_each = x(seed=2, length=SRC), torch.arange(BATCH).repeat_interleave(3)
    new = normal(3 * BATCH, 2, D_MODEL, seed=3).detach()
    got, weights = recorded(attention, new, memory, memory, mask=MEMORY_MASK, cache=MemoryCache())
    each = memory[three_each]
    wanted, weights_of_each = recorded(attention, new, each, each, mask=MEMORY_MASK[three_each])
    close(got, wanted)
    close(weights["MultiHeadAttention"], weights_of_each["MultiHeadAttention"])
    close(attention(new, memory, memory, mask=MEMORY_MASK, cache=MemoryCache()), wanted)


@pytest.mark.parametrize("n_rows", [1, 3, 5])
def test_rows_that_share_no_memory_evenly_are_refused(n_rows):
    """Three rows of two positions each would also make two rows of three."""
    attention, memory = ready(MultiHeadAttention(D_MODEL, n_heads=HEADS)), x(seed=2, length=SRC)
    new = normal(n_rows, 2, D_MODEL).detach()
    message = f"a memory of 2 sentences serves as many rows of queries, or a multiple, got {n_rows}"
    with pytest.raises(ValueError, match=message):
        attention(new, memory, memory, cache=MemoryCache())


@pytest.mark.parametrize(("positions", "causal"), [(None, True), (RotaryPositions(), False)])
def test_a_memory_has_no_order_of_its_own(positions, causal):
    attention = ready(MultiHeadAttention(D_MODEL, n_heads=HEADS, positions=positions))
    memory = x(seed=2, length=SRC)
    with pytest.raises(ValueError, match="a MemoryCache is for cross-attention, which has no order"):
        attention(memory.repeat(2, 1, 1), memory, memory, causal=causal, cache=MemoryCache())


def test_what_is_known_of_the_rows_moves_with_them():
    cache = Cache(1, cross=True)
    cache.layers[0].append(*[torch.zeros(4, 1, 1, 1)] * 2)
    # Two rows a sentence.
    cache.memories[0].get_or_compute(lambda: (numbers([1.0], [2.0]), numbers([3.0], [4.0])))
    cache.padding = torch.tensor([0, 1, 2, 3])
    cache.tgt_mask = torch.tensor([[[True]], [[False]], [[True]], [[False]]])
    cache.memory_mask = torch.tensor([[[True]], [[False]]])
    cache.reorder(torch.tensor([3, 0, 0, 2]))
    assert cache.padding.tolist() == [3, 0, 0, 2]
    assert cache.tgt_mask.flatten().tolist() == [False, True, True, True]
    assert cache.memories[0].k.flatten().tolist() == [2, 1, 1, 2]
    assert cache.memory_mask.flatten().tolist() == [False, True, True, False]


def test_padding_stays_hidden_when_a_cache_goes_back():
    model = EncoderDecoder(EncoderDecoderConfig(13, 17, d_model=8, n_heads=2, n_layers=1)).eval()
    src, tgt, cache = (
        torch.tensor([[5, 6, 7]]),
        torch.tensor([[1, 0, 4, 9]]),
        model.new_cache(),
    )  # 0 is padding
    memory = model.encode(src)
    model.decode(tgt, memory=memory, src=src, cache=cache)
    cache.truncate(3)
    whole = model.decode(tgt, memory=memory, src=src)
    close(model.decode(tgt[:, 3:], memory=memory, src=src, cache=cache), whole[:, 3:])
