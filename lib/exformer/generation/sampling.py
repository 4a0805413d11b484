"""Sampling: draw the next token, from the model's distribution or from one that was changed on purpose."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from exformer.generation.decoding import append_tokens, check_distribution, check_start


def draw(
    logits: Float[Tensor, "batch vocab_size"], uniform: Float[Tensor, " batch"]
) -> Int64[Tensor, " batch"]:
    r"""Draw a token for each row: the first one at which the summed probability exceeds the random number.

    .. math:: y = \min \Big\{ i : \sum_{j \le i} p_j > u \Big\}

    Args:
        logits: Scores; minus infinity for what is never drawn.
        uniform: :math:`u`, one random number per row, from 0 up to but not including 1.

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


def draw_uniform(n_rows: int, n_steps: int, *, generator: torch.Generator) -> Float[Tensor, "position batch"]:
    """Draw the random numbers of all steps, those of the first row first, as :func:`sample` does."""
    rows = [
        torch.rand(n_steps, generator=generator, device=generator.device, dtype=torch.float64)
        for _ in range(n_rows)
    ]
    return torch.stack(rows, dim=1)


def sample(
    next_logits: Callable[[Int64[Tensor, "batch position"]], Float[Tensor, "batch vocab_size"]],
    prompts: Int64[Tensor, "batch position"],
    *,
    eos_id: int,
    max_new_tokens: int,
    generator: torch.Generator,
    change: Callable[[Float[Tensor, "batch vocab_size"]], Float[Tensor, "batch vocab_size"]] | None = None,
) -> list[list[int]]:
    r"""Append a token drawn from the model's distribution, again and again, until the end token.

    .. math:: y_t \sim p(\cdot \mid y_{<t})

    The random numbers of a sequence are drawn together, those of the first sequence first. So a text does not
    depend on what shares its batch: one prompt after the other, with one generator, gives the same texts.

    Args:
        next_logits: Scores of the next token, given all tokens so far.
        prompts: How each sequence begins, at least one token each.
        eos_id: The token that ends a sequence.
        max_new_tokens: How many tokens are appended at most.
        generator: Source of the random numbers; the same seed gives the same texts.
        change: What is done to the scores before the draw, for example
            ``lambda logits: keep_top_p(apply_temperature(logits, 0.7), 0.9)``.

    Returns:
        For each prompt the new tokens, without prompt and end token.

    Raises:
        ValueError: If the prompts are empty, nothing may be appended, or the scores give no distribution.

    Source:
        Holtzman et al. 2020, section 3.

    >>> fair = torch.zeros(1, 4)  # whatever the text, each of four tokens has probability 1/4
    >>> rng = torch.Generator().manual_seed(12)
    >>> sample(lambda ids: fair, torch.tensor([[1]]), eos_id=0, max_new_tokens=5, generator=rng)
    [[2, 2, 1]]
    """
    check_start(prompts, max_new_tokens=max_new_tokens)
    uniform = draw_uniform(len(prompts), max_new_tokens, generator=generator)  # (step, batch)

    def choose(logits: Tensor, step: int) -> Tensor:
        return draw(logits if change is None else change(logits), uniform[step])

    return append_tokens(next_logits, prompts, choose=choose, eos_id=eos_id, max_new_tokens=max_new_tokens)
