"""How good a trained model is: BLEU in the two ways that papers report it, and bits a byte."""

import math
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from exformer.generation import translate
from exformer.metrics import corpus_bleu
from exformer.recipes.corpora import Pairs, Text
from exformer.recipes.recipe import Recipe
from exformer.recipes.task import Task, validation_loss
from exformer.tokenizer import Tokenizer

_AT_ONCE = 32


def tokenize_for_papers(texts: Sequence[str], *, language: str) -> list[str]:
    """Lower-case texts, normalize their signs and cut them into words, as Moses does.

    Args:
        texts: As people write.
        language: "en", "de" or "fr".

    Returns:
        Words and signs with one space between them; quotation marks are written ``&quot;``.

    Source:
        Koehn et al. 2007; Multi30k's ``.lc.norm.tok`` files are made so.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer  # here: few need it

    normalizer, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True) for text in texts]


def score(task: Task, data: Pairs | Text, recipe: Recipe, *, progress: bool = False) -> dict[str, Any]:
    """Return the scores of the task's model, with more digits than mean anything cut off.

    Args:
        task: Trained.
        data: Its corpus.
        recipe: Of the run.
        progress: Show bars.
    """
    loss = validation_loss(task, task.model)
    scores: dict[str, Any] = {"validation loss, nats a symbol": round(loss, 4)}
    if isinstance(data, Text):
        ids = task.tokenizers["tokenizer"].encode(data.val)
        per_byte = loss / math.log(2) * len(ids) / len(data.val.encode())
        return scores | {"validation bits a byte": round(per_byte, 4)}
    for name, pairs in (("validation", data.val), ("test", data.test)):
        ours = _translate(task, [pair.source for pair in pairs], recipe.beam, name if progress else "")
        scores[f"{name} BLEU, 13a"] = round(corpus_bleu(ours, [pair.target for pair in pairs]), 2)
    if data.references:
        cut = tokenize_for_papers(ours, language=data.language)
        bleu = corpus_bleu(cut, data.references, tokenize="none")
        scores["test BLEU, lower-cased, cut by Moses"] = round(bleu, 2)
    return scores


def _translate(task: Task, sentences: list[str], beam: int, title: str) -> list[str]:
    """Translate sentences, those of like length together."""
    tokenizer: Tokenizer = task.tokenizers["src_tokenizer"]
    order = sorted(range(len(sentences)), key=lambda index: len(tokenizer.encode(sentences[index])))
    out = [""] * len(sentences)
    for first in tqdm(range(0, len(order), _AT_ONCE), desc=title, disable=not title, leave=False):
        rows = order[first : first + _AT_ONCE]
        texts = translate(task.model, [sentences[row] for row in rows], beam=beam, **task.tokenizers)
        for row, text in zip(rows, texts, strict=True):
            out[row] = text
    return out
