"""Scores of a trained model: BLEU in the two ways that papers report it, and bits per byte."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from exformer.corpora.examples import Pair
from exformer.evaluation.metrics import bits_per_byte, bleu_signature, corpus_bleu
from exformer.generation.translate import translate
from exformer.hub.pretrained import Pretrained, load_model
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.recipes.datasets import CORPORA, Pairs, Text
from exformer.recipes.machine_facts import describe_machine
from exformer.recipes.recipe import Recipe
from exformer.recipes.task import validation_batches
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.training.loop import default_loss
from exformer.training.validation import mean_loss


@dataclass(frozen=True)
class Candidate:
    """A model that can be scored.

    Args:
        name: Its name or folder, as it was given.
        found: The model, its tokenizers and its card.
        recipe: The recipe on the card.
        data: The corpus that the recipe names.
    """

    name: str
    found: Pretrained
    recipe: Recipe
    data: Pairs | Text


def prepare(name_or_folder: str | Path) -> Candidate:
    """Load a model and check that it can be scored, before minutes are spent on the scores of another.

    The model in the folder is scored, even if the recipe's settings would make another one.

    Args:
        name_or_folder: As for :func:`~exformer.hub.pretrained.load_model`.

    Returns:
        The model, for :func:`judge`.

    Raises:
        ValueError: If there is no such model, its card lacks something or has no valid recipe, or the
            recipe's corpus is for models of another kind.
    """
    found = load_model(name_or_folder)
    recipe = _recipe(found, name_or_folder)
    if missing := [name for name in ("parameters", "training") if found.card.get(name) is None]:
        raise ValueError(f"{name_or_folder}: the card lacks {', '.join(missing)}: expected that of a run")
    candidate = Candidate(str(name_or_folder), found, recipe, CORPORA[recipe.corpus]())
    _check_kind(candidate)
    return candidate


def judge(candidate: Candidate, *, progress: bool = False) -> dict[str, Any]:
    """Score a model on the validation and the test texts of the corpus that its recipe names.

    Returns:
        The name, the recipe's, the seeds of the model and of its teachers, the scores, the seconds that
        scoring took, and the machine.
    """
    recipe, found, start = candidate.recipe, candidate.found, time.perf_counter()
    parts = ("val", "test") if isinstance(candidate.data, Pairs) else ()
    scores = score(found.model, found.tokenizer, candidate.data, recipe, parts=parts, progress=progress)
    return {
        "model": candidate.name,
        "recipe": recipe.name,
        "seed": recipe.training.seed,
        **({"teachers_seed": recipe.seed_of_teachers} if recipe.teachers else {}),
        **{name: found.card[name] for name in ("parameters", "training")},
        "signatures": scores.pop("signatures", {}),
        "scores": scores,
        "seconds": round(time.perf_counter() - start, 1),
        "machine": describe_machine(torch.device("cpu")),
    }


def score(
    model: nn.Module,
    tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
    data: Pairs | Text,
    recipe: Recipe,
    *,
    parts: Sequence[str] = ("val",),
    progress: bool = False,
) -> dict[str, Any]:
    """Return the scores of a model, rounded to digits that mean something.

    Args:
        model: A trained model.
        tokenizer: Its tokenizer; of a translator the pair (source, target).
        data: Its corpus.
        recipe: Recipe of the run.
        parts: Parts of the corpus whose translations are scored: "val" to choose by, "test" once at the end.
        progress: Show progress bars.

    Returns:
        The scores by name; under "signatures" how they were computed.
    """
    one = tokenizer[0] if isinstance(tokenizer, tuple) else tokenizer
    validation = validation_batches(recipe, data, one, max_len=model.config.max_len)
    loss = mean_loss(model, validation, default_loss(model))
    scores: dict[str, Any] = {"validation loss, nats per token": round(loss, 4)}
    if isinstance(data, Text):
        per_byte = bits_per_byte(loss, n_tokens=len(one.encode(data.val)), text=data.val)
        return scores | {"validation bits per byte": round(per_byte, 4)}
    scores["signatures"] = {}
    for part in parts:
        pairs = getattr(data, part)
        ours = translate(
            model,
            tokenizer,
            [pair.source for pair in pairs],
            max_new_tokens=longest_translation(pairs, one),
            num_beams=recipe.num_beams,
            length_penalty=recipe.length_penalty,
            progress=part if progress else "",
        )
        _add_bleu(scores, f"{part} BLEU, cased", ours, [pair.target for pair in pairs], tokenize="13a")
        if part == "test" and data.references:
            cut = tokenize_for_papers(ours, language=data.language)
            _add_bleu(scores, "test BLEU, lower-cased", cut, data.references, tokenize="none")
    return scores


def longest_translation(pairs: Sequence[Pair], tokenizer: Tokenizer) -> int:
    """Return after how many tokens a translation is cut: more than twice those of the longest reference.

    A model that has hardly been trained does not stop by itself, and with one long sentence among the pairs
    its max_len may be 2,048.
    """
    return 2 * max(len(tokenizer.encode(pair.target)) for pair in pairs) + 50


def tokenize_for_papers(texts: Sequence[str], *, language: str) -> list[str]:
    """Lower-case texts, normalize their punctuation and cut them into words, as Moses does.

    Args:
        texts: Texts in plain writing.
        language: "en", "de" or "fr".

    Returns:
        Words and signs with one space between them; quotation marks are written ``&quot;``.

    Raises:
        ValueError: If sacremoses is not installed.

    Source:
        Koehn et al. 2007; the ``.lc.norm.tok`` files of Multi30k are made this way.
    """
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer  # here: few need it
    except ImportError as error:
        raise ValueError(
            "the scores that papers report need sacremoses: pip install 'exformer[scores]'"
        ) from error
    normalizer, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True) for text in texts]


def _add_bleu(
    scores: dict[str, Any], name: str, ours: Sequence[str], right: Sequence[str], *, tokenize: str
) -> None:
    scores[name] = round(corpus_bleu(ours, right, tokenize=tokenize), 2)
    scores["signatures"][name] = bleu_signature(tokenize=tokenize)


def _recipe(found: Pretrained, name: str | Path) -> Recipe:
    """Read the recipe on a model's card."""
    settings = found.card.get("recipe")
    try:
        recipe = Recipe.from_settings(settings if isinstance(settings, dict) else {})
    except ValueError as error:
        raise ValueError(f"{name}: the card's recipe can't be followed: {error}") from error
    if recipe.corpus not in CORPORA:
        raise ValueError(f"{name}: the card's recipe can't be followed: there is no corpus {recipe.corpus!r}")
    if unknown := sorted(recipe.model.keys() - {each.name for each in fields(found.model.config)}):
        raise ValueError(f"{name}: the card's recipe can't be followed: no model has {', '.join(unknown)}")
    return recipe


def _check_kind(candidate: Candidate) -> None:
    """Check that a model is of the kind that the corpus of its recipe needs."""
    found, data = candidate.found, candidate.data
    kind, expected = type(found.model), EncoderDecoder if isinstance(data, Pairs) else DecoderLM
    if kind is not expected:
        raise ValueError(
            f"{candidate.name}: the corpus {candidate.recipe.corpus} of the card's recipe is for a model of "
            f"kind {expected.__name__}, the model is of kind {kind.__name__}"
        )
    if isinstance(data, Pairs):
        source, target = found.tokenizer
        if any(source.encode(pair.target) != target.encode(pair.target) for pair in data.val):
            raise ValueError(
                f"{candidate.name}: recipes have one tokenizer for both languages, the model has two"
            )
