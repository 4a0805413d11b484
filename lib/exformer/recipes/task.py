"""What a recipe trains: a tokenizer, a model, its batches, and the validation set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from exformer.corpora.examples import Pair
from exformer.data.sampler import BatchSampler, MicroBatch
from exformer.data.translation import TranslationBatches, encode_pairs
from exformer.data.windows import TextWindows
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.recipe import Recipe
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer
from exformer.tokenizers.loading import load_tokenizer
from exformer.tokenizers.tokenizer import Tokenizer

_VALIDATION_TOKENS = 4096  # in a batch


@dataclass(frozen=True)
class Task:
    """A new model, and the data that a run trains it on.

    Args:
        model: The model with its initial weights.
        tokenizer: Its tokenizer; of a translator the pair (source, target).
        batches: The training set.
        validation: The validation set in batches, each with its fraction of the tokens.
    """

    model: nn.Module
    tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer]
    batches: BatchSampler
    validation: list[MicroBatch]


def make_task(recipe: Recipe, data: Pairs | Text, tokenizer: Tokenizer) -> Task:
    """Make the model of a recipe and its batches; the weights are initialized with the next random numbers.

    Raises:
        ValueError: If the recipe's model has an unknown setting, or does not fit the data.
    """
    if isinstance(data, Pairs):
        return _translation(recipe, data, tokenizer)
    return _language_model(recipe, data, tokenizer)


def learn_tokenizer(recipe: Recipe, data: Pairs | Text, path: Path, *, progress: str = "") -> Tokenizer:
    """Load the tokenizer of a run, or learn it from the training texts and save it."""
    if path.exists():
        return load_tokenizer(path)
    if isinstance(data, Text):  # every character needs an id
        texts = [data.train] if recipe.tokenizer == "byte-pair" else [data.train, data.val]
    else:
        texts = [text for pair in data.train for text in (pair.source, pair.target)]
    if recipe.tokenizer == "byte-pair":
        tokenizer = BPETokenizer.from_texts(texts, n_merges=recipe.n_merges, progress=progress)
    else:
        tokenizer = {"character": CharTokenizer, "word": WordTokenizer}[recipe.tokenizer].from_texts(texts)
    tokenizer.save(path)
    return tokenizer


def training_batches(
    recipe: Recipe, data: Pairs | Text, tokenizer: Tokenizer, *, max_len: int
) -> BatchSampler:
    """Return the training set in batches.

    Args:
        recipe: Recipe of the run.
        data: Its corpus.
        tokenizer: Tokenizer of the model, for both languages.
        max_len: The longest sentence of the model, or the width of the windows.

    Raises:
        ValueError: If a sentence is too long, or the text too short.
    """
    if isinstance(data, Pairs):
        return _sentences(recipe, data.train, tokenizer, tokens=recipe.tokens, max_len=max_len)
    return _windows(recipe, data.train, tokenizer, width=max_len)


def validation_batches(
    recipe: Recipe, data: Pairs | Text, tokenizer: Tokenizer, *, max_len: int
) -> list[MicroBatch]:
    """Return the validation set in batches, each with its fraction of the tokens.

    Args:
        recipe: Recipe of the run, whose seed counts.
        data: Its corpus.
        tokenizer: Tokenizer of the model, for both languages.
        max_len: The longest sentence of the model, or the width of the windows.

    Raises:
        ValueError: If a sentence is too long.
    """
    if isinstance(data, Pairs):
        sampler = _sentences(recipe, data.val, tokenizer, tokens=_VALIDATION_TOKENS, max_len=max_len)
        rows = next(sampler.epochs())
    else:
        what = "the part of the text that is held out for validation"
        sampler = _windows(recipe, data.val, tokenizer, width=max_len, what=what)
        rows = sampler.side_by_side(tokens=_VALIDATION_TOKENS)
    counts = list(map(sampler.n_targets, rows))
    return [MicroBatch(sampler.batch(own), n / sum(counts)) for own, n in zip(rows, counts, strict=True)]


def _translation(recipe: Recipe, data: Pairs, tokenizer: Tokenizer) -> Task:
    size = tokenizer.vocab_size
    own = {"src_vocab_size": size, "tgt_vocab_size": size, "pad_id": tokenizer.pad_id}
    config = _configure(EncoderDecoderConfig, recipe, own)
    return Task(
        EncoderDecoder(config),
        (tokenizer, tokenizer),
        training_batches(recipe, data, tokenizer, max_len=config.max_len),
        validation_batches(recipe, data, tokenizer, max_len=config.max_len),
    )


def _language_model(recipe: Recipe, data: Text, tokenizer: Tokenizer) -> Task:
    begin = "\n" if "\n" in data.train else data.train[:99]  # windows never begin with <s>
    own = {"vocab_size": tokenizer.vocab_size, "begin_id": tokenizer.encode(begin)[0]}
    config = _configure(DecoderLMConfig, recipe, own)
    return Task(
        DecoderLM(config),
        tokenizer,
        training_batches(recipe, data, tokenizer, max_len=config.max_len),
        validation_batches(recipe, data, tokenizer, max_len=config.max_len),
    )


def _sentences(
    recipe: Recipe, pairs: Sequence[Pair], tokenizer: Tokenizer, *, tokens: int, max_len: int
) -> TranslationBatches:
    sentences, lengths = encode_pairs(pairs, src_tokenizer=tokenizer, tgt_tokenizer=tokenizer)
    if (longest := int(lengths.max())) > max_len:
        raise ValueError(f"a sentence has {longest} tokens, the recipe's model max_len {max_len}")
    return TranslationBatches(sentences, lengths, tokens=tokens, seed=recipe.training.seed)


def _windows(
    recipe: Recipe, text: str, tokenizer: Tokenizer, *, width: int, what: str = "the text"
) -> TextWindows:
    ids = torch.tensor(tokenizer.encode(text))
    if len(ids) <= width:
        raise ValueError(
            f"{what} has {len(ids)} tokens, expected more than the model's context of {width}: it is too "
            "short, or too uniform"
        )
    return TextWindows(ids, width, max(1, recipe.tokens // width), recipe.training.seed)


def _configure(kind: type, recipe: Recipe, own: Mapping[str, int]) -> Any:
    """Make a model's configuration from a recipe's settings and those of the tokenizer."""
    known = [each.name for each in fields(kind) if each.name not in own]
    if unknown := sorted(recipe.model.keys() - set(known)):
        raise ValueError(
            f"the recipe {recipe.name} has unknown model settings: {', '.join(unknown)}; expected some of "
            f"{', '.join(known)}"
        )
    return kind(**own, **recipe.model)
