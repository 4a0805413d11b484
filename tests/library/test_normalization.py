"""Layer normalization: by hand, against PyTorch's, and what it does not see."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import backward, close, copy, normal, randomize, same_gradients, twins

from exformer.nn.config import TransformerConfig
from exformer.nn.layers import normalization
from exformer.nn.normalization import NORMS, LayerNorm, RMSNorm, layer_norm, rms_norm

pytestmark = pytest.mark.usefixtures("float64")


def test_layer_norm_by_hand():
    # (1, 2, 3): mean 2, variance (1 + 0 + 1)/3 = 2/3, so the ends are ∓1/√(2/3) = ∓√1.5.
    x, one, zero = torch.tensor([1.0, 2, 3]), torch.ones(3), torch.zeros(3)
    close(layer_norm(x, one, zero, eps=0.0), math.sqrt(1.5) * torch.tensor([-1.0, 0, 1]))
    gain, bias = torch.tensor([2.0, 3, 4]), torch.tensor([10.0, 20, 30])
    wanted = torch.tensor([10 - 2 * math.sqrt(1.5), 20, 30 + 4 * math.sqrt(1.5)])
    close(layer_norm(x, gain, bias, eps=0.0), wanted)


def test_eps_stands_under_the_root_by_hand():
    # (-1, 1): mean 0, variance 1; with ε = 3 the divisor is √(1 + 3) = 2.
    x, one, zero = torch.tensor([-1.0, 1.0]), torch.ones(2), torch.zeros(2)
    close(layer_norm(x, one, zero, eps=3.0), torch.tensor([-0.5, 0.5]))
    close(LayerNorm(2, eps=3.0)(x), torch.tensor([-0.5, 0.5]))


@pytest.mark.parametrize("row", [0.0, 5.0, -1e6])
def test_a_constant_row_gives_the_bias(row):
    gain, bias = normal(7), normal(7, seed=2)
    x = torch.full((3, 7), row, requires_grad=True)
    output = layer_norm(x, gain, bias)
    assert torch.equal(output, bias.expand(3, 7))
    assert backward(output, (x,))[0].isfinite().all()


@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 5, 7)])
@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.3])
def test_parity_with_torch(shape, eps):
    ours, theirs = LayerNorm(7, eps=eps), nn.LayerNorm(7, eps=eps, dtype=torch.float64)
    randomize(theirs)
    pairs = twins(ours, theirs)
    copy(pairs)
    x = normal(*shape)
    wanted = theirs(x)
    wanted_grad = backward(wanted, (x,))[0]
    for compute in (ours, lambda x: layer_norm(x, ours.weight, ours.bias, eps=eps)):  # both paths
        ours.zero_grad()
        got = compute(x)
        close(got, wanted)
        close(backward(got, (x,))[0], wanted_grad)
        same_gradients(pairs)


def test_eps_of_module_and_function_is_the_same():
    x = 1e-3 * normal(5, 7)  # so small that ε matters
    ours = LayerNorm(7)
    close(ours(x), layer_norm(x, ours.weight, ours.bias))
    close(ours(x), nn.LayerNorm(7, dtype=torch.float64)(x))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**20), width=st.integers(2, 29))
def test_layer_norm_is_standardized_and_invariant(seed, width):
    x, one, zero = normal(5, width, seed=seed), torch.ones(width), torch.zeros(width)
    output = layer_norm(x, one, zero, eps=0.0)
    close(output.mean(-1), torch.zeros(5))
    close(output.var(-1, correction=0), torch.ones(5))
    close(layer_norm(3 * x - 2, one, zero, eps=0.0), output)


def test_each_vector_is_normalized_by_itself():
    norm, x = LayerNorm(7), normal(3, 5, 7)
    other = x.detach().clone()
    other[1, 2] = 100.0
    same = torch.ones(3, 5, dtype=torch.bool)
    same[1, 2] = False
    assert torch.equal(norm(x)[same], norm(other)[same])


def test_without_a_bias_it_is_torchs_without_a_bias():
    ours, theirs = LayerNorm(7, bias=False), nn.LayerNorm(7, bias=False, dtype=torch.float64)
    randomize(ours)
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
    assert [name for name, _ in ours.named_parameters()] == ["weight"]
    close(ours(normal(3, 5, 7)), theirs(normal(3, 5, 7)))


def test_norms_by_name():
    config = TransformerConfig(d_model=8, n_heads=2, norm_eps=0.5)
    layer, rms = normalization(config), normalization(replace(config, norm="rms", norm_eps=None))
    assert (type(layer), layer.eps, layer.bias is None) == (LayerNorm, 0.5, False)
    assert (type(rms), rms.eps) == (RMSNorm, 1e-6)
    assert normalization(replace(config, bias=False)).bias is None
    assert set(NORMS.values()) == {LayerNorm, RMSNorm}


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_an_eps_of_zero_is_an_eps(norm):
    # However short (-1, 1) is made, without ε its variance and its mean square become 1 again.
    module = normalization(TransformerConfig(d_model=2, n_heads=1, norm=norm, norm_eps=0.0))
    close(module(torch.tensor([-1e-9, 1e-9])), torch.tensor([-1.0, 1.0]))


def test_gain_starts_at_1_and_bias_at_0():
    norm = LayerNorm(7)
    assert norm.weight.tolist() == [1.0] * 7
    assert norm.bias.tolist() == [0.0] * 7


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("width", [1, 5, 8])
def test_another_width_is_refused(norm, width):
    message = f"{norm.__name__} was made for d_model = 7, got {width} columns"
    with pytest.raises(ValueError, match=message):
        norm(7)(torch.ones(3, width))


# --- root mean square ---


def test_rms_norm_by_hand():
    # (1, 2, 3, 5): mean square (1 + 4 + 9 + 25)/4 = 9.75; with ε = 6.25 the divisor is √16 = 4.
    x, gain = torch.tensor([1.0, 2, 3, 5]), torch.tensor([4.0, 8, -4, 1])
    wanted = torch.tensor([1.0, 4, -3, 1.25])
    close(rms_norm(x, gain, eps=6.25), wanted)
    norm = RMSNorm(4, eps=6.25)
    with torch.no_grad():
        norm.weight.copy_(gain)
    close(norm(x), wanted)


@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 5, 7)])
@pytest.mark.parametrize("eps", [1e-6, 0.3])
def test_rms_norm_is_torchs(shape, eps):
    ours, x = RMSNorm(7, eps=eps), normal(*shape)
    randomize(ours)
    theirs = ours.weight.detach().clone().requires_grad_()
    wanted = F.rms_norm(x, (7,), theirs, eps)
    wanted_grad = backward(wanted, (x,))[0]
    for compute in (ours, lambda x: rms_norm(x, ours.weight, eps=eps)):  # both paths
        ours.zero_grad()
        got = compute(x)
        close(got, wanted)
        close(backward(got, (x,))[0], wanted_grad)
        close(ours.weight.grad, theirs.grad)


def test_rms_norm_of_a_vector_without_a_mean_is_its_layer_norm():
    x = normal(5, 7).detach()
    x = x - x.mean(-1, keepdim=True)
    close(rms_norm(x, torch.ones(7), eps=1e-5), layer_norm(x, torch.ones(7), torch.zeros(7)))
    shifted = rms_norm(x + 1, torch.ones(7))
    assert (shifted.mean(-1) > 0.1).all()  # the mean stays
    close(RMSNorm(7)(x), rms_norm(x, torch.ones(7)))  # the same eps


def test_a_zero_vector_stays_zero():
    x = torch.zeros(2, 7, requires_grad=True)
    output = RMSNorm(7)(x)
    assert torch.equal(output, torch.zeros(2, 7))
    assert backward(output, (x,))[0].isfinite().all()


def test_rms_norm_keeps_the_input_precision():
    norm = RMSNorm(2, eps=0.0)  # its gain is float64
    assert norm.weight.dtype == torch.float64
    got = norm(torch.tensor([1.0, 7.0], dtype=torch.bfloat16))  # the mean square is 25
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.double(), torch.tensor([0.2, 1.4]), atol=0.01, rtol=0)
