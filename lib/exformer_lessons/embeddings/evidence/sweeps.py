"""Wider sweep of the evidence on embeddings: what makes rows near in the table of a shipped translator.

The captions that it learned from are fetched, or read from the folder that EXFORMER_DATA names.
"""

import re
from collections import Counter

import torch
import torch.nn.functional as F
from torch import Tensor

from exformer import load_model
from exformer.corpora.real import multi30k
from exformer_lessons.trials import sweep

PAIRS = ("large", "big"), ("sitting", "seated"), ("red", "yellow"), ("left", "right")


@sweep("A08")
def captions():
    """Return how near the words of nearest rows are by their contexts and by their translations.

    The words are tokens of the translator's table that occur at least 50 times in the English captions and
    never in the German ones. Contexts are rows of positive PMI with the words at most two positions away,
    translations the probabilities of IBM's model 1 after five steps. Similar means a large cosine. The rank
    of a word's nearest row is 1 if no other word is more similar; "by chance" pairs each word with the
    nearest rows of all others.
    """
    model, (tokenizer, _), _ = load_model("multi30k-en-de")
    captions = multi30k("train", src="en", tgt="de")
    english, german = (
        [re.findall(r"\w+|[^\s\w]", text) for text in side]
        for side in zip(*((pair.source, pair.target) for pair in captions), strict=True)
    )
    counts, counts_german = (Counter(word for text in side for word in text) for side in (english, german))
    ids = {token.decode(errors="replace"): i for i, token in enumerate(tokenizer.tokens)}
    words = [word for word, n in counts.items() if n >= 50 and not counts_german[word]]
    words = [word for word in words if word.isalpha() and len(word) > 2 and f" {word}" in ids]
    table = model.state_dict()["tgt_embedding.weight"][[ids[f" {word}"] for word in words]]

    nearest = similarities(table).argmax(dim=1)
    ranks = {
        "contexts": ranks_of(similarities(contexts_of(words, english))),
        "translations": ranks_of(similarities(translations_of(words, english, german))),
    }
    own = {name: rank.gather(1, nearest[:, None])[:, 0] for name, rank in ranks.items()}
    found = {}
    for word, other in PAIRS:
        i = words.index(word)
        if words[nearest[i]] != other:
            raise ValueError(f"the row nearest to {word} is {words[nearest[i]]}, not {other}")
        found[f"{word}, {other}"] = {name: int(rank[i]) for name, rank in own.items()}
    first = {name: rank <= 10 for name, rank in own.items()}
    by_chance = {name: rank[:, nearest] <= 10 for name, rank in ranks.items()}
    for kept in (first, by_chance):
        kept["either"] = kept["contexts"] | kept["translations"]
    return {
        "words": len(words),
        "pairs": found,
        "among the first ten": {name: each.float().mean().item() for name, each in first.items()},
        "by chance": {name: each.float().mean().item() for name, each in by_chance.items()},
    }


def similarities(rows: Tensor) -> Tensor:
    """Return the cosine of each pair of rows, and less than any cosine for a row with itself."""
    rows = F.normalize(rows, dim=1)
    return (rows @ rows.T).fill_diagonal_(-2)


def ranks_of(similar: Tensor) -> Tensor:
    """Return each word's rank among the words similar to another: 1 is the most similar."""
    return similar.argsort(dim=1, descending=True).argsort(dim=1) + 1


def contexts_of(words: list[str], texts: list[list[str]], size: int = 2) -> Tensor:
    """Return a row of positive PMI for each word."""
    rows = {word: i for i, word in enumerate(words)}
    columns: dict[str, int] = {}
    pairs = Counter(
        (rows[word], columns.setdefault(text[j], len(columns)))
        for text in texts
        for i, word in enumerate(text)
        if word in rows
        for j in range(max(0, i - size), min(len(text), i + size + 1))
        if j != i
    )
    counts = torch.zeros(len(rows), len(columns))
    counts[tuple(torch.tensor([*pairs]).T)] = torch.tensor([*pairs.values()], dtype=torch.float)
    expected = counts.sum(1, keepdim=True) * counts.sum(0) / counts.sum()
    return (counts / expected).log().clamp(min=0)


def translations_of(words: list[str], texts: list[list[str]], others: list[list[str]]) -> Tensor:
    """Return a row of translation probabilities for each word, by IBM's model 1."""

    def numbered(side: list[list[str]]) -> tuple[dict[str, int], list[Tensor]]:
        counts = Counter(word for text in side for word in text)
        ids = {word: i for i, word in enumerate((word for word, n in counts.items() if n >= 5), start=1)}
        return ids, [torch.tensor([ids[word] for word in text if word in ids]) for text in side]

    (ids, sources), (ids_of_others, targets) = numbered(texts), numbered(others)
    sources = [F.pad(source, (1, 0)).long() for source in sources]  # 0: a word that translates none
    shape = len(ids) + 1, len(ids_of_others) + 1
    probability = torch.full(shape, 1 / shape[1])
    for _ in range(5):
        counts = torch.zeros(shape)
        for source, target in zip(sources, targets, strict=True):
            if len(target):
                aligned = F.normalize(probability[source][:, target], p=1, dim=0)
                counts.index_put_((source[:, None], target), aligned, accumulate=True)
        probability = F.normalize(counts, p=1, dim=1)
    return probability[[ids[word] for word in words]]
