"""Known mistakes, each with its hint: rows of instruction tuning, and LoRA by hand."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exformer_lessons.exercises.grading import Mistake

Row = tuple[list[int], list[bool]]


def answer_row(prompt: str, answer: str, tokenizer: Any) -> Row:
    """Return the ids of a prompt and its answer, and which of them are targets."""
    asked, said = tokenizer.encode(prompt), [*tokenizer.encode(answer), tokenizer.eos_id]
    return [*asked, *said], [False] * len(asked) + [True] * len(said)


def _row(change: Callable[[list[int], list[int]], Row]) -> Callable[..., Row]:
    """Make a mistake of the ids of the prompt and of the answer with its end."""
    return lambda prompt, answer, tok: change(tok.encode(prompt), [*tok.encode(answer), tok.eos_id])


def _joint(
    begin: Callable[[str, str, Any, list[int]], int], *, end: bool = True, end_counts: bool = True
) -> Callable[..., Row]:
    """Make a mistake of the two texts encoded together, whose targets begin at some token."""

    def row(prompt: str, answer: str, tok: Any) -> Row:
        ids = tok.encode(prompt + answer)
        start, n = begin(prompt, answer, tok, ids), len(ids)
        counted = [t >= start for t in range(n)]
        return ([*ids, tok.eos_id], [*counted, end_counts]) if end else (ids, counted)

    return row


def _alone(prompt: str, answer: str, tok: Any, ids: list[int]) -> int:
    return len(tok.encode(prompt))


def _from_the_end(prompt: str, answer: str, tok: Any, ids: list[int]) -> int:
    return len(ids) - len(tok.encode(answer))


def _common_prefix(prompt: str, answer: str, tok: Any, ids: list[int]) -> int:
    asked = tok.encode(prompt)
    return next((t for t, (a, b) in enumerate(zip(asked, ids, strict=False)) if a != b), len(asked))


ROW: dict[str, Mistake] = {
    "You encode prompt and answer as one text, and a merge carries the first token of the answer across the "
    "border: your mask begins one token late. Encode the two apart.": (
        _joint(_alone),
        _joint(_alone, end=False),
        _joint(_alone, end_counts=False),
    ),
    "Your mask is right for the tokens of the whole text, but a merge crosses the border: at generation the "
    "model reads the prompt alone, in tokens that your text does not contain. Encode the two apart.": (
        _joint(_common_prefix),
        _joint(_from_the_end),
        _joint(_common_prefix, end=False),
        _joint(_from_the_end, end=False),
        _joint(_common_prefix, end_counts=False),
        _joint(_from_the_end, end_counts=False),
    ),
    "The end token is in the text, but it is no target: the model will never learn to stop.": _row(
        lambda a, b: (a + b, [False] * len(a) + [True] * (len(b) - 1) + [False])
    ),
    "The text has no end token: the model will never learn to stop.": _row(
        lambda a, b: (a + b[:-1], [False] * len(a) + [True] * (len(b) - 1))
    ),
    "You count the prompt as well: only what the model is to say is a target.": (
        _row(lambda a, b: (a + b, [True] * len(a + b))),
        _row(lambda a, b: (a + b, [False] + [True] * (len(a + b) - 1))),
    ),
    "You count the prompt in place of the answer: turn the mask over.": _row(
        lambda a, b: (a + b, [True] * len(a) + [False] * len(b))
    ),
    "Your mask is shifted: mark the tokens that are predicted, not the positions that predict them.": (
        _row(lambda a, b: (a + b, [False] * (len(a) - 1) + [True] * len(b) + [False])),
        _row(lambda a, b: (a + b, [False] * (len(a) - 1) + [True] * (len(b) + 1))),
    ),
    "Your mask begins one token late: the first token of the answer is a target, too.": _row(
        lambda a, b: (a + b, [False] * (len(a) + 1) + [True] * (len(b) - 1))
    ),
    "Only the end token is a target: the whole answer must be.": _row(
        lambda a, b: (a + b, [False] * (len(a + b) - 1) + [True])
    ),
    "There is an end token between prompt and answer: at generation, nothing stands there.": (
        lambda prompt, answer, tok: (
            [*tok.encode(prompt), tok.eos_id, *tok.encode(answer), tok.eos_id],
            [False] * (len(tok.encode(prompt)) + 1) + [True] * (len(tok.encode(answer)) + 1),
        )
    ),
    "You encode the end token as text: put tokenizer.eos_id at the end of the ids.": (
        lambda prompt, answer, tok: (
            [*tok.encode(prompt), *tok.encode(answer + "</s>")],
            [False] * len(tok.encode(prompt)) + [True] * len(tok.encode(answer + "</s>")),
        )
    ),
    "The answer comes first: the model reads the prompt, and then answers.": _row(
        lambda a, b: (b + a, [True] * len(b) + [False] * len(a))
    ),
    "You begin the text with a start token: here it begins with the prompt.": (
        lambda prompt, answer, tok: (
            [tok.bos_id, *answer_row(prompt, answer, tok)[0]],
            [False, *answer_row(prompt, answer, tok)[1]],
        )
    ),
}


def apply(x: Tensor, w: Tensor, a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """Return the outputs of a linear layer with LoRA."""
    return x @ merged(w, a, b, alpha).T


def merged(w: Tensor, a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """Return the weight to which the product of the small matrices is added."""
    return w + alpha / len(a) * b @ a


def _product(change: Callable[[Tensor, Tensor, Tensor, float, int], Tensor]) -> tuple[Mistake, Mistake]:
    """Make a mistake in the merged weight, and the same in the outputs."""

    def wrong(w: Tensor, a: Tensor, b: Tensor, alpha: float) -> Tensor:
        return change(w, a, b, alpha, len(a))

    return wrong, lambda x, *rest: x @ wrong(*rest).T


def _fitting(w: Tensor, product: Tensor) -> Tensor:
    """Add a product of the wrong shape where it fits; elsewhere nothing is a number."""
    return w + product if product.shape == w.shape else torch.full_like(w, torch.nan)


_BOTH: dict[str, tuple[Mistake, Mistake]] = {
    "You forget the scale: the product counts α/r times.": _product(lambda w, a, b, alpha, r: w + b @ a),
    "You multiply by α, but do not divide by the rank.": _product(
        lambda w, a, b, alpha, r: w + alpha * b @ a
    ),
    "You divide by the rank, but do not multiply by α.": _product(lambda w, a, b, alpha, r: w + b @ a / r),
    "You multiply by r/α: the scale is α/r.": _product(lambda w, a, b, alpha, r: w + r / alpha * b @ a),
    "You divide by a width of the layer: r is the number of rows of A.": _product(
        lambda w, a, b, alpha, r: w + alpha / a.shape[1] * b @ a
    ),
    "You divide by the root of the rank, as a variant of LoRA does; here the scale is α/r.": _product(
        lambda w, a, b, alpha, r: w + alpha / r**0.5 * b @ a
    ),
    "Your product is transposed: B A, not its transpose, has the shape of W.": _product(
        lambda w, a, b, alpha, r: _fitting(w, alpha / r * (b @ a).T)
    ),
    "You subtract the product: add it.": _product(lambda w, a, b, alpha, r: w - alpha / r * b @ a),
    "You leave W out: LoRA adds to what the layer was.": _product(
        lambda w, a, b, alpha, r: alpha / r * b @ a
    ),
    "You leave out what was learned: add the product of B and A.": _product(lambda w, a, b, alpha, r: w),
    "You scale W, too: only the product counts α/r times.": _product(
        lambda w, a, b, alpha, r: alpha / r * (w + b @ a)
    ),
    "You add the product twice.": _product(lambda w, a, b, alpha, r: w + 2 * alpha / r * b @ a),
}

MERGED: dict[str, Mistake] = {hint: first for hint, (first, _) in _BOTH.items()}
APPLY: dict[str, Mistake] = {hint: second for hint, (_, second) in _BOTH.items()} | {
    "You multiply by W where the row x must meet its transpose: y = x Wᵀ.": lambda x, w, a, b, alpha: (
        x @ merged(w, a, b, alpha) if w.shape[0] == w.shape[1] else torch.full((len(x), len(w)), torch.nan)
    ),
}
