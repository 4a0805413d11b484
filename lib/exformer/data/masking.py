"""Hidden words: which tokens an encoder has to name in training, and what it is shown in their places."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int64
from torch import Tensor


@dataclass(frozen=True)
class Hiding:
    """Say which tokens may be hidden, how many, and behind what.

    Args:
        vocab_size: Number of symbols, special ones and the mask symbol among them.
        mask_id: The symbol that hides others.
        special_ids: Symbols that are never hidden and never take another's place: padding, class token, end.
        pad_id: Of the padding; it also marks, among the targets, the places where nothing is asked.
        share: Which part of the words of a text is to be named.
        masked: Of these, the share that is shown as the mask symbol.
        random: And the share that is shown as a word drawn by chance; the rest is shown as it is.

    Raises:
        ValueError: If a share is outside its range, a symbol is unknown, or no words are left.

    Source:
        Devlin et al. 2019, section 3.1, task 1: 15 % of the words; of these 80 %, 10 % and 10 %.
    """

    vocab_size: int
    mask_id: int
    special_ids: Sequence[int] = (0, 1, 2)
    pad_id: int = 0
    share: float = 0.15
    masked: float = 0.8
    random: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what cannot hide anything."""
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"share must lie in (0, 1], got {self.share}")
        if not (self.masked >= 0.0 and self.random >= 0.0 and self.masked + self.random <= 1.0 + 1e-9):
            raise ValueError(
                "masked and random must be 0 or more and sum to at most 1, "
                f"got {self.masked} and {self.random}"
            )
        known = range(self.vocab_size)
        wrong = [each for each in (self.mask_id, self.pad_id, *self.special_ids) if each not in known]
        if wrong:
            raise ValueError(f"symbols must lie from 0 to {self.vocab_size - 1}, got {wrong}")
        if self.pad_id not in self.special_ids:
            raise ValueError(f"padding ({self.pad_id}) is never hidden: it must be among special_ids")
        if not self.words:
            raise ValueError("every symbol is special: there is no word left that could be hidden")

    @property
    def words(self) -> list[int]:
        """List the symbols that are neither special nor the mask."""
        apart = {self.mask_id, *self.special_ids}
        return [symbol for symbol in range(self.vocab_size) if symbol not in apart]


@dataclass(frozen=True, slots=True)
class HiddenBatch:
    """Hold texts with hidden words.

    Args:
        inputs: What the model is shown.
        targets: The word to be named where one was chosen, the padding symbol everywhere else: with
            ``cross_entropy(logits, targets, pad_id=pad_id)`` only the chosen places count.
    """

    inputs: Int64[Tensor, "batch time"]
    targets: Int64[Tensor, "batch time"]


def hide_tokens(
    ids: Int64[Tensor, "batch time"], *, hiding: Hiding, generator: torch.Generator
) -> HiddenBatch:
    """Choose words of each text that the model has to name, and hide most of them.

    Of n words ``share · n`` are chosen, rounded, but at least one; a text without any word gives none. Each
    chosen word is shown as the mask symbol, as a word drawn evenly from all words, or as it is.

    Args:
        ids: Texts, padded, with their special symbols.
        hiding: What may be hidden, and how.
        generator: Gives the chance; each call draws anew.

    Returns:
        What is shown, and what is asked.

    Raises:
        ValueError: If a symbol is unknown, a text holds the mask symbol, or no text holds a word.

    Source:
        Devlin et al. 2019, section 3.1 and appendix A.1; a fixed number a text as in its published code.

    >>> hiding = Hiding(vocab_size=9, mask_id=8, masked=1.0, random=0.0)
    >>> batch = hide_tokens(torch.tensor([[1, 5, 2]]), hiding=hiding, generator=torch.Generator())
    >>> batch.inputs.tolist(), batch.targets.tolist()
    ([[1, 8, 2]], [[0, 5, 0]])
    """
    chosen = _choose(_may_be_hidden(ids, hiding), share=hiding.share, generator=generator)
    chance = torch.rand(ids.shape, generator=generator)
    words = torch.tensor(hiding.words)
    drawn = words[torch.randint(len(words), ids.shape, generator=generator)]
    as_mask = chosen & (chance < hiding.masked)
    as_other = chosen & ~as_mask & (chance < hiding.masked + hiding.random)
    inputs = torch.where(as_other, drawn, ids).masked_fill(as_mask, hiding.mask_id)
    return HiddenBatch(inputs, ids.masked_fill(~chosen, hiding.pad_id))


def _may_be_hidden(ids: Tensor, hiding: Hiding) -> Bool[Tensor, "batch time"]:
    if ids.numel() == 0 or ids.min() < 0 or ids.max() >= hiding.vocab_size:
        found = f"{ids.min().item()} to {ids.max().item()}" if ids.numel() else "none"
        raise ValueError(f"ids must lie from 0 to {hiding.vocab_size - 1}, got {found}")
    if (ids == hiding.mask_id).any():
        raise ValueError(
            f"the texts hold the mask symbol ({hiding.mask_id}) already: hide words of whole texts only"
        )
    may = ~torch.isin(ids, torch.tensor(hiding.special_ids))
    if not may.any():
        raise ValueError("there is no word in any text, only special symbols: nothing can be hidden")
    return may


def _choose(
    may: Bool[Tensor, "batch time"], *, share: float, generator: torch.Generator
) -> Bool[Tensor, "batch time"]:
    """Choose the words with the smallest of random numbers, in each text as many as its length asks for."""
    n_words = may.sum(dim=1, keepdim=True)  # (batch, 1)
    n_chosen = (n_words * share).round().clamp(min=1)
    order = torch.rand(may.shape, generator=generator).masked_fill(~may, 2.0).argsort(dim=1)
    return may & (order.argsort(dim=1) < n_chosen)
