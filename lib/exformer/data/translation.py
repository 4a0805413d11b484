"""Sentence pairs -> batches for teacher forcing: padding, shifted targets, length bucketing."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import count, islice, repeat

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from exformer.check_settings import check_integer
from exformer.corpora.examples import Pair
from exformer.data.length_bucketing import (
    BUCKET_BATCHES,
    TOKEN_BUCKET_BATCHES,
    cut_by_sentences,
    cut_by_tokens,
    shuffled_batches,
)
from exformer.data.padding import pad
from exformer.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Seq2SeqBatch:
    """A batch of sentence pairs: the inputs of an encoder-decoder and its targets.

    =================  ==========================================================
    source             ``the dog slept``
    ``src``            ``the dog slept </s>``
    target             ``il cane dormì``
    ``tgt_in``         ``<s> il cane dormì``: the decoder's input
    ``tgt_out``        ``il cane dormì </s>``: the token that comes next, at each position
    =================  ==========================================================
    """

    src: Int64[Tensor, "batch src"]
    tgt_in: Int64[Tensor, "batch tgt"]
    tgt_out: Int64[Tensor, "batch tgt"]


@dataclass(frozen=True, slots=True)
class TranslationBatches:
    """Batches of encoded sentence pairs, by a number of sentences or by a number of tokens.

    It is a :class:`~exformer.data.sampler.BatchSampler`, endless and resumable at any step. It can also be
    iterated over as often as you like: ``len()`` is then the number of batches, and each iteration gives the
    same batches in the same order. :func:`translation_batches` makes it from pairs.

    Sentences of similar length share a batch. Each epoch has every sentence once, in other batches and in
    another order than the one before.

    Args:
        sentences: All sentences as one batch, see :func:`encode_pairs`.
        lengths: Tokens in each row of ``sentences.src`` and of ``sentences.tgt_in``.
        batch_size: Sentences in a batch; the last of an epoch may have fewer.
        tokens: Instead of ``batch_size``, most target tokens in a batch, padding included; a longer sentence
            is a batch of its own.
        n_steps: Number of batches of an iteration, over as many epochs as that takes; None for one epoch.
        seed: Determines, with the step, which sentences a batch has.

    Raises:
        ValueError: If not exactly one of ``batch_size`` and ``tokens`` is given, a number is below 1, or
            there is no sentence.

    >>> from exformer import WordTokenizer
    >>> from exformer.corpora.examples import Pair
    >>> from exformer.data.translation import encode_pairs
    >>> words = WordTokenizer.from_texts(["a b c d e"])
    >>> pairs = [Pair(text, text) for text in ("a b c", "d", "e", "a b", "c")]
    >>> sentences, lengths = encode_pairs(pairs, src_tokenizer=words, tgt_tokenizer=words)
    >>> batches = TranslationBatches(sentences, lengths, tokens=6, seed=0)
    >>> [batch.src.tolist() for batch in batches]  # at most 6 target tokens each, padding included
    [[[3, 4, 5, 2]], [[7, 2], [5, 2], [6, 2]], [[3, 4, 2]]]
    """

    sentences: Seq2SeqBatch
    lengths: Int64[np.ndarray, "batch 2"]
    _: KW_ONLY
    batch_size: int | None = None
    tokens: int | None = None
    n_steps: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the sizes."""
        if (self.batch_size is None) == (self.tokens is None):
            raise ValueError(
                "expected either batch_size, a number of sentences, or tokens, a number of target tokens, "
                f"got batch_size={self.batch_size} and tokens={self.tokens}"
            )
        for name in ("batch_size", "tokens", "n_steps"):
            if (value := getattr(self, name)) is not None:
                check_integer(name, value, least=1)
        if len(self.lengths) == 0:
            raise ValueError("expected at least one sentence, got none")

    def __len__(self) -> int:
        """Return the number of batches of an iteration."""
        return len(next(self.epochs())) if self.n_steps is None else self.n_steps

    def __iter__(self) -> Iterator[Seq2SeqBatch]:
        """Yield the batches of an iteration, the same at each one."""
        for rows in islice(self.steps(), len(self)):
            yield self.batch(rows)

    def steps(self, *, start_step: int = 0) -> Iterator[np.ndarray]:
        """Yield the rows of each step's batch, epoch after epoch, after ``start_step`` steps."""
        for batches in self.epochs():
            yield from batches[start_step:]
            start_step = max(0, start_step - len(batches))

    def epochs(self) -> Iterator[list[np.ndarray]]:
        """Yield the rows of all batches of an epoch, epoch after epoch."""
        if self.tokens is not None:
            bucket_size = max(1, round(TOKEN_BUCKET_BATCHES * self.tokens / self.lengths[:, 1].mean()))
            cut = partial(cut_by_tokens, lengths=self.lengths[:, 1], tokens=self.tokens)
            rngs = (np.random.default_rng((self.seed, epoch)) for epoch in count())
        else:
            batch_size = self.batch_size or 1  # never None here
            bucket_size = BUCKET_BATCHES * batch_size
            cut = partial(cut_by_sentences, batch_size=batch_size)
            rngs = repeat(np.random.default_rng(self.seed))
        for rng in rngs:
            yield shuffled_batches(self.lengths, cut, bucket_size=bucket_size, rng=rng)

    def batch(self, rows: np.ndarray) -> Seq2SeqBatch:
        """Return some sentences, no wider than the longest of them."""
        return take_rows(self.sentences, rows, lengths=self.lengths)

    def n_targets(self, rows: np.ndarray) -> int:
        """Return how many target tokens some sentences have, without padding."""
        return int(self.lengths[rows, 1].sum())


def take_rows(
    sentences: Seq2SeqBatch, rows: Int64[np.ndarray, " batch"], *, lengths: Int64[np.ndarray, "... 2"]
) -> Seq2SeqBatch:
    """Return some sentences of a batch, no wider than the longest of them.

    Args:
        sentences: All sentences as one batch.
        rows: Their row numbers.
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
    """Make batches of sentence pairs, for teacher forcing.

    Sentences of similar length share a batch, so that it has little padding. Every epoch has each pair once.

    Args:
        src_tokenizer, tgt_tokenizer: The tokenizers of the two languages; may be the same.
        batch_size: Sentences in a batch.
        seed: Determines the order of the sentences.
        steps: Number of batches; None for one epoch.

    Returns:
        The batches, in the same order at each iteration. With ``steps`` for several epochs, or in a
        :class:`~exformer.training.trainer.Trainer`, every epoch has another order.

    Raises:
        ValueError: If there are no pairs, a number is below 1, or a word is unknown to its tokenizer.

    >>> from exformer.corpora.examples import Pair
    >>> from exformer.tokenizers.characters_and_words import WordTokenizer
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
    check_integer("batch_size", batch_size, least=1)
    if steps is not None:
        check_integer("steps", steps, least=1)
    sentences, lengths = encode_pairs(pairs, src_tokenizer=src_tokenizer, tgt_tokenizer=tgt_tokenizer)
    return TranslationBatches(sentences, lengths, batch_size=batch_size, n_steps=steps, seed=seed)


def encode_pairs(
    pairs: Sequence[Pair], *, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer
) -> tuple[Seq2SeqBatch, Int64[np.ndarray, "batch 2"]]:
    """Encode sentence pairs, for teacher forcing.

    Args:
        pairs: The sentences with their translations.
        src_tokenizer, tgt_tokenizer: The tokenizers of the two languages; may be the same.

    Returns:
        All pairs as one batch, and the number of tokens in each row of its ``src`` and ``tgt_in``.

    Raises:
        ValueError: If there are no pairs, something is not a pair, or a word is unknown to its tokenizer.
    """
    if not pairs:
        raise ValueError("expected at least one pair to make batches of, got none")
    for pair in pairs:
        if not (hasattr(pair, "source") and hasattr(pair, "target")):
            raise ValueError(f"expected pairs of texts, Pair(source, target), got {pair!r}")
    sources = [[*src_tokenizer.encode(pair.source), src_tokenizer.eos_id] for pair in pairs]
    targets = [tgt_tokenizer.encode(pair.target) for pair in pairs]
    sentences = Seq2SeqBatch(
        src=pad(sources, pad_id=src_tokenizer.pad_id),
        tgt_in=pad([[tgt_tokenizer.bos_id, *ids] for ids in targets], pad_id=tgt_tokenizer.pad_id),
        tgt_out=pad([[*ids, tgt_tokenizer.eos_id] for ids in targets], pad_id=tgt_tokenizer.pad_id),
    )
    both = zip(sources, targets, strict=True)
    return sentences, np.array([(len(source), len(target) + 1) for source, target in both])
