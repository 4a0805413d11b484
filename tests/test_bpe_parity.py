"""Byte-pair encoding beside Hugging Face's: the same pieces, the same merges, the same ids."""

import json
import os
import random
import unicodedata
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.pretokenize import split_pieces

SPECIALS = ["<pad>", "<s>", "</s>"]
N_MERGES = 4096
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # two cores, and other tests on the second

# What Unicode has given a meaning: for the rest, two programs with different versions of it may differ.
ASSIGNED = [
    character
    for character in map(chr, range(0x110000))
    if unicodedata.category(character) not in ("Cn", "Cs")
]
BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)


def manual():
    """Return the Python manual."""
    return [topics[name] for name in sorted(topics)]


def sources():
    """Return a part of Python's own sources."""
    texts, length = [], 0
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        if length < 600_000:
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
            length += len(texts[-1])
    return texts


def shakespeare():
    """Return Tiny Shakespeare."""
    path = Path(os.environ.get("EXFORMER_DATA", "nowhere")) / "tinyshakespeare" / "input.txt"
    if not path.is_file():
        pytest.skip("no Tiny Shakespeare: EXFORMER_DATA names no folder that has it")
    return [path.read_text(encoding="utf-8")]


def theirs(texts, n_merges=N_MERGES):
    """Train Hugging Face's tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = BYTE_LEVEL
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=len(SPECIALS) + 256 + n_merges,
        min_frequency=2,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.encode_special_tokens = True  # as plain text; ours knows no other way
    return tokenizer


def merges_of(tokenizer):
    """Return the merges of Hugging Face's tokenizer as pairs of ids."""
    model = json.loads(tokenizer.to_str())["model"]
    return tuple((model["vocab"][first], model["vocab"][second]) for first, second in model["merges"])


@cache
def both(corpus):
    """Train both on a corpus."""
    return BPETokenizer.from_texts(corpus(), n_merges=N_MERGES), theirs(corpus())


def random_text(rng):
    """Return letters, signs and spaces of all scripts, thrown together."""
    bags = [ASSIGNED, ASSIGNED, [chr(code) for code in range(128)], list(" \t\n\u3000\x1c'sdl_é½Ⅷ!a1")]
    words = ["'ll", "'s", " the", "The", "    ", "return", "\r\n", " naïve", "self", "日本", "🙂", "e\u0301"]
    parts = [rng.choice(rng.choice([*bags, words])) for _ in range(rng.randrange(23))]
    return "".join(parts)


# --- pieces ---


def test_all_characters_are_in_the_same_classes():
    # Within a run of one category each sixteenth, and both ends of the run.
    kinds = ["", *map(unicodedata.category, ASSIGNED), ""]
    tried = [
        character
        for place, character in enumerate(ASSIGNED)
        if len(set(kinds[place : place + 3])) > 1 or ord(character) % 16 == 0
    ]
    assert len(tried) > 15_000
    for start in range(0, len(tried), 1000):
        text = "".join(f"a{each}1{each}!{each} {each}  " for each in tried[start : start + 1000])
        spans = [span for _, span in BYTE_LEVEL.pre_tokenize_str(text)]
        assert split_pieces(text) == [text[first:last] for first, last in spans]


def test_pieces_of_random_texts_are_the_same():
    rng = random.Random(1)
    for _ in range(3000):
        text = random_text(rng)
        spans = [span for _, span in BYTE_LEVEL.pre_tokenize_str(text)]
        assert split_pieces(text) == [text[first:last] for first, last in spans]


# --- merges and ids ---


@pytest.mark.parametrize("corpus", [manual, sources, shakespeare])
def test_the_merges_are_the_same(corpus):
    ours, peer = both(corpus)
    assert len(ours.merges) == N_MERGES
    assert ours.merges == merges_of(peer)
    assert ours.vocab_size == peer.get_vocab_size()


def test_the_merges_are_the_same_where_most_pairs_are_equally_frequent():
    rng = random.Random(2)
    for _ in range(200):
        letters = rng.choice(["a", "ab", "abc", "abé "])
        texts = ["".join(rng.choices(letters, k=rng.randrange(60))) for _ in range(rng.randrange(1, 20))]
        if any(texts):
            ours = BPETokenizer.from_texts(texts, n_merges=99)
            assert ours.merges == merges_of(theirs(texts, 99)), texts


@pytest.mark.parametrize(("corpus", "seed"), [(manual, 3), (sources, 4)])
def test_the_ids_of_10_000_random_texts_are_the_same(corpus, seed):
    ours, peer = both(corpus)
    rng = random.Random(seed)
    texts = [random_text(rng) for _ in range(5_000)]
    for text, expected in zip(texts, peer.encode_batch(texts), strict=True):
        assert ours.encode(text) == expected.ids, repr(text)


@pytest.mark.parametrize("corpus", [manual, sources])
def test_the_ids_of_the_corpus_are_the_same(corpus):
    ours, peer = both(corpus)
    text = "\n".join(corpus())[:300_000]
    ids = ours.encode(text)
    assert ids == peer.encode(text).ids
    assert ours.decode(ids) == text


def test_any_ids_are_decoded_to_the_same_text():
    ours, peer = both(manual)
    rng = random.Random(4)
    for _ in range(2000):
        ids = [rng.randrange(rng.choice([259, ours.vocab_size])) for _ in range(rng.randrange(23))]
        assert ours.decode(ids) == peer.decode(ids)


def test_special_symbols_in_a_text_are_plain_text_to_us_and_by_default_not_to_them():
    ours, peer = BPETokenizer.from_texts(["a a </s> </s>"], n_merges=9), theirs(["a a </s> </s>"], 9)
    assert ours.encode("a</s>") == peer.encode("a</s>").ids
    peer.encode_special_tokens = False
    assert peer.encode("a</s>").ids == [*ours.encode("a"), 2]
