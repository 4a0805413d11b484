"""Multi-head attention: heads split and merged, parity with PyTorch, shared and normalized heads."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import backward, close, copy, normal, randomize, recorded, same_gradients, twins

from exformer.nn.attention_heads import merge_heads, split_heads
from exformer.nn.masks import causal_mask, from_torch_mask, padding_mask
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions

pytestmark = pytest.mark.usefixtures("float64")
BATCH, QUERY, KEY, HEADS, D_HEAD = 2, 5, 7, 3, 11
D_MODEL, D_KEY, D_VALUE = HEADS * D_HEAD, 13, 17


def test_split_heads_by_hand():
    # One sentence, two positions, six columns: three heads of two columns.
    x = torch.tensor([[[0.0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]])
    heads = split_heads(x, n_heads=3)
    assert heads.tolist() == [[[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]]


@given(batch=st.integers(1, 3), n=st.integers(1, 5), heads=st.integers(1, 5), d_head=st.integers(1, 5))
def test_merge_heads_undoes_split_heads(batch, n, heads, d_head):
    x = normal(batch, n, heads * d_head)
    assert torch.equal(merge_heads(split_heads(x, n_heads=heads)), x)


def plain(d_model: int, **options) -> MultiHeadAttention:
    """Make attention whose projections change nothing."""
    attention = MultiHeadAttention(d_model, bias=False, **options).eval()
    for projection in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
        nn.init.eye_(projection.weight)
    return attention


def test_two_heads_by_hand():
    # d_head = 4: scores are halved. Head 1 sees the left four columns, head 2 the right four.
    #   head 1: scores 2·0/2 = ln 1 and 2·ln 3/2 = ln 3, weights (1/4, 3/4)
    #   head 2: scores 2·ln 2/2 = ln 2 and 2·0/2 = ln 1, weights (2/3, 1/3)
    query = torch.tensor([[[2.0, 0, 0, 0, 0, 2, 0, 0]]])
    key = torch.tensor([[[0, 9, 0, 0, 9, math.log(2), 0, 0], [math.log(3), 8, 0, 0, 8, 0, 0, 0]]])
    value = torch.tensor([[[4.0, 0, 8, 0, 3, 0, 6, 0], [0, 12, 4, 0, 0, 9, 3, 0]]])
    attention = plain(8, n_heads=2)
    output, weights = recorded(attention, query, key, value)
    close(weights["MultiHeadAttention"], torch.tensor([[[[1 / 4, 3 / 4]], [[2 / 3, 1 / 3]]]]))
    close(output, torch.tensor([[[1.0, 9, 5, 0, 2, 3, 5, 0]]]))
    assert torch.equal(attention(query, key, value), output)


def blocked(*shape: int) -> torch.Tensor:
    """Draw a mask of PyTorch's polarity, True = blocked, that leaves each query something to see."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.4
    mask[..., 1] = False
    return mask


ATTN_MASK, KEYS_3D = blocked(QUERY, KEY), blocked(BATCH * HEADS, QUERY, KEY)
IDS = torch.tensor([[4, 4, 4, 4, 4, 0, 0], [4, 4, 0, 0, 0, 0, 0]])
PER_SENTENCE = blocked(BATCH, QUERY, KEY)
MASKS = {
    "no mask": ({}, None),
    "boolean": ({"attn_mask": ATTN_MASK}, from_torch_mask(ATTN_MASK)),
    "additive": (
        {"attn_mask": torch.zeros(QUERY, KEY).double().masked_fill(ATTN_MASK, -math.inf)},
        from_torch_mask(torch.zeros(QUERY, KEY).masked_fill(ATTN_MASK, -math.inf)),
    ),
    "padding": ({"key_padding_mask": IDS == 0}, padding_mask(IDS, pad_id=0)),
    "both": (
        {"attn_mask": ATTN_MASK, "key_padding_mask": IDS == 0},
        from_torch_mask(ATTN_MASK) & padding_mask(IDS, pad_id=0),
    ),
    "3-D": (
        {"attn_mask": PER_SENTENCE.repeat_interleave(HEADS, dim=0)},
        from_torch_mask(PER_SENTENCE),
    ),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("widths", [(D_MODEL, D_MODEL), (D_KEY, D_VALUE)], ids=["one width", "three widths"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_parity_with_torch(mask, widths, bias):
    d_key, d_value = widths
    theirs = nn.MultiheadAttention(
        D_MODEL, HEADS, bias=bias, kdim=d_key, vdim=d_value, batch_first=True, dtype=torch.float64
    )
    ours = MultiHeadAttention(D_MODEL, n_heads=HEADS, d_key=d_key, d_value=d_value, bias=bias)
    randomize(theirs)
    pairs = twins(ours, theirs)
    copy(pairs)
    torch_masks, our_mask = MASKS[mask]
    inputs = (
        normal(BATCH, QUERY, D_MODEL),
        normal(BATCH, KEY, d_key, seed=2),
        normal(BATCH, KEY, d_value, seed=3),
    )
    wanted, wanted_weights = theirs(*inputs, average_attn_weights=False, **torch_masks)
    got = ours(*inputs, mask=our_mask)
    close(got, wanted)
    output, weights = recorded(ours.eval(), *inputs, mask=our_mask)
    close(output, wanted)
    close(weights["MultiHeadAttention"], wanted_weights)
    for mine, other in zip(backward(got, inputs), backward(wanted, inputs), strict=True):
        close(mine, other)
    same_gradients(pairs)


def test_self_attention_parity_with_torch_and_a_causal_mask():
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, dtype=torch.float64)
    ours, x = MultiHeadAttention(D_MODEL, n_heads=HEADS), normal(BATCH, QUERY, D_MODEL)
    randomize(theirs)
    copy(twins(ours, theirs))
    wanted = theirs(x, x, x, attn_mask=~causal_mask(QUERY), need_weights=False)[0]
    grad = backward(wanted, (x,))[0]
    for got in (ours(x, x, x, mask=causal_mask(QUERY)), ours(x, x, x, causal=True)):
        close(got, wanted)
        close(backward(got, (x,))[0], grad)


def random_attention(seed: int):
    """Draw an attention of random sizes, its inputs and a mask with empty rows."""
    generator = torch.Generator().manual_seed(seed)
    batch, query, key, heads, d_head = (int(torch.randint(1, 6, (), generator=generator)) for _ in range(5))
    attention = MultiHeadAttention(heads * d_head, n_heads=heads).eval()
    randomize(attention, seed=seed)
    mask = torch.rand(batch, query, key, generator=generator) < 0.5
    mask[0, 0] = False
    inputs = (
        normal(batch, query, heads * d_head, seed=seed),
        normal(batch, key, heads * d_head, seed=seed + 1),
    )
    return attention, *inputs, mask


@settings(max_examples=30)
@given(seed=st.integers(0, 2**20))
def test_fully_masked_row_gives_the_output_bias(seed):
    attention, x, memory, mask = random_attention(seed)
    output = attention(x, memory, memory, mask=mask)
    assert torch.equal(output[0, 0], attention.w_o.bias)
    for grad in backward(output, (x, memory)):
        assert grad.isfinite().all()
    assert (x.grad[0, 0] == 0).all()
    assert all(p.grad.isfinite().all() for p in attention.parameters())


def test_a_mask_without_queries_or_batch_is_spread():
    attention, x = MultiHeadAttention(D_MODEL, n_heads=HEADS).eval(), normal(BATCH, QUERY, D_MODEL)
    for narrow in (blocked(1, QUERY), blocked(BATCH, 1, QUERY), blocked(1, QUERY, QUERY)):
        wide = narrow.expand(BATCH, QUERY, QUERY)
        close(attention(x, x, x, mask=narrow), attention(x, x, x, mask=wide))
        found = [recorded(attention, x, x, x, mask=mask)[1]["MultiHeadAttention"] for mask in (narrow, wide)]
        assert torch.equal(*found)


def test_causal_combines_with_a_mask():
    attention, x = MultiHeadAttention(D_MODEL, n_heads=HEADS), normal(BATCH, QUERY, D_MODEL)
    for mask in (blocked(1, QUERY), blocked(BATCH, 1, QUERY), blocked(BATCH, QUERY, QUERY)):
        close(attention(x, x, x, mask=mask, causal=True), attention(x, x, x, mask=mask & causal_mask(QUERY)))


def test_dropout_works_in_training_and_is_off_in_evaluation():
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(D_MODEL, n_heads=HEADS, dropout=0.5), normal(BATCH, QUERY, D_MODEL)
    assert not torch.equal(attention(x, x, x), attention(x, x, x))
    attention.eval()
    without = MultiHeadAttention(D_MODEL, n_heads=HEADS)
    without.load_state_dict(attention.state_dict())
    assert torch.equal(attention(x, x, x), without(x, x, x))


def test_dropout_sets_weights_to_zero_and_scales_the_others_up():
    # All scores are 0, so each of four keys has the weight 1/4; the values are one-hot rows, so the output is
    # the weights: each must be 0, or 1/4 / (1 - 0.5) = 1/2.
    torch.manual_seed(0)
    attention = plain(4, n_heads=1, dropout=0.5).train()
    output = attention(torch.zeros(1, 101, 4), torch.zeros(1, 4, 4), torch.eye(4)[None])
    assert set(output.flatten().tolist()) == {0.0, 0.5}
    assert output.mean().item() == pytest.approx(0.25, abs=0.05)


def test_keys_and_values_have_their_own_widths():
    for widths in ({"d_key": D_KEY}, {"d_value": D_VALUE}, {"d_key": D_KEY, "d_value": D_VALUE}, {}):
        attention = MultiHeadAttention(D_MODEL, n_heads=HEADS, **widths)
        assert attention.w_k.in_features == widths.get("d_key", D_MODEL)
        assert attention.w_v.in_features == widths.get("d_value", D_MODEL)


def test_zero_init_sets_the_output_projection_alone_to_zero():
    torch.manual_seed(0)
    plain = MultiHeadAttention(D_MODEL, n_heads=HEADS)
    torch.manual_seed(0)
    zero = MultiHeadAttention(D_MODEL, n_heads=HEADS, zero_init=True)
    for name, value in zero.state_dict().items():
        wanted = plain.state_dict()[name]
        assert torch.equal(value, torch.zeros_like(value) if name == "w_o.weight" else wanted)


def test_projections_start_without_bias_and_have_none_if_asked():
    with_bias, without = (MultiHeadAttention(D_MODEL, n_heads=HEADS, bias=bias) for bias in (True, False))
    assert len(list(with_bias.parameters())) == 8
    assert len(list(without.parameters())) == 4
    assert all((p == 0).all() for name, p in with_bias.named_parameters() if name.endswith("bias"))


def test_projections_start_as_xavier_uniform():
    attention = MultiHeadAttention(48, n_heads=2, n_kv_heads=1, d_key=29, d_value=19)
    for projection in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
        bound = math.sqrt(6 / sum(projection.weight.shape))
        assert 0.97 * bound < projection.weight.abs().max() <= bound


@pytest.mark.parametrize(("d_model", "n_heads"), [(10, 4), (3, 5), (7, 0)])
def test_a_width_that_heads_do_not_divide_is_refused(d_model, n_heads):
    with pytest.raises(
        ValueError, match=rf"d_model \({d_model}\) must be divisible by n_heads \({n_heads}\)"
    ):
        MultiHeadAttention(d_model, n_heads=n_heads)
    with pytest.raises(ValueError, match=rf"width \({d_model}\) must be divisible by n_heads \({n_heads}\)"):
        split_heads(torch.ones(1, 1, d_model), n_heads=n_heads)


SHAPES = {"query": (2, 5, 33), "key": (2, 7, 13), "value": (2, 7, 17)}


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        (
            "query",
            (2, 5, 13),
            r"query must be \(batch, position, width\).*a width of 33, got the shape \(2, 5, 13\)",
        ),
        ("key", (2, 7, 33), r"key must be .*a width of 13, got the shape \(2, 7, 33\)"),
        ("value", (2, 7, 13), r"value must be .*a width of 17, got the shape \(2, 7, 13\)"),
        ("key", (3, 7, 13), r"key must be .*the queries' batch of 2 .*got the shape \(3, 7, 13\)"),
        ("value", (3, 7, 17), r"value must be .*the queries' batch of 2 .*got the shape \(3, 7, 17\)"),
        ("query", (5, 33), r"query must be \(batch, position, width\).*got the shape \(5, 33\)"),
        ("query", (2, 5, 1, 33), r"query must be .*got the shape \(2, 5, 1, 33\)"),
        ("value", (2, 5, 17), "there are 7 keys and 5 values: each key needs one value"),
        ("value", (2, 8, 17), "there are 7 keys and 8 values: each key needs one value"),
        ("key", (2, 7, 12), r"key must be .*a width of 13, got the shape \(2, 7, 12\)"),
        ("key", (1, 7, 13), r"key must be .*the queries' batch of 2 .*got the shape \(1, 7, 13\)"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(name, shape, message):
    attention = MultiHeadAttention(D_MODEL, n_heads=HEADS, d_key=D_KEY, d_value=D_VALUE)
    inputs = {other: torch.ones(fits) for other, fits in SHAPES.items()} | {name: torch.ones(shape)}
    with pytest.raises(ValueError, match=message):
        attention(**inputs)


@pytest.mark.usefixtures("unchecked_shapes")
def test_masks_of_another_type_or_shape_are_refused():
    attention, x = MultiHeadAttention(D_MODEL, n_heads=HEADS), torch.ones(BATCH, QUERY, D_MODEL)
    for dtype in (torch.float64, torch.int64):
        with pytest.raises(ValueError, match="must be boolean with True = may attend"):
            attention(x, x, x, mask=torch.zeros(QUERY, QUERY, dtype=dtype))
    for shape in ((QUERY,), (QUERY, KEY), (HEADS, QUERY, QUERY), (BATCH, HEADS, QUERY, QUERY)):
        with pytest.raises(ValueError, match=r"must fit scores of the shape \(2, 5, 5\)"):
            attention(x, x, x, mask=torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("n_kv_heads", [0, -1, 2, 6])
def test_heads_that_cannot_be_shared_are_refused(n_kv_heads):
    with pytest.raises(ValueError, match=rf"n_heads \(3\) must be divisible by n_kv_heads \({n_kv_heads}\)"):
        MultiHeadAttention(D_MODEL, n_heads=HEADS, n_kv_heads=n_kv_heads)


@pytest.mark.parametrize("rate", [-0.1, 1.0, math.nan])
def test_a_dropout_rate_outside_its_range_is_refused(rate):
    with pytest.raises(ValueError, match=rf"dropout must lie in \[0, 1\), got {rate}"):
        MultiHeadAttention(D_MODEL, n_heads=HEADS, dropout=rate)


# --- normalized queries and keys ---


def test_normalized_heads_by_hand():
    # q = (3, 4): mean square (9 + 16)/2 = 12.5, so divided by √12.5; the gains (1, 2) make it (3, 8)/√12.5.
    # Keys 7·(3, 4) and (4, -3) have the same length, once normalized; the gains (-1, 5) make them
    # (-3, 20)/√12.5 and (-4, -15)/√12.5. Scores: (-9 + 160)/12.5/√2 and (-12 - 120)/12.5/√2.
    attention = plain(2, n_heads=1, qk_norm=True)
    attention.norm_q.eps = attention.norm_k.eps = 0.0
    with torch.no_grad():
        attention.norm_q.weight.copy_(torch.tensor([1.0, 2.0]))
        attention.norm_k.weight.copy_(torch.tensor([-1.0, 5.0]))
    query, key = torch.tensor([[[3.0, 4.0]]]), torch.tensor([[[21.0, 28.0], [4.0, -3.0]]])
    scores = torch.tensor([151.0, -132.0]) / 12.5 / math.sqrt(2)
    output, weights = recorded(attention, query, key, key)
    close(weights["MultiHeadAttention"][0, 0, 0], scores.softmax(-1))
    close(output[0, 0], scores.softmax(-1) @ key[0])  # values are not normalized


def test_new_gains_leave_no_score_above_the_root_of_the_width():
    attention = plain(D_MODEL, n_heads=HEADS, qk_norm=True)
    x = 1000 * normal(BATCH, KEY, D_MODEL).detach()
    weights = recorded(attention, x, x, x)[1]["MultiHeadAttention"]
    # Of two scores within ±√d_head, the larger is at most 2√d_head above the other.
    assert (weights.amax(-1) / weights.amin(-1)).log().max() <= 2 * math.sqrt(D_HEAD)
    without = recorded(plain(D_MODEL, n_heads=HEADS), x, x, x)[1]["MultiHeadAttention"]
    assert (without.amax(-1) / without.amin(-1)).log().max() > 2 * math.sqrt(D_HEAD)


EVERY_POSITION = pytest.mark.parametrize(
    "positions", [None, RotaryPositions(), ALiBi()], ids=["none", "rotary", "alibi"]
)


@EVERY_POSITION
def test_heads_are_normalized_before_positions_act(positions):
    attention = MultiHeadAttention(30, n_heads=3, positions=positions, qk_norm=True).eval()
    randomize(attention)
    x = normal(BATCH, KEY, 30)
    q, k, v = (split_heads(w(x), n_heads=3) for w in (attention.w_q, attention.w_k, attention.w_v))
    q = F.rms_norm(q, (10,), attention.norm_q.weight, eps=1e-6)
    k = F.rms_norm(k, (10,), attention.norm_k.weight, eps=1e-6)
    bias = torch.zeros(1)
    if positions is not None:
        q, k, added = positions(q, k)
        bias = bias if added is None else added
    scores = (q @ k.mT / math.sqrt(10) + bias).masked_fill(~causal_mask(KEY), -torch.inf)
    output, weights = recorded(attention, x, x, x, causal=True)
    close(weights["MultiHeadAttention"], scores.softmax(-1))
    close(output, attention.w_o(merge_heads(scores.softmax(-1) @ v)))
    close(attention(x, x, x, causal=True), output)


def half_split(matrix: torch.Tensor) -> torch.Tensor:
    """Order the columns of each head of 10 as Qwen3 does: it rotates column i with column i + 5."""
    order = torch.arange(10).view(-1, 2).t().flatten()  # 0, 2, 4, ..., 1, 3, 5, ...
    return matrix.unflatten(0, (-1, 10))[:, order].flatten(0, 1)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_attention_is_qwen3s(n_kv_heads):
    from transformers import Qwen3Config
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

    config = Qwen3Config(
        hidden_size=40,
        num_attention_heads=4,
        num_key_value_heads=n_kv_heads,
        head_dim=10,
        attention_bias=True,
        attn_implementation="sdpa",
    )
    ours = MultiHeadAttention(40, n_heads=4, n_kv_heads=n_kv_heads, positions=RotaryPositions(), qk_norm=True)
    theirs = Qwen3Attention(config, layer_idx=0)
    randomize(ours)
    with torch.no_grad():
        for name in "qk":
            mine, other = getattr(ours, f"w_{name}"), getattr(theirs, f"{name}_proj")
            other.weight.copy_(half_split(mine.weight))
            other.bias.copy_(half_split(mine.bias))
            # Its own norm computes in float32 always; PyTorch's is the same in the type that comes in.
            norm = nn.RMSNorm(10, eps=getattr(theirs, f"{name}_norm").variance_epsilon)
            norm.weight.copy_(half_split(getattr(ours, f"norm_{name}").weight))
            setattr(theirs, f"{name}_norm", norm)
    theirs.v_proj, theirs.o_proj = ours.w_v, ours.w_o
    x = normal(BATCH, KEY, 40)
    frequency = 10_000.0 ** (-torch.arange(0, 10, 2) / 10)
    angle = (torch.arange(KEY)[:, None] * frequency).repeat(1, 2)[None]
    wanted, _ = theirs(x, position_embeddings=(angle.cos(), angle.sin()), attention_mask=None)
    got = ours(x, x, x, causal=True)
    close(got, wanted)
    close(backward(got, (x,))[0], backward(wanted, (x,))[0])
