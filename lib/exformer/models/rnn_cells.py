"""One step of a recurrent network, spelled out: Elman's and an LSTM's."""

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
        x: :math:`x_k`, the input of this step.
        h: :math:`h_{k-1}`, the state.
        w: :math:`W`, one row per output, as in :class:`torch.nn.Linear`.
        u: :math:`U`, likewise.
        b: The bias; ``torch.nn.RNN`` has two of them, which add up.

    Returns:
        :math:`h_k`, the next state.

    Source:
        Elman 1990, with the tanh of ``torch.nn.RNN``.

    >>> one = torch.eye(1)
    >>> rnn_cell(one, torch.zeros(1, 1), w=one, u=one, b=torch.zeros(1))  # tanh 1
    tensor([[0.7616]])
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
    r"""Take one step of a long short-term memory: to the cell state c is added, no matrix multiplies it.

    .. math::
        (i, f, g, o) &= W x_k + U h_{k-1} + b \\
        c_k &= \sigma(f) \odot c_{k-1} + \sigma(i) \odot \tanh(g), \qquad h_k = \sigma(o) \odot \tanh(c_k)

    Args:
        x: :math:`x_k`, the input of this step.
        state: :math:`h_{k-1}` and the cell state :math:`c_{k-1}`.
        w: One matrix each for the input gate i, the forget gate f, the candidate g and the output gate o.
        u: Likewise, for :math:`h_{k-1}`.
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


def unroll(
    cell: Callable[[Tensor, Tensor | tuple[Tensor, ...]], Tensor | tuple[Tensor, ...]],
    x: Float[Tensor, "batch position d_model"],
    state: Float[Tensor, "batch d_model"] | tuple[Float[Tensor, "batch d_model"], ...],
) -> Float[Tensor, "batch position d_model"]:
    r"""Take one step after the other: each waits for the one before.

    Args:
        cell: From an input and the state to the next state.
        x: The inputs in their order.
        state: The state before the first step.

    Returns:
        The states :math:`h_1, h_2, \dots` after each step; a cell state c is left out.
    """
    states = []
    for x_k in x.unbind(dim=1):
        state = cell(x_k, state)
        states.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(states, dim=1)
