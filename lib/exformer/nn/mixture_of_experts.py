"""Mixture of experts: several feed-forward networks, of which a router chooses a few for each position."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.nn.initialization import init_linear

#: The lists of all blocks that record, see :func:`record_routing`.
_RECORDINGS: ContextVar[tuple[list[Tensor], ...]] = ContextVar("routing_recordings", default=())


def route(
    logits: Float[Tensor, "*batch experts"], *, experts_per_token: int
) -> tuple[Float[Tensor, "*batch chosen"], Int64[Tensor, "*batch chosen"]]:
    r"""Choose the experts with the largest probabilities, and share the output among them.

    .. math:: g_e = \frac{p_e}{\sum_{e' \in \mathrm{chosen}} p_{e'}}, \qquad p = \mathrm{softmax}(logits)

    Args:
        logits: Scores of all experts.
        experts_per_token: How many are chosen.

    Returns:
        The weights of the chosen experts, which sum to 1, and their numbers. The weights of
        half-precision logits are in float32.

    Source:
        Jiang et al. 2024, section 2.1; Fedus, Zoph and Shazeer 2022, section 2.4, for the precision.

    >>> weights, chosen = route(torch.tensor([0.3, 0.5, 0.2]).log(), experts_per_token=2)
    >>> weights, chosen
    (tensor([0.6250, 0.3750]), tensor([1, 0]))
    """
    p, chosen = _probabilities(logits).topk(experts_per_token, dim=-1)
    return p / p.sum(dim=-1, keepdim=True), chosen


def balance_loss(
    logits: Float[Tensor, "*batch experts"],
    *,
    experts_per_token: int,
    counts: Bool[Tensor, "*batch"] | None = None,
) -> Float[Tensor, ""]:
    r"""Measure how unevenly a router uses its experts.

    .. math:: L = E \sum_{e=1}^{E} f_e P_e

    Here :math:`f_e` is the fraction of the tokens that expert e is chosen for, and :math:`P_e` its mean
    probability. L is ``experts_per_token`` if all experts are used alike, and up to E if only some are. The
    gradient goes through :math:`P_e`.

    Args:
        logits: The router's scores of all experts.
        experts_per_token: How many are chosen for each token.
        counts: Which tokens count: no padding. None: all.

    Source:
        Fedus, Zoph and Shazeer 2022, equations 4 to 6; for several experts per token as Hugging Face's
        Mixtral has it.

    >>> logits = torch.tensor([[2.0, 0.0], [2.0, 0.0]])  # both tokens go to the first expert
    >>> balance_loss(logits, experts_per_token=1)  # twice its probability of 0.88
    tensor(1.7616)
    """
    if counts is not None:
        logits = logits[counts]  # (token, experts)
    p, n_experts = _probabilities(logits).flatten(end_dim=-2), logits.size(-1)
    chosen = p.topk(experts_per_token, dim=-1).indices  # (token, chosen)
    fraction = torch.zeros_like(p).scatter(-1, chosen, 1.0).mean(dim=0)  # (experts)
    return n_experts * (fraction * p.mean(dim=0)).sum()


def add_balance_loss(
    loss: Tensor, model: nn.Module, *, logits: Sequence[Tensor], counts: Sequence[Tensor | None]
) -> Tensor:
    """Add the mean balance loss of all layers to a loss; a model without experts, or in evaluation, has none.

    The mean is over layers, so that each layer by itself comes to use all of its experts.

    Args:
        loss: Of the tokens.
        model: Its config says how many experts a token has, and the weight of the balance.
        logits: Of each router, as :func:`record_routing` returns them.
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


def _probabilities(logits: Tensor) -> Tensor:
    return logits.softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


class MixtureOfExperts(nn.Module):
    r"""Let a router choose a few experts for each position, and add up what they give.

    .. math:: \mathrm{MoE}(x) = \sum_{e \in \mathrm{chosen}(x)} g_e(x)\, \mathrm{FFN}_e(x)

    The model has as many parameters as all experts together; a position takes the time of the chosen ones.

    Args:
        d_model: Width of input and output.
        n_experts: Number of experts, E.
        experts_per_token: How many are chosen for each position.
        make_expert: Makes an expert, such as a :class:`~exformer.nn.feedforward.FeedForward`.

    Raises:
        ValueError: If fewer than one or more than all experts are to be chosen.

    Source:
        Shazeer et al. 2017, section 2; Jiang et al. 2024, section 2.1.

    >>> import torch
    >>> from exformer import FeedForward
    >>> mixture = MixtureOfExperts(
    ...     4, n_experts=3, experts_per_token=2, make_expert=lambda: FeedForward(4, d_ff=8)
    ... )
    >>> mixture(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(
        self,
        d_model: int,
        *,
        n_experts: int,
        experts_per_token: int = 2,
        make_expert: Callable[[], nn.Module],
    ) -> None:
        super().__init__()
        check_integer("n_experts", n_experts, least=1)
        check_integer("experts_per_token", experts_per_token, least=1, most=n_experts)
        self.experts_per_token = experts_per_token
        self.router = nn.Linear(d_model, n_experts, bias=False)
        init_linear(self.router)
        self.experts = nn.ModuleList(make_expert() for _ in range(n_experts))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply to each position the experts that are chosen for it."""
        logits = self.router(x)  # (*batch, experts)
        for recorded in _RECORDINGS.get():
            recorded.append(logits)
        weights, chosen = route(logits, experts_per_token=self.experts_per_token)  # (*batch, chosen)
        output = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            at = chosen == number  # (*batch, chosen)
            tokens = at.any(dim=-1)  # (*batch)
            # Every expert gets a gradient, if only of zeros. Where there are none, to skip experts takes
            # generation from 4.4 to 2.6 ms a token (8 experts, 4 layers of width 128, one thread).
            if not torch.is_grad_enabled() and not tokens.any():
                continue
            share = weights[at][:, None]  # (token, 1)
            output[tokens] += (share * expert(x[tokens])).to(x)
        return output

    def extra_repr(self) -> str:
        """Return the number of experts per token, which ``print(model)`` shows."""
        return f"experts_per_token={self.experts_per_token}"


@contextmanager
def record_routing() -> Iterator[list[Float[Tensor, "*batch experts"]]]:
    """Record the scores of all routers while the block runs.

    Yields:
        A list that fills as models run: the logits of each mixture, in the order in which they are called,
        with their gradients.

    >>> from exformer import DecoderLM, DecoderLMConfig
    >>> model = DecoderLM(DecoderLMConfig(11, n_layers=2, n_experts=4))
    >>> with record_routing() as logits:
    ...     output = model(torch.tensor([[3, 1, 4]]))
    >>> [each.shape for each in logits]
    [torch.Size([1, 3, 4]), torch.Size([1, 3, 4])]
    """
    logits: list[Tensor] = []
    token = _RECORDINGS.set((*_RECORDINGS.get(), logits))
    try:
        yield logits
    finally:
        _RECORDINGS.reset(token)
