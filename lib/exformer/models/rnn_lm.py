"""Recurrent networks: one step per token, and one vector that keeps all that was read."""

from typing import ClassVar

from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.check_settings import check_choice, check_integer
from exformer.data.padding import check_batch
from exformer.data.windows import shift_by_one
from exformer.models.check_inputs import check_batch_type, check_padding_at_end
from exformer.nn.embedding import TokenEmbedding
from exformer.nn.loss import cross_entropy

#: The kinds of recurrent layer, by name; ``rnn_cells`` spells out a step of the first two.
CELLS: dict[str, type[nn.Module]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


def recurrent_layers(d_model: int, *, cell: str, n_layers: int = 1, dropout: float = 0.0) -> nn.Module:
    """Make recurrent layers of PyTorch, batch first.

    Args:
        d_model: Width of the inputs and of the states.
        cell: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        n_layers: How many; each reads the states of the one before.
        dropout: Fraction of the outputs between two layers set to zero in training.

    Raises:
        ValueError: If the cell is unknown, or a number is not whole or below 1.
    """
    check_choice("cell", cell, tuple(CELLS))
    d_model, n_layers = (
        check_integer(name, n, least=1) for name, n in (("d_model", d_model), ("n_layers", n_layers))
    )
    between = dropout if n_layers > 1 else 0.0  # PyTorch warns where there is no between
    return CELLS[cell](d_model, d_model, num_layers=n_layers, dropout=between, batch_first=True)


class RecurrentLM(nn.Module):
    r"""A recurrent language model: it reads a text once, and scores the next token after each.

    .. math:: p(w_{k+1} \mid w_{\le k}) = \mathrm{softmax}(E\, h_k)

    Args:
        vocab_size: Number of tokens.
        d_model: Width of the vectors and of the state.
        cell: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        n_layers: Recurrent layers; each reads the states of the one before.
        dropout: Fraction of the embeddings and of each layer's output set to zero in training.
        pad_id: The padding token, which the model does not learn to predict; None: there is none.

    Raises:
        ValueError: If the cell is unknown.

    Source:
        Mikolov et al. 2010; Press and Wolf 2017 for the tied output.

    >>> import torch
    >>> model = RecurrentLM(29, d_model=16, cell="lstm")
    >>> model(torch.tensor([[5, 6, 7]])).shape
    torch.Size([1, 3, 29])
    """

    kind: ClassVar[str] = "language model"

    def __init__(
        self,
        vocab_size: int,
        *,
        d_model: int,
        cell: str = "rnn",
        n_layers: int = 1,
        dropout: float = 0.0,
        pad_id: int | None = 0,
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.embedding = TokenEmbedding(vocab_size, d_model=d_model)
        self.recurrent = recurrent_layers(d_model, cell=cell, n_layers=n_layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Int64[Tensor, "batch position"]) -> Float[Tensor, "batch position vocab_size"]:
        """Score the next token after each position; padding after a text changes none of its scores.

        Returns:
            Logits; at position t they are the scores of the token at t + 1.

        Raises:
            ValueError: If the ids are not (batch, position), there are none, or one is unknown.
        """
        return self.embedding.logits(self.states(ids))

    def states(self, ids: Int64[Tensor, "batch position"]) -> Float[Tensor, "batch position d_model"]:
        """Return the state of the last layer after each token: all that the model still knows of the text."""
        check_batch(ids)
        return self.dropout(self.recurrent(self.dropout(self.embedding(ids)))[0])

    def loss(
        self, ids: Int64[Tensor, "batch position"], *, label_smoothing: float = 0.0
    ) -> Float[Tensor, ""]:
        """Compute the loss of each token given those before it, as ``DecoderLM.loss`` does."""
        check_batch_type(ids, Tensor, model=self, made_by="TextWindows cuts a text, pad joins several")
        check_padding_at_end(ids, pad_id=self.pad_id)
        read, targets = shift_by_one(ids)
        return cross_entropy(self(read), targets, pad_id=self.pad_id, label_smoothing=label_smoothing)
