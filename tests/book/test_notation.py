# ruff: noqa: N803, N806 - names are the lectures' own, capitals included
"""The notations of the five lectures, written out literally, give the library's numbers.

Each function named ``lecture_`` computes one formula as that lecture writes it: its rows or columns, its
indices, its exponentials and sums. book/notation.md shows these functions; the tests below bring what they
return to the library's conventions and compare in float64.
"""

import math
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from exformer.nn.attention import scaled_dot_product_attention
from exformer.nn.config import TransformerConfig
from exformer.nn.layers import EncoderLayer
from exformer.nn.loss import cross_entropy
from exformer.nn.masks import causal_mask
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.normalization import LayerNorm
from exformer.nn.positions.absolute import sinusoidal_encoding

N, M, D, D_K, D_V = 7, 3, 11, 5, 13  # tokens, other tokens, width, width of keys, width of values
HEADS, D_HEAD = 3, 5


pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def close(got: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-10)


# --- attention ---


def lecture_a_attention(Q, K, V, W_Q, W_K, W_V):
    Qp, Kp, Vp = Q @ W_Q, K @ W_K, V @ W_V  # Q′ (m × d′k), K′ (n × d′k), V′ (n × d′v)
    m, n, dk = len(Qp), len(Kp), Kp.size(1)
    A = torch.zeros(m, n)
    for i in range(m):  # each row separately
        fits = [torch.exp(Qp[i] @ Kp[j] / math.sqrt(dk)) for j in range(n)]
        for j in range(n):
            A[i, j] = fits[j] / sum(fits)
    f_T = [sum(A[i, j] * Vp[j] for j in range(n)) for i in range(m)]
    return torch.stack(f_T), A


def lecture_b_attention(Q, K, V):
    scores = Q @ K.T / math.sqrt(K.size(1))  # (seq, seq)
    weights = torch.exp(scores) / torch.exp(scores).sum(1, keepdim=True)
    return weights @ V, weights


def lecture_c_attention(X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v  # (N × D_k), (N × D_k), (N × D_v)
    N, D_k = K.shape
    a = torch.zeros(N, N)
    for n in range(N):
        total = sum(torch.exp(Q[n] @ K[m] / math.sqrt(D_k)) for m in range(N))
        for m in range(N):
            a[n, m] = torch.exp(Q[n] @ K[m] / math.sqrt(D_k)) / total
    Y = torch.stack([sum(a[n, m] * V[m] for m in range(N)) for n in range(N)])
    return Y, a


def lecture_d_attention(X, W_Q, W_K, W_V):
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = Q @ K.T / math.sqrt(K.size(1))  # (N × N)
    weights = torch.exp(scores) / torch.exp(scores).sum(1, keepdim=True)
    return weights @ V, weights


def lecture_e_attention(X, Ω_q, Ω_k, Ω_v, β_q, β_k, β_v):
    one = torch.ones(X.size(1))
    V = torch.outer(β_v, one) + Ω_v @ X  # β_v 1ᵀ + Ω_v X, one column a token
    K = torch.outer(β_k, one) + Ω_k @ X
    Q = torch.outer(β_q, one) + Ω_q @ X
    scores = K.T @ Q / math.sqrt(len(K))  # row: key, column: query
    weights = torch.exp(scores) / torch.exp(scores).sum(0)  # each column sums to 1
    return V @ weights, weights


# --- without scaling ---


def lecture_c_without_parameters(X):
    E = torch.exp(X @ X.T)
    return E / E.sum(1, keepdim=True) @ X  # Softmax[XXᵀ] X


def lecture_e_one_output(q_n, k, v):
    total = sum(torch.exp(k_i @ q_n) for k_i in k)
    return sum(torch.exp(k_m @ q_n) / total * v_m for k_m, v_m in zip(k, v, strict=True))


def lecture_e_recurrent_context(h_d, h_e):
    total = sum(torch.exp(h_d @ h_k) for h_k in h_e)
    return sum(torch.exp(h_d @ h_j) / total * h_j for h_j in h_e)  # c_i = Σ_j α_ij h_j


# --- the causal mask, cross-attention ---


def lecture_c_causal(Q, K, V):
    scores = Q @ K.T / math.sqrt(K.size(1))
    scores += torch.full_like(scores, -math.inf).triu(1)  # M: added, not multiplied
    weights = torch.exp(scores) / torch.exp(scores).sum(1, keepdim=True)
    return weights @ V


def lecture_d_causal(x, W_Q, W_K, W_V):
    q, k, v = ([W.T @ x_i for x_i in x] for W in (W_Q, W_K, W_V))  # W (d × d′) is turned
    y = []
    for i in range(len(x)):
        fits = [torch.exp(q[i] @ k[j] / math.sqrt(len(k[j]))) for j in range(i + 1)]  # j ≤ i
        y.append(sum(fits[j] / sum(fits) * v[j] for j in range(i + 1)))
    return torch.stack(y)


def lecture_e_masked(Q, K, V):
    scores = K.T @ Q / math.sqrt(len(K))
    scores += torch.full_like(scores, -math.inf).tril(-1)  # a later key is a lower row
    return V @ (torch.exp(scores) / torch.exp(scores).sum(0))


def lecture_e_cross(Q_d, K_e, V_e):
    scores = K_e.T @ Q_d / math.sqrt(len(K_e))  # as many rows as keys, as many columns as queries
    return V_e @ (torch.exp(scores) / torch.exp(scores).sum(0))


# --- several heads ---


def lecture_b_multi_head(Q, K, V, W_Q, W_K, W_V, W_O):
    head = [lecture_b_attention(Q @ W_Q[i], K @ W_K[i], V @ W_V[i])[0] for i in range(len(W_Q))]
    return torch.cat(head, 1) @ W_O


def lecture_c_multi_head(X, W_q, W_k, W_v, W_o):
    H = [lecture_c_attention(X, W_q[h], W_k[h], W_v[h])[0] for h in range(len(W_q))]
    return torch.cat(H, 1) @ W_o  # (N × H·D_v) times (H·D_v × D)


def lecture_d_multi_head(X, W_Q, W_K, W_V, W_O):
    head = [lecture_d_attention(X, W_Q[i], W_K[i], W_V[i])[0] for i in range(len(W_Q))]
    return torch.cat(head, 1) @ W_O  # head_1 ⊕ head_2 … ⊕ head_h


def lecture_e_multi_head(X, Ω_q, Ω_k, Ω_v, β_q, β_k, β_v, Ω_c):
    each = zip(Ω_q, Ω_k, Ω_v, β_q, β_k, β_v, strict=True)
    H = [lecture_e_attention(X, *parameters)[0] for parameters in each]
    return Ω_c @ torch.cat(H, 0)  # the heads one below the other


# --- layer normalization and the layer ---


def lecture_b_layer_norm(x_j, γ, β, ε):
    μ_j = sum(x_j) / len(x_j)
    σ2_j = sum((x - μ_j) ** 2 for x in x_j) / len(x_j)
    return γ * (x_j - μ_j) / torch.sqrt(σ2_j + ε) + β


def lecture_d_layer_norm(x, γ, β):
    d_h = len(x)
    μ = sum(x) / d_h
    σ = torch.sqrt(sum((x_i - μ) ** 2 for x_i in x) / d_h)
    return γ * (x - μ) / σ + β


def lecture_e_layer_norm(u_i, γ, δ):
    n = len(u_i)
    μ_i = sum(u_i) / n
    σ_i = torch.sqrt(sum((u_ik - μ_i) ** 2 for u_ik in u_i) / n)
    return γ * (u_i - μ_i) / σ_i + δ


def lecture_c_post_norm(X, Y, MLP, norm_1, norm_2):
    Z = norm_1(Y(X) + X)
    return norm_2(MLP(Z) + Z)


def lecture_c_pre_norm(X, Y, MLP, norm_1, norm_2):
    Z = Y(norm_1(X)) + X
    return MLP(norm_2(Z)) + Z


def lecture_d_block(x, self_attn, ffnn, norm_1, norm_2):
    z = norm_1(x + self_attn(x))
    return norm_2(z + ffnn(z))


def lecture_e_layer(X, multi_head, mlp, norm_1, norm_2):
    Z = norm_1(X + multi_head(X))  # columns throughout
    T = torch.stack([z_n + mlp(z_n) for z_n in Z.T], dim=1)  # t′_n = z_n + MLP(z_n)
    return norm_2(T)


# --- positions ---


def lecture_b_position(pos, d_model):
    PE = torch.zeros(d_model)
    for i in range(d_model // 2):
        PE[2 * i] = math.sin(pos / 10000 ** (2 * i / d_model))
        PE[2 * i + 1] = math.cos(pos / 10000 ** (2 * i / d_model))
    return PE


def lecture_c_position(n, D, first=1):
    r_n = []
    for i in range(first, first + D // 2):
        w_i = 1 / 10000 ** (2 * i / D)
        r_n += [math.sin(w_i * n), math.cos(w_i * n)]
    return torch.tensor(r_n)


def lecture_d_position(t, d, first=1):
    p_t = []
    for i in range(first, first + d // 2):
        p_t += [math.sin(t / 10000 ** (2 * i / d)), math.cos(t / 10000 ** (2 * i / d))]
    return torch.tensor(p_t)


def lecture_e_position(n, D, L, first=1):
    r_n = []
    for i in range(first, first + D):
        even = i % 2 == 0
        r_n.append(math.sin(n / L ** (i / D)) if even else math.cos(n / L ** ((i - 1) / D)))
    return torch.tensor(r_n)


# --- the loss ---


def lecture_e_cross_entropy(y, w):
    return sum(-math.log(y[j][w[j]]) for j in range(len(w)))


# --- the same numbers ---


@pytest.fixture
def parameters() -> dict[str, Tensor]:
    shapes = {"x": (N, D), "w_q": (D, D_K), "w_k": (D, D_K), "w_v": (D, D_V)}
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def _zeros(p):
    return torch.zeros(D_K), torch.zeros(D_K), torch.zeros(D_V)


def _by_e(p, biases):
    output, weights = lecture_e_attention(p["x"].T, p["w_q"].T, p["w_k"].T, p["w_v"].T, *biases)
    return output.T, weights.T


ATTENTION = {
    "A": lambda p: lecture_a_attention(p["x"], p["x"], p["x"], p["w_q"], p["w_k"], p["w_v"]),
    "B": lambda p: lecture_b_attention(p["x"] @ p["w_q"], p["x"] @ p["w_k"], p["x"] @ p["w_v"]),
    "C": lambda p: lecture_c_attention(p["x"], p["w_q"], p["w_k"], p["w_v"]),
    "D": lambda p: lecture_d_attention(p["x"], p["w_q"], p["w_k"], p["w_v"]),
    "E": lambda p: _by_e(p, _zeros(p)),
}


def qkv(p: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    return p["x"] @ p["w_q"], p["x"] @ p["w_k"], p["x"] @ p["w_v"]


@pytest.mark.parametrize("lecture", ATTENTION)
def test_attention(lecture, parameters) -> None:
    output, weights = ATTENTION[lecture](parameters)
    ours, our_weights = scaled_dot_product_attention(*qkv(parameters))
    close(output, ours)
    close(weights, our_weights)


def test_biases_of_lecture_e(parameters) -> None:
    biases = torch.randn(D_K), torch.randn(D_K), torch.randn(D_V)
    output, weights = _by_e(parameters, biases)
    ours = [rows + bias for rows, bias in zip(qkv(parameters), biases, strict=True)]
    close(output, scaled_dot_product_attention(*ours)[0])
    close(weights, scaled_dot_product_attention(*ours)[1])


def test_more_keys_than_queries() -> None:
    q, k, v = torch.randn(M, D_K), torch.randn(N, D_K), torch.randn(N, D_V)
    ours = scaled_dot_product_attention(q, k, v)[0]  # (M, D_V)
    as_they_are = torch.eye(D_K), torch.eye(D_K), torch.eye(D_V)
    close(lecture_a_attention(q, k, v, *as_they_are)[0], ours)
    close(lecture_b_attention(q, k, v)[0], ours)
    close(lecture_e_cross(q.T, k.T, v.T).T, ours)


def test_forms_without_scaling() -> None:
    x, k, v = torch.randn(N, D), torch.randn(N, D_K), torch.randn(N, D_V)
    q = torch.randn(M, D_K)
    root = math.sqrt  # the library divides by the root, so its queries are multiplied by it first
    close(lecture_c_without_parameters(x), scaled_dot_product_attention(x * root(D), x, x)[0])
    ours = scaled_dot_product_attention(q * root(D_K), k, v)[0]
    close(torch.stack([lecture_e_one_output(q_n, k, v) for q_n in q]), ours)
    states = scaled_dot_product_attention(q * root(D_K), k, k)[0]  # the encoder's states are keys and values
    close(torch.stack([lecture_e_recurrent_context(h_d, k) for h_d in q]), states)


def test_causal_attention(parameters) -> None:
    q, k, v = qkv(parameters)
    ours = scaled_dot_product_attention(q, k, v, mask=causal_mask(N))[0]
    close(lecture_c_causal(q, k, v), ours)
    close(lecture_d_causal(*(parameters[name] for name in ("x", "w_q", "w_k", "w_v"))), ours)
    close(lecture_e_masked(q.T, k.T, v.T).T, ours)


# --- several heads ---


def our_heads(*, bias: bool = False, n_heads: int = HEADS) -> MultiHeadAttention:
    ours = MultiHeadAttention(HEADS * D_HEAD, n_heads=n_heads, bias=bias)
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter)
    return ours


def by_head(linear: torch.nn.Linear, *, turned: bool) -> list[Tensor]:
    """Cut a projection into one matrix a head; rows multiply W = weightᵀ from the left."""
    return [w.T if turned else w for w in linear.weight.split(D_HEAD)]


@pytest.mark.parametrize("lecture", "ABCDE")
def test_multi_head_attention(lecture) -> None:
    ours = our_heads(n_heads=1 if lecture == "A" else HEADS)
    x = torch.randn(N, HEADS * D_HEAD)
    wanted = ours(x[None], x[None], x[None])[0]
    rows = [by_head(w, turned=True) for w in (ours.w_q, ours.w_k, ours.w_v)]
    if lecture == "A":  # the text gives no formula for several heads: one head, and the last projection
        whole = [w.weight.T for w in (ours.w_q, ours.w_k, ours.w_v)]
        got = lecture_a_attention(x, x, x, *whole)[0] @ ours.w_o.weight.T
    elif lecture == "B":
        got = lecture_b_multi_head(x, x, x, *rows, ours.w_o.weight.T)
    elif lecture == "C":
        got = lecture_c_multi_head(x, *rows, ours.w_o.weight.T)
    elif lecture == "D":
        got = lecture_d_multi_head(x, *rows, ours.w_o.weight.T)
    else:
        columns = [by_head(w, turned=False) for w in (ours.w_q, ours.w_k, ours.w_v)]
        none = [[torch.zeros(D_HEAD)] * HEADS] * 3
        got = lecture_e_multi_head(x.T, *columns, *none, ours.w_o.weight).T
    close(got, wanted)


def test_multi_head_biases_of_lecture_e() -> None:
    ours = our_heads(bias=True)
    torch.nn.init.zeros_(ours.w_o.bias)  # the lecture has none there
    x = torch.randn(N, HEADS * D_HEAD)
    projections = (ours.w_q, ours.w_k, ours.w_v)
    columns = [by_head(w, turned=False) for w in projections]
    biases = [w.bias.split(D_HEAD) for w in projections]
    got = lecture_e_multi_head(x.T, *columns, *biases, ours.w_o.weight)
    close(got.T, ours(x[None], x[None], x[None])[0])


# --- layer normalization and the layer ---


@pytest.mark.parametrize("lecture", "BDE")
def test_layer_norm(lecture) -> None:
    x, gain, bias = torch.randn(N, D), torch.randn(D), torch.randn(D)
    eps = 1e-5 if lecture == "B" else 0.0
    ours = LayerNorm(D, eps=eps)
    ours.load_state_dict({"weight": gain, "bias": bias})
    if lecture == "B":
        got = torch.stack([lecture_b_layer_norm(x_j, gain, bias, eps) for x_j in x])
    elif lecture == "D":
        got = torch.stack([lecture_d_layer_norm(x_i, gain, bias) for x_i in x])
    else:
        got = torch.stack([lecture_e_layer_norm(u_i, gain, bias) for u_i in x])
    close(got, ours(x))


@pytest.mark.parametrize("pre_norm", [False, True])
def test_layer(pre_norm) -> None:
    d_model = HEADS * D_HEAD
    ours = EncoderLayer(TransformerConfig(d_model=d_model, n_heads=HEADS, d_ff=17, pre_norm=pre_norm)).eval()
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(N, d_model)
    wanted = ours(x[None])[0]

    def attend(x):
        return ours.self_attention(x[None], x[None], x[None])[0]

    norms = ours.norm_attention, ours.norm_feed_forward
    if pre_norm:
        close(lecture_c_pre_norm(x, attend, ours.feed_forward, *norms), wanted)
        return
    close(lecture_c_post_norm(x, attend, ours.feed_forward, *norms), wanted)
    close(lecture_d_block(x, attend, ours.feed_forward, *norms), wanted)
    norms = [lambda X, norm=norm: norm(X.T).T for norm in norms]
    close(lecture_e_layer(x.T, lambda X: attend(X.T).T, ours.feed_forward, *norms).T, wanted)


# --- positions ---


@pytest.mark.parametrize("base", [10_000.0, float(N)])
def test_positions_counted_from_0(base) -> None:
    d_model = 14
    ours = sinusoidal_encoding(N, d_model=d_model, base=base)
    close(torch.stack([lecture_e_position(n, d_model, base, first=0) for n in range(N)]), ours)
    if base == 10_000:
        close(torch.stack([lecture_b_position(pos, d_model) for pos in range(N)]), ours)
        close(torch.stack([lecture_c_position(n, d_model, first=0) for n in range(N)]), ours)
        close(torch.stack([lecture_d_position(t, d_model, first=0) for t in range(N)]), ours)


def test_positions_as_they_stand() -> None:
    d_model, base = 14, 10_000
    for n in range(N):
        ours = sinusoidal_encoding(N, d_model=d_model)[n]
        end = torch.tensor([math.sin(n / base), math.cos(n / base)])
        for theirs in (lecture_c_position(n, d_model), lecture_d_position(n, d_model)):
            close(theirs, torch.cat((ours[2:], end)))  # one pair further on
        close(lecture_e_position(n, d_model, base), torch.cat((ours[1:], end[:1])))  # one column further on


def test_numbers_of_lecture_b() -> None:
    position_1 = lecture_b_position(1, 512)
    printed = torch.tensor([0.8414, 0.5403, 0.8218, 0.5696])
    torch.testing.assert_close(position_1[:4], printed, rtol=0, atol=1e-4)  # cut, not rounded
    assert [round(number, 4) for number in position_1[:4].tolist()] == [0.8415, 0.5403, 0.8219, 0.5697]
    assert [round(number, 4) for number in position_1[-2:].tolist()] == [0.0001, 1.0]
    assert lecture_b_position(0, 512).tolist() == [0.0, 1.0] * 256


# --- the loss ---


def test_cross_entropy() -> None:
    logits, words = torch.randn(N, D), torch.randint(D, (N,))
    y = torch.exp(logits) / torch.exp(logits).sum(1, keepdim=True)
    ours = N * cross_entropy(logits, words)  # the library gives the mean, in nats
    assert math.isclose(lecture_e_cross_entropy(y.tolist(), words.tolist()), ours.item(), abs_tol=1e-10)


# --- the page ---


def test_the_page_shows_every_notation() -> None:
    page = Path(__file__).parents[2] / "book" / "notation.md"
    shown = re.findall(r"^:pyobject: (\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(name for name in globals() if name.startswith("lecture_"))
