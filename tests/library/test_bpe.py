"""Byte-pair encoding: merges by hand and by a slow oracle, there and back again, files, refusals."""

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exformer.tokenizers import bpe
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.bpe_merges import apply_merges, learn_merges, learn_merges_by_recounting
from exformer.tokenizers.pretokenize import split_pieces
from exformer.tokenizers.text_normalization import normalize_text
from exformer.tokenizers.tokenizer import Tokenizer
from exformer.tokenizers.vocabulary import BOS, EOS, PAD

PIPER = "peter piper picked a peck of pickled peppers"
MIXED = [
    "la volpe dormì, però…",
    "\N{SNOWMAN}\N{SNOWMAN} naïve naïveté",
    "    if x:\n\n\treturn 1234",
    "日本語日本",
]


def learned(tokenizer):
    """Return the text of each merge, in order."""
    return [token.decode() for token in tokenizer.tokens[259:]]


def pieces_of(tokenizer, text):
    """Return the bytes of each id of a text."""
    return [tokenizer.tokens[index] for index in tokenizer.encode(text)]


# --- merges by hand ---


def test_peter_piper_by_hand():
    # p+e 5 (peter, piper, peck, twice peppers); c+k 3 before p+i 3, for c < p; then e+d, pe+r and pi+ck 2.
    tokenizer = BPETokenizer.from_texts(PIPER.split(), n_merges=99)
    assert learned(tokenizer) == ["pe", "ck", "pi", "ed", "per", "pick"]
    assert tokenizer.merges == ((82, 71), (69, 77), (82, 75), (71, 70), (259, 84), (261, 260))
    assert tokenizer.vocab_size == 3 + 256 + 6
    assert pieces_of(tokenizer, "picked") == [b"pick", b"ed"]


def test_peter_piper_in_a_line_by_hand():
    # Now the words have a space in front, the id 223, greater than those of letters: " "+pi 3; then those
    # with 2: e+d, " "+pe, pe+r, for 71 < 223 < 259.
    tokenizer = BPETokenizer.from_texts([PIPER], n_merges=7)
    assert learned(tokenizer) == ["pe", "ck", "pi", " pi", "ed", " pe", "per"]
    assert pieces_of(tokenizer, PIPER)[:5] == [b"pe", b"t", b"e", b"r", b" pi"]


def test_ties_between_pairs():
    assert learned(BPETokenizer.from_texts(["zy", "ab", "xz", "aa"], n_merges=9, min_count=1)) == [
        *("aa", "ab", "xz", "zy"),
    ]
    assert learn_merges({"bab": 1}, n_merges=9, first=200) == ["ab", "bÈ"]


@pytest.mark.parametrize(
    ("word", "merges"),
    [("aaa", ["aa", "Āa"]), ("aaaaa", ["aa", "Āa", "Āā"]), ("abababab", ["ab", "ĀĀ", "āā"])],
)
def test_merges_of_runs_by_hand(word, merges):
    # The first new token is Ā, the second ā.
    assert learn_merges({word: 2}, n_merges=9, first=256) == merges


def test_min_count_and_n_merges():
    words = {"ab": 3, "cd": 2, "ef": 1}
    assert learn_merges(words, n_merges=9, first=256, min_count=2) == ["ab", "cd"]
    assert learn_merges(words, n_merges=9, first=256) == ["ab", "cd", "ef"]
    assert learn_merges(words, n_merges=1, first=256) == ["ab"]
    assert learn_merges(words, n_merges=0, first=256) == []


def merged_from_the_left(word, pair, token):
    """Replace a pair in a tuple."""
    merged, place = [], 0
    while place < len(word):
        found = word[place : place + 2] == pair
        merged.append(token if found else word[place])
        place += 2 if found else 1
    return tuple(merged)


few_letters = st.dictionaries(
    st.text("abc", min_size=1, max_size=29), st.integers(1, 5), min_size=1, max_size=7
)


@given(few_letters, st.integers(1, 3))
def test_merges_equal_those_of_recounting(words, min_count):
    options = {"n_merges": 41, "first": 256, "min_count": min_count}
    assert learn_merges(words, **options) == learn_merges_by_recounting(words, **options)


@given(few_letters, st.text("abc", max_size=31))
def test_apply_merges_equals_one_merge_after_the_other(words, word):
    merges = learn_merges(words, n_merges=41, first=256)
    expected = tuple(word)
    for number, pair in enumerate(merges, start=256):
        expected = merged_from_the_left(expected, tuple(pair), chr(number))
    assert apply_merges(word, {pair: chr(256 + rank) for rank, pair in enumerate(merges)}) == "".join(
        expected
    )


def test_order_of_merges_by_hand():
    assert apply_merges("abcd", {"bc": "0", "ab": "1", "cd": "2", "1c": "3"}) == "a0d"
    assert apply_merges("aaaaa", {"aa": "0"}) == "00a"
    assert apply_merges("ababc", {"ab": "0", "00": "1", "1c": "2"}) == "2"  # a token is its own neighbor


# --- pieces ---


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("we're  'round it'll", ["we", "'re", " ", " '", "round", " it", "'ll"]),
        ("IT'S d'or", ["IT", "'", "S", " d", "'", "or"]),
        ("café naïve3½Ⅷ", ["café", " naïve", "3½Ⅷ"]),
        ("a½ é² Ⅷ一", ["a", "½", " é", "²", " Ⅷ", "一"]),
        ("x_1 __init__", ["x", "_", "1", " __", "init", "__"]),
        ("end.\n\n  def", ["end", ".", "\n\n ", " def"]),
        ("tab\tx \t y  ", ["tab", "\t", "x", " \t", " y", "  "]),
        ("a\x1cb\x85c\u3000d", ["a", "\x1c", "b", "\x85", "c", "\u3000", "d"]),
        ("!\x85\x85!", ["!", "\x85", "\x85", "!"]),  # NEL is white space, and no sign
        ("!¡ !¿", ["!¡", " !¿"]),
        ("日本語。二", ["日本語", "。", "二"]),
        ("e\u0301", ["e", "\u0301"]),
        ("a\U00010400 'll\U0001d7ce\U0001f600!", ["a\U00010400", " '", "ll", "\U0001d7ce", "\U0001f600!"]),
        ("'\U00010400s", ["'", "\U00010400s"]),
        ("", []),
    ],
)
def test_pieces_by_hand(text, pieces):
    assert split_pieces(text) == pieces


@given(st.text(st.characters()))
def test_pieces_joined(text):
    assert "".join(split_pieces(text)) == text


# --- there and back again ---


@pytest.fixture(scope="module")
def mixed():
    """Return a tokenizer with merges in several scripts."""
    return BPETokenizer.from_texts(MIXED * 2, n_merges=200)


@given(text=st.one_of(st.text(max_size=41), st.lists(st.sampled_from([*MIXED, *"lo 3é語"])).map("".join)))
def test_round_trip_of_texts(mixed, text):
    ids, normal = mixed.encode(text), normalize_text(text)
    assert mixed.decode(ids) == normal
    assert mixed.encode_bytes(normal.encode()) == ids
    assert not {0, 1, 2} & set(ids)


@given(
    data=st.one_of(
        st.binary(max_size=41), st.lists(st.sampled_from([b"\xe6\x97", b"na\xc3", b" "])).map(b"".join)
    )
)
def test_round_trip_of_bytes(mixed, data):
    assert mixed.decode_bytes(mixed.encode_bytes(data)) == data
    assert mixed.decode(mixed.encode_bytes(data)) == data.decode(errors="replace")


def test_decode_of_incomplete_characters():
    tokenizer = BPETokenizer.from_texts(["è"], n_merges=0)
    ids = tokenizer.encode("è!")
    assert len(ids) == 3
    assert tokenizer.decode(ids[:1]) == "\ufffd"
    assert tokenizer.decode(ids[1:]) == "\ufffd!"
    assert tokenizer.decode_bytes(ids[1:]) == b"\xa8!"


def test_ids_by_hand():
    # GPT-2's order of bytes: "!" to "~", "¡" to "¬", "®" to "ÿ", then the others from 0 on.
    tokenizer = BPETokenizer.from_texts(["ab"], n_merges=1, min_count=1)
    assert tokenizer.encode_bytes(b"!~ \x00ab") == [3, 96, 223, 191, 259]
    assert tokenizer.encode("") == []
    assert tokenizer.decode([1, 259, 0, 3, 2]) == "ab!"
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2)
    assert sorted(tokenizer.tokens[3:259]) == [bytes([byte]) for byte in range(256)]
    assert isinstance(tokenizer, Tokenizer)


@pytest.mark.parametrize("special", [PAD, BOS, EOS])
def test_special_tokens_are_plain_text(special):
    tokenizer = BPETokenizer.from_texts([f"il {special} {special}"], n_merges=9)
    ids = tokenizer.encode(f"il{special}")
    assert min(ids) > 2
    assert tokenizer.decode([1, *ids, 2, 0]) == f"il{special}"


def test_bounds_of_the_cache_of_pieces(mixed, monkeypatch):
    expected = [mixed.encode(text) for text in MIXED]
    monkeypatch.setattr(bpe._PieceCache, "max_pieces", 2)
    monkeypatch.setattr(bpe._PieceCache, "max_length", 4)
    made = BPETokenizer(mixed.merges)
    for _ in range(2):
        assert [made.encode(text) for text in MIXED] == expected
        assert len(made._pieces) <= 2
        assert all(len(piece) <= 4 for piece in made._pieces)
    made._pieces.clear()
    made.encode("ab abc efgh")
    assert list(made._pieces) == ["ab", " abc"]
    made.encode("xy")
    assert list(made._pieces) == ["xy"]


def test_longest_piece_in_the_cache():
    made = BPETokenizer([])
    made.encode("a" * 256 + "\n" + "b" * 257)
    assert sorted(map(len, made._pieces)) == [1, 256]


def test_returned_ids_are_a_copy(mixed):
    first = mixed.encode("volpe")
    expected = list(first)
    first.append(1)
    assert mixed.encode("volpe") == expected


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_deepcopy_and_pickle(mixed, copied):
    assert copied(mixed).encode(MIXED[0]) == mixed.encode(MIXED[0])


def test_time_for_a_long_piece_without_spaces(mixed):
    text = "volpe" * 30_000
    assert mixed.decode(mixed.encode(text)) == text
    merges = learn_merges({"abcabcabd" * 20_000: 1}, n_merges=60, first=256)
    assert len(merges) > 15


# --- files ---


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_save_and_load(tmp_path, mixed, kind):
    path = tmp_path / "tokenizer.json"
    path.write_text("old")
    mixed.save(kind(path))
    made = BPETokenizer.load(kind(path))
    assert (made.merges, made.tokens) == (mixed.merges, mixed.tokens)
    assert [made.encode(text) for text in MIXED] == [mixed.encode(text) for text in MIXED]
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]


def content(**changes):
    """Return a right file's content with changes."""
    right = {"format": "exformer tokenizer 1", "kind": "byte-pair", "merges": [[68, 69], [259, 68]]}
    return json.dumps(right | changes)


def test_a_valid_file(tmp_path):
    (tmp_path / "t.json").write_text(content())
    assert BPETokenizer.load(tmp_path / "t.json").encode("bcb bc") == [260, 223, 259]


def test_bound_on_the_bytes_of_all_tokens(monkeypatch):
    assert bpe._MAX_BYTES == 128 * 2**20
    three = [(68, 69), (259, 70), (260, 71)]  # of 2, 3 and 4 bytes
    monkeypatch.setattr(bpe, "_MAX_BYTES", 9)
    assert len(BPETokenizer(three).tokens[-1]) == 4
    monkeypatch.setattr(bpe, "_MAX_BYTES", 8)
    with pytest.raises(ValueError, match="all tokens together must have at most 8 bytes"):
        BPETokenizer(three)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "is not a tokenizer file: expected JSON"),
        (content(format="other"), "is not a tokenizer file: expected the format"),
        (content(kind="word"), "holds a tokenizer of kind 'word', expected 'byte-pair'"),
        (content(merges=None), "is damaged: 'merges' must be a list of pairs of ids"),
        (content(merges={"a": 3}), "is damaged: 'merges' must be a list of pairs of ids"),
        (content(merges=[[68, 69, 70]]), "is damaged: 'merges' must be a list of pairs of ids"),
        (content(merges=["ab"]), "is damaged: 'merges' must be a list of pairs of ids"),
        (content(merges=[[68, 69.0]]), "is damaged: 'merges' must be a list of pairs of ids"),
        (content(merges=[[68, True]]), "is damaged: 'merges' must be a list of pairs of ids"),
        (content(merges=[[68, 2]]), r"is damaged: .* 259 must join ids of 3 to 258, got \(68, 2\)"),
        (content(merges=[[68, 69], [68, 260]]), r"is damaged: .* 260 must join ids of 3 to 259, got"),
        (content(merges=[[-1, 69]]), r"is damaged: .* got \(-1, 69\)"),
        (
            content(merges=[[68, 69], [68, 69]]),
            r"is damaged: expected different merges, got \[\(68, 69\)\] twice",
        ),
        (
            content(merges=[[68, 68], *([i, i] for i in range(259, 999))]),
            "is damaged: all tokens together must",
        ),
    ],
)
def test_foreign_and_damaged_files(tmp_path, written, message):
    path = tmp_path / "t.json"
    path.write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(ValueError, match=message):
        BPETokenizer.load(path)


# --- refusals ---


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([], {"n_merges": 1}, "the texts have no characters: merges need at least one text"),
        (["", ""], {"n_merges": 1}, "the texts have no characters: merges need at least one text"),
        ("ab ab", {"n_merges": 1}, r"expected a list of texts, got one string: write \['ab ab'\]"),
        (["ab"], {"n_merges": -1}, "n_merges must be at least 0, got -1"),
        (["ab"], {"n_merges": 2_000_000}, "n_merges must be at most 1,113,853, got 2,000,000"),
        (["ab"], {"n_merges": 1, "min_count": 0}, "min_count must be at least 1, got 0"),
        (["ab", "a\ud83d"], {"n_merges": 1}, r"got half a surrogate pair, '\\ud83d', at 1"),
    ],
)
def test_texts_and_numbers_that_merges_cannot_come_from(texts, options, message):
    with pytest.raises(ValueError, match=message):
        BPETokenizer.from_texts(texts, **options)


def test_lone_surrogate_after_the_same_bytes(mixed):
    mixed.encode_bytes(b"\xe9")
    with pytest.raises(ValueError, match=r"the byte 0xe9 \(as '\\udce9'\) at 3: read"):
        mixed.encode("la \udce9")


def test_more_merges_than_ids():
    with pytest.raises(ValueError, match="at most 1,113,853 merges, got 1,113,854"):
        BPETokenizer([(3, 4)] * 1_113_854)


def test_largest_number_of_merges(monkeypatch):
    assert learn_merges({"ab": 1}, n_merges=0x110000 - 256, first=256) == ["ab"]
    with pytest.raises(ValueError, match="n_merges must be at most 1,113,856, got 1,113,857"):
        learn_merges({"ab": 1}, n_merges=0x110000 - 255, first=256)
    monkeypatch.setattr(bpe, "MAX_TOKENS", 259 + 2)
    assert BPETokenizer([(3, 4), (259, 5)]).vocab_size == 261
    with pytest.raises(ValueError, match="at most 2 merges, got 3"):
        BPETokenizer([(3, 4), (259, 5), (260, 6)])


def test_default_of_min_count_and_progress(capsys):
    for learn in (learn_merges, learn_merges_by_recounting):
        assert learn({"ab": 1}, n_merges=9, first=256) == ["ab"]
        assert learn({"ab": 1}, n_merges=9, first=256, min_count=2) == []
    assert capsys.readouterr().err == ""  # no bar without a title
    learn_merges({"ab": 1}, n_merges=9, first=256, progress="pairs")
    assert "pairs" in capsys.readouterr().err


def test_tokens_and_merges_are_tuples():
    made = BPETokenizer([(3, 4)])
    assert (type(made.merges), type(made.tokens)) == (tuple, tuple)


def test_merges_of_repeated_pairs():
    merges = {"ab": "X", "XX": "Y", "YY": "Z"}
    assert [apply_merges("ab" * n, merges) for n in (1, 2, 3, 4, 5)] == ["X", "Y", "YX", "Z", "ZX"]
