"""Attention, the explicit path: by hand, against PyTorch, and what must hold whatever the numbers."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_twins import backward, close, normal

from exformer.nn.attention import attend, scaled_dot_product_attention
from exformer.nn.masks import causal_mask

pytestmark = pytest.mark.usefixtures("float64")
some = settings(max_examples=30)
seeds = st.integers(0, 2**20)


def random_case(seed: int, *, n_queries: int | None = None):
    """Draw q, k, v and a mask of random sizes; many rows of the mask are empty, some full."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [int(torch.randint(1, 9, (), generator=generator)) for _ in range(5)]
    batch, query, key, d_k, d_v = sizes
    query = n_queries or query
    q, k = normal(batch, query, d_k, seed=seed), normal(batch, key, d_k, seed=seed + 1)
    share = torch.rand(batch, query, 1, generator=generator)  # of the keys that a query may see
    mask = torch.rand(batch, query, key, generator=generator) < share.round(decimals=1)
    mask[0, 0] = False
    return q, k, normal(batch, key, d_v, seed=seed + 2), mask


def test_two_queries_by_hand():
    # d_k = 4, so the dot products are divided by 2, and then by hand:
    #   query 1: 2·0/2 = 0 = ln 1 and 2·ln 3/2 = ln 3, softmax (1/4, 3/4)
    #   query 2: 2·ln 2/2 = ln 2 and 2·0/2 = 0 = ln 1, softmax (2/3, 1/3)
    q = torch.tensor([[2.0, 0, 0, 0], [0, 2, 0, 0]])
    k = torch.tensor([[0, math.log(2), 5, 0], [math.log(3), 0, -5, 0]])
    v = torch.tensor([[4.0, 0, 8], [0, 12, 4]])
    output, weights = scaled_dot_product_attention(q, k, v)
    close(weights, torch.tensor([[1 / 4, 3 / 4], [2 / 3, 1 / 3]]))
    # 1/4·(4, 0, 8) + 3/4·(0, 12, 4) and 2/3·(4, 0, 8) + 1/3·(0, 12, 4)
    close(output, torch.tensor([[1, 9, 5], [8 / 3, 4, 20 / 3]]))


def test_mask_by_hand():
    # All scores are 0: a query takes the plain mean of the values that it may see.
    q, k, v = torch.zeros(3, 2), torch.zeros(3, 2), torch.tensor([[6.0], [18], [30]])
    output, weights = scaled_dot_product_attention(q, k, v, mask=causal_mask(3))
    close(weights, torch.tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))
    close(output, torch.tensor([[6.0], [12], [18]]))
    last_only = torch.tensor([[False, False, True]])
    close(scaled_dot_product_attention(q, k, v, mask=last_only)[0], torch.tensor([[30.0], [30], [30]]))


@some
@given(seed=seeds)
def test_weights_sum_to_one_or_are_all_zero(seed):
    q, k, v, mask = random_case(seed)
    _, weights = scaled_dot_product_attention(q, k, v)
    close(weights.sum(-1), torch.ones(q.shape[:-1]))
    _, weights = scaled_dot_product_attention(q, k, v, mask=mask)
    close(weights.sum(-1), mask.any(-1).double())
    assert (weights >= 0).all()


@some
@given(seed=seeds)
def test_a_masked_key_has_weight_zero_and_gradient_zero(seed):
    q, k, v, mask = random_case(seed)
    mask[..., 0] = False  # nobody sees the first key
    output, weights = scaled_dot_product_attention(q, k, v, mask=mask)
    assert (weights[~mask] == 0).all()
    _, grad_k, grad_v = backward(output, (q, k, v))
    assert (grad_k[:, 0] == 0).all()
    assert (grad_v[:, 0] == 0).all()


@some
@given(seed=seeds)
def test_what_a_masked_key_holds_does_not_matter(seed):
    q, k, v, mask = random_case(seed)
    mask[..., 0] = False
    other_k, other_v = k.detach().clone(), v.detach().clone()
    other_k[:, 0], other_v[:, 0] = 1e6, -1e6
    got = scaled_dot_product_attention(q, other_k, other_v, mask=mask)[0]
    assert torch.equal(got, scaled_dot_product_attention(q, k, v, mask=mask)[0])


@some
@given(seed=seeds, dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_a_fully_masked_row_gives_zeros_and_finite_gradients(seed, dtype):
    *qkv, mask = random_case(seed)
    q, k, v = (x.detach().to(dtype).requires_grad_() for x in qkv)
    output, weights = scaled_dot_product_attention(q, k, v, mask=mask)
    nothing_to_see = ~mask.any(-1)
    assert nothing_to_see[0, 0]
    assert (weights[nothing_to_see] == 0).all()
    assert (output[nothing_to_see] == 0).all()
    output.sum().backward()
    for x in (q, k, v):
        assert x.grad.isfinite().all()
    assert (q.grad[nothing_to_see] == 0).all()


def test_gradients_are_those_of_finite_differences():
    q, k, v = normal(2, 3, 5), normal(2, 7, 5, seed=2), normal(2, 7, 2, seed=3)
    mask = normal(2, 3, 7, seed=4) > 0
    mask[1, 2] = False
    assert torch.autograd.gradcheck(scaled_dot_product_attention, (q, k, v))
    assert torch.autograd.gradcheck(partial(scaled_dot_product_attention, mask=mask), (q, k, v))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_large_scores_stay_numbers(dtype):
    q, k, v = (30 * normal(5, 3, seed=seed).detach().to(dtype) for seed in (1, 2, 3))
    output, weights = scaled_dot_product_attention(q, k, v, mask=causal_mask(5))
    assert output.dtype == weights.dtype == dtype
    assert output.isfinite().all()
    torch.testing.assert_close(weights.double().sum(-1), torch.ones(5), atol=0.02, rtol=0)


def test_mask_wins_over_the_largest_scores():
    # The key that may not be seen fits a million times better than the one that may.
    q, k, v = torch.tensor([[1e6]]), torch.tensor([[-1.0], [1.0]]), torch.tensor([[3.0], [5.0]])
    output, weights = scaled_dot_product_attention(q, k, v, mask=torch.tensor([[True, False]]))
    assert output.tolist() == [[3.0]]
    assert weights.tolist() == [[1.0, 0.0]]


def test_arguments_are_left_alone():
    q, k, v, mask = random_case(3)
    before = [x.detach().clone() for x in (q, k, v, mask)]
    scaled_dot_product_attention(q, k, v, mask=mask)
    for x, old in zip((q, k, v, mask), before, strict=True):
        assert torch.equal(x, old)


@pytest.mark.usefixtures("unchecked_shapes")
def test_widths_and_numbers_that_do_not_fit_are_refused():
    x = torch.ones(2, 5, 3)
    for q_width, k_width in ((2, 3), (3, 2)):
        message = f"queries have {q_width} columns and keys {k_width}: both need the same number"
        with pytest.raises(ValueError, match=message):
            scaled_dot_product_attention(x[..., :q_width], x[..., :k_width], x)
    for n_keys, n_values in ((5, 4), (4, 5)):
        message = f"there are {n_keys} keys and {n_values} values: each key needs one value"
        with pytest.raises(ValueError, match=message):
            scaled_dot_product_attention(x, x[:, :n_keys], x[:, :n_values])
    for wrong in ((x[0], x, x), (x, x[:1], x), (x, x, x[:1]), (x, x[:1], x[:1]), (x[:1], x, x)):
        with pytest.raises(
            ValueError, match="must have the same axes before the last two, as batch and heads"
        ):
            scaled_dot_product_attention(*wrong)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_mask_of_another_type_is_refused(dtype):
    x = torch.ones(2, 5, 3)
    with pytest.raises(ValueError, match="must be boolean with True = may attend, got torch"):
        scaled_dot_product_attention(x, x, x, mask=torch.zeros(5, 5, dtype=dtype))


@pytest.mark.parametrize("shape", [(5,), (4, 5), (5, 4), (3, 5, 5), (1, 2, 5, 5)])
def test_a_mask_that_does_not_fit_is_refused(shape):
    x = torch.ones(2, 5, 3)
    with pytest.raises(ValueError, match=r"must fit scores of the shape \(2, 5, 5\)"):
        scaled_dot_product_attention(x, x, x, mask=torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(4, 5), (5, 4), (3, 5, 5), (1, 2, 5, 5)])
def test_a_bias_that_does_not_fit_is_refused(shape):
    x = torch.ones(2, 5, 3)
    with pytest.raises(ValueError, match=r"a bias must fit scores of the shape \(2, 5, 5\), got the shape"):
        scaled_dot_product_attention(x, x, x, bias=torch.zeros(shape))


@pytest.mark.parametrize("record", [None, lambda weights: None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_numbers_come_back_in_the_type_of_the_values(dtype, record):
    x = torch.ones(1, 2, 3, 4, dtype=dtype)
    assert attend(x, x, x, causal=True, record=record).dtype == dtype
    output, weights = scaled_dot_product_attention(x, x, x, bias=torch.zeros(3, 3, dtype=torch.float64))
    assert (output.dtype, weights.dtype) == (dtype, dtype)


# --- with all heads of a layer ---

ATTEND_MASKS = {
    "none": lambda generator, n_rows, n_queries, n_keys: None,
    "query and key": lambda generator, n_rows, *shape: torch.rand(1, *shape, generator=generator) < 0.6,
    "batch and key": lambda generator, n_rows, n_queries, n_keys: (
        torch.rand(n_rows, 1, n_keys, generator=generator) < 0.6
    ),
    "all three": lambda generator, *shape: torch.rand(shape, generator=generator) < 0.6,
}


@pytest.mark.parametrize("heads", [(1, 1), (3, 3), (6, 1), (6, 2), (6, 6)])
@pytest.mark.parametrize("kind", ATTEND_MASKS)
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("causal", [False, True], ids=["both sides", "causal"])
@pytest.mark.parametrize(("n_queries", "n_earlier"), [(1, 0), (1, 3), (4, 0), (3, 2)])
def test_every_way_to_attend_gives_the_explicit_numbers(n_queries, n_earlier, causal, biased, kind, heads):
    (n_heads, n_kv_heads), n_keys, seed = heads, n_queries + n_earlier, n_queries
    generator = torch.Generator().manual_seed(seed)
    q = normal(2, n_heads, n_queries, 5, seed=seed)
    k, v = (normal(2, n_kv_heads, n_keys, 5, seed=seed + i) for i in (1, 2))
    mask = ATTEND_MASKS[kind](generator, 2, n_queries, n_keys)
    bias = normal(n_heads, n_queries, n_keys, seed=seed + 3).detach() if biased else None
    seen = torch.ones(2, n_queries, n_keys, dtype=torch.bool) if mask is None else mask
    if causal:  # query i is at position i + n_earlier
        seen = seen & (torch.arange(n_keys) <= torch.arange(n_queries)[:, None] + n_earlier)
    shared = torch.arange(n_heads) // (n_heads // n_kv_heads)
    wanted, weights = scaled_dot_product_attention(
        q, k[:, shared], v[:, shared], mask=seen[:, None], bias=bias
    )
    grads, recorded = backward(wanted, (q, k, v)), []
    for record in (None, recorded.append):
        got = attend(q, k, v, mask=mask, bias=bias, causal=causal, record=record)
        close(got, wanted)
        for one, other in zip(backward(got, (q, k, v)), grads, strict=True):
            close(one, other)
    (found,) = recorded
    close(found, weights)
    sums = found.sum(-1)
    close(sums, seen.any(-1)[:, None].expand_as(sums).double())


def test_dropout_drops_weights_unless_they_are_recorded():
    torch.manual_seed(0)
    q, v = torch.zeros(1, 1, 101, 4), torch.eye(4)[None, None]
    dropped = attend(q, v, v, dropout=0.5)  # equal scores: each weight is 1/4, then 0 or 1/2
    assert set(dropped.flatten().tolist()) == {0.0, 0.5}
    assert set(attend(q, v, v, dropout=0.5, record=lambda weights: None).flatten().tolist()) == {0.25}


@pytest.mark.usefixtures("unchecked_shapes")
def test_more_causal_queries_than_keys_are_refused():
    q, k = torch.zeros(1, 1, 5, 4), torch.zeros(1, 1, 3, 4)
    with pytest.raises(ValueError, match=r"at least as many keys as queries \(5\), got 3"):
        attend(q, k, k, causal=True)
