"""Hidden words: which tokens an encoder has to name in training, and what it is shown in their places."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int64
from torch import Tensor


@dataclass(frozen=True)
class MaskingConfig:
    """Say which tokens may be hidden, how many, and behind what.

    Args:
        vocab_size: Number of symbols, special ones and the mask symbol among them.
        mask_id: The symbol that hides others.
        special_ids: Symbols that are never hidden and never take another's place: padding, class token, end.
        pad_id: Of the padding; it also marks, among the targets, the places where nothing is asked.
        rate: Which part of the words of a text is to be named.
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
    rate: float = 0.15
    masked: float = 0.8
    random: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what cannot hide anything."""
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate must lie in (0, 1], got {self.rate}")
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
class MaskedBatch:
    """Hold texts with hidden words.

    Args:
        inputs: What the model is shown.
        targets: The word to be named where one was chosen, the padding symbol everywhere else: with
            ``cross_entropy(logits, targets, pad_id=pad_id)`` only the chosen places count.
    """

    inputs: Int64[Tensor, "batch time"]
    targets: Int64[Tensor, "batch time"]


def mask_tokens(
    ids: Int64[Tensor, "batch time"], *, config: MaskingConfig, generator: torch.Generator
) -> MaskedBatch:
    """Choose words of each text that the model has to name, and hide most of them.

    Of n words ``rate · n`` are chosen, rounded, but at least one; a text without any word gives none. Each
    chosen word is shown as the mask symbol, as a word drawn evenly from all words, or as it is.

    Args:
        ids: Texts, padded, with their special symbols.
        config: What may be hidden, and how.
        generator: Gives the chance; each call draws anew.

    Returns:
        What is shown, and what is asked.

    Raises:
        ValueError: If a symbol is unknown, a text holds the mask symbol, or no text holds a word.

    Source:
        Devlin et al. 2019, section 3.1 and appendix A.1; a fixed number a text as in its published code.

    >>> import torch
    >>> from exformer.data.masking import MaskingConfig
    >>> config = MaskingConfig(vocab_size=9, mask_id=8, masked=1.0, random=0.0)
    >>> batch = mask_tokens(torch.tensor([[1, 5, 2]]), config=config, generator=torch.Generator())
    >>> batch.inputs.tolist(), batch.targets.tolist()
    ([[1, 8, 2]], [[0, 5, 0]])
    """
    chosen = _choose(_may_be_hidden(ids, config), rate=config.rate, generator=generator)
    chance = torch.rand(ids.shape, generator=generator)
    words = torch.tensor(config.words)
    drawn = words[torch.randint(len(words), ids.shape, generator=generator)]
    as_mask = chosen & (chance < config.masked)
    as_other = chosen & ~as_mask & (chance < config.masked + config.random)
    inputs = torch.where(as_other, drawn, ids).masked_fill(as_mask, config.mask_id)
    return MaskedBatch(inputs, ids.masked_fill(~chosen, config.pad_id))


def _may_be_hidden(ids: Tensor, config: MaskingConfig) -> Bool[Tensor, "batch time"]:
    if ids.numel() == 0 or ids.min() < 0 or ids.max() >= config.vocab_size:
        found = f"{ids.min().item()} to {ids.max().item()}" if ids.numel() else "none"
        raise ValueError(f"ids must lie from 0 to {config.vocab_size - 1}, got {found}")
    if (ids == config.mask_id).any():
        raise ValueError(
            f"the texts hold the mask symbol ({config.mask_id}) already: hide words of whole texts only"
        )
    may = ~torch.isin(ids, torch.tensor(config.special_ids))
    if not may.any():
        raise ValueError("there is no word in any text, only special symbols: nothing can be hidden")
    return may


def _choose(
    may: Bool[Tensor, "batch time"], *, rate: float, generator: torch.Generator
) -> Bool[Tensor, "batch time"]:
    """Choose the words with the smallest of random numbers, in each text as many as its length asks for."""
    n_words = may.sum(dim=1, keepdim=True)  # (batch, 1)
    n_chosen = (n_words * rate).round().clamp(min=1)
    order = torch.rand(may.shape, generator=generator).masked_fill(~may, 2.0).argsort(dim=1)
    return may & (order.argsort(dim=1) < n_chosen)
