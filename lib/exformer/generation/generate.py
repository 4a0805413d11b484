"""A prompt -> the text with which a language model continues it, at once or piece by piece."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice

import torch
from torch import Tensor, nn

from exformer.checks import whole_number
from exformer.generation.beam_search import beam_search
from exformer.generation.decoding import best_token, token_steps
from exformer.generation.hypothesis import check_numbers
from exformer.generation.logits import penalize_repetition, transform_logits
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import draw, draw_uniform
from exformer.generation.streaming import StreamedText
from exformer.generation.translate import MOST_POSITIONS
from exformer.models.decoder_lm import DecoderLM
from exformer.models.kinds import can_generate
from exformer.nn.eval_mode import evaluating
from exformer.tokenizers.tokenizer import Tokenizer


def generate(
    model: nn.Module,
    tokenizer: Tokenizer,
    prompt: str | Iterable[str] = "",
    *,
    max_new_tokens: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    beam: int = 1,
    alpha: float = 1.0,
    stop: str | Sequence[str] = (),
    seed: int | None = None,
) -> str | list[str]:
    r"""Continue a prompt, or several, with a language model; return the new text only.

    A text ends at the end token, before a stop string, or after ``max_new_tokens``. Where it outgrows the
    model's ``max_len``, its last ``max_len // 2`` tokens stay as context.

    Args:
        model: A trained :class:`~exformer.models.decoder_lm.DecoderLM`.
        tokenizer: The model's.
        prompt: How the text begins, or a prompt for each of several texts.
        max_new_tokens: Largest number of new tokens; None: as many as fit into ``max_len`` after the prompt.
        temperature: Of :func:`~exformer.generation.logits.apply_temperature`; 0 takes the most probable token
            at each step (greedy decoding).
        top_k, top_p, min_p: Cut off improbable tokens, in this order and after the temperature, see
            :func:`~exformer.generation.logits.transform_logits`.
        repetition_penalty: Of tokens that are in the text already, before the temperature, see
            :func:`~exformer.generation.logits.penalize_repetition`.
        beam: Search for the most probable text with this many candidates, instead of sampling.
        alpha: How much a beam makes up for length, see
            :func:`~exformer.generation.hypothesis.length_normalized`.
        stop: A string, or several, before which a text ends.
        seed: The same seed gives the same texts; None uses PyTorch's global generator. A text depends on its
            own prompt and its number in the list, not on the other prompts.

    Returns:
        The new text, so that prompt and text together read well; for several prompts a list.

    Raises:
        ValueError: If the model is no language model, a number is out of its range, the prompt has tokens
            that the tokenizer does not know, or a beam is to be combined with sampling.

    >>> from exformer import load_model
    >>> model, tokenizer, card = load_model("shakespeare-bpe")
    >>> generate(model, tokenizer, "ROMEO:", max_new_tokens=12, temperature=0.0)
    "\nI'll tell thee, I am a king, and"
    >>> generate(model, tokenizer, ["ROMEO:", "JULIET:"], max_new_tokens=9, top_p=0.9, seed=0)
    ['\nThou art like that love, in thy', '\nO, it is the loss of']
    """
    model = _language_model(model, tokenizer)
    prompts = [prompt] if isinstance(prompt, str) else list(prompt)
    sampler = _Sampler(temperature, top_k, top_p, min_p, repetition_penalty)
    check_numbers(beam=beam, alpha=alpha)
    if beam > 1:
        if sampler != _Sampler():
            raise ValueError(
                f"a beam of {beam} searches for the most probable text: "
                "it goes with no temperature, top_k, top_p, min_p or repetition_penalty"
            )
        sampler = _Sampler(temperature=0.0)  # no random numbers
    rows = _begin(model, tokenizer, prompts, sampler, max_new_tokens=max_new_tokens, stop=stop, seed=seed)
    at_once = max(1, MOST_POSITIONS // (beam * model.config.max_len))
    # Texts of one length need no padding and outgrow max_len together, so that none depends on others.
    for _, same in groupby(sorted(rows, key=_length), key=_length):
        while batch := list(islice(same, at_once)):
            if beam == 1:
                for _ in _steps(model, batch, sampler, eos_id=tokenizer.eos_id):
                    pass  # the rows keep their pieces
            else:
                _search(model, batch, eos_id=tokenizer.eos_id, beam=beam, alpha=alpha)
    texts = ["".join(row.pieces) for row in rows]
    return texts[0] if isinstance(prompt, str) else texts


def stream(
    model: nn.Module,
    tokenizer: Tokenizer,
    prompt: str = "",
    *,
    max_new_tokens: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    stop: str | Sequence[str] = (),
    seed: int | None = None,
) -> Iterator[str]:
    r"""Continue a prompt piece by piece: what :func:`generate` returns, as soon as it is known.

    A piece has whole characters only, and nothing of a stop string. All arguments are those of
    :func:`generate`, and are checked at the call; a beam can't be streamed.

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
    sampler = _Sampler(temperature, top_k, top_p, min_p, repetition_penalty)
    rows = _begin(model, tokenizer, [prompt], sampler, max_new_tokens=max_new_tokens, stop=stop, seed=seed)
    return (piece for [piece] in _steps(model, rows, sampler, eos_id=tokenizer.eos_id) if piece)


@dataclass(frozen=True)
class _Sampler:
    """From logits to the logits that a token is chosen by."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None

    def check(self, vocab_size: int) -> None:
        """Refuse numbers that are out of their range before the first token, also where they are not used."""
        if not 0.0 <= self.temperature < math.inf:
            raise ValueError(f"temperature must be 0 (greedy) or a number above, got {self.temperature}")
        warm = replace(self, temperature=self.temperature or 1.0)
        warm.change(torch.zeros(1, vocab_size), torch.zeros(1, 1, dtype=torch.int64))

    def change(self, logits: Tensor, ids: Tensor) -> Tensor:
        """Change the logits of the next token, given all tokens so far."""
        if self.repetition_penalty is not None:
            logits = penalize_repetition(logits, ids, self.repetition_penalty)
        if self.temperature == 0:
            return logits
        return transform_logits(
            logits, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p
        )


@dataclass
class _Row:
    """A text to be continued: its tokens, how many may follow, and what is new of it."""

    ids: list[int]
    limit: int
    text: StreamedText
    uniform: Tensor  # (position,), the random numbers of its tokens; empty where the best one is taken
    pieces: list[str] = field(default_factory=list)


def _begin(
    model: DecoderLM,
    tokenizer: Tokenizer,
    prompts: list[str],
    sampler: _Sampler,
    *,
    max_new_tokens: int | None,
    stop: str | Sequence[str],
    seed: int | None,
) -> list[_Row]:
    """Refuse what is wrong; encode the prompts, each behind the token that begins every text."""
    sampler.check(tokenizer.vocab_size)
    if seed is not None:
        seed = whole_number("seed", seed, least=-(2**63), most=2**64 - 1)  # what PyTorch takes
    if max_new_tokens is not None:
        whole_number("max_new_tokens", max_new_tokens, least=1)
    stops = [stop] if isinstance(stop, str) else list(stop)
    if "" in stops:
        raise ValueError("stop must be strings of a character or more, got an empty one")
    first = tokenizer.bos_id if model.config.begin_id is None else model.config.begin_id
    generator = torch.default_generator if seed is None else torch.Generator().manual_seed(seed)
    # As many random numbers for every prompt, so that no text depends on how long the others' prompts are.
    n_random = (max_new_tokens or model.config.max_len) if sampler.temperature > 0 else 0
    rows = []
    for number, prompt in enumerate(prompts, start=1):
        try:
            ids = tokenizer.encode(prompt)
        except ValueError as error:
            raise ValueError(f"prompt {number}: {error}") from error
        limit = max_new_tokens or model.config.max_len - len(ids) - 1
        if limit < 1:
            raise ValueError(
                f"prompt {number} fills the model's max_len of {model.config.max_len} tokens: "
                "max_new_tokens must say how many are to follow"
            )
        uniform = draw_uniform(1, n_random, generator=generator)[:, 0]
        rows.append(_Row([first, *ids], limit, StreamedText(tokenizer, prompt=ids, stop=stops), uniform))
    return rows


def _language_model(model: nn.Module, tokenizer: Tokenizer) -> DecoderLM:
    """Return the model, after making sure that it can generate with the tokenizer."""
    if not can_generate(model):
        raise ValueError(
            f"expected a DecoderLM to generate with, got {type(model).__name__}: "
            "an encoder-decoder translates, see translate()"
        )
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model was made for "
            f"{model.config.vocab_size}: give the tokenizer that it was trained with"
        )
    return model


def _length(row: _Row) -> int:
    return len(row.ids)


def _steps(model: DecoderLM, rows: list[_Row], sampler: _Sampler, *, eos_id: int) -> Iterator[list[str]]:
    """Let texts of one length grow by a token each; yield what has become certain of each."""
    with evaluating(model):
        scorer = Continuation(model)

    def next_logits(ids: Tensor) -> Tensor:
        with evaluating(model):  # for this step only: between two pieces the model is the reader's
            return sampler.change(scorer(ids), ids)

    def choose(logits: Tensor, step: int) -> Tensor:
        if sampler.temperature == 0:
            return best_token(logits)
        return draw(logits, torch.stack([row.uniform[step] for row in rows]))

    steps = token_steps(
        next_logits, _prompts(model, rows), choose=choose, eos_id=eos_id, max_new_tokens=rows[0].limit
    )
    for tokens in steps:
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.pieces.append(row.text.close() if token == eos_id else row.text.push(token))
        yield [row.pieces[-1] for row in rows]
        if all(row.text.ended for row in rows):
            return
    for row in rows:
        row.pieces.append(row.text.close())
    yield [row.pieces[-1] for row in rows]


def _search(model: DecoderLM, rows: list[_Row], *, eos_id: int, beam: int, alpha: float) -> None:
    """Complete texts of one length by beam search."""
    with evaluating(model):
        found = beam_search(
            Continuation(model),
            _prompts(model, rows),
            eos_id=eos_id,
            max_new_tokens=rows[0].limit,
            beam=beam,
            alpha=alpha,
        )
    for row, best in zip(rows, found, strict=True):
        row.pieces += [row.text.push(token) for token in best.ids]
        row.pieces.append(row.text.close())


def _prompts(model: DecoderLM, rows: list[_Row]) -> Tensor:
    return torch.tensor([row.ids for row in rows], device=model.embedding.weight.device)
