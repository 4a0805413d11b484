"""How linear layers start; the tables of embeddings and positions start as their own files say."""

from torch import nn


def init_linear(*linears: nn.Linear | None) -> None:
    r"""Draw the weights of linear layers from Xavier's uniform distribution, and set their biases to zero.

    .. math:: W_{ij} \sim U(-a, a), \qquad a = \sqrt{6 / (n_{\mathrm{in}} + n_{\mathrm{out}})}

    So vectors keep about their size on the way through a layer, and gradients on the way back.

    Args:
        linears: The layers, in the order of the draws; None is passed over.

    Source:
        Glorot and Bengio 2010, equation 16.
    """
    for linear in linears:
        if linear is not None:
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
