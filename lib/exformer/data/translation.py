"""Sentences with translations -> batches: padding, the shift of teacher forcing, similar lengths together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from exformer.checks import whole_number
from exformer.corpora.pairs import Pair
from exformer.data.padding import pad
from exformer.tokenizers.tokenizer import Tokenizer

_SORTED_TOGETHER = 50  # batches; more: less padding; fewer: more chance in what shares a batch


@dataclass(frozen=True, slots=True)
class Seq2SeqBatch:
    """Hold what an encoder-decoder reads, and what it should predict.

    =================  ==========================================================
    source             ``the dog slept``
    ``src``            ``the dog slept </s>``
    target             ``il cane dormì``
    ``tgt_in``         ``<s> il cane dormì``: what the decoder is shown
    ``tgt_out``        ``il cane dormì </s>``: the token that comes next, at each position
    =================  ==========================================================
    """

    src: Int64[Tensor, "batch src"]
    tgt_in: Int64[Tensor, "batch tgt"]
    tgt_out: Int64[Tensor, "batch tgt"]


@dataclass(frozen=True, slots=True)
class TranslationBatches:
    """Hold encoded sentences and give them in batches; :func:`translation_batches` makes it.

    ``len()`` is the number of batches. Each iteration gives the same batches in the same order.

    Args:
        sentences: All sentences as one batch.
        lengths: Tokens in each row of ``sentences.src`` and of ``sentences.tgt_in``.
        batch_size: Sentences in a batch; the last of an epoch may have fewer.
        steps: How many batches to give, over as many epochs as that takes.
        seed: Determines in which order sentences are seen.
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
        """Give the batches, each epoch in a new order."""
        rng = np.random.default_rng(self.seed)
        left = self.steps
        while left > 0:
            for rows in self._epoch(rng)[:left]:
                yield take_rows(self.sentences, rows, lengths=self.lengths)
                left -= 1

    def _epoch(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the rows of each batch of an epoch."""

        def cut(rows: np.ndarray) -> list[np.ndarray]:
            return [rows[first : first + self.batch_size] for first in range(0, len(rows), self.batch_size)]

        return shuffled_batches(self.lengths, cut, piece=self.batch_size * _SORTED_TOGETHER, rng=rng)


def shuffled_batches(
    lengths: Int64[np.ndarray, "batch 2"],
    cut: Callable[[np.ndarray], Iterable[np.ndarray]],
    *,
    piece: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Shuffle rows, sort them by length within large pieces, cut each piece into batches, shuffle those.

    So a batch has sentences of similar length, and little padding, but other ones in each epoch.

    Args:
        lengths: Tokens in each row's source and target.
        cut: Cuts sorted rows into batches.
        piece: How many rows are sorted together.
        rng: Where the random numbers are from.
    """
    order, batches = rng.permutation(len(lengths)), []
    for start in range(0, len(order), piece):
        rows = order[start : start + piece]
        batches += cut(rows[np.lexsort(lengths[rows].T)])
    return [batches[index] for index in rng.permutation(len(batches))]


def take_rows(
    sentences: Seq2SeqBatch, rows: Int64[np.ndarray, " batch"], *, lengths: Int64[np.ndarray, "... 2"]
) -> Seq2SeqBatch:
    """Return some sentences of a batch, no wider than the longest of them.

    Args:
        sentences: All sentences as one batch.
        rows: Row numbers of those that are wanted.
        lengths: Tokens in each row of ``sentences.src`` and of ``sentences.tgt_in``.
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

    Sentences of similar length share a batch, so that little of it is padding. Every pair is seen once before
    any is seen again.

    Args:
        src_tokenizer, tgt_tokenizer: The tokenizers of the two languages; may be the same.
        batch_size: Sentences in a batch.
        seed: Determines the order of the sentences.
        steps: Number of batches; None for one epoch, in which each pair is seen once.

    Returns:
        The batches; iterate over them as often as you like.

    Raises:
        ValueError: If there are no pairs, a number is below 1, or a word is unknown to its tokenizer.

    >>> from exformer.corpora.pairs import Pair
    >>> from exformer.tokenizers.words import WordTokenizer
    >>> tokenizers = [WordTokenizer.from_texts([text]) for text in ("the dog", "il cane")]
    >>> pairs, (english, italian) = [Pair("the dog", "il cane"), Pair("dog", "cane")], tokenizers
    >>> batch, *_ = translation_batches(
    ...     pairs, src_tokenizer=english, tgt_tokenizer=italian, batch_size=2, seed=0
    ... )
    >>> batch.src.tolist()  # 2 is </s>, 0 is padding
    [[3, 2, 0], [4, 3, 2]]
    >>> batch.tgt_in.tolist(), batch.tgt_out.tolist()  # 1 is <s>
    ([[1, 3, 0], [1, 4, 3]], [[3, 2, 0], [4, 3, 2]])
    """
    whole_number("batch_size", batch_size, least=1)
    if steps is not None:
        whole_number("steps", steps, least=1)
    sentences, lengths = encode_pairs(pairs, src_tokenizer=src_tokenizer, tgt_tokenizer=tgt_tokenizer)
    return TranslationBatches(sentences, lengths, batch_size, steps or -(-len(pairs) // batch_size), seed)


def encode_pairs(
    pairs: Sequence[Pair], *, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer
) -> tuple[Seq2SeqBatch, Int64[np.ndarray, "batch 2"]]:
    """Encode sentences with their translations, for teacher forcing.

    Args:
        src_tokenizer, tgt_tokenizer: The tokenizers of the two languages; may be the same.

    Returns:
        All as one batch, and how many tokens each row of its ``src`` and ``tgt_in`` has.

    Raises:
        ValueError: If there are no pairs, or a word is unknown to its tokenizer.
    """
    if not pairs:
        raise ValueError("expected at least one pair to make batches of, got none")
    sources = [[*src_tokenizer.encode(pair.source), src_tokenizer.eos_id] for pair in pairs]
    targets = [tgt_tokenizer.encode(pair.target) for pair in pairs]
    sentences = Seq2SeqBatch(
        src=pad(sources, pad_id=src_tokenizer.pad_id),
        tgt_in=pad([[tgt_tokenizer.bos_id, *ids] for ids in targets], pad_id=tgt_tokenizer.pad_id),
        tgt_out=pad([[*ids, tgt_tokenizer.eos_id] for ids in targets], pad_id=tgt_tokenizer.pad_id),
    )
    both = zip(sources, targets, strict=True)
    return sentences, np.array([(len(source), len(target) + 1) for source, target in both])
