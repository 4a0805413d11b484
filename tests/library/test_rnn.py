"""Recurrent cells against PyTorch's, outputs and gradients; the language model reads from left to right."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_twins import close

from exformer.models.rnn_cells import lstm_cell, rnn_cell, unroll
from exformer.models.rnn_lm import CELLS, RecurrentLM, recurrent_layers

BATCH, TIME, D_MODEL, VOCAB = 3, 7, 5, 11
GATES = {"rnn": 1, "lstm": 4, "gru": 3}

pytestmark = pytest.mark.usefixtures("float64")
each_cell = pytest.mark.parametrize("cell", CELLS)


def gru_cell(x, h, *, w, u, b_w, b_u):
    """Take one step of a GRU (Cho et al. 2014) as PyTorch does: the reset gate acts on U h, not on h."""
    (r, z, n), (kept_r, kept_z, kept_n) = x @ w.mT + b_w[:, None], h @ u.mT + b_u[:, None]
    z = torch.sigmoid(z + kept_z)
    return z * h + (1 - z) * torch.tanh(n + torch.sigmoid(r + kept_r) * kept_n)


def our_layer(theirs: nn.RNNBase, x: torch.Tensor, *, layer: int = 0, start: torch.Tensor | None = None):
    """Run one layer of PyTorch's parameters through our cells."""
    kind = {nn.RNN: "rnn", nn.LSTM: "lstm", nn.GRU: "gru"}[type(theirs)]
    w, u, b_w, b_u = (
        getattr(theirs, f"{name}_l{layer}").unflatten(0, (GATES[kind], -1))
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = torch.zeros(len(x), D_MODEL) if start is None else start
    if kind == "rnn":
        return unroll(partial(rnn_cell, w=w[0], u=u[0], b=(b_w + b_u)[0]), x, h)
    if kind == "lstm":
        return unroll(partial(lstm_cell, w=w, u=u, b=b_w + b_u), x, (h, h))
    return unroll(partial(gru_cell, w=w, u=u, b_w=b_w, b_u=b_u), x, h)


def test_two_steps_by_hand() -> None:
    w, u, b = (
        torch.tensor([[1.0, 2.0], [0.0, 1.0]]),
        torch.tensor([[0.0, 1.0], [0.5, 0.0]]),
        torch.tensor([0.0, -1.0]),
    )
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    first = torch.tensor([1.0, -1.0]).tanh()  # W x = (1, 0)
    second = torch.stack((2 + first[1], 1 + first[0] / 2 - 1)).tanh()  # W x = (2, 1)
    close(unroll(partial(rnn_cell, w=w, u=u, b=b), x, torch.zeros(1, 2))[0], torch.stack((first, second)))


@each_cell
def test_cells_are_those_of_torch(cell) -> None:
    theirs = recurrent_layers(D_MODEL, cell=cell)
    x = torch.randn(BATCH, TIME, D_MODEL, requires_grad=True)
    start = torch.randn(BATCH, D_MODEL, requires_grad=True)
    state = (start[None], start[None]) if cell == "lstm" else start[None]
    wanted, got = theirs(x, state)[0], our_layer(theirs, x, start=start)
    close(got, wanted)
    of = [x, start, *theirs.parameters()]
    for ours, torchs in zip(
        torch.autograd.grad(got.square().sum(), of),
        torch.autograd.grad(wanted.square().sum(), of),
        strict=True,
    ):
        close(ours, torchs)


@each_cell
@pytest.mark.parametrize("n_layers", [1, 3])
def test_language_model_by_our_cells(cell, n_layers) -> None:
    model, ids = (
        RecurrentLM(VOCAB, d_model=D_MODEL, cell=cell, n_layers=n_layers),
        torch.randint(VOCAB, (BATCH, TIME)),
    )
    h = model.embedding.weight[ids] * D_MODEL**0.5
    for layer in range(n_layers):
        h = our_layer(model.recurrent, h, layer=layer)
    close(model.states(ids), h)
    close(model(ids), h @ model.embedding.weight.T)


@each_cell
@given(at=st.integers(0, TIME - 1), other=st.integers(0, VOCAB - 1), seed=st.integers(0, 9))
def test_the_past_does_not_see_the_future(cell, at, other, seed) -> None:
    torch.manual_seed(seed)
    model, ids = RecurrentLM(VOCAB, d_model=D_MODEL, cell=cell), torch.randint(VOCAB, (BATCH, TIME))
    changed = ids.clone()
    changed[:, at] = other
    assert torch.equal(model(changed)[:, :at], model(ids)[:, :at])
    moved = changed[:, at] != ids[:, at]
    assert not torch.isclose(model(changed)[moved, -1], model(ids)[moved, -1], atol=1e-14).all(-1).any()
    close(model(ids[:, : at + 1]), model(ids)[:, : at + 1])  # what follows, padding too, changes nothing


def test_dropout_is_for_training() -> None:
    model, ids = (
        RecurrentLM(VOCAB, d_model=D_MODEL, cell="gru", n_layers=2, dropout=0.5),
        torch.ones(2, 3).long(),
    )
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


def test_embeddings_and_states_are_dropped() -> None:
    model, ids, read = RecurrentLM(VOCAB, d_model=50, dropout=0.5), torch.ones(2, 3).long(), []
    model.recurrent.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    states = model.states(ids)
    for some in (read[0], states):  # half of 300 numbers
        assert 100 < (some == 0).sum() < 200


def test_defaults_of_a_recurrent_lm() -> None:
    model = RecurrentLM(VOCAB, d_model=D_MODEL)
    assert type(model.recurrent) is nn.RNN
    assert (model.recurrent.num_layers, model.dropout.p) == (1, 0.0)


@each_cell
def test_the_model_learns_what_was_three_tokens_ago(cell) -> None:
    torch.manual_seed(0)
    model = RecurrentLM(4, d_model=23, cell=cell)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        first = torch.randint(4, (32, 3))
        ids = first.repeat(1, 3)
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids = torch.randint(4, (97, 3)).repeat(1, 3)
    assert (model(ids)[:, 2:-1].argmax(-1) == ids[:, 3:]).double().mean() > 0.95


@pytest.mark.parametrize(
    "make", [lambda cell: RecurrentLM(3, d_model=2, cell=cell), partial(recurrent_layers, 2)]
)
def test_an_unknown_cell_is_refused(make) -> None:
    with pytest.raises(ValueError, match="cell must be one of rnn, lstm, gru, got 'tanh'"):
        make(cell="tanh")


def test_unknown_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="ids must lie from 0 to 10"):
        RecurrentLM(VOCAB, d_model=D_MODEL)(torch.tensor([[VOCAB]]))


def test_dropout_is_between_layers():
    found = [recurrent_layers(4, cell="lstm", n_layers=n, dropout=0.5).dropout for n in (1, 2, 3)]
    assert found == [0.0, 0.5, 0.5]
    assert RecurrentLM(VOCAB, d_model=4, n_layers=2, dropout=0.5).recurrent.dropout == 0.5


@pytest.mark.usefixtures("unchecked_shapes")
def test_sizes_are_whole_numbers_of_any_type():
    assert recurrent_layers(np.int64(4), cell="gru", n_layers=torch.tensor(2)).num_layers == 2
    with pytest.raises(ValueError, match=r"d_model must be an integer, got 4\.0"):
        recurrent_layers(4.0, cell="gru")
    for d_model, n_layers, name in ((0, 1, "d_model"), (4, 0, "n_layers")):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            recurrent_layers(d_model, cell="gru", n_layers=n_layers)
