"""Embeddings: a table with one vector a symbol, and the way back from vectors to symbols."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn


def embed(
    ids: Int64[Tensor, "*batch"], table: Float[Tensor, "vocab_size d_model"]
) -> Float[Tensor, "*batch d_model"]:
    r"""Look each symbol's vector up in a table; the same as a product with one-hot rows.

    .. math:: \mathrm{embed}(i) = E_i = \mathrm{onehot}(i)\, E

    Args:
        ids: Symbols, from 0 to vocab_size - 1.
        table: One row a symbol.

    Returns:
        One vector a symbol.

    Raises:
        ValueError: If there are no symbols, or one of them is not in the table.

    Source:
        Bengio et al. 2003, section 2.
    """
    if ids.numel() == 0:
        raise ValueError(f"there is nothing to embed: the ids have the shape {tuple(ids.shape)}")
    try:
        return F.embedding(ids, table)
    except IndexError:
        raise ValueError(
            f"ids must lie from 0 to {table.size(0) - 1} (vocab_size {table.size(0)}), "
            f"got {ids.min().item()} to {ids.max().item()}: was another tokenizer used?"
        ) from None


class TokenEmbedding(nn.Module):
    r"""A learned table of vectors, scaled up for the sum with the positions, usable as output layer as well.

    .. math:: x_t = \sqrt{d_{model}}\; E_{w_t}, \qquad \mathrm{logits}(h) = h E^\top

    The entries start with variance 1/d_model, so that the scaled vectors start with entries of variance 1,
    the size of the positional encoding's, and the logits stay small.

    Args:
        vocab_size: Number of symbols.
        d_model: Width of the vectors.
        scale: Whether to multiply by the root of ``d_model``.

    Source:
        Vaswani et al. 2017, section 3.4; Press and Wolf 2017 for the tied output.

    >>> import torch
    >>> embedding = TokenEmbedding(10, d_model=4)
    >>> x = embedding(torch.tensor([[3, 1, 4]]))
    >>> x.shape, embedding.logits(x).shape
    (torch.Size([1, 3, 4]), torch.Size([1, 3, 10]))
    """

    def __init__(self, vocab_size: int, *, d_model: int, scale: bool = True) -> None:
        super().__init__()
        self.factor = math.sqrt(d_model) if scale else 1.0
        self.table = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, ids: Int64[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Give each symbol its vector.

        Args:
            ids: Symbols.

        Returns:
            Vectors, scaled.

        Raises:
            ValueError: If a symbol is not in the table.
        """
        return embed(ids, self.table) * self.factor

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Compare vectors with every row of the table: the tied output layer.

        Args:
            hidden: Vectors.

        Returns:
            One score a symbol of the vocabulary.
        """
        return F.linear(hidden, self.table)
