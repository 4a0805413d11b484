"""One step of a recurrent network, spelled out: simple, with a long short-term memory, and gated."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def rnn_cell(
    x: Float[Tensor, "batch d_model"],
    h: Float[Tensor, "batch d_model"],
    *,
    w: Float[Tensor, "d_model d_model"],
    u: Float[Tensor, "d_model d_model"],
    b: Float[Tensor, " d_model"],
) -> Float[Tensor, "batch d_model"]:
    r"""Take one step of a recurrent network.

    .. math:: h_k = \tanh(W x_k + U h_{k-1} + b)

    Args:
        x: :math:`x_k`, what is read.
        h: :math:`h_{k-1}`, what was kept.
        w: :math:`W`, one row an output, as in :class:`torch.nn.Linear`.
        u: :math:`U`, alike.
        b: The bias; ``torch.nn.RNN`` has two of them, which add up.

    Returns:
        :math:`h_k`, what is kept.

    Source:
        Elman 1990, with the tanh of ``torch.nn.RNN``.
    """
    return torch.tanh(x @ w.T + h @ u.T + b)


def lstm_cell(
    x: Float[Tensor, "batch d_model"],
    state: tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]],
    *,
    w: Float[Tensor, "4 d_model d_model"],
    u: Float[Tensor, "4 d_model d_model"],
    b: Float[Tensor, "4 d_model"],
) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
    r"""Take one step of a long short-term memory: the store c is added to, not multiplied by a matrix.

    .. math::
        (i, f, g, o) &= W x_k + U h_{k-1} + b \\
        c_k &= \sigma(f) \odot c_{k-1} + \sigma(i) \odot \tanh(g), \qquad h_k = \sigma(o) \odot \tanh(c_k)

    Args:
        x: :math:`x_k`, what is read.
        state: :math:`h_{k-1}` and the store :math:`c_{k-1}`.
        w: One matrix each for the input gate, the forget gate, the news and the output gate.
        u: Alike, for :math:`h_{k-1}`.
        b: One bias each.

    Returns:
        :math:`h_k` and :math:`c_k`.

    Source:
        Hochreiter and Schmidhuber 1997; Gers, Schmidhuber and Cummins 2000 for the forget gate.
    """
    h, c = state
    i, f, g, o = x @ w.mT + h @ u.mT + b[:, None]  # (batch, d_model) each
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_cell(
    x: Float[Tensor, "batch d_model"],
    h: Float[Tensor, "batch d_model"],
    *,
    w: Float[Tensor, "3 d_model d_model"],
    u: Float[Tensor, "3 d_model d_model"],
    b_w: Float[Tensor, "3 d_model"],
    b_u: Float[Tensor, "3 d_model"],
) -> Float[Tensor, "batch d_model"]:
    r"""Take one step of a gated recurrent unit: a mean of the old state and a new one.

    .. math::
        r &= \sigma(W_r x_k + U_r h_{k-1} + b_r), \qquad z = \sigma(W_z x_k + U_z h_{k-1} + b_z) \\
        h_k &= z \odot h_{k-1} + (1 - z) \odot \tanh\left(W_n x_k + b_n + r \odot (U_n h_{k-1} + b'_n)\right)

    Args:
        x: :math:`x_k`, what is read.
        h: :math:`h_{k-1}`, what was kept.
        w: One matrix each for the reset gate r, the update gate z and the new state n.
        u: Alike, for :math:`h_{k-1}`.
        b_w: The biases added to :math:`W x_k`.
        b_u: The biases added to :math:`U h_{k-1}`; the third one is inside the gate r.

    Returns:
        :math:`h_k`, what is kept.

    Source:
        Cho et al. 2014, in the form of ``torch.nn.GRU``, where r gates the product and not h.
    """
    (r, z, n), (kept_r, kept_z, kept_n) = x @ w.mT + b_w[:, None], h @ u.mT + b_u[:, None]
    z = torch.sigmoid(z + kept_z)
    return z * h + (1 - z) * torch.tanh(n + torch.sigmoid(r + kept_r) * kept_n)


def unroll(
    cell: Callable[[Tensor, Tensor | tuple[Tensor, ...]], Tensor | tuple[Tensor, ...]],
    x: Float[Tensor, "batch position d_model"],
    state: Float[Tensor, "batch d_model"] | tuple[Float[Tensor, "batch d_model"], ...],
) -> Float[Tensor, "batch position d_model"]:
    r"""Take one step after the other: each waits for the one before.

    Args:
        cell: Makes the next state from what is read and the state before.
        x: What is read, in its order.
        state: The state before the first step.

    Returns:
        The states :math:`h_1, h_2, \dots` after each step; a store c is left out.
    """
    states = []
    for x_k in x.unbind(dim=1):
        state = cell(x_k, state)
        states.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(states, dim=1)
