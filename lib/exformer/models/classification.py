"""Heads: small layers that turn an encoder's vectors into a class of the text, or a tag of each symbol."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from exformer.nn.dropout import Dropout


class ClassHead(nn.Module):
    r"""Read a whole text off its first position, where a symbol of no meaning of its own should stand.

    .. math:: \mathrm{logits} = W_2 \tanh(W_1 h_0 + b_1) + b_2

    Args:
        d_model: Width of the vectors.
        n_classes: How many classes there are.
        dropout: Share of the pooled vector set to zero in training.

    Raises:
        ValueError: If there is no class.

    Source:
        Devlin et al. 2019, section 4.1, for the first position; the tanh as in its published code.
    """

    def __init__(self, d_model: int, *, n_classes: int, dropout: float = 0.1) -> None:
        super().__init__()
        _at_least_one("n_classes", n_classes)
        self.pooler = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, n_classes)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "batch position d_model"]) -> Float[Tensor, "batch classes"]:
        """Score the classes of each text.

        Args:
            states: What :meth:`~exformer.models.encoder_lm.EncoderLM.states` gives.

        Returns:
            Logits.
        """
        return self.output(self.dropout(torch.tanh(self.pooler(states[:, 0]))))


class TagHead(nn.Module):
    r"""Read a tag off each position.

    .. math:: \mathrm{logits}_t = W h_t + b

    Args:
        d_model: Width of the vectors.
        n_tags: How many tags there are.
        dropout: Share of the vectors set to zero in training.

    Raises:
        ValueError: If there is no tag.

    Source:
        Devlin et al. 2019, section 5.3.
    """

    def __init__(self, d_model: int, *, n_tags: int, dropout: float = 0.1) -> None:
        super().__init__()
        _at_least_one("n_tags", n_tags)
        self.output = nn.Linear(d_model, n_tags)
        self.dropout = Dropout(dropout)

    def forward(
        self, states: Float[Tensor, "batch position d_model"]
    ) -> Float[Tensor, "batch position classes"]:
        """Score the tags of each symbol.

        Args:
            states: What :meth:`~exformer.models.encoder_lm.EncoderLM.states` gives.

        Returns:
            Logits.
        """
        return self.output(self.dropout(states))


def _at_least_one(name: str, n: int) -> None:
    if n < 1:
        raise ValueError(f"{name} must be at least 1, got {n}")
