"""PyTorch's modules as oracles: which of our parameters is which of theirs, copied, and compared.

A twin is (our parameter, their parameter, rows of theirs): PyTorch keeps the projections of queries, keys and
values in one matrix. A comparison fails unless every parameter of ours has a twin.
"""

import math

import torch
from torch import Tensor, nn

from exformer.models.encoder_decoder import EncoderDecoder
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.feedforward import FeedForward
from exformer.nn.layers import DecoderLayer, EncoderLayer
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.normalization import LayerNorm
from exformer.nn.record_attention import record_attention

Twins = list[tuple[nn.Parameter, nn.Parameter, slice]]
WHOLE = slice(None)


def close(got: Tensor, wanted: Tensor) -> None:
    """Hold two tensors equal to 1e-10, in float64."""
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, wanted, atol=1e-10, rtol=0)


def _same(ours: nn.Module, theirs: nn.Module) -> Twins:
    """Twins of two modules that call their parameters weight and bias."""
    return [(p, theirs.get_parameter(name), WHOLE) for name, p in ours.named_parameters()]


def _norm(ours: LayerNorm, theirs: nn.LayerNorm) -> Twins:
    return [(ours.weight, theirs.weight, WHOLE), (ours.bias, theirs.bias, WHOLE)]


def _feed_forward(ours: FeedForward, first: nn.Linear, second: nn.Linear) -> Twins:
    return _same(ours.w_1, first) + _same(ours.w_2, second)


def _attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Twins:
    found, d_model = _same(ours.w_o, theirs.out_proj), theirs.embed_dim
    for third, name in enumerate("qkv"):
        projection, rows = getattr(ours, f"w_{name}"), slice(third * d_model, (third + 1) * d_model)
        if theirs.in_proj_weight is None:  # keys or values of another width
            found.append((projection.weight, getattr(theirs, f"{name}_proj_weight"), WHOLE))
        else:
            found.append((projection.weight, theirs.in_proj_weight, rows))
        if projection.bias is not None:
            found.append((projection.bias, theirs.in_proj_bias, rows))
    return found


def _encoder_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> Twins:
    return (
        _attention(ours.self_attention, theirs.self_attn)
        + _feed_forward(ours.feed_forward, theirs.linear1, theirs.linear2)
        + _norm(ours.norm_attention, theirs.norm1)
        + _norm(ours.norm_feed_forward, theirs.norm2)
    )


def _decoder_layer(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> Twins:
    return (
        _attention(ours.self_attention, theirs.self_attn)
        + _attention(ours.cross_attention, theirs.multihead_attn)
        + _feed_forward(ours.feed_forward, theirs.linear1, theirs.linear2)
        + _norm(ours.norm_self, theirs.norm1)
        + _norm(ours.norm_cross, theirs.norm2)
        + _norm(ours.norm_feed_forward, theirs.norm3)
    )


def _stacks(ours: EncoderDecoder, theirs: nn.Transformer) -> Twins:
    """Twins of the two stacks; embeddings, positions and output layer have none in nn.Transformer."""
    found = []
    for layer, twin in zip(ours.encoder, theirs.encoder.layers, strict=True):
        found += _encoder_layer(layer, twin)
    for layer, twin in zip(ours.decoder, theirs.decoder.layers, strict=True):
        found += _decoder_layer(layer, twin)
    if ours.config.pre_norm:
        found += _norm(ours.encoder_norm, theirs.encoder.norm)
        found += _norm(ours.decoder_norm, theirs.decoder.norm)
    return found


def twins(ours: nn.Module, theirs: nn.Module) -> Twins:
    """Pair every parameter of ours with its twin in PyTorch's module."""
    if isinstance(ours, MultiHeadAttention):
        found = _attention(ours, theirs)
    elif isinstance(ours, LayerNorm):
        found = _norm(ours, theirs)
    elif isinstance(ours, FeedForward):  # theirs is nn.Sequential(linear, bend, linear)
        found = _feed_forward(ours, theirs[0], theirs[2])
    elif isinstance(ours, TokenEmbedding):
        found = [(ours.weight, theirs.weight, WHOLE)]
    elif isinstance(ours, EncoderLayer):
        found = _encoder_layer(ours, theirs)
    elif isinstance(ours, DecoderLayer):
        found = _decoder_layer(ours, theirs)
    else:
        raise TypeError(f"no twin is known of {type(ours).__name__}")
    assert {id(p) for p, *_ in found} == {id(p) for p in ours.parameters()}, "a parameter has no twin"
    _cover(found, theirs)
    return found


def transformer_twins(ours: EncoderDecoder, theirs: nn.Transformer) -> Twins:
    """Pair the parameters of the stacks; those of the embeddings are left over."""
    found = _stacks(ours, theirs)
    rest = {id(p) for p in ours.parameters()} - {id(p) for p, *_ in found}
    left = [ours.src_embedding.weight, ours.tgt_embedding.weight]
    left += [ours.output.weight] if ours.output is not None else []
    left += [p for part in (ours.src_positions, ours.tgt_positions) for p in part.parameters()]
    assert rest == {id(p) for p in left}, "a parameter has no twin"
    _cover(found, theirs)
    return found


def _cover(found: Twins, theirs: nn.Module) -> None:
    ours, all_of_theirs = sum(p.numel() for p, *_ in found), sum(p.numel() for p in theirs.parameters())
    assert ours == all_of_theirs, f"{ours} numbers have a twin, PyTorch's module has {all_of_theirs}"


def randomize(module: nn.Module, *, seed: int = 0) -> None:
    """Move every parameter away from 0 and 1, so that a bias or a gain left out shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))


def random_model(kind: type[nn.Module], config: object, *, seed: int = 0) -> nn.Module:
    """Build a model in evaluation mode, all of whose parameters are random."""
    torch.manual_seed(seed)
    model = kind(config).eval()
    randomize(model, seed=seed)
    return model


def copy(pairs: Twins) -> None:
    """Give our parameters the numbers of theirs."""
    with torch.no_grad():
        for ours, theirs, rows in pairs:
            assert ours.shape == theirs[rows].shape
            ours.copy_(theirs[rows])


def same_gradients(pairs: Twins) -> None:
    """Hold the gradients of all twins equal; none may be missing, and not all may be zero."""
    for ours, theirs, rows in pairs:
        close(ours.grad, theirs.grad[rows])
    assert any(ours.grad.abs().max() > 1e-3 for ours, *_ in pairs)


def papers_formula(n_positions: int, *, d_model: int, base: float = 10_000) -> Tensor:
    """Compute the positions of Vaswani et al., section 3.5, with Python's numbers, entry by entry."""
    rows = [[0.0] * d_model for _ in range(n_positions)]
    for pos in range(n_positions):
        for i in range(d_model // 2):
            rows[pos][2 * i] = math.sin(pos / base ** (2 * i / d_model))
            rows[pos][2 * i + 1] = math.cos(pos / base ** (2 * i / d_model))
    return torch.tensor(rows, dtype=torch.float64)


def normal(*shape: int, seed: int = 1) -> Tensor:
    """Draw float64 numbers that collect gradients."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def recorded(module: nn.Module, *inputs: Tensor, **options) -> tuple[Tensor, dict[str, Tensor]]:
    """Call a module that is in evaluation mode; return its output, and the attention weights by name."""
    with record_attention(module) as weights:
        output = module(*inputs, **options)
    return output, weights


def backward(output: Tensor, inputs: tuple[Tensor, ...], *, seed: int = 7) -> tuple[Tensor, ...]:
    """Send a random direction back; return the gradients of the inputs; parameters keep theirs."""
    for x in inputs:
        x.grad = None
    output.backward(normal(*output.shape, seed=seed).detach())
    return tuple(x.grad for x in inputs)
