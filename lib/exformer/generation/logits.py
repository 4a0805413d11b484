"""Logits -> other logits: what changes the distribution on purpose before a token is chosen."""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor


def apply_temperature(
    logits: Float[Tensor, "*batch vocab_size"], temperature: float
) -> Float[Tensor, "*batch vocab_size"]:
    r"""Sharpen the distribution by a temperature below 1, flatten it by one above 1.

    .. math:: p'_i \propto p_i^{1/T}, \qquad \mathrm{logits}' = \mathrm{logits} / T

    Towards 0 the most probable token takes all the probability, towards infinity all tokens become alike.

    Raises:
        ValueError: If the temperature is not a number above 0.

    Source:
        Ackley, Hinton and Sejnowski 1985; Holtzman et al. 2020, section 3.3.

    >>> apply_temperature(torch.tensor([0.2, 0.8]).log(), 0.5).softmax(-1)  # odds of 1 : 4 become 1 : 16
    tensor([0.0588, 0.9412])
    """
    if not 0.0 < temperature < math.inf:
        raise ValueError(
            f"temperature must be a number above 0, got {temperature}: "
            "for its limit at 0, the most probable token, use greedy decoding"
        )
    return logits / temperature


def keep_top_k(logits: Float[Tensor, "*batch vocab_size"], k: int) -> Float[Tensor, "*batch vocab_size"]:
    """Keep the k most probable tokens, of equals the one with the lower id; the others get minus infinity.

    Raises:
        ValueError: If k is below 1, or larger than the vocabulary.

    Source:
        Fan, Lewis and Dauphin 2018.

    >>> keep_top_k(torch.tensor([1.0, 3.0, 2.0, 2.0]), 2)
    tensor([-inf, 3., 2., -inf])
    """
    if not 1 <= k <= logits.size(-1):
        raise ValueError(f"top_k must lie from 1 to the vocabulary's size ({logits.size(-1)}), got {k}")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, order[..., k:], -math.inf)


def keep_top_p(logits: Float[Tensor, "*batch vocab_size"], p: float) -> Float[Tensor, "*batch vocab_size"]:
    r"""Keep the smallest set of tokens whose probability reaches p, the most probable ones first (nucleus).

    .. math:: V^{(p)} = \text{the smallest set with} \sum_{i \in V^{(p)}} p_i \ge p

    A token is cut off if those before it have reached p without it, so one is always kept; with p = 1 all
    are. Of equals the one with the lower id comes first.

    Raises:
        ValueError: If p is outside (0, 1].

    Source:
        Holtzman et al. 2020, section 3.1.

    >>> keep_top_p(torch.tensor([0.2, 0.5, 0.3]).log(), 0.6).exp()
    tensor([0.0000, 0.5000, 0.3000])
    """
    if not 0.0 < p <= 1.0:
        raise ValueError(f"top_p must lie in (0, 1], got {p}: it is the probability that is kept")
    if p == 1.0:  # rounding must not make the sum reach 1 before the last token
        return logits
    order = logits.argsort(dim=-1, descending=True, stable=True)
    reached = logits.double().softmax(dim=-1).gather(-1, order).cumsum(dim=-1)
    n_kept = (reached < p).sum(dim=-1, keepdim=True) + 1  # those that do not reach it, and the one that does
    cut = torch.arange(logits.size(-1), device=logits.device) >= n_kept
    return logits.masked_fill(torch.zeros_like(cut).scatter(-1, order, cut), -math.inf)


def keep_min_p(logits: Float[Tensor, "*batch vocab_size"], p: float) -> Float[Tensor, "*batch vocab_size"]:
    r"""Keep the tokens that are at least p times as probable as the most probable one.

    .. math:: V = \{ i : p_i \ge p \cdot \max_j p_j \}

    Where the model is sure few tokens are left, where it is not many; the most probable one always is.

    Raises:
        ValueError: If p is outside [0, 1].

    Source:
        Nguyen et al. 2024, section 3.

    >>> keep_min_p(torch.tensor([0.2, 0.5, 0.3]).log(), 0.5).exp()
    tensor([0.0000, 0.5000, 0.3000])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"min_p must lie in [0, 1], got {p}: it is a share of the largest probability")
    if p == 0.0:
        return logits
    least = logits.amax(dim=-1, keepdim=True) + math.log(p)
    return logits.masked_fill(logits < least, -math.inf)


def penalize_repetition(
    logits: Float[Tensor, "batch vocab_size"], ids: Int64[Tensor, "batch position"], penalty: float
) -> Float[Tensor, "batch vocab_size"]:
    r"""Make the tokens that a text holds already less probable, all by one factor.

    .. math::

        z'_i = \begin{cases} z_i / \theta & z_i > 0 \\ \theta z_i & \text{otherwise} \end{cases}
        \qquad \text{for all } i \in \text{ids}

    The paper divides all logits, which makes those below 0 more probable; multiplying them is what
    implementations have done since.

    Args:
        logits: Scores of the next token.
        ids: The text of each row so far.
        penalty: :math:`\theta`: 1 changes nothing, the paper takes 1.2; below 1 repetition is rewarded.

    Raises:
        ValueError: If the penalty is not a number above 0.

    Source:
        Keskar et al. 2019 (CTRL), section 4.1.

    >>> penalize_repetition(torch.tensor([[2.0, -1.0, 3.0]]), torch.tensor([[0, 1, 0]]), 2.0)
    tensor([[ 1., -2.,  3.]])
    """
    if not 0.0 < penalty < math.inf:
        raise ValueError(f"repetition_penalty must be a number above 0, got {penalty}: 1 changes nothing")
    seen = logits.gather(-1, ids)
    return logits.scatter(-1, ids, torch.where(seen > 0, seen / penalty, seen * penalty))


def transform_logits(
    logits: Float[Tensor, "*batch vocab_size"],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Float[Tensor, "*batch vocab_size"]:
    """Change a distribution in the order temperature, top-k, top-p, min-p; None leaves a step out.

    The order matters: top-p and min-p judge the tempered probabilities, and of what top-k has left.

    Raises:
        ValueError: If a number is out of its range, see the four functions.

    >>> transform_logits(torch.tensor([0.1, 0.2, 0.3, 0.4]).log(), top_k=2, top_p=0.5).exp()  # 4/7 reach 0.5
    tensor([0.0000, 0.0000, 0.0000, 0.4000])
    """
    logits = apply_temperature(logits, temperature)
    logits = logits if top_k is None else keep_top_k(logits, top_k)
    logits = logits if top_p is None else keep_top_p(logits, top_p)
    return logits if min_p is None else keep_min_p(logits, min_p)
