"""The balance loss of a model's mixtures of experts, as a part of the model's loss in training."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from exformer.nn.mixture_of_experts import balance_loss


def add_balance_loss(
    loss: Tensor, model: nn.Module, *, logits: Sequence[Tensor], counts: Sequence[Tensor | None]
) -> Tensor:
    """Add the mean balance loss of all layers to a loss; a model without experts, or in evaluation, has none.

    The mean is over layers, so that each layer by itself comes to use all of its experts.

    Args:
        loss: Of the tokens.
        model: Its config says how many experts a token has, and the weight of the balance.
        logits: Of each router, as :func:`~exformer.nn.mixture_of_experts.record_routing` gives them.
        counts: Which tokens count, for each router.

    Source:
        Fedus, Zoph and Shazeer 2022, section 2.2. Hugging Face's Mixtral pools the tokens of all layers
        instead, where two layers can make up for each other.
    """
    config: Any = model.config
    if config.n_experts is None or not model.training:
        return loss
    losses = [
        balance_loss(each, experts_per_token=config.experts_per_token, counts=own)
        for each, own in zip(logits, counts, strict=True)
    ]
    return loss + config.balance_weight * torch.stack(losses).mean()
