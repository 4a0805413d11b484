"""Tokenizers: there and back again, the order of the ids, files, and what is refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer
from exformer.tokenizers.text_normalization import normalize_line, normalize_text
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.tokenizers.vocabulary import BOS, EOS, PAD, Vocabulary

SPECIALS = (PAD, BOS, EOS)
BOTH = pytest.mark.parametrize("tokenizer", [WordTokenizer, CharTokenizer])
texts = st.text(max_size=23)
ALL = pytest.mark.parametrize("tokenizer", [WordTokenizer, CharTokenizer, BPETokenizer])
TEXTS = ["la volpe dormì", "il cane dormì"]


def learned(tokenizer, texts=TEXTS):
    """Make a tokenizer of a kind; byte-pair encoding learns four merges."""
    options = {"n_merges": 4} if tokenizer is BPETokenizer else {}
    return tokenizer.from_texts(texts, **options)


@given(texts, st.lists(texts, max_size=3))
def test_round_trip_of_characters(text, others):
    normal = normalize_text(text)
    assume(normal)
    assume(not any(special in each for special in SPECIALS for each in [text, *others]))
    tokenizer = CharTokenizer.from_texts([text, *others])
    assert tokenizer.decode(tokenizer.encode(text)) == normal
    assert len(tokenizer.encode(text)) == len(normal)


@given(texts, st.lists(texts, max_size=3))
def test_round_trip_of_words(text, others):
    line = normalize_line(text)
    assume(line)
    assume(not any(special in each for special in SPECIALS for each in [text, *others]))
    tokenizer = WordTokenizer.from_texts([text, *others])
    assert tokenizer.decode(tokenizer.encode(text)) == line
    assert len(tokenizer.encode(text)) == len(line.split())


def test_word_ids_by_hand():
    tokenizer = WordTokenizer.from_texts(TEXTS)
    assert tokenizer.vocabulary.tokens == (PAD, BOS, EOS, "cane", "dormì", "il", "la", "volpe")
    assert tokenizer.encode("il cane  dormì ") == [5, 3, 4]
    assert tokenizer.decode([1, 6, 7, 0, 4, 2, 0]) == "la volpe dormì"
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""
    assert tokenizer.vocab_size == 8


def test_character_ids_by_hand():
    tokenizer = CharTokenizer.from_texts(["ba", " b"])
    assert tokenizer.encode("ab ") == [4, 5, 3]
    assert tokenizer.decode([1, 5, 3, 4, 2]) == "b a"
    assert tokenizer.vocab_size == 6


@BOTH
def test_vocabulary_of_texts_in_another_order(tokenizer):
    one, other = tokenizer.from_texts(TEXTS), tokenizer.from_texts(iter(TEXTS[::-1] + TEXTS))
    assert one.vocabulary.tokens == other.vocabulary.tokens


@BOTH
def test_ids_of_special_tokens(tokenizer):
    made = tokenizer.from_texts(TEXTS)
    assert (made.pad_id, made.bos_id, made.eos_id) == (0, 1, 2)
    assert made.vocabulary.tokens[:3] == ("<pad>", "<s>", "</s>")
    assert isinstance(made, Tokenizer)


@BOTH
@pytest.mark.parametrize("special", SPECIALS)
def test_special_tokens_in_a_text(tokenizer, special):
    message = r"expected a text without special tokens, got \['" + special
    with pytest.raises(ValueError, match=message):
        tokenizer.from_texts([f"il {special} cane"])
    with pytest.raises(ValueError, match=message):
        tokenizer.from_texts(["il cane", *special]).encode(f"il{special}")


def test_unknown_words_with_close_matches():
    tokenizer = WordTokenizer.from_texts(["il cane", "la volpe"])
    with pytest.raises(ValueError, match=r"got unknown ones: 'cone' \(close: 'cane'\); 'xyz'$"):
        tokenizer.encode("il cone xyz cone cane")


def test_close_match_that_looks_the_same():
    """A vocabulary may be older than the normalization of texts."""
    message = r"got unknown ones: 'caf\xe9' \(close: 'cafe\\u0301'\)$"
    with pytest.raises(ValueError, match=message):
        WordTokenizer(Vocabulary(["cafe\u0301"])).encode("cafe\u0301")


@pytest.mark.parametrize(
    ("unknown", "ending"),
    [
        ("z1 z2 z3 z4 z5", r"; 'z5'$"),
        ("z1 z2 z3 z4 z5 z6", r"'z5'; and 1 more$"),
        ("z1 z2 z3 z4 z5 z6 il z6 cane", r"'z5'; and 1 more$"),  # known words and repeated ones do not count
        ("z", r": 'z'$"),
    ],
)
def test_number_of_unknown_words_in_the_message(unknown, ending):
    with pytest.raises(ValueError, match=ending):
        WordTokenizer.from_texts(["il cane"]).encode(unknown)


def test_number_of_searches_for_close_matches(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "exformer.tokenizers.vocabulary.get_close_matches", lambda word, _: asked.append(word) or []
    )
    with pytest.raises(ValueError, match=r"and 9995 more$"):
        WordTokenizer.from_texts(["il cane"]).encode(" ".join(f"z{n}" for n in range(10_000)))
    assert asked == ["z0", "z1", "z2", "z3", "z4"]


def test_unknown_characters():
    with pytest.raises(ValueError, match=r"got unknown ones: 'z'; 'y'$"):
        CharTokenizer.from_texts(["ab"]).encode("abzyz")


@ALL
@pytest.mark.parametrize("ids", [[-1], [3, 999]])
def test_ids_outside_the_vocabulary(tokenizer, ids):
    made = learned(tokenizer)
    message = rf"expected ids from 0 to {made.vocab_size - 1}, got \[{ids[-1]}\]$"
    for decode in (made.decode, made.decode_bytes) if tokenizer is BPETokenizer else (made.decode,):
        with pytest.raises(ValueError, match=message):
            decode(ids)


@ALL
@pytest.mark.parametrize("given", ["the dog", None, ["the dog"], [1, 2], 5])
def test_texts_in_place_of_a_vocabulary(tokenizer, given):
    wanted = "merges, a list of pairs of ids" if tokenizer is BPETokenizer else "a Vocabulary"
    texts = r"\['the dog'\]" if given == "the dog" else "texts"
    message = (
        rf"^expected {wanted}, got .*: to learn from texts, write {tokenizer.__name__}.from_texts\({texts}\)$"
    )
    with pytest.raises(ValueError, match=message):
        tokenizer(given)


@ALL
@pytest.mark.parametrize(
    "ids", [[3.0], [[3, 4]], "34", None, 3, torch.tensor([[3], [4]]), torch.tensor([3.0]), np.array([3.5])]
)
def test_ids_of_the_wrong_type_or_shape(tokenizer, ids):
    made = learned(tokenizer)
    with pytest.raises(ValueError, match="expected the integer ids of one text, got"):
        made.decode(ids)
    assert made.decode(torch.tensor([3])) == made.decode(np.array([3])) == made.decode([3])


@ALL
def test_texts_of_another_type(tokenizer):
    with pytest.raises(ValueError, match="expected a list of texts, got NoneType"):
        learned(tokenizer, None)
    with pytest.raises(ValueError, match=r"expected a text \(str\), got int"):
        learned(tokenizer, [3])
    with pytest.raises(ValueError, match=r"expected a list of texts, got one string: write \['the dog'\]"):
        learned(tokenizer, "the dog")


def test_repr_and_rendered_tokens():
    assert repr(WordTokenizer.from_texts(["b a"])) == "WordTokenizer(5 tokens: 'a', 'b')"
    assert repr(CharTokenizer.from_texts(["abcdefghi\n"])).endswith("'e', 'f', 'g', …)")
    assert repr(BPETokenizer([])) == "BPETokenizer(259 tokens)"
    learned = BPETokenizer.from_texts(["the the"], n_merges=9)
    assert repr(learned) == "BPETokenizer(261 tokens: …, 'he', 'the')"
    assert [learned.render(token) for token in (0, 3, 223, 201, 160)] == ["<pad>", "!", " ", "\\n", "\\xe1"]
    with pytest.raises(ValueError, match="expected ids from 0 to 258"):
        BPETokenizer([]).render(259)


@ALL
def test_the_last_id_and_the_next(tokenizer):
    made = learned(tokenizer)
    last = " do" if tokenizer is BPETokenizer else made.vocabulary.tokens[-1]
    assert made.decode([made.vocab_size - 1]) == last
    with pytest.raises(ValueError, match=rf"got \[{made.vocab_size}\]"):
        made.decode([made.vocab_size])


def test_number_of_ids_in_the_message():
    with pytest.raises(ValueError, match=r"got \[90, 91, 92, 93, 94\] and 195 more$"):
        WordTokenizer.from_texts(["ab"]).decode(range(90, 290))


@BOTH
@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_texts_without_tokens(tokenizer, texts):
    with pytest.raises(ValueError, match="needs at least one text that is not empty"):
        tokenizer.from_texts(texts)


@BOTH
def test_texts_with_lone_surrogates(tokenizer):
    with pytest.raises(ValueError, match=r"got half a surrogate pair, '\\ud800', at 1"):
        tokenizer.from_texts(["a\ud800"])
    assert len(tokenizer.from_texts(["\ud7ff\ue000🙂"]).vocabulary) > 3  # their neighbours, and a whole one


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["a", "b", "a"], r"got \['a'\] twice"),
        (["<s>"], r"got \['<s>'\] twice"),
        ([""], "got an empty one"),
        (["a", "b\ud800"], r"got lone surrogates in \['b\\ud800'\]: read the text as UTF-8"),
        (["\udfff"], "got lone surrogates"),
    ],
)
def test_tokens_that_no_vocabulary_holds(tokens, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(tokens)


@BOTH
@given(text=texts)
def test_save_and_load(tmp_path_factory, tokenizer, text):
    assume(normalize_line(text))
    assume(not any(special in text for special in SPECIALS))
    path = tmp_path_factory.getbasetemp() / "tokenizer.json"
    made = tokenizer.from_texts([text])
    made.save(path)
    assert tokenizer.load(path).vocabulary.tokens == made.vocabulary.tokens
    assert tokenizer.load(str(path)).encode(text) == made.encode(text)


def test_save_replaces_the_file(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("old")
    WordTokenizer.from_texts(["è già qui"]).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]
    assert json.loads(path.read_bytes())["symbols"] == ["già", "qui", "è"]


@ALL
def test_the_old_file_after_a_failed_save(tmp_path, monkeypatch, tokenizer):
    path = tmp_path / "t.json"
    path.write_text("old")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        learned(tokenizer).save(path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("t.json", "old")]


def content(**changes):
    """Return a right file's content with changes."""
    return json.dumps({"format": "exformer tokenizer 1", "kind": "word", "symbols": ["a", "b"]} | changes)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"\xff\xfe\x00", "is not a tokenizer file: expected JSON"),
        (b"", "is not a tokenizer file: expected JSON"),
        (content()[:-5], "is not a tokenizer file: expected JSON"),
        ("[" * 100_000, "is not a tokenizer file: expected JSON"),
        ("1" * 5000, "is not a tokenizer file: expected JSON"),
        ("[1, 2]", "is not a tokenizer file: expected a JSON object, got list"),
        (content(format="other"), "is not a tokenizer file: expected the format"),
        (content(format="exformer tokenizer 2"), "is not a tokenizer file: expected the format"),
        (content(kind="character"), "holds a tokenizer of kind 'character', expected 'word'"),
        (content(kind=None), "holds a tokenizer of kind None, expected 'word'"),
        (content(symbols={"a": 3}), "is damaged: 'symbols' must be a list of strings"),
        (content(symbols=["a", 3]), "is damaged: 'symbols' must be a list of strings"),
        (content(symbols=["a", "\ud800"]), "is damaged: expected tokens of whole characters"),
        (content(symbols=["a", "a"]), r"is damaged: .* got \['a'\] twice"),
        (content(symbols=["a", "</s>"]), r"is damaged: .* got \['</s>'\] twice"),
    ],
)
def test_foreign_and_damaged_files(tmp_path, written, message):
    path = tmp_path / "t.json"
    path.write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(ValueError, match=message):
        WordTokenizer.load(path)


def test_a_valid_file(tmp_path):
    (tmp_path / "t.json").write_text(content())
    assert WordTokenizer.load(tmp_path / "t.json").encode("b a") == [4, 3]


def test_imports_without_torch_and_numpy():
    script = "import sys, exformer.tokenizers.loading; print(sorted({'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_close_matches_without_special_tokens():
    with pytest.raises(ValueError, match=r"got unknown ones: 's>'$"):
        WordTokenizer.from_texts(["il cane"]).encode("s>")


def test_five_ids_outside_the_vocabulary():
    with pytest.raises(ValueError, match=r"expected ids from 0 to 4, got \[5, 6, 7, 8, -1\]$"):
        WordTokenizer.from_texts(["il cane"]).decode([5, 6, 7, 8, -1])


def test_order_of_tokens_in_the_file(tmp_path):
    tokenizer = WordTokenizer.from_texts(["b più A a B"])
    assert tokenizer.vocabulary.tokens[3:] == ("A", "B", "a", "b", "più")
    tokenizer.save(tmp_path / "t.json")
    assert "più" in (tmp_path / "t.json").read_text(encoding="utf-8")
