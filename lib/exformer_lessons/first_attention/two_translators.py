"""The translators of lesson 02: one vector between their halves, or attention.

A and B are trained as the lesson's page would train them, and saved, so that the page says the same on every
processor. C and D, those of its live figure, are trained as the evidence trains them, number for number.
``python -m exformer_lessons.first_attention.two_translators FOLDER`` trains and saves all four.
"""

import dataclasses
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exformer.corpora.english_italian.grammar import NounPhrase, Sentence, derive
from exformer.corpora.english_italian.lexicon import ADJECTIVES, ANIMALS, PLACES, VERBS
from exformer.corpora.examples import Pair
from exformer.data.translation import Seq2SeqBatch, encode_pairs, take_rows
from exformer.generation.translate import translate
from exformer.hub.pretrained import Pretrained, load_model, save_model
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.nn.loss import cross_entropy
from exformer.recipes.datasets import hash_texts
from exformer.recipes.machine_facts import describe_machine
from exformer.tokenizers.characters_and_words import WordTokenizer
from exformer.training.loop import set_seed, train
from exformer.training.schedules import linear_schedule

#: The English words that the lesson takes from the library's grammar.
KNOWN = frozenset(
    {"dog", "cat", "lion", "wolf", "fox", "tiger", "frog", "goose"}
    | {"river", "park", "lake", "valley", "hill", "island"}
    | {"tired", "hungry", "happy", "lazy", "wide", "deep", "sunny", "narrow"}
    | {"sleep", "wait", "eat", "follow", "hear", "find", "cross", "reach", "visit"}
)
#: Determiner, and whether the noun is plural.
FORMS = (("the", False), ("the", True), ("a", False), ("many", True))
FREE = frozenset(("the", "a", "an", "many", "didn't"))  # words without content
LENGTHS = ("3–4", "5–6", "7–8", "9–10", "11–12")  # words in the English sentence
#: C and D: name, whether the decoder attends, and the steps of training.
TRANSLATORS = (("two-translators-one-vector", False, 4000), ("two-translators-attention", True, 1000))
#: A and B: name, whether the decoder attends, and the steps of training.
OF_THE_PAGE = (("A", False, 2000), ("B", True, 500))
_WORDS = 24  # most tokens of a sentence

Tokenizers = tuple[WordTokenizer, WordTokenizer]


def sample_phrase(kind: str) -> NounPhrase:
    """Sample a noun phrase of an animal or a place, with Python's random numbers."""
    noun = random.choice([noun for noun in ANIMALS + PLACES if noun.kind == kind and noun.singular in KNOWN])
    said = [a for a in ADJECTIVES if a.kind == kind and a.english in KNOWN]
    determiner, plural = random.choice(FORMS)
    adjective = random.choice([None, random.choice(said)])
    return NounPhrase(determiner, noun, plural, adjective)


def sample_pair() -> Pair:
    """Sample a sentence with one, two or three noun phrases, and its translation."""
    n = random.choice((1, 2, 3))
    takes = {1: "nothing", 2: random.choice(("animal", "place")), 3: "animal"}[n]
    verb = random.choice([v for v in VERBS if v.takes == takes and v.base in KNOWN])
    parts: dict[str, Any] = {"object": sample_phrase(takes)} if n > 1 else {}
    if n > 2:
        near = random.choice(("near", "behind", "beyond"))
        parts |= {"preposition": near, "place": sample_phrase("place")}
    negative = random.random() < 0.5
    return derive(Sentence(sample_phrase("animal"), verb, negative, **parts))


def lesson_corpus() -> tuple[list[Pair], dict[str, list[Pair]]]:
    """Sample 20,000 pairs to learn from, and 100 others of each length.

    Returns:
        The training pairs, and the test pairs by length, a name of :data:`LENGTHS`.
    """
    sample_pair()  # the lesson prints one
    found: dict[str, dict[str, Pair]] = {name: {} for name in LENGTHS}
    while any(len(group) < 100 for group in found.values()):
        new = sample_pair()
        group = found[LENGTHS[(len(new.source.split()) - 3) // 2]]
        if len(group) < 100:
            group[new.source] = new
    held_out = {source for group in found.values() for source in group}
    drawn = [sample_pair() for _ in range(30_000)]
    pairs = [pair for pair in drawn if pair.source not in held_out][:20_000]
    return pairs, {name: list(group.values()) for name, group in found.items()}


def place_first(pair: Pair) -> Pair:
    """Move the words for the place to the front of the English sentence; the Italian one stays.

    Examples:
        >>> place_first(Pair("the cats slept near a lake", "i gatti dormirono vicino a un lago")).source
        'near a lake the cats slept'
    """
    words = pair.source.split()
    at = next((n for n, word in enumerate(words) if word in ("near", "behind", "beyond")), 0)
    moved = tuple(((s - at) % len(words), t) for s, t in pair.alignment)
    return dataclasses.replace(pair, source=" ".join(words[at:] + words[:at]), alignment=moved)


def train_translators(seed: int = 0) -> tuple[dict[str, RecurrentEncoderDecoder], Tokenizers, Any]:
    """Train both translators, one after the other, from the random numbers of one seed.

    Returns:
        The models by name, their tokenizers, and the corpus as :func:`lesson_corpus` gives it.
    """
    set_seed(seed)
    corpus, tokenizers, sentences, lengths = _texts()
    models = {}
    for name, attention, steps in TRANSLATORS:
        models[name] = _new_translator(tokenizers, attention=attention, d_model=16)
        _learn(models[name], sentences, lengths, steps=steps, peak=0.02)
    return models, tokenizers, corpus


def train_a_and_b() -> tuple[dict[str, RecurrentEncoderDecoder], Tokenizers, Any]:
    """Train the translators of the page: states of 32 numbers, and for both the same random numbers.

    Returns:
        As :func:`train_translators`.
    """
    set_seed(0)
    corpus, tokenizers, sentences, lengths = _texts()
    models = {}
    for name, attention, steps in OF_THE_PAGE:
        torch.manual_seed(0)
        models[name] = _new_translator(tokenizers, attention=attention, d_model=32)
        _learn(models[name], sentences, lengths, steps=steps, peak=0.01)
    return models, tokenizers, corpus


def load_translator(name: str) -> Pretrained:
    """Load A or B, trained and with its tokenizers.

    >>> load_translator("A").card["steps"]
    2000
    """
    return load_model(Path(__file__).parent / "translators" / name)


def _texts() -> tuple[Any, Tokenizers, Any, Any]:
    """Return the corpus, its tokenizers, and the training pairs as ids with their numbers of tokens."""
    corpus = lesson_corpus()
    english = WordTokenizer.from_texts(pair.source for pair in corpus[0])
    italian = WordTokenizer.from_texts(pair.target for pair in corpus[0])
    return corpus, (english, italian), *encode_pairs(corpus[0], src_tokenizer=english, tgt_tokenizer=italian)


def _new_translator(tokenizers: Tokenizers, *, attention: bool, d_model: int) -> RecurrentEncoderDecoder:
    sizes = {"d_model": d_model, "cell": "lstm", "max_len": _WORDS, "dropout": 0.0}
    config = RecurrentConfig(*(each.vocab_size for each in tokenizers), attention=attention, **sizes)
    return RecurrentEncoderDecoder(config)


def _learn(model: RecurrentEncoderDecoder, sentences: Any, lengths: Any, *, steps: int, peak: float) -> None:
    def loss_of(model: RecurrentEncoderDecoder, batch: Seq2SeqBatch) -> Tensor:
        return cross_entropy(model(batch.src, batch.tgt_in), batch.tgt_out, pad_id=model.config.pad_id)

    def rate(step: int) -> float:
        return linear_schedule(step, peak=peak, warmup=steps // 10, total=steps)

    chosen = torch.randint(len(lengths), (steps, 64)).numpy()
    batches = (take_rows(sentences, rows, lengths=lengths) for rows in chosen)
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), fused=True)
    train(model, batches, loss_fn=loss_of, optimizer=adam, schedule=rate, clip_norm=1.0)
    model.eval()


def content_words(pair: Pair) -> Counter[str]:
    """Return the Italian nouns, verbs, adjectives and prepositions of the right translation."""
    source, target = pair.source.split(), pair.target.split()
    return Counter({t: target[t] for s, t in pair.alignment if source[s] not in FREE}.values())


def scores(model: RecurrentEncoderDecoder, tokenizers: Tokenizers, pairs: Sequence[Pair]) -> dict[str, float]:
    """Translate the sources greedily, and compare with the right translations.

    Returns:
        ``right``: the share of translations without a mistake; ``content``: the share of content words that
        they have.
    """
    texts = [*map(str, translate(model, tokenizers, [pair.source for pair in pairs], max_new_tokens=18))]
    wanted = [content_words(pair) for pair in pairs]
    found = [(own & Counter(text.split())).total() for own, text in zip(wanted, texts, strict=True)]
    right = sum(text == pair.target for text, pair in zip(texts, pairs, strict=True))
    return {
        "right": round(right / len(pairs), 4),
        "content": round(sum(found) / sum(own.total() for own in wanted), 4),
    }


def save_translators(folder: str | Path, *, seeds: Iterable[int] = range(5)) -> None:
    """Train with each seed; save the models of the first, and on their cards the scores of all.

    Args:
        folder: Where to; each model gets a folder of its own name in it.
        seeds: Of Python's and PyTorch's random numbers: they decide on the sentences, too.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    by_seed: dict[str, dict[str, Any]] = {name: {} for name, *_ in TRANSLATORS}
    first, began = None, time.perf_counter()
    for seed in seeds:
        models, tokenizers, corpus = train_translators(seed)
        for name, model in models.items():
            by_seed[name][str(seed)] = {
                length: scores(model, tokenizers, group) for length, group in corpus[1].items()
            }
        first = first or (seed, models, tokenizers, corpus, time.perf_counter() - began)
    if first is None:
        raise ValueError("expected a seed or more, got none")
    seed, models, tokenizers, corpus, seconds = first
    for name, attention, steps in TRANSLATORS:
        card = {
            **_card(models[name], corpus, attention=attention, steps=steps, seed=seed, seconds=seconds),
            "scores": {
                length: {**by_seed[name][str(seed)][length], "content by seed": list(shares)}
                for length, *shares in zip(
                    LENGTHS,
                    *([found[length]["content"] for length in LENGTHS] for found in by_seed[name].values()),
                    strict=True,
                )
            },
            "seeds": by_seed[name],
        }
        save_model(Path(folder, name), models[name], tokenizers, card=card)


def save_a_and_b(folder: str | Path) -> None:
    """Train the translators of the page, and save them with their scores, each in a folder of its name."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    began = time.perf_counter()
    models, tokenizers, corpus = train_a_and_b()
    seconds = time.perf_counter() - began
    for name, attention, steps in OF_THE_PAGE:
        card = _card(models[name], corpus, attention=attention, steps=steps, seed=0, seconds=seconds)
        card["scores"] = {
            length: scores(models[name], tokenizers, group) for length, group in corpus[1].items()
        }
        save_model(Path(folder, name), models[name], tokenizers, card=card)


def _card(
    model: RecurrentEncoderDecoder, corpus: Any, *, attention: bool, steps: int, seed: int, seconds: float
) -> dict[str, Any]:
    """Return what is known of a training, without its scores."""
    pairs, test = corpus
    texts = {"train": pairs, "test": [pair for group in test.values() for pair in group]}
    return {
        "recipe": {"name": "two_translators", "attention": attention, "steps": steps},
        "data": {
            f"lesson 02 {part}": hash_texts([(pair.source, pair.target) for pair in own])
            for part, own in texts.items()
        },
        "data_licenses": [],
        "seed": seed,
        "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "training": {"seconds of both": round(seconds)},
        "machine": describe_machine(torch.device("cpu")),
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m exformer_lessons.first_attention.two_translators FOLDER")
    save_translators(sys.argv[1])
    save_a_and_b(sys.argv[1])
