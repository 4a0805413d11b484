"""Byte-pair encoding beside Hugging Face's: the same pieces, the same merges, the same ids."""

import json
import os
import random
import unicodedata
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

import pytest
import regex
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from exformer.tokenizers import unicode_table
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.pretokenize import split_pieces

SPECIALS = ["<pad>", "<s>", "</s>"]
N_MERGES = 4096
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # two cores, and other tests on the second

LETTERS, NUMBERS = (
    {
        chr(code)
        for run in table.split()
        for code in range(int(run.split("-")[0], 16), int(run.split("-")[-1], 16) + 1)
    }
    for table in (unicode_table.LETTERS, unicode_table.NUMBERS)
)


def kind(character, database=unicodedata):
    """Return L for a letter, N for a number and "" for others, as a database of Unicode has it."""
    found = database.category(character)[0]
    return found if found in "LN" else ""


# What Unicode has given a meaning: for the rest, two programs with different versions of it may differ.
ASSIGNED = [
    character
    for character in map(chr, range(0x110000))
    if unicodedata.category(character) not in ("Cn", "Cs")
    and kind(character) == ("L" if character in LETTERS else "N" if character in NUMBERS else "")
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


# --- letters and numbers ---


def test_version_of_the_unicode_table():
    later = {each for each in map(chr, range(0x110000)) if kind(each)} - LETTERS - NUMBERS
    version = "14.0.0"  # of Python 3.11, the first that the library runs on
    assert f"Unicode {version};" in unicode_table.__doc__
    assert {kind(each) for each in LETTERS} == {"L"}
    assert {kind(each) for each in NUMBERS} == {"N"}
    assert bool(later) == (unicodedata.unidata_version != version)
    assert (len(LETTERS), len(NUMBERS)) == (131_756, 1_791)


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("MODIFIER LETTER PRIME", "", "L"),
        ("TURNED CAPITAL F", "", "L"),
        ("ROMAN NUMERAL REVERSED ONE HUNDRED", "N", "L"),
        ("GOTHIC LETTER NINETY", "L", "N"),  # beyond 0xffff
        ("MONGOLIAN LETTER ALI GALI BALUDA", "L", ""),
    ],
)
def test_characters_of_another_class_in_unicode_3_2(name, before, now):
    character = unicodedata.lookup(name)
    assert kind(character, unicodedata.ucd_3_2_0) == before
    pieces = {
        "L": [f"a{character}", "1", "!"],
        "N": ["a", f"{character}1", "!"],
        "": ["a", character, "1", "!"],
    }
    assert split_pieces(f"a{character}1!") == pieces[now]


@pytest.mark.parametrize("character", ["\u1c89", "\U0001e5d0", "\U00033479"])
def test_letters_of_later_unicode_versions(character):
    assert regex.match(r"\p{L}", character)  # it has a later version of Unicode: 16 or 17 made them letters
    assert split_pieces(f"a{character}!") == ["a", f"{character}!"]


def test_classes_equal_those_of_the_regex_module():
    letter, number = (regex.compile(rf"\p{{{kind}}}") for kind in "LN")
    assert all(map(letter.match, LETTERS))
    assert all(map(number.match, NUMBERS))
    others = set(ASSIGNED) - LETTERS - NUMBERS
    assert not any(letter.match(each) or number.match(each) for each in others)


# --- pieces ---


def test_pieces_of_all_characters():
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


def test_pieces_of_random_texts():
    rng = random.Random(1)
    for _ in range(3000):
        text = random_text(rng)
        spans = [span for _, span in BYTE_LEVEL.pre_tokenize_str(text)]
        assert split_pieces(text) == [text[first:last] for first, last in spans]


# --- merges and ids ---


@pytest.mark.parametrize("corpus", [manual, sources, shakespeare])
def test_merges_of_real_texts(corpus):
    ours, peer = both(corpus)
    assert len(ours.merges) == N_MERGES
    assert ours.merges == merges_of(peer)
    assert ours.vocab_size == peer.get_vocab_size()


def test_merges_with_many_ties():
    rng = random.Random(2)
    for _ in range(200):
        letters = rng.choice(["a", "ab", "abc", "abé "])
        texts = ["".join(rng.choices(letters, k=rng.randrange(60))) for _ in range(rng.randrange(1, 20))]
        if any(texts):
            ours = BPETokenizer.from_texts(texts, n_merges=99)
            assert ours.merges == merges_of(theirs(texts, 99)), texts


@pytest.mark.parametrize(("corpus", "seed"), [(manual, 3), (sources, 4)])
def test_ids_of_10_000_random_texts(corpus, seed):
    ours, peer = both(corpus)
    rng = random.Random(seed)
    texts = [random_text(rng) for _ in range(5_000)]
    for text, expected in zip(texts, peer.encode_batch(texts), strict=True):
        assert ours.encode_bytes(text.encode()) == expected.ids, repr(text)


@pytest.mark.parametrize("corpus", [manual, sources])
def test_ids_of_the_corpus(corpus):
    ours, peer = both(corpus)
    text = "\n".join(corpus())[:300_000]
    ids = ours.encode(text)
    assert ids == peer.encode(text).ids
    assert ours.decode(ids) == text


def test_decode_of_any_ids():
    ours, peer = both(manual)
    rng = random.Random(4)
    for _ in range(2000):
        ids = [rng.randrange(rng.choice([259, ours.vocab_size])) for _ in range(rng.randrange(23))]
        assert ours.decode(ids) == peer.decode(ids)


def test_special_tokens_in_a_text_for_both():
    ours, peer = BPETokenizer.from_texts(["a a </s> </s>"], n_merges=9), theirs(["a a </s> </s>"], 9)
    assert ours.encode("a</s>") == peer.encode("a</s>").ids
    peer.encode_special_tokens = False
    assert peer.encode("a</s>").ids == [*ours.encode("a"), 2]
