"""Rotary positions: rotations in planes, scores that depend on the offset alone, their use in attention."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_twins import close

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.nn.attention_heads import merge_heads, split_heads
from exformer.nn.masks import causal_mask
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.positions import rotary as module
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions, rotate

BATCH, TIME, HEADS, D_HEAD = 2, 7, 3, 10
D_MODEL = HEADS * D_HEAD
SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 7, "n_layers": 1, "max_len": 11}

pytestmark = pytest.mark.usefixtures("float64")


def at(position: int, n: int = 1) -> torch.Tensor:
    return torch.full((n,), position)


def test_by_hand() -> None:
    x = torch.tensor([[1.0, 0.0, 3.0, 2.0]])
    c, s = math.cos(0.3), math.sin(0.3)
    wanted = torch.tensor([[math.cos(3), math.sin(3), 3 * c - 2 * s, 3 * s + 2 * c]])
    close(rotate(x, at(3), base=100.0), wanted)  # θ = 1 and 1/10
    q = torch.cat((x, x))[None, None]
    for start in (0, 2):
        rotated_q, rotated_k, bias = RotaryPositions(base=100.0)(q, 2 * q, start=start)
        both = torch.cat([rotate(x, at(start + i), base=100.0) for i in range(2)])
        close(rotated_q[0, 0], both)
        close(rotated_k[0, 0], 2 * both)
        assert bias is None


def test_an_export_leaves_the_model_as_it_was() -> None:
    torch.manual_seed(0)
    model = DecoderLM(DecoderLMConfig(17, **SIZES, positions="rotary")).eval()
    ids = torch.tensor([[3, 4, 5]])
    module._first_rotations.cache_clear()
    exported = torch.export.export(model, (ids,), strict=False).module()
    with torch.no_grad():
        close(exported(ids), model(ids))


def test_each_pair_is_rotated_by_a_matrix() -> None:
    x, positions = torch.randn(BATCH, HEADS, TIME, D_HEAD), torch.tensor([0, 1, 2, 5, 11, 800, 4096])
    frequency = 10_000.0 ** (-torch.arange(D_HEAD // 2) / (D_HEAD / 2))
    angle = positions[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    turns = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), dim=-2)
    wanted = (turns @ x.unflatten(-1, (-1, 2))[..., None]).flatten(-3)  # (2, 2) by (2, 1)
    close(rotate(x, positions), wanted)


def test_however_the_vectors_lie_in_memory() -> None:
    x, positions = torch.randn(TIME, D_HEAD), torch.arange(TIME)
    wanted = rotate(x, positions)
    shifted = torch.cat((torch.zeros(1), x.flatten()))[1:].view(TIME, D_HEAD)  # from an odd place on
    for same in (x.t().contiguous().t(), shifted, torch.cat((x, x[:, :1]), dim=1)[:, :-1]):
        close(rotate(same, positions), wanted)


@given(n=st.integers(0, 3000), m=st.integers(0, 3000), shift=st.integers(0, 3000), seed=st.integers(0, 99))
def test_scores_depend_on_the_offset_only(n, m, shift, seed) -> None:
    q, k = torch.randn(2, 1, D_HEAD, generator=torch.Generator().manual_seed(seed))
    score = rotate(q, at(n)) @ rotate(k, at(m)).mT
    close(rotate(q, at(n + shift)) @ rotate(k, at(m + shift)).mT, score)
    close(rotate(q, at(3000 + n - m)) @ rotate(k, at(3000)).mT, score)


def test_half_precision_keeps_its_type_and_its_angles() -> None:
    x = torch.randn(1, D_HEAD).bfloat16()
    rotated = rotate(x, at(5001))
    assert rotated.dtype == torch.bfloat16
    torch.testing.assert_close(rotated.double(), rotate(x.double(), at(5001)), atol=0.03, rtol=0)


# --- in multi-head attention ---


def attention() -> MultiHeadAttention:
    return MultiHeadAttention(D_MODEL, n_heads=HEADS, positions=RotaryPositions())


def test_attention_with_rotary_positions_by_loops() -> None:
    ours, x = attention(), torch.randn(BATCH, TIME, D_MODEL)
    q, k, v = (split_heads(w(x), n_heads=HEADS) for w in (ours.w_q, ours.w_k, ours.w_v))
    wanted = torch.zeros(BATCH, HEADS, TIME, D_HEAD)
    for i in range(TIME):
        keys = torch.stack([rotate(k[:, :, j : j + 1], at(j))[:, :, 0] for j in range(i + 1)], dim=2)
        scores = rotate(q[:, :, i : i + 1], at(i)) @ keys.mT / D_HEAD**0.5
        wanted[:, :, i] = (scores.softmax(-1) @ v[:, :, : i + 1])[:, :, 0]
    close(ours(x, x, x, mask=causal_mask(TIME)), ours.w_o(merge_heads(wanted)))


def test_kept_rotations_are_those_of_rotate() -> None:
    ours = RotaryPositions(base=50.0)
    for start, n in ((0, 3), (3, 1), (198, 2), (5, 0), (0, 0), (0, 33), (1, 3), (31, 2)):
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            q, k = torch.randn(1, 4, n, 6).to(dtype), torch.randn(1, 2, n, 6).to(dtype)
            rotated_q, rotated_k, _ = ours(q, k, start=start)
            positions = torch.arange(start, start + n)
            assert torch.equal(rotated_q, rotate(q, positions, base=50.0))
            assert torch.equal(rotated_k, rotate(k, positions, base=50.0))


@given(
    cuts=st.lists(st.integers(1, 39), unique=True).map(sorted),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    d_head=st.sampled_from([6, 16, 48]),
)
def test_keys_rotated_step_by_step_are_those_rotated_at_once(cuts, dtype, d_head) -> None:
    x = torch.randn(1, 2, 40, d_head, generator=torch.Generator().manual_seed(0)).to(dtype)
    ours, parts = RotaryPositions(), []
    for start, end in zip([0, *cuts], [*cuts, 40], strict=True):
        parts.append(ours(x[:, :, start:end], x[:, :, start:end], start=start)[1])
    got, wanted = torch.cat(parts, dim=2), ours(x, x)[1]
    if d_head % 16 == 0:
        assert torch.equal(got, wanted)
    else:  # PyTorch rounds complex products once in vectors of 256 bits, and twice in what is left over
        torch.testing.assert_close(got, wanted, rtol=0, atol=4 * torch.finfo(dtype).eps)


def test_training_goes_on_after_inference() -> None:
    ours, x = RotaryPositions(base=60.0), torch.randn(1, 1, TIME, D_HEAD)
    with torch.inference_mode():
        ours(x, x)
    x.requires_grad_()
    ours(x, x)[0].sum().backward()
    assert x.grad is not None


SCHEMES = pytest.mark.parametrize("positions", [RotaryPositions(), ALiBi()], ids=["rotary", "alibi"])


def test_only_rotary_tells_left_from_right_without_a_mask() -> None:
    x = torch.randn(1, TIME, D_MODEL)
    for positions, told_apart in ((ALiBi(), False), (RotaryPositions(), True)):
        ours = MultiHeadAttention(D_MODEL, n_heads=HEADS, positions=positions)
        back = ours(x.flip(1), x.flip(1), x.flip(1)).flip(1)
        assert torch.allclose(back, ours(x, x, x), atol=1e-10) != told_apart


# --- refusals ---


@pytest.mark.usefixtures("unchecked_shapes")
@SCHEMES
def test_cross_attention_has_no_relative_positions(positions) -> None:
    q, k = torch.ones(1, 1, 3, 4), torch.ones(1, 1, 7, 4)
    for n_queries, n_keys, pair in ((3, 7, (q, k)), (7, 3, (k, q))):
        message = f"got {n_queries} queries and {n_keys} keys: use them in self-attention only"
        with pytest.raises(ValueError, match=message):
            positions(*pair)


@pytest.mark.usefixtures("unchecked_shapes")
def test_what_cannot_be_rotated_is_refused() -> None:
    for whole in (torch.ones(3, 6, dtype=torch.int64), torch.ones(3, 6, dtype=torch.bool)):
        with pytest.raises(
            ValueError, match=r"rotate needs floating-point numbers, got torch\.\w+: use x\.float"
        ):
            rotate(whole, torch.arange(3))
    for odd in (1, 5):
        with pytest.raises(ValueError, match=rf"d_head \({odd}\) must be even"):
            rotate(torch.ones(3, odd), torch.arange(3))
    for n_positions in (1, 4):
        with pytest.raises(ValueError, match=f"there are 3 vectors and {n_positions} positions"):
            rotate(torch.ones(3, 6), torch.arange(n_positions))
