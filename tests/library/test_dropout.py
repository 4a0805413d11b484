"""Dropout: what is kept, how it is scaled, that a gradient flows only through what is kept."""

import math

import pytest
import torch

from exformer.nn.dropout import Dropout, dropout

N = 100_003


BOTH = pytest.mark.parametrize(
    "drop", [dropout, lambda x, *, rate: Dropout(rate)(x)], ids=["function", "module"]
)


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("rate", [0.002, 0.1, 0.5, 0.93])
def test_the_share_of_zeros_and_the_scale(rate, dtype, drop):
    torch.manual_seed(0)
    x = torch.full((N,), 3.0, dtype=dtype)
    got = drop(x, rate=rate)
    assert got.dtype == dtype
    assert (x == 3.0).all(), "the argument is left alone"
    zeros = (got == 0).double().mean().item()
    assert abs(zeros - rate) < 4 * math.sqrt(rate * (1 - rate) / N)
    scaled = torch.full_like(got[got != 0], 3.0 / (1 - rate))
    torch.testing.assert_close(got[got != 0], scaled, rtol=2 * torch.finfo(dtype).eps, atol=0.0)


@BOTH
def test_the_same_numbers_are_dropped_in_every_precision(drop):
    """A share near 0 has few neighbors in half precision: the random numbers are drawn in float32."""
    kept = []
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        torch.manual_seed(0)
        kept.append(drop(torch.ones(N, dtype=dtype), rate=0.1) != 0)
    assert all(torch.equal(kept[0], other) for other in kept[1:])


def test_each_number_is_dropped_by_itself():
    torch.manual_seed(0)
    kept = dropout(torch.ones(1009, 53), rate=0.5) != 0
    assert not kept.all(dim=0).any()
    assert not kept.all(dim=1).any()
    assert (dropout(torch.ones(1009, 53), rate=0.5) != 0).ne(kept).any(), "another call drops others"


def test_the_gradient_flows_through_what_is_kept():
    torch.manual_seed(0)
    x = torch.randn(31, 7, requires_grad=True)
    got = dropout(x, rate=0.25)
    (grad,) = torch.autograd.grad(got.sum(), x)
    assert torch.equal(grad, torch.where(got == 0, 0.0, 1 / 0.75))


def test_rates_at_the_ends():
    x = torch.randn(31, 7)
    assert torch.equal(dropout(x, rate=0.0), x)
    assert (dropout(x, rate=1.0) == 0).all()


def test_it_is_off_in_evaluation():
    torch.manual_seed(0)
    module, x = Dropout(0.5), torch.randn(31, 7)
    assert not torch.equal(module(x), x)
    assert module.eval()(x) is x


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_a_rate_that_is_no_share_is_refused(rate):
    for use in (Dropout, lambda rate: dropout(torch.ones(3), rate=rate)):
        with pytest.raises(ValueError, match=rf"the dropout rate must lie in \[0, 1\], got {rate}"):
            use(rate)


def test_a_number_drawn_that_is_the_rate_is_kept(monkeypatch):
    monkeypatch.setattr(torch, "rand_like", lambda x, dtype: torch.tensor([0.25, 0.5, 0.75], dtype=dtype))
    assert dropout(torch.ones(3), rate=0.5).tolist() == [0, 2, 2]


def test_what_is_dropped_whole_has_a_gradient_of_zero():
    x = torch.ones(3, requires_grad=True)
    dropout(x, rate=1.0).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_a_rate_of_zero_draws_no_number():
    x, before = torch.ones(3), torch.get_rng_state()
    assert Dropout(0.0).train()(x) is x
    assert torch.equal(torch.get_rng_state(), before)
