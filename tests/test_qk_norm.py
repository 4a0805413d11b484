"""Normalized queries and keys: by hand, as Qwen3 has them, before the rotation, with and without a cache."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from exformer.nn.qk_norm import QKNorm, normalize_heads
from test_continuation import SRC, TGT, build_translator
from test_decoder_lm import ALL_POSITIONS, CONFIG, HEADS, IDS, build
from torch import nn
from torch_twins import close, randomize

from exformer.generation.continuation import Continuation
from exformer.models.decoder_lm import DecoderLM
from exformer.nn.layers import DecoderLayer, EncoderLayer
from exformer.nn.masks import causal_mask
from exformer.nn.multi_head import MultiHeadAttention, merge_heads, split_heads
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions

pytestmark = pytest.mark.usefixtures("float64")
BATCH, TIME, D_HEAD = 2, 7, 10
D_MODEL = HEADS * D_HEAD


def attention(positions: nn.Module | None = None) -> MultiHeadAttention:
    """Build an attention with normalized heads, and gains that are not 1."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(D_MODEL, n_heads=HEADS, positions=QKNorm(D_HEAD, positions=positions))
    randomize(ours)
    return ours


def test_by_hand() -> None:
    # (3, 4): mean square (9 + 16)/2 = 12.5, so divided by √12.5; the gains make it (3, 8)/√12.5.
    norm = QKNorm(2)
    norm.norm_q.eps = norm.norm_k.eps = 0.0
    with torch.no_grad():
        norm.norm_q.gain.copy_(torch.tensor([1.0, 2.0]))
        norm.norm_k.gain.copy_(torch.tensor([-1.0, 5.0]))
    vector = torch.tensor([3.0, 4.0]).view(1, 1, 1, 2)
    q, k, bias = norm(vector, 7 * vector)  # a length says nothing
    close(q[0, 0, 0], torch.tensor([3.0, 8.0]) / math.sqrt(12.5))
    close(k[0, 0, 0], torch.tensor([-3.0, 20.0]) / math.sqrt(12.5))
    assert bias is None


def test_new_gains_leave_no_score_above_the_root_of_the_width() -> None:
    q, k = 1000 * torch.randn(2, 1, 1, TIME, D_HEAD)
    q, k, _ = QKNorm(D_HEAD)(q, k)
    scores = q @ k.mT / math.sqrt(D_HEAD)
    assert scores.abs().max() <= math.sqrt(D_HEAD)
    same, _, _ = QKNorm(D_HEAD)(k, k)
    torch.testing.assert_close(same, k, atol=2e-6, rtol=0)  # what is normalized stays, up to eps


@pytest.mark.parametrize("positions", [None, RotaryPositions(), ALiBi()], ids=["none", "rotary", "alibi"])
def test_attention_is_that_of_normalized_heads(positions) -> None:
    ours, x = attention(positions), torch.randn(BATCH, TIME, D_MODEL)
    q, k, v = (split_heads(w(x), n_heads=HEADS) for w in (ours.w_q, ours.w_k, ours.w_v))
    q = F.rms_norm(q, (D_HEAD,), ours.positions.norm_q.gain, eps=1e-6)
    k = F.rms_norm(k, (D_HEAD,), ours.positions.norm_k.gain, eps=1e-6)
    bias = torch.zeros(1)
    if positions is not None:
        q, k, added = positions(q, k)
        bias = bias if added is None else added
    scores = (q @ k.mT / math.sqrt(D_HEAD) + bias).masked_fill(~causal_mask(TIME), -torch.inf)
    weights = scores.softmax(-1)
    close(ours(x, x, x, mask=causal_mask(TIME)), ours.w_o(merge_heads(weights @ v)))
    close(ours.weights(x, x, mask=causal_mask(TIME)), weights)


def half_split(matrix: torch.Tensor) -> torch.Tensor:
    """Order the columns of each head as Qwen3 does: it turns column i with column i + d_head/2."""
    order = torch.arange(D_HEAD).view(-1, 2).t().flatten()  # 0, 2, 4, ..., 1, 3, 5, ...
    return matrix.unflatten(0, (-1, D_HEAD))[:, order].flatten(0, 1)


def test_attention_is_qwen3s() -> None:
    from transformers import Qwen3Config
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

    config = Qwen3Config(
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=D_HEAD,
        attention_bias=True,
        attn_implementation="sdpa",
    )
    ours, theirs = attention(RotaryPositions()), Qwen3Attention(config, layer_idx=0)
    with torch.no_grad():
        for name in "qk":
            mine, other = getattr(ours, f"w_{name}"), getattr(theirs, f"{name}_proj")
            other.weight.copy_(half_split(mine.weight))
            other.bias.copy_(half_split(mine.bias))
            # Its own norm computes in float32 always; PyTorch's is the same in the type that comes in.
            norm = nn.RMSNorm(D_HEAD, eps=getattr(theirs, f"{name}_norm").variance_epsilon)
            norm.weight.copy_(half_split(getattr(ours.positions, f"norm_{name}").gain))
            setattr(theirs, f"{name}_norm", norm)
    theirs.v_proj, theirs.o_proj = ours.w_v, ours.w_o
    x = torch.randn(BATCH, TIME, D_MODEL)
    frequency = 10_000.0 ** (-torch.arange(0, D_HEAD, 2) / D_HEAD)
    angle = (torch.arange(TIME)[:, None] * frequency).repeat(1, 2)[None]
    wanted, _ = theirs(x, position_embeddings=(angle.cos(), angle.sin()), attention_mask=None)
    close(ours(x, x, x, mask=causal_mask(TIME)), wanted)


# --- in the models ---


@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_cached_scores_are_those_without_a_cache(positions) -> None:
    model = build(positions=positions, qk_norm=True)
    cached, whole = Continuation(model), model(IDS).detach()
    for end in (1, 2, 4, 5, 7):
        close(cached(IDS[:, :end]), whole[:, end - 1])
    assert not torch.allclose(whole, build(positions=positions)(IDS), atol=1e-3)


def test_cached_translations_are_those_without_a_cache() -> None:
    model = build_translator(qk_norm=True)
    cached, whole = Continuation(model, src=SRC), model(SRC, TGT).detach()
    for end in (1, 2, 4, 5, 7):
        close(cached(TGT[:, :end]), whole[:, end - 1])


def test_every_attention_of_a_translator_is_normalized() -> None:
    model = build_translator(qk_norm=True)
    found = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    assert len(found) == 6
    assert all(isinstance(part.positions, QKNorm) for part in found)


def test_large_projections_change_no_weight() -> None:
    """What the switch is for: without it, a hundredfold projection makes weights of 0 and 1."""
    for qk_norm, same in ((True, True), (False, False)):
        model = build(qk_norm=qk_norm)
        before = model.attention_weights(IDS)[0]
        with torch.no_grad():
            for part in (model.layers[0].self_attention.w_q, model.layers[0].self_attention.w_k):
                part.weight.mul_(100)
                part.bias.mul_(100)
        after = model.attention_weights(IDS)[0]
        assert torch.allclose(after, before, atol=1e-4) == same


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_the_switch_is_off_by_default_and_draws_no_number(positions) -> None:
    models = []
    for qk_norm in (False, True):
        torch.manual_seed(0)
        models.append(DecoderLM(dataclasses.replace(CONFIG, positions=positions, qk_norm=qk_norm)))
    plain, normalized = models
    assert not CONFIG.qk_norm
    state = normalized.state_dict()
    assert {name for name in state if name not in plain.state_dict()} == {
        f"layers.{i}.self_attention.positions.norm_{name}.gain" for i in range(2) for name in "qk"
    }
    assert all(torch.equal(state[name], value) for name, value in plain.state_dict().items())


@pytest.mark.parametrize("layer", [EncoderLayer, DecoderLayer])
def test_heads_are_normalized_once(layer) -> None:
    stack = layer(D_MODEL, n_heads=HEADS, d_ff=5, positions=RotaryPositions())
    normalize_heads(stack)
    assert isinstance(stack.self_attention.positions.positions, RotaryPositions)
    with pytest.raises(ValueError, match="normalized already: build the layers anew"):
        normalize_heads(stack)
