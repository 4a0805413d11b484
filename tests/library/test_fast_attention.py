"""The fast ways to attend: the numbers of the explicit path, whichever way is taken."""

import math

import pytest
import torch
import torch.nn.functional as F

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.nn import fast_attention as module
from exformer.nn.attention import attend, scaled_dot_product_attention
from exformer.nn.fast_attention import fast_attention
from exformer.nn.masks import causal_mask
from exformer.nn.positions.alibi import ALiBi

BATCH, HEADS, TIME, D_HEAD = 2, 3, 7, 5
PADDING = torch.tensor([[True] * 4 + [False] * 3, [False] * 7])[:, None, None]  # the second sees nothing
MASKS = {
    "no mask": None,
    "the past": causal_mask(TIME)[None, None],
    "padding": PADDING,
    "padding and causal": PADDING & causal_mask(TIME),
    "the past alone, not itself": causal_mask(TIME).tril(-1)[None, None],
    "a window": (causal_mask(TIME) & ~causal_mask(TIME).tril(-3))[None, None],
    "one row for all": torch.tensor([True] * 6 + [False])[None, None, None],
    "one True for all": torch.ones(1, 1, 1, 1, dtype=torch.bool),
}
EVERY_MASK = pytest.mark.parametrize("name", MASKS)


def inputs(dtype: torch.dtype) -> list[torch.Tensor]:
    """Draw queries, keys and values."""
    generator = torch.Generator().manual_seed(5)
    shape = (3, BATCH, HEADS, TIME, D_HEAD)
    return [x.to(dtype).requires_grad_() for x in torch.randn(shape, generator=generator)]


def grads(output: torch.Tensor, of: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Send the same direction back."""
    direction = torch.randn(output.shape, generator=torch.Generator().manual_seed(6))
    return torch.autograd.grad(output, of, direction.to(output))


@pytest.mark.parametrize("n_queries", [1, TIME])
def test_half_precision_has_grouped_queries_too(n_queries):
    q, k, v = inputs(torch.bfloat16)
    q = q[:, :, :n_queries]
    got = fast_attention(q, k[:, :1], v[:, :1])
    wanted = fast_attention(q, *(x[:, :1].expand(-1, HEADS, -1, -1) for x in (k, v)))
    torch.testing.assert_close(got, wanted, atol=0.01, rtol=0.01)


def test_the_triangle_in_half_precision():
    of = inputs(torch.bfloat16)
    got, wanted = fast_attention(*of, causal=True), fast_attention(*of, mask=MASKS["the past"])
    assert torch.equal(got, wanted)
    assert all(map(torch.equal, grads(got, of), grads(wanted, of)))


@EVERY_MASK
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_near_to_the_explicit_path(name, biased, dtype):
    q, k, v = of = inputs(dtype)
    bias = ALiBi()(q, k)[2] if biased else None
    got = fast_attention(q, k, v, mask=MASKS[name], bias=bias)
    assert got.dtype == dtype
    exact = [x.detach().double().requires_grad_() for x in of]
    wanted, _ = scaled_dot_product_attention(*exact, bias=bias, mask=MASKS[name])
    for one, other in zip((got, *grads(got, of)), (wanted, *grads(wanted, exact)), strict=True):
        torch.testing.assert_close(one.double(), other, atol=0.05, rtol=0.05)
    if name.startswith("padding"):
        assert (got[1] == 0).all()  # exactly, for it may attend to nothing


@pytest.mark.parametrize(("dtype", "large"), [(torch.bfloat16, 1e18), (torch.float16, 100.0)], ids=str)
def test_large_scores_beside_what_is_hidden_stay_numbers(dtype, large):
    """All scores are -2 · large²: beside the lowest number there is no room for them."""
    q, k, v = (torch.full((1, 1, 2, 4), n, dtype=dtype, requires_grad=True) for n in (large, -large, 1.0))
    mask = torch.tensor([[[[False, False], [True, True]]]])
    got = fast_attention(q, k, v, mask=mask)
    assert got[..., 0].tolist() == [[[0.0, 1.0]]]
    assert all(grad.isfinite().all() for grad in grads(got, [q, k, v]))


def test_the_built_in_triangle_changes_no_digit():
    for n in (1, 2, 7, 33, 64, 129):
        of = [x.requires_grad_() for x in torch.randn(3, BATCH, HEADS, n, 8)]
        got = fast_attention(*of, causal=True)
        wanted = F.scaled_dot_product_attention(*of, attn_mask=causal_mask(n))
        assert torch.equal(got, wanted)
        assert all(torch.equal(a, b) for a, b in zip(grads(got, of), grads(wanted, of), strict=True))


@pytest.mark.parametrize("grad", [False, True])
def test_scores_too_large_for_float16(grad):
    """q·k = ±230,400, the mask leaves the smaller: all weight is on it."""
    q = torch.full((1, 1, 1, 64), 60.0, dtype=torch.float16, requires_grad=grad)
    k, v = torch.cat((-q, q), dim=2), torch.cat((q + 1, q + 2), dim=2)
    assert torch.equal(fast_attention(q, k, v), q + 2)
    assert torch.equal(fast_attention(q, k, v, mask=torch.tensor([[[[True, False]]]])), q + 1)


def test_which_way_is_taken(monkeypatch):
    kernel, calls = F.scaled_dot_product_attention, []
    monkeypatch.setattr(
        module.F,
        "scaled_dot_product_attention",
        lambda *args, **options: (calls.append(options), kernel(*args, **options))[1],
    )
    for causal in (False, True):
        fast_attention(*inputs(torch.float32), causal=causal)
    assert [options["is_causal"] for options in calls] == [False, True]
    calls.clear()
    fast_attention(*inputs(torch.bfloat16), causal=True)
    assert not calls  # its way back through the kernel takes long
    with torch.no_grad():
        fast_attention(*inputs(torch.bfloat16), causal=True)
    assert len(calls) == 1


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n_earlier", [0, 2])
def test_the_kernel_is_never_given_a_mask_beside_its_triangle(biased, masked, n_earlier, monkeypatch):
    """On a CPU it combines them, on a GPU it refuses."""
    kernel, calls = F.scaled_dot_product_attention, []
    monkeypatch.setattr(
        module.F,
        "scaled_dot_product_attention",
        lambda *args, **options: (calls.append(options), kernel(*args, **options))[1],
    )
    q, k, v = inputs(torch.float32)
    q = q[:, :, n_earlier:]
    bias = ALiBi()(q, k[:, :, n_earlier:], start=n_earlier)[2] if biased else None
    attend(q, k, v, mask=PADDING[:, 0] if masked else None, bias=bias, causal=True)
    (options,) = calls
    assert options["is_causal"] == (options["attn_mask"] is None)
    assert options["is_causal"] == (not biased and not masked and n_earlier == 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_dropout_drops_weights(dtype):
    """With values of 1 an output is the sum of the weights that are left, doubled."""
    torch.manual_seed(0)
    q, k = torch.zeros(2, 1, 1, 400, 8, dtype=dtype, requires_grad=True)
    found = fast_attention(q, k, torch.ones_like(q), dropout=0.5)[0, 0, :, 0].float()
    assert found.std() > 0.01
    assert math.isclose(found.mean().item(), 1.0, abs_tol=0.02)


@pytest.mark.parametrize("switches", [{}, {"positions": "rotary", "qk_norm": True}, {"positions": "alibi"}])
def test_a_model_in_half_precision_finds_the_same_gradients(switches):
    torch.manual_seed(0)
    model = DecoderLM(
        DecoderLMConfig(17, d_model=24, n_heads=3, d_ff=16, max_len=11, dropout=0.0, **switches)
    )
    ids = torch.randint(17, (4, 11))
    found = []
    for half in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = model(ids[:, :-1])
        assert logits.dtype == (torch.bfloat16 if half else torch.float32)
        F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten()).backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert F.cosine_similarity(*found, dim=0) > 0.999
    assert math.isclose(found[0].norm(), found[1].norm(), rel_tol=0.01)


def test_dropout_drops_weights_of_a_group_in_a_decoding_step():
    torch.manual_seed(0)
    q, k = torch.zeros(1, 6, 1, 8), torch.zeros(1, 2, 40, 8)
    found = fast_attention(q, k, torch.ones_like(k), dropout=0.5)[0, :, 0, 0]
    assert len(set(found.tolist())) > 1  # without dropout the weights of each head would sum to 1
    assert math.isclose(found.mean().item(), 1.0, abs_tol=0.3)
