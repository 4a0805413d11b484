"""A prompt -> the text with which a language model continues it, at once or piece by piece."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

import torch
from torch import Tensor, nn

from exformer.check_settings import check_integer
from exformer.generation.beam_search import beam_search, check_beams
from exformer.generation.next_token import Continuation, texts_at_once
from exformer.generation.prompts import Row, begin_rows
from exformer.generation.sampling import Sampling, decode
from exformer.generation.speculative import Draft, speculate
from exformer.models.decoder_lm import DecoderLM
from exformer.models.kinds import can_generate, can_translate
from exformer.models.unwrap import unwrap
from exformer.nn.eval_mode import evaluating
from exformer.tokenizers.tokenizer import Tokenizer, end_ids


@torch.no_grad()
def plain_generate(
    model: DecoderLM,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    max_new_tokens: int,
    sampling: Sampling,
    seed: int,
) -> str:
    """Continue a prompt with a language model: the readable form of :func:`generate`, without a cache.

    A test holds both equal. The model must be in evaluation mode.
    """
    rng = torch.Generator().manual_seed(seed)
    begin_id = tokenizer.bos_id if model.config.begin_id is None else model.config.begin_id
    prompt_ids, new_ids = tokenizer.encode(prompt), []
    start, max_len = 0, model.config.max_positions
    for _ in range(max_new_tokens):
        ids = torch.tensor([[begin_id, *prompt_ids, *new_ids]])  # (1, position)
        if max_len is not None and ids.size(1) - start > max_len:  # the last half of the context stays
            start = ids.size(1) - max(1, max_len // 2)
        logits = model(ids[:, start:])[:, -1]  # (1, vocab_size)
        uniform = torch.rand(1, generator=rng, dtype=torch.float64)
        token = sampling.choose(sampling.transform(logits, ids), uniform).item()
        if token in end_ids(tokenizer):
            break
        new_ids.append(token)
    return tokenizer.decode(prompt_ids + new_ids)[len(tokenizer.decode(prompt_ids)) :]


def generate(
    model: nn.Module,
    tokenizer: Tokenizer,
    prompt: str | Iterable[str] = "",
    *,
    max_new_tokens: int | None = None,
    sampling: Sampling | None = None,
    num_beams: int = 1,
    length_penalty: float = 1.0,
    draft: Draft | nn.Module | None = None,
    n_drafts: int = 4,
    stop: str | Sequence[str] = (),
    seed: int | None = None,
    **settings: int | float | None,
) -> str | list[str]:
    r"""Continue a prompt, or several, with a language model; return the new text only.

    A text ends at an end token, before a stop string, or after ``max_new_tokens``. When it exceeds the
    model's ``max_len``, its last ``max_len // 2`` tokens are kept as context.

    Args:
        model: A trained :class:`~exformer.models.decoder_lm.DecoderLM`.
        tokenizer: The model's.
        prompt: The beginning of the text, or a prompt for each of several texts.
        max_new_tokens: Largest number of new tokens; None: as many as fit into ``max_len`` after the prompt.
        sampling: Settings of sampling; None samples from the model's own distribution.
        num_beams: Search for the most probable text with this many candidates, instead of sampling.
        length_penalty: The exponent of the length in beam search, see
            :func:`~exformer.generation.beam_search.length_normalized`.
        draft: Proposes tokens, which the model checks in one pass: speculative decoding, one text after the
            other. A small language model with the same tokens, or a function from ids (1, position) to scores
            of the next token (1, vocab_size). It changes the speed and, for a seed, the text, but not the
            distribution of texts; greedy texts differ only where rounding decides.
        n_drafts: How many tokens the draft proposes at once.
        stop: A string, or several, before which a text ends.
        seed: The same seed gives the same texts; None uses PyTorch's global generator. A text depends on its
            own prompt and its number in the list, not on the other prompts.
        **settings: Settings of :class:`~exformer.generation.sampling.Sampling` by name: temperature (0 for
            greedy decoding), top_k, top_p, min_p, repetition_penalty. They replace those of ``sampling``.

    Returns:
        The new text, so that prompt and text together read well; for several prompts a list.

    Raises:
        ValueError: If the model is no language model, a number is out of its range, the prompt has tokens
            that the tokenizer does not know, or beam search is combined with sampling or a draft.

    >>> from exformer import load_model
    >>> model, tokenizer, card = load_model("shakespeare-bpe")
    >>> generate(model, tokenizer, "ROMEO:", max_new_tokens=12, temperature=0.0)
    "\nI'll tell thee, I am a king, and"
    >>> generate(model, tokenizer, ["ROMEO:", "JULIET:"], max_new_tokens=9, top_p=0.9, seed=0)
    ['\nThou art like that love, in thy', '\nO, it is the loss of']
    >>> import torch
    >>> def newline(ids):  # a draft that always proposes the same token
    ...     return torch.zeros(1, tokenizer.vocab_size).index_fill(1, torch.tensor([201]), 5.0)
    >>> generate(model, tokenizer, "ROMEO:", max_new_tokens=12, temperature=0.0, draft=newline)
    "\nI'll tell thee, I am a king, and"
    """
    model = _language_model(model, tokenizer)
    sampling = _sampling(sampling, settings)
    check_beams(num_beams, length_penalty=length_penalty)
    if num_beams > 1 and draft is not None:
        raise ValueError(f"beam search (num_beams={num_beams}) samples nothing: leave out the draft")
    if num_beams > 1:
        if sampling != Sampling():
            raise ValueError(
                f"beam search (num_beams={num_beams}) can't be combined with sampling: leave out "
                f"{', '.join(Sampling.names()[:-1])} and {Sampling.names()[-1]}"
            )
        sampling = Sampling(temperature=0.0)  # no random numbers
    rows = begin_rows(
        model,
        tokenizer,
        prompt,
        sampling,
        max_new_tokens=max_new_tokens,
        stop=stop,
        seed=seed,
        n_random=1 if draft is None else 2 * check_integer("n_drafts", n_drafts, least=1) + 1,
    )
    ends = end_ids(tokenizer)
    if draft is not None:
        for each in rows:
            _speculate(model, each, sampling, draft=draft, n_drafts=n_drafts, ends=ends)
        return _texts(rows, prompt)
    at_once = texts_at_once(positions=num_beams * model.config.max_len)
    with evaluating(model):
        # Texts of one length need no padding and outgrow max_len together, so that none depends on others.
        for _, same in groupby(sorted(rows, key=_length), key=_length):
            while batch := list(islice(same, at_once)):
                if num_beams == 1:
                    for _ in _steps(model, batch, sampling, ends=ends):
                        pass  # the rows keep their pieces
                else:
                    _search(
                        model,
                        batch,
                        ends=ends,
                        num_beams=num_beams,
                        length_penalty=length_penalty,
                    )
    return _texts(rows, prompt)


def stream(
    model: nn.Module,
    tokenizer: Tokenizer,
    prompt: str = "",
    *,
    max_new_tokens: int | None = None,
    sampling: Sampling | None = None,
    stop: str | Sequence[str] = (),
    seed: int | None = None,
    **settings: int | float | None,
) -> Iterator[str]:
    r"""Continue a prompt piece by piece: the text of :func:`generate`, as soon as it is certain.

    A piece has whole characters only, and nothing of a stop string. All arguments are those of
    :func:`generate`, and are checked at the call; beam search can't be streamed.

    Returns:
        The pieces, none of them empty.

    Raises:
        ValueError: As :func:`generate`.

    >>> from exformer import load_model
    >>> model, tokenizer, card = load_model("shakespeare-bpe")
    >>> list(stream(model, tokenizer, "ROMEO:", max_new_tokens=5, temperature=0.0))
    ['\n', 'I', "'ll", ' tell', ' thee']
    """
    model = _language_model(model, tokenizer)
    sampling = _sampling(sampling, settings)
    ending = {"max_new_tokens": max_new_tokens, "stop": stop}
    rows = begin_rows(model, tokenizer, [prompt], sampling, seed=seed, **ending)
    return (piece for [piece] in _steps(model, rows, sampling, ends=end_ids(tokenizer)) if piece)


def _language_model(model: nn.Module, tokenizer: Tokenizer) -> DecoderLM:
    """Return the model without wrappers, after checking that it can generate with the tokenizer."""
    model = unwrap(model)
    if not can_generate(model):
        hint = (
            "give exformer.generation.next_token.next_logits_of(model) to greedy() or sample() of "
            "exformer.generation.sampling"
        )
        if can_translate(model):
            hint = "an encoder-decoder translates, see translate()"
        raise ValueError(f"expected a DecoderLM to generate with, got {type(model).__name__}: {hint}")
    if not hasattr(tokenizer, "vocab_size"):
        raise ValueError(f"expected the model's tokenizer, got {type(tokenizer).__name__}")
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model was made for "
            f"{model.config.vocab_size}: give the tokenizer that it was trained with"
        )
    return model


def _sampling(sampling: Sampling | None, settings: dict[str, Any]) -> Sampling:
    """Return the settings, those given by name in place of those of the object."""
    if unknown := [name for name in settings if name not in Sampling.names()]:
        raise ValueError(
            f"unknown settings: {', '.join(unknown)}; those of sampling are {', '.join(Sampling.names())}"
        )
    if not isinstance(sampling, Sampling | None):
        raise ValueError(f"sampling must be a Sampling, such as Sampling(top_p=0.9), got {sampling!r}")
    return replace(sampling or Sampling(), **settings)


def _length(row: Row) -> int:
    return len(row.ids)


def _steps(model: DecoderLM, rows: list[Row], sampling: Sampling, *, ends: list[int]) -> Iterator[list[str]]:
    """Generate a token for each of some texts of one length, again and again; yield their new pieces."""
    with evaluating(model):
        scorer = Continuation(model)

    def next_logits(ids: Tensor) -> Tensor:
        with evaluating(model):  # for this step only: between two pieces the reader may train the model
            return sampling.transform(scorer(ids), ids)

    def choose(logits: Tensor) -> Tensor:
        is_greedy = sampling.temperature == 0
        return sampling.choose(
            logits, None if is_greedy else torch.stack([next(row.uniform) for row in rows])
        )

    ids, limit = _ids_of(model, rows), rows[0].limit
    steps = decode(next_logits, ids, choose=choose, eos_id=ends, max_new_tokens=limit)
    for tokens in steps:
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.pieces.append(row.text.close() if token == ends[0] else row.text.push(token))
        yield [row.pieces[-1] for row in rows]
        if all(row.text.ended for row in rows):
            return
    for row in rows:
        row.pieces.append(row.text.close())
    yield [row.pieces[-1] for row in rows]


def _speculate(
    model: DecoderLM,
    row: Row,
    sampling: Sampling,
    *,
    draft: Draft | nn.Module,
    n_drafts: int,
    ends: list[int],
) -> None:
    """Continue a text with the help of a draft."""
    options = {"draft": draft, "n_drafts": n_drafts, "max_new_tokens": row.limit, "sampling": sampling}
    for tokens in speculate(model, row.ids, uniform=row.uniform, **options):
        for token in tokens:
            if token in ends:
                row.pieces.append(row.text.close())
                return
            row.pieces.append(row.text.push(token))
            if row.text.ended:
                return
    row.pieces.append(row.text.close())


def _texts(rows: list[Row], prompt: str | Iterable[str]) -> str | list[str]:
    texts = ["".join(row.pieces) for row in rows]
    return texts[0] if isinstance(prompt, str) else texts


def _search(model: DecoderLM, rows: list[Row], *, ends: list[int], **beams: Any) -> None:
    """Complete some texts of one length by beam search."""
    ids, limit = _ids_of(model, rows), rows[0].limit
    found = beam_search(Continuation(model), ids, eos_id=ends, max_new_tokens=limit, **beams)
    for row, best in zip(rows, found, strict=True):
        row.pieces += [row.text.push(token) for token in best.ids]
        row.pieces.append(row.text.close())


def _ids_of(model: DecoderLM, rows: list[Row]) -> Tensor:
    return torch.tensor([row.ids for row in rows], device=model.embedding.weight.device)
