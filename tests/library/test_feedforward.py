"""The position-wise network: by hand, against PyTorch's linear layers, one position at a time."""

import math

import pytest
import torch
from torch import nn
from torch_twins import backward, close, copy, normal, randomize, same_gradients, twins

from exformer.nn.feedforward import ACTIVATIONS, FeedForward, squared_relu

pytestmark = pytest.mark.usefixtures("float64")


class SquaredReLU(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x * x, 0.0)


BENDS = {
    "relu": nn.ReLU(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU("tanh"),
    "silu": nn.SiLU(),
    "squared_relu": SquaredReLU(),
}


def test_feed_forward_by_hand():
    # x = (1, 2). Hidden: (1 + 2, 1 - 2, 10 - 2) + (0, 0, -5) = (3, -1, 3), after max(0, ·): (3, 0, 3).
    # Out: (3 + 0 + 3, 2·3 - 0 + 0) + (0.5, 0) = (6.5, 6).
    network = FeedForward(2, d_ff=3)
    with torch.no_grad():
        network.w_1.weight.copy_(torch.tensor([[1.0, 1], [1, -1], [10, -1]]))
        network.w_1.bias.copy_(torch.tensor([0.0, 0, -5]))
        network.w_2.weight.copy_(torch.tensor([[1.0, 7, 1], [2, 7, 0]]))
        network.w_2.bias.copy_(torch.tensor([0.5, 0]))
    close(network(torch.tensor([1.0, 2.0])), torch.tensor([6.5, 6.0]))


def test_squared_relu_by_hand():
    x = torch.tensor([-2.0, -0.5, 0.0, 0.5, 3.0], requires_grad=True)
    output = squared_relu(x)
    close(output, torch.tensor([0.0, 0.0, 0.0, 0.25, 9.0]))
    output.sum().backward()
    close(x.grad, torch.tensor([0.0, 0.0, 0.0, 1.0, 6.0]))  # 2x: no corner at 0


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 5, 7)])
def test_parity_with_torch(activation, shape):
    theirs = nn.Sequential(nn.Linear(7, 13), BENDS[activation], nn.Linear(13, 7))
    ours = FeedForward(7, d_ff=13, activation=activation)
    randomize(theirs)
    pairs = twins(ours, theirs)
    copy(pairs)
    x = normal(*shape)
    got, wanted = ours(x), theirs(x)
    close(got, wanted)
    close(backward(got, (x,))[0], backward(wanted, (x,))[0])
    same_gradients(pairs)


def test_relu_is_the_default():
    default, relu = FeedForward(7, d_ff=13), FeedForward(7, d_ff=13, activation="relu")
    relu.load_state_dict(default.state_dict())
    assert torch.equal(default(normal(5, 7)), relu(normal(5, 7)))


def test_weights_start_as_xavier_uniform_and_biases_at_zero():
    network = FeedForward(23, d_ff=61, activation="swiglu")
    for linear in (network.w_1, network.w_2, network.w_3):
        bound = (6 / (23 + 61)) ** 0.5
        assert 0.97 * bound < linear.weight.abs().max() <= bound
        assert (linear.bias == 0).all()


def test_swiglu_by_hand():
    # x = (1, 2). silu(t) = t / (1 + e^-t). Gates x W_1 = (3, -1), values x W_3 = (4, 2):
    # hidden = (4 silu(3), 2 silu(-1)); out = (hidden_1 + 3 hidden_2) + 0.5.
    network = FeedForward(2, d_ff=2, activation="swiglu")
    with torch.no_grad():
        network.w_1.weight.copy_(torch.tensor([[1.0, 1], [1, -1]]))
        network.w_3.weight.copy_(torch.tensor([[2.0, 1], [0, 1]]))
        network.w_2.weight.copy_(torch.tensor([[1.0, 3], [0, 0]]))
        network.w_2.bias.copy_(torch.tensor([0.5, 0]))
    silu = [3 / (1 + math.exp(-3)), -1 / (1 + math.exp(1))]
    wanted = 4 * silu[0] + 3 * 2 * silu[1] + 0.5
    close(network(torch.tensor([1.0, 2.0])), torch.tensor([wanted, 0.0]))


@pytest.mark.parametrize("bias", [True, False])
def test_swiglu_by_torchs_parts(bias):
    network, x = FeedForward(7, d_ff=13, activation="swiglu", bias=bias), normal(3, 5, 7)
    randomize(network)
    assert len(list(network.parameters())) == (6 if bias else 3)
    wanted = network.w_2(nn.functional.silu(network.w_1(x)) * network.w_3(x))
    got = network(x)
    close(got, wanted)
    close(backward(got, (x,))[0], backward(wanted, (x,))[0])


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_zero_init_sets_the_last_matrix_alone_to_zero(activation):
    networks = []
    for zero_init in (False, True):
        torch.manual_seed(0)
        networks.append(FeedForward(7, d_ff=13, activation=activation, zero_init=zero_init).state_dict())
    plain, zero = networks
    assert not zero.pop("w_2.weight").any()
    assert plain.pop("w_2.weight").any()
    assert all(torch.equal(zero[name], plain[name]) for name in plain)


def test_each_position_is_computed_by_itself():
    network, x = FeedForward(7, d_ff=13), normal(3, 5, 7)
    for sentence in range(3):
        for position in range(5):
            close(network(x)[sentence, position], network(x[sentence, position]))


def test_dropout_works_in_training_and_is_off_in_evaluation():
    torch.manual_seed(0)
    network, x = FeedForward(7, d_ff=13, dropout=0.5), normal(5, 7)
    assert not torch.equal(network(x), network(x))
    network.eval()
    without = FeedForward(7, d_ff=13)
    without.load_state_dict(network.state_dict())
    assert torch.equal(network(x), without(x))


def test_dropout_stands_before_the_second_map():
    # With every hidden unit dropped the output is the second bias, whatever comes in.
    network = FeedForward(7, d_ff=13, dropout=1.0)
    randomize(network)
    assert torch.equal(network(normal(5, 7)), network.w_2.bias.expand(5, 7))


def test_an_unknown_activation_is_refused():
    message = "activation must be one of relu, gelu, gelu_tanh, silu, squared_relu, swiglu, got 'tanh'"
    with pytest.raises(ValueError, match=message):
        FeedForward(7, d_ff=13, activation="tanh")


def test_another_width_is_refused():
    for width in (5, 8):
        with pytest.raises(ValueError, match=f"FeedForward was made for d_model = 7, got {width} columns"):
            FeedForward(7, d_ff=13)(torch.ones(3, width))
