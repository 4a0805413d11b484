"""A picture of one verifying pass of speculative decoding: what is read, what comes out, what is compared."""

from typing import Any

import torch

from exformer_lessons.diagrams import Diagram, Shape, arrow, box, draw, grid, text
from exformer_lessons.faster.counting import CountedDraft

_WIDTH = 54


def draw_pass(
    model: Any, tokenizer: Any, draft: CountedDraft, *, context: str, proposals: tuple[str, ...]
) -> Diagram:
    """Draw the pass of a target over the last token of a context and some proposals, up to a rejection.

    A proposal counts as rejected if it is accepted with a probability below 0.1. The likeliest token of the
    residual distribution is shown in its place.

    Raises:
        ValueError: If a proposal is not one token, or none is rejected.
    """
    known = [model.config.begin_id, *tokenizer.encode(context)]
    proposed = [tokenizer.encode(each) for each in proposals]
    if any(len(each) != 1 for each in proposed):
        raise ValueError(f"expected proposals of one token each, got {proposals}")
    ids = known + [token for (token,) in proposed]
    with torch.no_grad():
        p = model(torch.tensor([ids]))[0, len(known) - 1 :].double().softmax(dim=-1)
    chances, instead = [], -1
    for i, (x,) in enumerate(proposed):
        q = draft(torch.tensor([ids[: len(known) + i]]))[0].exp()
        chances.append(min(1.0, (p[i][x] / q[x]).item()))
        if chances[-1] < 0.1:
            instead = int((p[i] - q).argmax())
            break
    if instead < 0:
        raise ValueError("no proposal is rejected: choose others")

    n, n_kept = len(proposals), len(chances) - 1
    words = [each.strip() for each in proposals]
    reads = [_cell(context[-1]), *(_cell(word, "low") for word in words)]
    gives = [box(f"*p*_{{{i}}}", role="high", width=_WIDTH, height=28, size=16) for i in range(1, n + 2)]
    judged = [_cell(word, "low" if i <= n_kept else "masked") for i, word in enumerate(words)]
    verdict = [text(f"{chance:.2f}", size=13) for chance in chances]
    verdict += [text(word, size=12, muted=True) for word in [*["dropped"] * (n - 1 - n_kept), "if all\nstay"]]
    new = [_cell(word, "low") for word in words[:n_kept]]
    new.append(_cell(tokenizer.decode([instead]).strip(), "high"))
    extra = _cell("extra", "masked")
    names = ("target\nreads", "gives", "judges", "accepts\nwith", "new text")
    rows = (reads, gives, [*judged, extra], verdict, [*new, *[None] * (n - n_kept)])
    lines: list[list[Shape | None]] = [
        [text(name, size=12, muted=True), *each] for name, each in zip(names, rows, strict=True)
    ]
    down = zip([*reads, *gives[: n_kept + 1]], [*gives, *judged[: n_kept + 1]], strict=True)
    return draw(grid(lines, gap=(4, 18)), [arrow(a, b) for a, b in down])


def _cell(word: str, role: str = "plain") -> Shape:
    return box(word, role=role, width=_WIDTH, height=28, size=13, literal=True)
