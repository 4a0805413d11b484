"""Sentences -> their translations, by an encoder-decoder and its pair of tokenizers."""

from collections.abc import Callable, Iterable, Sequence

from torch import Tensor, nn
from tqdm import tqdm

from exformer.check_settings import check_integer
from exformer.data.padding import pad
from exformer.generation.beam_search import beam_search, check_beams
from exformer.generation.next_token import Continuation, texts_at_once
from exformer.generation.sampling import greedy
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.models.kinds import can_translate, has_cache
from exformer.models.rnn_encoder_decoder import RecurrentEncoderDecoder
from exformer.models.unwrap import unwrap
from exformer.nn.eval_mode import evaluating
from exformer.tokenizers.text_normalization import normalize_line
from exformer.tokenizers.tokenizer import Tokenizer, end_ids

_SHOWN = 40  # characters of a sentence in a message


def translate(
    model: nn.Module,
    tokenizer: tuple[Tokenizer, Tokenizer],
    text: str | Iterable[str],
    *,
    max_new_tokens: int | None = None,
    num_beams: int = 1,
    length_penalty: float = 1.0,
    n_best: int | None = None,
    batch_size: int = 32,
    progress: str = "",
) -> str | list[str] | list[list[str]]:
    """Translate a sentence or several, greedily or by beam search.

    Sentences of similar length are translated together. Each is normalized first, see
    :func:`~exformer.tokenizers.text_normalization.normalize_line`; a sentence of invisible characters has an
    empty translation.

    Args:
        model: A trained :class:`~exformer.models.encoder_decoder.EncoderDecoder`, or a recurrent one.
        tokenizer: The pair (source, target) of the model.
        text: A sentence, or several; all are checked before the first is translated.
        max_new_tokens: Longest translation; None, or more than ``max_len`` allows: as long as it allows.
        num_beams: Number of candidates for each sentence; 1 is greedy.
        length_penalty: The exponent of the length, see
            :func:`~exformer.generation.beam_search.length_normalized`.
        n_best: How many translations to return for each sentence, at most ``num_beams``; None for the best.
        batch_size: Largest number of sentences that are translated together; fewer with many beams.
        progress: Title of a progress bar; if empty, there is none.

    Returns:
        The translation; for several sentences a list, in their order. With ``n_best`` a list of translations
        in place of each, the best first.

    Raises:
        ValueError: If the model is no encoder-decoder, a word is unknown, a sentence is too long for the
            model, a number is out of its range, or a tokenizer does not belong to the model.

    >>> from exformer import load_model
    >>> model, tokenizer, card = load_model("multi30k-en-de")
    >>> translate(model, tokenizer, "A dog runs on the beach.", num_beams=5)
    'Ein Hund rennt am Strand.'
    >>> translate(model, tokenizer, "A dog runs on the beach.", num_beams=5, n_best=2)
    ['Ein Hund rennt am Strand.', 'Ein Hund läuft am Strand.']
    >>> translate(model, tokenizer, ["Two men play.", ""])
    ['Zwei Männer spielen.', '']
    """
    model = unwrap(model)
    if not can_translate(model):
        raise ValueError(
            f"expected an encoder-decoder to translate with, got {type(model).__name__}: "
            "a language model continues a text, see generate()"
        )
    if not isinstance(tokenizer, tuple | list) or len(tokenizer) != 2:
        raise ValueError(
            f"tokenizer must be the pair (source, target) of the translator, got {type(tokenizer).__name__}"
        )
    check_beams(num_beams, length_penalty=length_penalty, n_best=n_best)
    check_integer("batch_size", batch_size, least=1)
    src_tokenizer, tgt_tokenizer = tokenizer
    _check_tokenizers(model, src=src_tokenizer, tgt=tgt_tokenizer)
    sentences = [text] if isinstance(text, str) else list(text)
    limit = model.config.max_len
    rows = _encode(sentences, src_tokenizer, limit=limit)
    longest = limit
    if max_new_tokens is not None:
        longest = min(check_integer("max_new_tokens", max_new_tokens, least=1), limit)
    found = [[""] for _ in sentences]
    order = [number for number, row in enumerate(rows) if len(row) > 1]
    order.sort(key=lambda number: len(sentences[number]))
    at_once = min(batch_size, texts_at_once(positions=num_beams * longest))
    for start in tqdm(range(0, len(order), at_once), desc=progress, disable=not progress, leave=False):
        numbers = order[start : start + at_once]
        src = pad([rows[number] for number in numbers], pad_id=src_tokenizer.pad_id)
        new = _translate_batch(
            model,
            src.to(model.tgt_embedding.weight.device),
            tgt_tokenizer,
            max_new_tokens=longest,
            num_beams=num_beams,
            length_penalty=length_penalty,
            n_best=n_best or 1,
        )
        for number, translations in zip(numbers, new, strict=True):
            found[number] = [tgt_tokenizer.decode(ids) for ids in translations]
    best = found if n_best is not None else [translations[0] for translations in found]
    return best[0] if isinstance(text, str) else best


def _translate_batch(
    model: EncoderDecoder | RecurrentEncoderDecoder,
    src: Tensor,
    tokenizer: Tokenizer,
    *,
    max_new_tokens: int,
    num_beams: int,
    length_penalty: float,
    n_best: int,
) -> list[list[list[int]]]:
    """Return the ids of the best translations of each of some padded source sentences."""
    prompts = src.new_full((len(src), 1), tokenizer.bos_id)
    limits = {"eos_id": end_ids(tokenizer), "max_new_tokens": max_new_tokens}
    with evaluating(model):
        next_logits = _scorer(model, src, num_beams=num_beams)
        if num_beams == 1:
            return [[ids] for ids in greedy(next_logits, prompts, **limits)]
        search = {"num_beams": num_beams, "length_penalty": length_penalty, "n_best": n_best}
        found = beam_search(next_logits, prompts, **limits, **search)
        return [[text.ids for text in texts] for texts in found]


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
        if not isinstance(sentence, str):
            raise ValueError(f"sentence {number} must be a string, got {sentence!r}")
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
    model: EncoderDecoder | RecurrentEncoderDecoder, src: Tensor, *, num_beams: int
) -> Callable[[Tensor], Tensor]:
    """Return the function that scores the next target token; with a cache where the model has one."""
    if has_cache(model):
        return Continuation(model, src=src)
    memory = model.encode(src)
    # A source sentence for each row of the target.
    memory, src = memory.repeat_interleave(num_beams, dim=0), src.repeat_interleave(num_beams, dim=0)
    return lambda tgt: model.decode(tgt, memory=memory, src=src)[:, -1]
