"""Sentences -> their translations, by an encoder-decoder and its pair of tokenizers."""

from collections.abc import Callable, Iterable, Sequence

from torch import Tensor, nn
from tqdm import tqdm

from exformer.checks import whole_number
from exformer.data.padding import pad
from exformer.generation.beam_search import beam_search
from exformer.generation.decoding import greedy
from exformer.generation.hypothesis import check_numbers
from exformer.generation.next_token import Continuation
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.models.kinds import can_translate, has_cache
from exformer.models.rnn_encoder_decoder import RecurrentEncoderDecoder
from exformer.nn.eval_mode import evaluating
from exformer.tokenizers.text_normalization import normalize_line
from exformer.tokenizers.tokenizer import Tokenizer

_SHOWN = 40  # characters of a sentence in a message
# Keys and values of 2^15 positions take 256 MiB in a model of 4 layers and width 256; a beam counts as often
# as it is wide. 32 sentences of 128 tokens fit up to a beam of 8.
MOST_POSITIONS = 2**15


def translate(
    model: nn.Module,
    tokenizer: tuple[Tokenizer, Tokenizer],
    text: str | Iterable[str],
    *,
    max_new_tokens: int | None = None,
    beam: int = 1,
    alpha: float = 1.0,
    batch_size: int = 32,
    progress: str = "",
) -> str | list[str]:
    """Translate a sentence or several, greedily or with a beam.

    Sentences of similar length are translated together. Each is normalized first, see
    :func:`~exformer.tokenizers.text_normalization.normalize_line`; one in which nobody sees anything has an
    empty translation.

    Args:
        model: A trained :class:`~exformer.models.encoder_decoder.EncoderDecoder`, or a recurrent one.
        tokenizer: The pair (source, target) of the model.
        text: A sentence, or several; all are checked before the first is translated.
        max_new_tokens: Longest translation; None, or more than ``max_len`` allows: as long as it allows.
        beam: How many candidates are kept for each sentence; 1 is greedy.
        alpha: How much a beam makes up for length, see
            :func:`~exformer.generation.hypothesis.length_normalized`.
        batch_size: Largest number of sentences that are translated together; fewer with a wide beam.
        progress: Title of a progress bar; if empty, there is none.

    Returns:
        The translation; of several sentences a list, in their order.

    Raises:
        ValueError: If the model is no encoder-decoder, a word is unknown, a sentence is too long for the
            model, a number is too small, or a tokenizer is not the one that the model was made for.

    >>> from exformer import load_model
    >>> model, tokenizer, card = load_model("multi30k-en-de")
    >>> translate(model, tokenizer, "A dog runs on the beach.", beam=5)
    'Ein Hund rennt am Strand.'
    >>> translate(model, tokenizer, ["Two men play.", ""])
    ['Zwei Männer spielen.', '']
    """
    if not can_translate(model):
        raise ValueError(
            f"expected an encoder-decoder to translate with, got {type(model).__name__}: "
            "a language model continues a text, see generate()"
        )
    if not isinstance(tokenizer, tuple):
        raise ValueError("tokenizer must be the pair (source, target) of the translator, got one tokenizer")
    check_numbers(beam=beam, alpha=alpha)
    whole_number("batch_size", batch_size, least=1)
    src_tokenizer, tgt_tokenizer = tokenizer
    _check_tokenizers(model, src=src_tokenizer, tgt=tgt_tokenizer)
    sentences = [text] if isinstance(text, str) else list(text)
    limit = model.config.max_len
    rows = _encode(sentences, src_tokenizer, limit=limit)
    longest = limit
    if max_new_tokens is not None:
        longest = min(whole_number("max_new_tokens", max_new_tokens, least=1), limit)
    out = [""] * len(sentences)
    order = [number for number, row in enumerate(rows) if len(row) > 1]
    order.sort(key=lambda number: len(sentences[number]))
    at_once = max(1, min(batch_size, MOST_POSITIONS // (beam * longest)))
    for start in tqdm(range(0, len(order), at_once), desc=progress, disable=not progress, leave=False):
        these = order[start : start + at_once]
        src = pad([rows[number] for number in these], pad_id=src_tokenizer.pad_id)
        new = _translate_batch(
            model,
            src.to(model.tgt_embedding.weight.device),
            tgt_tokenizer,
            beam=beam,
            alpha=alpha,
            longest=longest,
        )
        for number, ids in zip(these, new, strict=True):
            out[number] = tgt_tokenizer.decode(ids)
    return out[0] if isinstance(text, str) else out


def _translate_batch(
    model: EncoderDecoder | RecurrentEncoderDecoder,
    src: Tensor,
    tokenizer: Tokenizer,
    *,
    beam: int,
    alpha: float,
    longest: int,
) -> list[list[int]]:
    """Return the ids of the translations of padded source sentences."""
    prompts = src.new_full((len(src), 1), tokenizer.bos_id)
    with evaluating(model):
        next_logits = _scorer(model, src, beam=beam)
        if beam == 1:
            return greedy(next_logits, prompts, eos_id=tokenizer.eos_id, max_new_tokens=longest)
        found = beam_search(
            next_logits, prompts, eos_id=tokenizer.eos_id, max_new_tokens=longest, beam=beam, alpha=alpha
        )
        return [text.ids for text in found]


def _check_tokenizers(model: EncoderDecoder | RecurrentEncoderDecoder, **tokenizers: Tokenizer) -> None:
    for side, tokenizer in tokenizers.items():
        wanted = (getattr(model.config, f"{side}_vocab_size"), model.config.pad_id)
        if (tokenizer.vocab_size, tokenizer.pad_id) != wanted:
            raise ValueError(
                f"the {side} tokenizer has {tokenizer.vocab_size} tokens and pad_id {tokenizer.pad_id}, the "
                f"model was made for {wanted[0]} and {wanted[1]}: give the tokenizer that it was trained with"
            )


def _encode(sentences: Sequence[str], tokenizer: Tokenizer, *, limit: int) -> list[list[int]]:
    """Encode sentences as normalized lines, each closed by the end token."""
    rows = []
    for number, sentence in enumerate(sentences, start=1):
        try:
            rows.append([*tokenizer.encode(normalize_line(sentence)), tokenizer.eos_id])
        except ValueError as error:
            raise ValueError(f"sentence {number}: {error}") from error
        if len(rows[-1]) > limit:
            raise ValueError(
                f"sentence {number} is longer than the model's max_len ({limit}): {len(rows[-1])} tokens "
                f"with the end token, it begins {sentence[:_SHOWN]!r}"
            )
    return rows


def _scorer(
    model: EncoderDecoder | RecurrentEncoderDecoder, src: Tensor, *, beam: int
) -> Callable[[Tensor], Tensor]:
    """Make what scores the next token of translations; a transformer keeps what it has computed."""
    if has_cache(model):
        return Continuation(model, src=src)
    memory = model.encode(src)
    # A source sentence for each row of the target.
    memory, src = memory.repeat_interleave(beam, dim=0), src.repeat_interleave(beam, dim=0)
    return lambda tgt: model.decode(tgt, memory=memory, src=src)[:, -1]
