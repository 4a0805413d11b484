"""How much does a model know? A mean loss in nats as a number of choices, or as bits per byte of text."""

import math


def perplexity(mean_nll: float) -> float:
    r"""Return :math:`e^L`: among how many equally probable tokens the model is in doubt.

    Args:
        mean_nll: L, the mean negative log-likelihood, in nats per token.

    Returns:
        1 or more; infinity where a float cannot hold it.

    Raises:
        ValueError: If the loss is negative or not a number.

    >>> round(perplexity(math.log(8)))
    8
    """
    _check(mean_nll)
    try:
        return math.exp(mean_nll)
    except OverflowError:
        return math.inf


def bits_per_byte(mean_nll: float, *, n_tokens: int, text: str) -> float:
    r"""Return :math:`\frac{L}{\ln 2} \cdot \frac{\text{tokens}}{\text{bytes}}`: what a byte of text costs.

    Unlike the loss per token, it compares models whatever their tokenizers are.

    Args:
        mean_nll: L, the mean negative log-likelihood, in nats per token.
        n_tokens: Into how many tokens the text is cut.
        text: The text; its bytes are those of UTF-8.

    Raises:
        ValueError: If the loss is negative or not a number, or there is no text.

    >>> bits_per_byte(math.log(4), n_tokens=3, text="però")
    1.2
    """
    _check(mean_nll)
    if not text:
        raise ValueError("expected a text of at least one character, got an empty one")
    return mean_nll / math.log(2) * n_tokens / len(text.encode())


def _check(mean_nll: float) -> None:
    if not mean_nll >= 0:
        raise ValueError(f"expected a mean negative log-likelihood in nats, 0 or more, got {mean_nll}")
