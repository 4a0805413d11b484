"""ALiBi: slopes and bias against the paper's formula and code, and attention with any bias against loops."""

import math

import pytest
import torch
from torch_twins import close

from exformer.nn.attention import scaled_dot_product_attention
from exformer.nn.positions.alibi import ALiBi, alibi_bias, alibi_slopes

BATCH, HEADS, QUERY, KEY, D_K, D_V = 2, 3, 5, 7, 11, 13

pytestmark = pytest.mark.usefixtures("float64")


def slopes_of_the_papers_code(n: int) -> list[float]:
    """Follow get_slopes of the authors' repository line by line."""

    def get_slopes_power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        ratio = start
        return [start * ratio**i for i in range(n)]

    if math.log2(n).is_integer():
        return get_slopes_power_of_2(n)
    closest_power_of_2 = 2 ** math.floor(math.log2(n))
    return (
        get_slopes_power_of_2(closest_power_of_2)
        + slopes_of_the_papers_code(2 * closest_power_of_2)[0::2][: n - closest_power_of_2]
    )


def test_slopes_of_the_paper() -> None:
    assert alibi_slopes(8).tolist() == [1 / 2**h for h in range(1, 9)]
    close(alibi_slopes(16), torch.tensor([2 ** (-h / 2) for h in range(1, 17)]))


@pytest.mark.parametrize("n_heads", [*range(1, 20), 31, 32, 33, 96])
def test_slopes_of_any_number_of_heads(n_heads) -> None:
    close(alibi_slopes(n_heads), torch.tensor(slopes_of_the_papers_code(n_heads)))


def test_bias_by_hand() -> None:
    wanted = torch.tensor([[1, 0, 1, 2], [2, 1, 0, 1]]) * torch.tensor([-1 / 16, -1 / 256])[:, None, None]
    close(alibi_bias(torch.tensor([1, 2]), torch.arange(4), n_heads=2), wanted)


def test_module_gives_the_bias_of_its_positions() -> None:
    q, k = torch.randn(2, BATCH, HEADS, QUERY, D_K)
    q_out, k_out, bias = ALiBi()(q, k, start=KEY - QUERY)  # two positions are in a cache
    assert q_out is q
    assert k_out is k
    slopes = alibi_slopes(HEADS)
    assert bias.shape == (HEADS, QUERY, KEY)
    for i in range(QUERY):
        for j in range(KEY):
            close(bias[:, i, j], -slopes * abs(i + KEY - QUERY - j))


def test_alibi_slopes_with_grouped_queries() -> None:
    q, k = torch.zeros(1, 2, 2, D_K), torch.zeros(1, 1, 2, D_K)
    close(ALiBi()(q, k)[2][:, 1, 0], torch.tensor([-1 / 16, -1 / 256]))


def test_the_bias_has_the_precision_of_the_queries() -> None:
    q = torch.zeros(1, HEADS, QUERY, D_K, dtype=torch.float32)
    assert ALiBi()(q, q)[2].dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_bias_of_a_distance_is_rounded_once(dtype) -> None:
    q, positions = torch.zeros(1, 12, 300, 2, dtype=dtype), torch.arange(307)
    wanted = alibi_bias(positions[7:], positions, n_heads=12).to(dtype)
    assert torch.equal(ALiBi()(q, q, start=7)[2], wanted)


# --- attention with a bias ---


@pytest.fixture
def qkv() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return tuple(torch.randn(BATCH, HEADS, n, d) for n, d in ((QUERY, D_K), (KEY, D_K), (KEY, D_V)))


def test_attention_with_a_bias_by_loops(qkv) -> None:
    q, k, v = qkv
    bias, mask = torch.randn(HEADS, QUERY, KEY), torch.rand(BATCH, 1, QUERY, KEY) < 0.7
    mask[0, 0, 2] = False
    output, weights = scaled_dot_product_attention(q, k, v, bias=bias, mask=mask)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (BATCH, HEADS, QUERY))).tolist():
        seen = [j for j in range(KEY) if mask[b, 0, i, j]]
        e = {j: math.exp(q[b, h, i] @ k[b, h, j] / math.sqrt(D_K) + bias[h, i, j]) for j in seen}
        for j in range(KEY):
            assert math.isclose(weights[b, h, i, j], e.get(j, 0) / sum(e.values()) if e else 0, abs_tol=1e-12)
        mean = sum((e[j] * v[b, h, j] for j in seen), torch.zeros(D_V)) / (sum(e.values()) if e else 1)
        close(output[b, h, i], mean)


def test_the_bias_fits_queries_of_any_precision(qkv) -> None:
    bias = alibi_bias(torch.arange(QUERY), torch.arange(KEY), n_heads=HEADS)
    wanted = scaled_dot_product_attention(*qkv, bias=bias)
    found = scaled_dot_product_attention(*(x.float() for x in qkv), bias=bias)
    assert found[0].dtype == found[1].dtype == torch.float32
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, atol=1e-6, rtol=1e-5)


# --- refusals ---


def test_a_number_of_heads_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match="n_heads must be at least 1, got 0"):
        alibi_slopes(0)
