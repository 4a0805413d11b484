"""Classification heads: from an encoder's vectors to a class of the text, or to a tag of each token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.nn.dropout import Dropout


class ClassHead(nn.Module):
    r"""Classify a whole text from its first position, where a token such as ``[CLS]`` should be.

    .. math:: \mathrm{logits} = W_2 \tanh(W_1 h_0 + b_1) + b_2

    Args:
        d_model: Width of the vectors.
        n_classes: How many classes there are.
        dropout: Fraction of the pooled vector set to zero in training.

    Raises:
        ValueError: If there is no class.

    Source:
        Devlin et al. 2019, section 4.1, for the first position; the tanh as in its published code.

    >>> ClassHead(8, n_classes=3)(torch.zeros(2, 5, 8)).shape  # (batch, classes)
    torch.Size([2, 3])
    """

    def __init__(self, d_model: int, *, n_classes: int, dropout: float = 0.1) -> None:
        super().__init__()
        check_integer("n_classes", n_classes, least=1)
        self.pooler = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, n_classes)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "batch position d_model"]) -> Float[Tensor, "batch classes"]:
        """Score the classes of each text, given :meth:`~exformer.models.encoder_lm.EncoderLM.states`."""
        return self.output(self.dropout(torch.tanh(self.pooler(states[:, 0]))))


class TagHead(nn.Module):
    r"""Classify each position by itself.

    .. math:: \mathrm{logits}_t = W h_t + b

    Args:
        d_model: Width of the vectors.
        n_tags: How many tags there are.
        dropout: Fraction of the vectors set to zero in training.

    Raises:
        ValueError: If there is no tag.

    Source:
        Devlin et al. 2019, section 5.3.

    >>> TagHead(8, n_tags=3)(torch.zeros(2, 5, 8)).shape  # (batch, position, classes)
    torch.Size([2, 5, 3])
    """

    def __init__(self, d_model: int, *, n_tags: int, dropout: float = 0.1) -> None:
        super().__init__()
        check_integer("n_tags", n_tags, least=1)
        self.output = nn.Linear(d_model, n_tags)
        self.dropout = Dropout(dropout)

    def forward(
        self, states: Float[Tensor, "batch position d_model"]
    ) -> Float[Tensor, "batch position classes"]:
        """Score the tags of each token, given :meth:`~exformer.models.encoder_lm.EncoderLM.states`."""
        return self.output(self.dropout(states))
