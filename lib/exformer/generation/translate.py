"""Translation: sentences in, sentences out."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from tqdm import tqdm

from exformer.data.padding import pad
from exformer.generation.autoregressive import greedy
from exformer.generation.beam_search import beam_search
from exformer.generation.cached import CachedDecoder
from exformer.generation.hypothesis import check_numbers
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.models.evaluating import evaluating
from exformer.models.rnn_encoder_decoder import RecurrentEncoderDecoder
from exformer.tokenizers.tokenizer import Tokenizer

_SHOWN = 40  # characters of a sentence in a message


def translate(
    model: EncoderDecoder | RecurrentEncoderDecoder,
    sentences: Sequence[str],
    *,
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
    max_new_tokens: int | None = None,
    beam: int = 1,
    alpha: float = 1.0,
) -> list[str]:
    """Translate sentences, greedily or with a beam.

    Args:
        model: A trained encoder-decoder, a transformer or a recurrent one.
        sentences: Source sentences.
        src_tokenizer: The source language's tokenizer.
        tgt_tokenizer: The target language's tokenizer.
        max_new_tokens: Longest translation; None, or more than the model can: as long as it can.
        beam: How many candidates are kept for each sentence; 1 is greedy.
        alpha: How much a beam makes up for length, see
            :func:`~exformer.generation.hypothesis.length_normalized`.

    Returns:
        One translation a sentence.

    Raises:
        ValueError: If there are no sentences, a word is unknown, a sentence is too long for the model, a
            number is too small, or a tokenizer is not the one that the model was made for.
    """
    check_numbers(beam=beam, alpha=alpha)
    _check_tokenizers(model, src=src_tokenizer, tgt=tgt_tokenizer)
    rows = _encode(sentences, src_tokenizer, limit=model.config.max_len)
    src = pad(rows, pad_id=src_tokenizer.pad_id).to(model.tgt_embedding.table.device)
    limit = model.config.max_len
    prompts = src.new_full((len(src), 1), tgt_tokenizer.bos_id)
    limits = {
        "eos_id": tgt_tokenizer.eos_id,
        "max_new_tokens": limit if max_new_tokens is None else min(max_new_tokens, limit),
    }
    with evaluating(model):
        next_logits = _writer(model, src, beam=beam)
        if beam == 1:
            new = greedy(next_logits, prompts, **limits)
        else:
            found = beam_search(next_logits, prompts, beam=beam, alpha=alpha, **limits)
            new = [text.ids for text in found]
    return [tgt_tokenizer.decode(ids) for ids in new]


def translate_many(
    model: nn.Module,
    sentences: Sequence[str],
    *,
    src_tokenizer: Tokenizer,
    at_once: int = 32,
    progress: str = "",
    **options: Any,
) -> list[str]:
    """Translate any number of sentences, those of like length together; empty ones stay empty.

    Args:
        model: As for :func:`translate`.
        sentences: In the source language; all are looked at before the first is translated.
        src_tokenizer: Of the source language.
        at_once: How many are translated together.
        progress: Title of a progress bar; none if empty.
        options: Of :func:`translate`.

    Returns:
        One translation a sentence, in the order of the sentences.

    Raises:
        ValueError: As :func:`translate`, or if fewer than one are to be translated together.
    """
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
    _encode(sentences, src_tokenizer, limit=model.config.max_len)
    out = [""] * len(sentences)
    order = [row for row, sentence in enumerate(sentences) if sentence.strip()]
    order.sort(key=lambda row: len(sentences[row]))
    starts = range(0, len(order), at_once)
    for start in tqdm(starts, desc=progress, disable=not progress, leave=False):
        rows = order[start : start + at_once]
        these = [sentences[row] for row in rows]
        texts = translate(model, these, src_tokenizer=src_tokenizer, **options)
        for row, text in zip(rows, texts, strict=True):
            out[row] = text
    return out


def _check_tokenizers(model: nn.Module, **tokenizers: Tokenizer) -> None:
    for side, tokenizer in tokenizers.items():
        wanted = (getattr(model.config, f"{side}_vocab_size"), model.config.pad_id)
        if (tokenizer.vocab_size, tokenizer.pad_id) != wanted:
            raise ValueError(
                f"{side}_tokenizer has {tokenizer.vocab_size} tokens and pad_id {tokenizer.pad_id}, the "
                f"model was made for {wanted[0]} and {wanted[1]}: give the tokenizer that it was trained with"
            )


def _encode(sentences: Sequence[str], tokenizer: Tokenizer, *, limit: int) -> list[list[int]]:
    """Encode sentences, each closed by the end token."""
    if isinstance(sentences, str):
        raise ValueError(f"sentences must be a list of sentences, got one string: [{sentences!r}] is a list")
    rows = [[*tokenizer.encode(sentence), tokenizer.eos_id] for sentence in sentences]
    for number, (sentence, row) in enumerate(zip(sentences, rows, strict=True), start=1):
        if len(row) > limit:
            raise ValueError(
                f"sentence {number} is longer than the model's max_len ({limit}): {len(row)} tokens with "
                f"the end token, it begins {sentence[:_SHOWN]!r}"
            )
    return rows


def _writer(model: nn.Module, src: Tensor, *, beam: int) -> Callable[[Tensor], Tensor]:
    """Make what scores the next token of translations; a transformer keeps what it has computed."""
    memory = model.encode(src)
    if isinstance(model, EncoderDecoder):
        return CachedDecoder(model, memory=memory, src=src)
    # A source sentence for each row of the target.
    memory, src = memory.repeat_interleave(beam, dim=0), src.repeat_interleave(beam, dim=0)
    return lambda tgt: model.decode(tgt, memory=memory, src=src)[:, -1]
