"""How a stack begins: with layers that change nothing yet."""

from torch import nn

from exformer.nn.feedforward import FeedForward
from exformer.nn.multi_head import MultiHeadAttention


def zero_outputs(stack: nn.Module) -> None:
    r"""Set the last matrix of each attention and each feed-forward network to zero, and its bias.

    .. math:: W^O = 0, \quad W_2 = 0 \quad\Rightarrow\quad x + \mathrm{Sublayer}(x) = x

    A residual sum then begins as the identity, however deep the stack, and all other matrices begin to learn
    at the second step.

    Args:
        stack: A layer, or layers.

    Source:
        Zhang, Dauphin and Ma 2019, section 3, rule 1, for the last layer of each residual branch.
    """
    for part in stack.modules():
        last = {MultiHeadAttention: "w_o", FeedForward: "w_2"}.get(type(part))
        if last is not None:
            for parameter in getattr(part, last).parameters():
                nn.init.zeros_(parameter)
