"""Sampling: draw the next symbol, from the model's distribution or from one that was changed on purpose."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.generation.autoregressive import append_symbols, check_distribution, check_start


def temper(
    logits: Float[Tensor, "*batch vocab_size"], temperature: float
) -> Float[Tensor, "*batch vocab_size"]:
    r"""Sharpen the distribution by a temperature below 1, flatten it by one above 1.

    .. math:: p'_i \propto p_i^{1/T}, \qquad \mathrm{logits}' = \mathrm{logits} / T

    Args:
        logits: Scores of the next symbol.
        temperature: :math:`T`; near 0 the best symbol takes all, towards infinity all become alike.

    Returns:
        New scores.

    Raises:
        ValueError: If the temperature is not a number above 0.

    Source:
        Ackley, Hinton and Sejnowski 1985; Holtzman et al. 2020, section 3.3.
    """
    if not 0.0 < temperature < math.inf:
        raise ValueError(
            f"the temperature must be a number above 0, got {temperature}: "
            "for its limit at 0, the most probable symbol, use generation.greedy"
        )
    return logits / temperature


def keep_top_k(logits: Float[Tensor, "*batch vocab_size"], k: int) -> Float[Tensor, "*batch vocab_size"]:
    """Keep the k most probable symbols; of equals the one with the lower id.

    Args:
        logits: Scores of the next symbol.
        k: How many symbols are kept.

    Returns:
        The same scores, minus infinity for what is cut off.

    Raises:
        ValueError: If k is below 1, or larger than the vocabulary.

    Source:
        Fan, Lewis and Dauphin 2018.

    >>> keep_top_k(torch.tensor([1.0, 3.0, 2.0, 2.0]), 2)
    tensor([-inf, 3., 2., -inf])
    """
    if not 1 <= k <= logits.size(-1):
        raise ValueError(f"k must lie from 1 to the vocabulary's size ({logits.size(-1)}), got {k}")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, order[..., k:], -math.inf)


def keep_top_p(logits: Float[Tensor, "*batch vocab_size"], p: float) -> Float[Tensor, "*batch vocab_size"]:
    r"""Keep the smallest set of symbols whose probability reaches p, the most probable ones first.

    .. math:: V^{(p)} = \text{the smallest set with} \sum_{i \in V^{(p)}} p_i \ge p

    A symbol is cut off if those before it have reached p without it; so one is always kept. Of equals the one
    with the lower id comes first.

    Args:
        logits: Scores of the next symbol.
        p: The probability to be reached, above 0; with 1 all symbols are kept.

    Returns:
        The same scores, minus infinity for what is cut off.

    Raises:
        ValueError: If p is outside (0, 1].

    Source:
        Holtzman et al. 2020, section 3.1.

    >>> keep_top_p(torch.tensor([0.2, 0.5, 0.3]).log(), 0.6).exp()
    tensor([0.0000, 0.5000, 0.3000])
    """
    if not 0.0 < p <= 1.0:
        raise ValueError(f"p must lie in (0, 1], got {p}: it is the probability that is kept")
    if p == 1.0:  # rounding must not make the sum reach 1 before the last symbol
        return logits
    order = logits.argsort(dim=-1, descending=True, stable=True)
    reached = logits.double().softmax(dim=-1).gather(-1, order).cumsum(dim=-1)
    n_kept = (reached < p).sum(dim=-1, keepdim=True) + 1  # those that do not reach it, and the one that does
    cut = torch.arange(logits.size(-1), device=logits.device) >= n_kept
    return logits.masked_fill(torch.zeros_like(cut).scatter(-1, order, cut), -math.inf)


def draw(
    logits: Float[Tensor, "batch vocab_size"], uniform: Float[Tensor, " batch"]
) -> Int64[Tensor, " batch"]:
    r"""Draw a symbol for each row: the first one at which the summed probability exceeds the random number.

    .. math:: y = \min \Big\{ i : \sum_{j \le i} p_j > u \Big\}

    Args:
        logits: Scores; minus infinity for what is never drawn.
        uniform: :math:`u`, one random number a row, from 0 up to but not including 1.

    Returns:
        One symbol a row.

    Raises:
        ValueError: If a row gives no distribution, or has no number from 0 up to but not including 1.

    >>> draw(torch.tensor([[0.5, 0.0, 0.5]]).log().expand(3, -1), torch.tensor([0.0, 0.4, 0.6]))
    tensor([0, 0, 2])
    """
    if uniform.shape != logits.shape[:1] or not ((uniform >= 0) & (uniform < 1)).all():
        raise ValueError(
            f"each of the {len(logits)} rows needs a number from 0 up to but not including 1, "
            f"got {uniform.tolist()}"
        )
    summed = logits.to(uniform.device, torch.float64).softmax(dim=-1).cumsum(dim=-1)  # (batch, vocab_size)
    total = summed[:, -1:]  # 1, but for rounding
    check_distribution(total)
    found = torch.searchsorted(summed, total * uniform[:, None].double(), right=True)
    return found[:, 0].to(logits.device)


def sample(
    next_logits: Callable[[Int64[Tensor, "batch time"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch time"],
    *,
    eos_id: int,
    max_new_tokens: int,
    generator: torch.Generator,
    change: Callable[[Float[Tensor, "batch vocab_size"]], Float[Tensor, "batch vocab_size"]] | None = None,
) -> list[list[int]]:
    r"""Append a symbol drawn from the model's distribution, again and again, until the end symbol.

    .. math:: y_t \sim p(\cdot \mid y_{<t})

    The random numbers of a sequence are drawn together, those of the first sequence first. So a text does not
    depend on what shares its batch: one prompt after the other, with one generator, gives the same texts.

    Args:
        next_logits: Scores of the next symbol, given all symbols so far.
        prompts: How each sequence begins, at least one symbol each.
        eos_id: The symbol that ends a sequence.
        max_new_tokens: How many symbols are appended at most.
        generator: Source of the random numbers; the same seed gives the same texts.
        change: What is done to the scores before the draw, for example
            ``lambda logits: keep_top_p(temper(logits, 0.7), 0.9)``.

    Returns:
        For each prompt the new symbols, without prompt and end symbol.

    Raises:
        ValueError: If the prompts are empty, nothing may be appended, or the scores give no distribution.

    Source:
        Holtzman et al. 2020, section 3.
    """
    check_start(prompts, max_new_tokens=max_new_tokens)
    options = {"generator": generator, "device": generator.device, "dtype": torch.float64}
    uniform = torch.stack([torch.rand(max_new_tokens, **options) for _ in prompts], dim=1)  # (step, batch)

    def choose(logits: Tensor, step: int) -> Tensor:
        return draw(logits if change is None else change(logits), uniform[step])

    return append_symbols(next_logits, prompts, choose=choose, eos_id=eos_id, max_new_tokens=max_new_tokens)
