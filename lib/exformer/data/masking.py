"""Masked language modeling: which tokens an encoder predicts in training, and what replaces them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int64
from torch import Tensor


@dataclass(frozen=True)
class MaskingConfig:
    """Settings of masking: which tokens may be masked, how many, and what replaces them.

    Args:
        vocab_size: Number of tokens, including the special ones and the mask token.
        mask_id: The mask token.
        special_ids: Tokens that are never masked and never used as a replacement: padding, class token, end.
        pad_id: The padding token; as a target it marks positions at which nothing is predicted.
        rate: Fraction of the tokens of a text that are predicted.
        masked: Fraction of these that are replaced by the mask token.
        random: Fraction of these that are replaced by a random token; the rest stay as they are.

    Raises:
        ValueError: If a fraction is outside its range, an id is unknown, or all tokens are special.

    Source:
        Devlin et al. 2019, section 3.1, task 1: 15% of the tokens; of these 80%, 10% and 10%.

    >>> config = MaskingConfig(vocab_size=9, mask_id=8)
    >>> config.words, config.rate
    ([3, 4, 5, 6, 7], 0.15)
    """

    vocab_size: int
    mask_id: int
    special_ids: Sequence[int] = (0, 1, 2)
    pad_id: int = 0
    rate: float = 0.15
    masked: float = 0.8
    random: float = 0.1

    def __post_init__(self) -> None:
        """Check the fractions and the ids."""
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
            raise ValueError(f"ids must lie from 0 to {self.vocab_size - 1}, got {wrong}")
        if self.pad_id not in self.special_ids:
            raise ValueError(f"padding ({self.pad_id}) is never masked: it must be among special_ids")
        if not self.words:
            raise ValueError("every token is special: there is none left that could be masked")

    @property
    def words(self) -> list[int]:
        """List the tokens that are neither special nor the mask."""
        excluded = {self.mask_id, *self.special_ids}
        return [token for token in range(self.vocab_size) if token not in excluded]


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """A batch of texts with masked tokens.

    Args:
        inputs: The model's input.
        targets: The original token where it is predicted, padding everywhere else: with
            ``cross_entropy(logits, targets, pad_id=pad_id)`` only those positions count.
    """

    inputs: Int64[Tensor, "batch position"]
    targets: Int64[Tensor, "batch position"]


def mask_tokens(
    ids: Int64[Tensor, "batch position"], *, config: MaskingConfig, generator: torch.Generator
) -> MaskedBatch:
    """Choose the tokens of each text that the model predicts, and mask most of them.

    Of n tokens ``rate · n`` are chosen, rounded, but at least one; in a text of special tokens only, none.
    Each chosen token is replaced by the mask token, replaced by a token sampled uniformly from all others
    that are not special, or left as it is.

    Args:
        ids: Texts, padded, with their special tokens.
        config: The settings of masking.
        generator: The random number generator.

    Raises:
        ValueError: If an id is unknown, a text holds the mask token, or no text has a token to mask.

    Source:
        Devlin et al. 2019, section 3.1 and appendix A.1; a fixed number per text as in its published code.

    >>> import torch
    >>> from exformer import MaskingConfig
    >>> config = MaskingConfig(vocab_size=9, mask_id=8, masked=1.0, random=0.0)
    >>> batch = mask_tokens(torch.tensor([[1, 5, 2]]), config=config, generator=torch.Generator())
    >>> batch.inputs.tolist(), batch.targets.tolist()
    ([[1, 8, 2]], [[0, 5, 0]])
    """
    chosen = _choose(_may_be_masked(ids, config), rate=config.rate, generator=generator)
    chance = torch.rand(ids.shape, generator=generator)
    words = torch.tensor(config.words)
    others = words[torch.randint(len(words), ids.shape, generator=generator)]
    as_mask = chosen & (chance < config.masked)
    as_other = chosen & ~as_mask & (chance < config.masked + config.random)
    inputs = torch.where(as_other, others, ids).masked_fill(as_mask, config.mask_id)
    return MaskedBatch(inputs, ids.masked_fill(~chosen, config.pad_id))


def _may_be_masked(ids: Tensor, config: MaskingConfig) -> Bool[Tensor, "batch position"]:
    if ids.numel() == 0 or ids.min() < 0 or ids.max() >= config.vocab_size:
        got = f"{ids.min().item()} to {ids.max().item()}" if ids.numel() else "none"
        raise ValueError(f"ids must lie from 0 to {config.vocab_size - 1}, got {got}")
    if (ids == config.mask_id).any():
        raise ValueError(f"expected texts without the mask token, got one with it ({config.mask_id})")
    may = ~torch.isin(ids, torch.tensor(config.special_ids))
    if not may.any():
        raise ValueError("expected a text with words, got only special tokens: nothing can be masked")
    return may


def _choose(
    may: Bool[Tensor, "batch position"], *, rate: float, generator: torch.Generator
) -> Bool[Tensor, "batch position"]:
    """Choose in each text the tokens with the smallest random numbers, a fixed fraction of its length."""
    n_words = may.sum(dim=1, keepdim=True)  # (batch, 1)
    n_chosen = (n_words * rate).round().clamp(min=1)
    order = torch.rand(may.shape, generator=generator).masked_fill(~may, 2.0).argsort(dim=1)
    return may & (order.argsort(dim=1) < n_chosen)
