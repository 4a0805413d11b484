"""Prompts -> texts to be continued: their token ids, their limits and the random numbers of each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from exformer.check_settings import check_integer
from exformer.generation.sampling import Sampling
from exformer.generation.streaming import StreamedText
from exformer.models.decoder_lm import DecoderLM
from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.tokenizer import Tokenizer

_MOST_TOKENS = 10**9  # of a text; weeks of work
_BLOCK = 2**16  # random numbers that are generated at once


@dataclass
class Row:
    """A text to be continued: its tokens, how many may follow, and its new pieces."""

    ids: list[int]
    limit: int
    text: StreamedText
    uniform: Iterator[Tensor]  # a random number per step; none for greedy decoding
    pieces: list[str] = field(default_factory=list)


def begin_rows(
    model: DecoderLM,
    tokenizer: Tokenizer,
    prompts: str | Iterable[str],
    sampling: Sampling,
    *,
    max_new_tokens: int | None,
    stop: str | Sequence[str],
    seed: int | None,
    n_random: int = 1,
) -> list[Row]:
    """Check the arguments; encode each prompt, after the token that begins every text.

    Each new token may need up to ``n_random`` random numbers.
    """
    if seed is not None:
        seed = check_integer("seed", seed, least=-(2**63), most=2**64 - 1)  # PyTorch's range
    if max_new_tokens is not None:
        max_new_tokens = check_integer("max_new_tokens", max_new_tokens, least=1)
        if max_new_tokens > _MOST_TOKENS:
            raise ValueError(f"max_new_tokens must be at most {_MOST_TOKENS:,}, got {max_new_tokens}")
    stops = _stop_strings(stop)
    first = tokenizer.bos_id if model.config.begin_id is None else model.config.begin_id
    generator = torch.default_generator if seed is None else torch.Generator().manual_seed(seed)
    prompts = _as_list(prompts)
    rows = []
    for number, prompt in enumerate(prompts, start=1):
        ids = _encode(tokenizer, prompt, number=number)
        limit = max_new_tokens or model.config.max_len - len(ids) - 1
        if limit < 1:
            raise ValueError(
                f"prompt {number} fills the model's max_len of {model.config.max_len} tokens: "
                "max_new_tokens must say how many are to follow"
            )
        # As many random numbers for every prompt, so that no text depends on the lengths of other prompts.
        n_most = n_random * (max_new_tokens or model.config.max_len) if sampling.temperature > 0 else 0
        is_last = seed is not None and number == len(prompts)  # nobody needs the generator after it
        uniform = _random_numbers(n_most, generator, is_last=is_last)
        rows.append(Row([first, *ids], limit, StreamedText(tokenizer, prompt=ids, stop=stops), uniform))
    return rows


def _as_list(prompts: str | Iterable[str]) -> list[str]:
    if isinstance(prompts, bytes) or not isinstance(prompts, Iterable):
        raise ValueError(f"expected a prompt, a string, or several, got {prompts!r}")
    return [prompts] if isinstance(prompts, str) else list(prompts)


def _encode(tokenizer: Tokenizer, prompt: str, *, number: int) -> list[int]:
    if not isinstance(prompt, str):
        raise ValueError(
            f"prompt {number} must be a string, got {prompt!r}: "
            "ids become a string by tokenizer.decode(ids), bytes by data.decode()"
        )
    try:
        return tokenizer.encode(prompt)
    except ValueError as error:
        raise ValueError(f"prompt {number}: {error}") from error


def _stop_strings(stop: str | Sequence[str]) -> list[str]:
    given = [stop] if isinstance(stop, str | bytes) or not isinstance(stop, Iterable) else list(stop)
    # Normalized, as the text was that the model learned from.
    stops = [normalize_text(each) if isinstance(each, str) else "" for each in given]
    if "" in stops:
        raise ValueError(f"stop must be strings of a character or more, got {given[stops.index('')]!r}")
    return stops


def _random_numbers(n: int, generator: torch.Generator, *, is_last: bool) -> Iterator[Tensor]:
    """Return the next n random numbers of a generator, and advance it unless they are the last ones.

    Only a block of them is in memory at once: a text may end long before ``max_new_tokens``.
    """
    own = torch.Generator(generator.device).set_state(generator.get_state())
    skipped = 0 if is_last else n
    for size in _block_sizes(skipped):
        torch.rand(size, generator=generator, device=generator.device, dtype=torch.float64)
    return (
        number
        for size in _block_sizes(n)
        for number in torch.rand(size, generator=own, device=own.device, dtype=torch.float64)
    )


def _block_sizes(n: int) -> Iterator[int]:
    return (min(_BLOCK, n - start) for start in range(0, n, _BLOCK))
