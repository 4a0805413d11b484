"""Costs by formula against what PyTorch counts: parameters, operations, and the longest chain of products."""

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from exformer.evaluation.flops import (
    Cost,
    attention_cost,
    encoder_layer_cost,
    feed_forward_cost,
    layer_norm_cost,
)
from exformer.nn.config import TransformerConfig
from exformer.nn.feedforward import FeedForward
from exformer.nn.layers import EncoderLayer
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.normalization import LayerNorm

HEADS, D_MODEL, D_FF, SRC, TGT = 3, 15, 17, 7, 5


def longest_chain(output: torch.Tensor) -> int:
    """Count the matrix products on the longest way back from an output."""
    longest, waiting = {}, [output.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [other for other, _ in node.next_functions if other is not None]
        missing = [other for other in before if other not in longest]
        waiting += missing
        if not missing:
            product = node.name().removesuffix("Backward0") in ("Mm", "Addmm", "Bmm")
            longest[waiting.pop()] = product + max((longest[other] for other in before), default=0)
    return longest[output.grad_fn]


def measured(module: nn.Module, *inputs: torch.Tensor) -> Cost:
    # The fused attention of CPUs is not counted by PyTorch; the plain one is.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        output = module(*inputs)
    operations = counter.get_total_flops()
    assert operations % 2 == 0
    return Cost(sum(p.numel() for p in module.parameters()), operations // 2, longest_chain(output))


def vectors(n: int) -> torch.Tensor:
    return torch.randn(1, n, D_MODEL, requires_grad=True)


def test_attention_by_hand() -> None:
    # 4 projections of 2x2 with biases; 3 queries, 1 key: q and output 3 · 4 each, k and v 4 each, 3 · 2 twice
    assert attention_cost(2, n_queries=3, n_keys=1) == Cost(24, 44, 4)
    assert attention_cost(2, n_queries=3, n_keys=1, bias=False).parameters == 16


@pytest.mark.parametrize("n_heads", [1, 3, 5, 15])
@pytest.mark.parametrize("bias", [True, False])
def test_attention(n_heads, bias) -> None:
    q, k = vectors(TGT), vectors(SRC)
    wanted = attention_cost(D_MODEL, n_queries=TGT, n_keys=SRC, bias=bias)
    assert measured(MultiHeadAttention(D_MODEL, n_heads=n_heads, bias=bias), q, k, k) == wanted


def test_parts_of_a_layer() -> None:
    x = vectors(SRC)
    assert measured(FeedForward(D_MODEL, d_ff=D_FF), x) == feed_forward_cost(D_MODEL, d_ff=D_FF, n=SRC)
    assert measured(LayerNorm(D_MODEL), x) == layer_norm_cost(D_MODEL)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_a_layer(pre_norm) -> None:
    config = TransformerConfig(d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, pre_norm=pre_norm)
    assert measured(EncoderLayer(config), vectors(SRC)) == encoder_layer_cost(D_MODEL, d_ff=D_FF, n=SRC)


def test_longest_chain_does_not_grow_with_the_sequence() -> None:
    steps = [encoder_layer_cost(D_MODEL, d_ff=D_FF, n=n).steps for n in (1, 10, 1000)]
    assert steps == [6, 6, 6]
