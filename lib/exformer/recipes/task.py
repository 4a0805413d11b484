"""What a run trains: a model, its tokenizer, its batches, and how good it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exformer.corpora.pairs import Pair
from exformer.data.sampler import BatchSampler, MicroBatch, TokenBatches
from exformer.data.translation import Seq2SeqBatch, encode_pairs
from exformer.data.windows import TextWindows
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.evaluating import evaluating
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.recipe import Recipe
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters import CharTokenizer
from exformer.tokenizers.loading import load_tokenizer
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.tokenizers.words import WordTokenizer
from exformer.training.loss import cross_entropy

_AT_ONCE = 4096  # symbols, in validation


@dataclass(frozen=True)
class Task:
    """Hold what a run trains.

    Args:
        model: New.
        tokenizers: By name, as :func:`~exformer.hub.pretrained.save_model` wants them.
        source: Of the batches to learn from.
        validation: The validation set in parts, each with its share of the symbols.
        loss_fn: Of a model and a batch, in nats a symbol; takes ``label_smoothing``.
        notes: For the model's card.
    """

    model: nn.Module
    tokenizers: dict[str, Tokenizer]
    source: BatchSampler
    validation: list[MicroBatch]
    loss_fn: Callable[..., Tensor]
    notes: dict[str, Any] = field(default_factory=dict)


def make_task(recipe: Recipe, data: Pairs | Text, tokenizer: Tokenizer, *, device: torch.device) -> Task:
    """Make what a recipe trains; its first weights come from the random numbers that are next.

    Args:
        recipe: Of the run.
        data: Its corpus.
        tokenizer: Learned from the corpus.
        device: Where the batches are to be.

    Raises:
        ValueError: If the recipe's model has a setting that there is none of, or does not fit the data.
    """
    make = _translation if isinstance(data, Pairs) else _language_model
    return make(recipe, data, tokenizer, device)


def learn_tokenizer(recipe: Recipe, data: Pairs | Text, path: Path, *, progress: str = "") -> Tokenizer:
    """Read the tokenizer of a run, or learn it from the training texts and write it.

    Args:
        recipe: Of the run.
        data: Its corpus.
        path: Of the file.
        progress: Title of a progress bar; none if empty.
    """
    if path.exists():
        return load_tokenizer(path)
    if isinstance(data, Text):  # all characters are to have an id
        texts = [data.train] if recipe.tokenizer == "byte-pair" else [data.train, data.val]
    else:
        texts = [text for pair in data.train for text in (pair.source, pair.target)]
    kind = {"character": CharTokenizer, "word": WordTokenizer, "byte-pair": BPETokenizer}[recipe.tokenizer]
    options = {"n_merges": recipe.n_merges, "progress": progress} if kind is BPETokenizer else {}
    tokenizer = kind.from_texts(texts, **options)
    tokenizer.save(path)
    return tokenizer


def validation_loss(task: Task, model: nn.Module) -> float:
    """Return the loss on the validation set, in nats a symbol, without label smoothing.

    Args:
        task: With the set.
        model: The task's model, or one like it.
    """
    with evaluating(model):
        return sum(part.share * task.loss_fn(model, part.batch).item() for part in task.validation)


def _translation(recipe: Recipe, data: Pairs, tokenizer: Tokenizer, device: torch.device) -> Task:
    both = {"src_tokenizer": tokenizer, "tgt_tokenizer": tokenizer}
    parts = (_both_ways(part) if recipe.both_ways else part for part in (data.train, data.val))
    train, val = (
        TokenBatches(_move(sentences, device), lengths, recipe.tokens, recipe.seed)
        for sentences, lengths in (encode_pairs(part, **both) for part in parts)
    )
    size = tokenizer.vocab_size
    own = {"src_vocab_size": size, "tgt_vocab_size": size, "pad_id": tokenizer.pad_id}
    config = _configure(EncoderDecoderConfig, recipe, own)
    longest = max(int(source.lengths.max()) for source in (train, val))
    if longest > config.max_len:
        raise ValueError(f"a sentence has {longest} symbols, the recipe's model max_len {config.max_len}")
    validation = _whole(val, replace(val, tokens=_AT_ONCE).epoch(0))

    def loss_fn(model: nn.Module, batch: Seq2SeqBatch, label_smoothing: float = 0.0) -> Tensor:
        logits = model(batch.src, batch.tgt_in)
        return cross_entropy(logits, batch.tgt_out, pad_id=config.pad_id, label_smoothing=label_smoothing)

    return Task(EncoderDecoder(config), both, train, validation, loss_fn)


def _configure(kind: type, recipe: Recipe, own: Mapping[str, int]) -> Any:
    """Make a configuration of a recipe's settings and of those that the tokenizer gives."""
    known = [each.name for each in fields(kind) if each.name not in own]
    if unknown := sorted(recipe.model.keys() - set(known)):
        raise ValueError(
            f"the recipe {recipe.name} has settings of its model that there are none of: "
            f"{', '.join(unknown)}; expected some of {', '.join(known)}"
        )
    return kind(**own, **recipe.model)


def _both_ways(pairs: Sequence[Pair]) -> list[Pair]:
    """Return all pairs as they are and turned round, in an order in which neither way comes first."""
    texts = [(pair.source, pair.target) for pair in pairs]
    turned = [(target, source) for source, target in texts]
    return [Pair(*each) for each in sorted(texts + turned)]


def _language_model(recipe: Recipe, data: Text, tokenizer: Tokenizer, device: torch.device) -> Task:
    if recipe.both_ways:
        raise ValueError(f"both_ways is for pairs of texts; the corpus {recipe.corpus} has single ones")
    config = _configure(DecoderLMConfig, recipe, {"vocab_size": tokenizer.vocab_size})
    width = config.max_len
    train, val = (
        TextWindows(
            torch.tensor(tokenizer.encode(text), device=device),
            width,
            max(1, recipe.tokens // width),
            recipe.seed,
        )
        for text in (data.train, data.val)
    )
    places = np.arange(0, len(val.ids) - width, width)  # side by side
    validation = _whole(val, np.array_split(places, -(-len(places) * width // _AT_ONCE)))

    def loss_fn(model: nn.Module, batch: Tensor, label_smoothing: float = 0.0) -> Tensor:
        return cross_entropy(model(batch[:, :-1]), batch[:, 1:], label_smoothing=label_smoothing)

    notes = {"begin": "\n" if "\n" in data.train else data.train[0]}  # its windows never begin with <s>
    return Task(DecoderLM(config), {"tokenizer": tokenizer}, train, validation, loss_fn, notes)


def _whole(source: BatchSampler, batches: Sequence[np.ndarray]) -> list[MicroBatch]:
    """Return batches with their shares of all their symbols."""
    counts = list(map(source.n_targets, batches))
    return [MicroBatch(source.batch(rows), n / sum(counts)) for rows, n in zip(batches, counts, strict=True)]


def _move(batch: Seq2SeqBatch, device: Any) -> Seq2SeqBatch:
    return Seq2SeqBatch(
        *map(partial(torch.Tensor.to, device=device), (batch.src, batch.tgt_in, batch.tgt_out))
    )
