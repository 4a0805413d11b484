"""How good a trained model is: BLEU in the two ways that papers report it, and bits a byte."""

import math
from collections.abc import Sequence
from typing import Any

from exformer.evaluation.metrics import bleu_signature, corpus_bleu
from exformer.generation.translate import translate_many
from exformer.recipes.datasets import Pairs, Text
from exformer.recipes.recipe import Recipe
from exformer.recipes.task import Task, validation_loss


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


def score(
    task: Task, data: Pairs | Text, recipe: Recipe, *, parts: Sequence[str] = ("val",), progress: bool = False
) -> dict[str, Any]:
    """Return the scores of the task's model, with more digits than mean anything cut off.

    Args:
        task: Trained.
        data: Its corpus.
        recipe: Of the run.
        parts: Of the corpus whose translations are judged: "val" to choose by, "test" once at the end.
        progress: Show bars.

    Returns:
        By name; what was done to find them is under "signatures".
    """
    loss = validation_loss(task, task.model)
    scores: dict[str, Any] = {"validation loss, nats a symbol": round(loss, 4)}
    if isinstance(data, Text):
        ids = task.tokenizers["tokenizer"].encode(data.val)
        per_byte = loss / math.log(2) * len(ids) / len(data.val.encode())
        return scores | {"validation bits a byte": round(per_byte, 4)}
    scores["signatures"] = {}
    for part in parts:
        pairs = getattr(data, part)
        title = part if progress else ""
        sources = [pair.source for pair in pairs]
        how = {"beam": recipe.beam, "alpha": recipe.alpha, "progress": title}
        ours = translate_many(task.model, sources, **how, **task.tokenizers)
        _judge(scores, f"{part} BLEU, cased", ours, [pair.target for pair in pairs], tokenize="13a")
        if part == "test" and data.references:
            cut = tokenize_for_papers(ours, language=data.language)
            _judge(scores, "test BLEU, lower-cased", cut, data.references, tokenize="none")
    return scores


def _judge(
    scores: dict[str, Any], name: str, ours: Sequence[str], right: Sequence[str], *, tokenize: str
) -> None:
    scores[name] = round(corpus_bleu(ours, right, tokenize=tokenize), 2)
    scores["signatures"][name] = bleu_signature(tokenize=tokenize)
