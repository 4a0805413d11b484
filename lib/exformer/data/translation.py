"""Ids -> (batch, time): padding, the shift of teacher forcing, batches of sentences of like length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from exformer.corpora.pairs import Pair
from exformer.data.padding import pad
from exformer.tokenizers.tokenizer import Tokenizer

_BATCHES_SORTED_TOGETHER = 50  # more: less padding; fewer: more chance in what shares a batch


@dataclass(frozen=True, slots=True)
class Seq2SeqBatch:
    """Hold what an encoder-decoder reads, and what it should write.

    Args:
        src: Source sentences, each closed by </s>.
        tgt_in: <s> and the target sentence: what the decoder is shown.
        tgt_out: The target sentence and </s>: what it should say next, at each place.
    """

    src: Int64[Tensor, "batch src"]
    tgt_in: Int64[Tensor, "batch tgt"]
    tgt_out: Int64[Tensor, "batch tgt"]


@dataclass(frozen=True, slots=True)
class TranslationBatches:
    """Hold encoded sentences and hand them out in batches; ``translation_batches`` makes it.

    ``len()`` is the number of batches. Each walk through them gives the same batches in the same order.

    Args:
        sentences: All sentences as one batch.
        lengths: Symbols in each row of ``sentences.src`` and of ``sentences.tgt_in``.
        batch_size: Sentences in a batch; the last of an epoch may have fewer.
        steps: Number of batches.
        seed: Of the order.
    """

    sentences: Seq2SeqBatch
    lengths: Int64[np.ndarray, "batch 2"]
    batch_size: int
    steps: int
    seed: int

    def __len__(self) -> int:
        """Return the number of batches."""
        return self.steps

    def __iter__(self) -> Iterator[Seq2SeqBatch]:
        """Walk through the batches, each epoch in a new order."""
        rng = np.random.default_rng(self.seed)
        left = self.steps
        while left > 0:
            for rows in self._epoch(rng)[:left]:
                yield take_rows(self.sentences, rows, lengths=self.lengths)
                left -= 1

    def _epoch(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Shuffle the sentences, sort them by length within large pieces, cut batches, shuffle those."""
        order, piece = rng.permutation(len(self.lengths)), self.batch_size * _BATCHES_SORTED_TOGETHER
        batches = []
        for start in range(0, len(order), piece):
            rows = order[start : start + piece]
            rows = rows[np.lexsort(self.lengths[rows].T)]
            batches += [
                rows[first : first + self.batch_size] for first in range(0, len(rows), self.batch_size)
            ]
        return [batches[index] for index in rng.permutation(len(batches))]


def take_rows(
    sentences: Seq2SeqBatch, rows: Int64[np.ndarray, " batch"], *, lengths: Int64[np.ndarray, "... 2"]
) -> Seq2SeqBatch:
    """Return some sentences of a batch, no wider than the longest of them.

    Args:
        sentences: The batch.
        rows: Which of its sentences.
        lengths: Symbols in each row of ``sentences.src`` and of ``sentences.tgt_in``.
    """
    width = lengths[rows].max(axis=0).tolist()
    index = torch.from_numpy(rows)
    return Seq2SeqBatch(
        sentences.src[index, : width[0]],  # (batch, src)
        sentences.tgt_in[index, : width[1]],  # (batch, tgt)
        sentences.tgt_out[index, : width[1]],  # (batch, tgt)
    )


def translation_batches(
    pairs: Sequence[Pair],
    *,
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
    batch_size: int,
    seed: int,
    steps: int | None = None,
) -> TranslationBatches:
    """Make batches of sentences with their translations, for teacher forcing.

    Sentences of like length share a batch, so that little of it is padding. All pairs come once before any
    comes again.

    Args:
        pairs: Sentences and translations.
        src_tokenizer: For the sources.
        tgt_tokenizer: For the targets.
        batch_size: Sentences in a batch.
        seed: Of the order of the sentences.
        steps: Number of batches; None for one epoch, in which each pair comes once.

    Returns:
        The batches, to be walked through as often as wanted.

    Raises:
        ValueError: If there are no pairs, a number is below 1, or a word is unknown to its tokenizer.

    >>> from exformer import WordTokenizer
    >>> from exformer.corpora.pairs import Pair
    >>> pairs = [Pair("a dog sleeps", "un cane dorme"), Pair("dogs sleep", "i cani dormono")]
    >>> english = WordTokenizer.from_texts(pair.source for pair in pairs)
    >>> italian = WordTokenizer.from_texts(pair.target for pair in pairs)
    >>> languages = {"src_tokenizer": english, "tgt_tokenizer": italian}
    >>> [batch] = translation_batches(pairs, **languages, batch_size=2, seed=0)
    >>> batch.src.shape, batch.tgt_in.shape  # </s> ends a source, <s> begins a target
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """
    if batch_size < 1 or (steps is not None and steps < 1):
        raise ValueError(f"batch_size and steps must be at least 1, came {batch_size} and {steps}")
    sentences, lengths = encode_pairs(pairs, src_tokenizer=src_tokenizer, tgt_tokenizer=tgt_tokenizer)
    return TranslationBatches(sentences, lengths, batch_size, steps or -(-len(pairs) // batch_size), seed)


def encode_pairs(
    pairs: Sequence[Pair], *, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer
) -> tuple[Seq2SeqBatch, Int64[np.ndarray, "batch 2"]]:
    """Encode sentences with their translations, for teacher forcing.

    Args:
        pairs: Sentences and translations.
        src_tokenizer: For the sources.
        tgt_tokenizer: For the targets.

    Returns:
        All as one batch, and how many symbols each row of its ``src`` and ``tgt_in`` has.

    Raises:
        ValueError: If there are no pairs, or a word is unknown to its tokenizer.
    """
    if not pairs:
        raise ValueError("expected at least one pair to make batches of, came none")
    sources = [[*src_tokenizer.encode(pair.source), src_tokenizer.eos_id] for pair in pairs]
    targets = [tgt_tokenizer.encode(pair.target) for pair in pairs]
    sentences = Seq2SeqBatch(
        src=pad(sources, pad_id=src_tokenizer.pad_id),
        tgt_in=pad([[tgt_tokenizer.bos_id, *ids] for ids in targets], pad_id=tgt_tokenizer.pad_id),
        tgt_out=pad([[*ids, tgt_tokenizer.eos_id] for ids in targets], pad_id=tgt_tokenizer.pad_id),
    )
    both = zip(sources, targets, strict=True)
    return sentences, np.array([(len(source), len(target) + 1) for source, target in both])
