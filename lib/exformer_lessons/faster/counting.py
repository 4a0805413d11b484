"""A draft without a neuron: a table that counts which token follows which two, in a model's own texts."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache

import torch
from torch import Tensor, nn

from exformer.generation.next_token import Continuation
from exformer.generation.sampling import sample
from exformer.models.decoder_lm import DecoderLM


class CountedDraft:
    r"""Score the next token by counts of 1, 2 and 3 tokens.

    .. math:: q_n(w \mid c) = \frac{\mathrm{count}(c\,w) + b_n\, q_{n-1}(w \mid c')}{\mathrm{count}(c) + b_n}

    c are the last n - 1 tokens, c' without the first of them; :math:`q_0` is uniform; :math:`b_n` is 4, for
    single tokens 100.

    Args:
        rows: Texts, as ids.
        vocab_size: Number of tokens.
        n: Longest counted group.

    >>> draft = CountedDraft([[1, 2, 1, 2, 0]], vocab_size=3, n=2)
    >>> draft(torch.tensor([[0, 1]])).argmax().item()  # after 1 comes 2
    2
    >>> draft.distribution((0,))  # nothing has followed 0, so single tokens are counted
    tensor([0.3270, 0.3365, 0.3365], dtype=torch.float64)
    """

    def __init__(self, rows: Iterable[list[int]], *, vocab_size: int, n: int = 3) -> None:
        self.counts: list[dict[tuple[int, ...], Counter[int]]] = [defaultdict(Counter) for _ in range(n)]
        for row in rows:
            for t, token in enumerate(row):
                for length in range(min(n, t + 1)):
                    self.counts[length][tuple(row[t - length : t])][token] += 1
        self.uniform = torch.full((vocab_size,), 1 / vocab_size, dtype=torch.float64)
        self._log_p = lru_cache(maxsize=20_000)(lambda context: self.distribution(context).log()[None])

    def __call__(self, ids: Tensor) -> Tensor:
        """Score the next token of one text: (1, position) -> (1, vocab_size)."""
        return self._log_p(tuple(ids[0, max(0, ids.size(1) - len(self.counts) + 1) :].tolist()))

    def distribution(self, context: tuple[int, ...]) -> Tensor:
        """Return the probabilities of the next token after at most n - 1 tokens."""
        q = self.uniform
        for length, counts in enumerate(self.counts[: len(context) + 1]):
            strength = 4.0 if length else 100.0
            found = counts.get(context[len(context) - length :], {})
            q = q * strength
            if found:
                q[torch.tensor([*found])] += torch.tensor([*found.values()], dtype=torch.float64)
            q = q / q.sum()
        return q


def own_texts(model: DecoderLM, first: int, *, n: int, length: int, seed: int) -> Tensor:
    """Let a model generate n texts of a length, side by side: (text, position)."""
    rng = torch.Generator().manual_seed(seed)
    prompts = torch.full((n, 1), first)
    rows = sample(Continuation(model), prompts, eos_id=-1, max_new_tokens=length - 1, generator=rng)
    return torch.tensor([[first, *row] for row in rows])


@torch.no_grad()
def overlaps(model: nn.Module, draft: CountedDraft, texts: Tensor) -> Tensor:
    """Return 1 - TV of model and draft after each position but the first of each text."""
    found = []
    for row in texts:
        p = model(row[None])[0].double().softmax(dim=-1)
        q = torch.cat([draft(row[None, : t + 1]) for t in range(len(row))]).exp()
        found.append(torch.minimum(p, q).sum(dim=-1)[1:])
    return torch.stack(found)
