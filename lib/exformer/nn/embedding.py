"""Embeddings: a table with one vector per token, and the way back from vectors to scores of tokens."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.data.padding import check_integer_ids


def embed(
    ids: Int64[Tensor, "*batch"], weight: Float[Tensor, "vocab_size d_model"]
) -> Float[Tensor, "*batch d_model"]:
    r"""Look each token's vector up in a table; the same as a product with one-hot rows.

    .. math:: \mathrm{embed}(i) = E_i = \mathrm{onehot}(i)\, E

    Args:
        ids: Token ids, from 0 to vocab_size - 1.
        weight: :math:`E`, the table of vectors, one row per token.

    Raises:
        ValueError: If there are no ids, they are no integers, or one of them is not in the table.

    Source:
        Bengio et al. 2003, section 2.

    >>> embed(torch.tensor([2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    tensor([[5., 6.],
            [1., 2.]])
    """
    check_integer_ids(ids)
    if ids.numel() == 0:
        raise ValueError(f"there is nothing to embed: the ids have the shape {tuple(ids.shape)}")
    try:
        return F.embedding(ids, weight)
    except IndexError:
        raise ValueError(
            f"ids must lie from 0 to {weight.size(0) - 1} (vocab_size {weight.size(0)}), "
            f"got {ids.min().item()} to {ids.max().item()}: was another tokenizer used?"
        ) from None


class TokenEmbedding(nn.Module):
    r"""A learned table of vectors, scaled up for the sum with the positions, usable as output layer as well.

    .. math:: x_t = \sqrt{d_{model}}\; E_{w_t}, \qquad \mathrm{logits}(h) = h E^\top

    The entries start with variance 1/d_model, so that the scaled vectors start with entries of variance 1,
    the size of the positional encoding's, and the logits stay small.

    Args:
        vocab_size: Number of tokens.
        d_model: Width of the vectors.
        scale: Whether to multiply the vectors by :math:`\sqrt{d_{model}}`.

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
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, ids: Int64[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Return the vector of each token, scaled.

        Raises:
            ValueError: If there are no ids, or one of them is not in the table.
        """
        return embed(ids, self.weight) * self.factor

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Score every token of the vocabulary by the dot product with its row: the tied output layer."""
        return F.linear(hidden, self.weight)

    def extra_repr(self) -> str:
        """Return the sizes that ``print(model)`` shows."""
        vocab_size, d_model = self.weight.shape
        return f"{vocab_size}, d_model={d_model}, scale={self.factor:.4g}"
