"""Text as people have it: what nobody sees changes no ids, no vocabulary and no translation."""

import unicodedata

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_corpora_real import needs_multi30k

from exformer import BPETokenizer, CharTokenizer, WordTokenizer, generate, load_model, translate
from exformer.corpora.real import multi30k, tiny_shakespeare
from exformer.tokenizers.text_normalization import normalize_line, normalize_text

#: Format characters that one sees: signs below or above several digits or letters.
SEEN_FORMATS = [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD]
ALL = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
UNSEEN = [
    each
    for each in ALL
    if regex.match(r"[\p{DI}\p{Cc}\p{Cf}]", each)
    and ord(each) not in SEEN_FORMATS
    and each not in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
]
SPACES = [*filter(str.isspace, ALL), "\u2800"]
MARKS = [each for each in ALL if unicodedata.category(each)[0] == "M"]
anything = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.characters(categories=["Cc", "Cf", "Mn", "Mc", "Me", "Zs", "Zl", "Zp", "So"]),
        st.sampled_from(
            "a é0#👩🏴\U000e0067\U000e007f\u200c\u200d\ufe0f\u20e3\u0301\u0915\u094d\u1100\u1161\u2adc"
        ),
    ),
    max_size=13,
)


# --- the rule ---


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("A\u200b do\xadg\u2060 ru\0ns\ufeff.\x07", "A dog runs."),
        ("a\u202edog\u202c \u2066b\u2069 c\u061cd\u200e", "adog b cd"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("a\x1fb\u2800c", "a b c"),
        (" a\tb\xa0c\u3000d\r\ne\u2028f ", " a\tb\xa0c\u3000d\r\ne\u2028f "),  # white space stays
        ("cafe\u0301 A\u030a \u1112\u1161\u11ab \u212b", "café Å 한 Å"),
        ("\u0387", "\xb7"),  # composed without an invisible character, a mark or both
        ("\u212b \u1112\u1161\u11ab", "Å 한"),
        ("e\u200b\u0301 e\u034f\u0301", "\xe9 \xe9"),
        (
            "\u0301\u0302a \u2009\u0301b \u0915\u094d \u094dc",
            "a \u2009b \u0915\u094d c",
        ),  # a mark without a letter
        ("a\u200db a\ufe0fb \u200d \ufe0f", "ab ab  "),
        ("\u0645\u200c \u0645\u200c\u200c\u0645 \U0001f469\u200d", "\u0645 \u0645\u0645 \U0001f469"),
        ("\U000e0041\U000e0042 \u3164\u115f\uffa0", " "),
        ("\U0001f3f4" + "\U000e0061" * 7 + "\U000e007f", "\U0001f3f4"),  # no region has such a name
        ("\u65e5\u200d\u672c", "\u65e5\u672c"),
        ("\ud83d\ude00", "\U0001f600"),
        ("", ""),
    ],
)
def test_normal_text_by_hand(text, normal):
    assert normalize_text(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "क्\u200dष र्\u200cय",
        "ශ්\u200dරී",
        "\u1820\u180b",
        "👩\u200d👩\u200d👧\u200d👦",
        "🏳️\u200d🌈 🤷🏽\u200d♂️ 👁️\u200d🗨️ ❤️",
        "1️⃣ #️⃣",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u6f22\U000e0100",
        "\u2229\ufe00",
        "ไทย हिन्दी עבריתּ العربيةُ 한국어",
    ],
)
def test_visible_joiners_and_selectors(text):
    assert normalize_text(text) == unicodedata.normalize("NFC", text)


def test_invisible_characters():
    assert len(UNSEEN) > 4000
    assert [each for each in UNSEEN if normalize_text(f"x{each}y {each}") != "xy "] == []
    assert [each for each in MARKS if normalize_text(f"{each}x {each}") != "x "] == []
    assert all(normalize_text(chr(code)) for code in SEEN_FORMATS)


def test_visible_characters():
    left = "x".join(sorted(set(ALL) - {*UNSEEN, *MARKS, *"\x1c\x1d\x1e\x1f\u2800"}))
    assert normalize_text(left) == unicodedata.normalize("NFC", left)


@pytest.mark.parametrize("space", SPACES)
def test_white_space_of_a_line(space):
    assert normalize_line(f"{space}A{space}{space}dog{space}") == "A dog"


@settings(max_examples=500)
@given(anything)
@example("\u2adc\ufe0f")
def test_idempotence_and_canonical_equivalence(text):
    normal = normalize_text(text)
    assert normalize_text(normal) == normal
    assert normalize_text(unicodedata.normalize("NFD", text)) == normal
    assert normalize_line(normalize_line(text)) == normalize_line(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a\ud83d",
            r"expected a text of whole characters, got half a surrogate pair, '\\ud83d', at 1: read or",
        ),
        ("\ude00\ud83d", r"half a surrogate pair, '\\ude00', at 0"),
        ("ab\udcff", r"got the byte 0xff \(as '\\udcff'\) at 2: read or write the text as UTF-8"),
        (None, r"expected a text \(str\), got NoneType"),
        (b"a", r"expected a text \(str\), got bytes"),
        ([1, 2], r"expected a text \(str\), got list"),
    ],
)
def test_arguments_that_are_not_texts(text, message):
    tokenizers = (each.from_texts(["ab"]).encode for each in (CharTokenizer, WordTokenizer))
    for function in (normalize_text, normalize_line, BPETokenizer([]).encode, *tokenizers):
        with pytest.raises(ValueError, match=message):
            function(text)


@needs_multi30k
def test_texts_of_the_shipped_models():
    """The texts from which the shipped models learned are normal, so the rule changes none of their ids."""
    for part in ("train", "val", "test"):
        for pair in multi30k(part, src="en", tgt="de"):
            assert (normalize_text(pair.source), normalize_text(pair.target)) == (pair.source, pair.target)
    assert tuple(map(normalize_text, tiny_shakespeare())) == tiny_shakespeare()


# --- what follows it ---

words = st.lists(st.sampled_from(["A", "dog", "runs", "é", "naïve", "."]), min_size=1, max_size=5)
unseen = st.sampled_from(["", "", *UNSEEN])


@st.composite
def disguised(draw):
    """Return a text of some words, and the same with characters between its own that nobody sees."""
    text = " ".join(draw(words))
    form = unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), text)
    return text, "".join(draw(unseen) + each for each in form) + draw(unseen)


BYTES = BPETokenizer.from_texts(["A dog runs.", "naïve é"], n_merges=9, min_count=1)


@given(disguised())
def test_ids_of_disguised_texts(both):
    text, other = both
    assert BYTES.encode(other) == BYTES.encode(text)
    assert (
        BPETokenizer.from_texts([other], n_merges=5).merges
        == BPETokenizer.from_texts([text], n_merges=5).merges
    )
    for kind in (CharTokenizer, WordTokenizer):
        one, two = kind.from_texts([text]), kind.from_texts([other])
        assert one.vocabulary.tokens == two.vocabulary.tokens
        assert one.encode(other) == two.encode(text)


@given(st.one_of(st.binary(max_size=23), anything.map(str.encode)))
def test_round_trip_of_any_bytes(data):
    assert BYTES.decode_bytes(BYTES.encode_bytes(data)) == data


@pytest.mark.parametrize("kind", [CharTokenizer, WordTokenizer])
def test_special_tokens_in_disguise(kind):
    with pytest.raises(ValueError, match=r"expected a text without special tokens, got \['<s>'\]"):
        kind.from_texts(["<" + "\u200b" + "s>"])


@pytest.fixture(scope="module")
def translator():
    model, tokenizer, _ = load_model("multi30k-en-de")
    return model, tokenizer


def test_translations_of_invisible_sentences(translator):
    kinds = [
        "\u200b",
        "\u200d",
        "\u202e",
        "\ufeff",
        "\ufe0f",
        "\u3164",
        "\u2060",
        "\xad",
        "\u0301",
        "\0",
        "\x1b",
    ]
    kinds += ["\x7f", "\u2800", "\U000e0041", "\u2028", "\x85", "\u3000", "\xa0", "", "\u200b \xad\u0301"]
    assert translate(*translator, [each * 3 for each in kinds]) == [""] * len(kinds)


def test_translations_of_disguised_sentences(translator):
    plain = translate(*translator, ["A dog runs.", "A café."])
    assert plain[0] == "Ein Hund rennt."
    others = [f"{each}A{each}dog{each}runs.{each}" for each in SPACES]
    others += [f"{each}A {each}d{each}og{each} runs.{each}" for each in UNSEEN[:: len(UNSEEN) // 20]]
    assert translate(*translator, [*others, "A cafe\u0301."]) == [plain[0]] * len(others) + [plain[1]]


def test_prompts_in_disguise():
    model, tokenizer, _ = load_model("shakespeare-bpe")
    prompts = ["ROMEO:", "\ufeffRO\u200bMEO:\0", ""]
    texts = generate(model, tokenizer, prompts, max_new_tokens=5, temperature=0.0)
    assert texts[0] == texts[1] != texts[2]
    assert generate(model, tokenizer, "\u200b", max_new_tokens=5, temperature=0.0) == texts[2]


def test_stop_strings_in_disguise():
    model, tokenizer, _ = load_model("shakespeare-bpe")
    options = {"max_new_tokens": 9, "temperature": 0.0}
    plain = generate(model, tokenizer, "ROMEO:", stop="tell thee", **options)
    assert plain == "\nI'll "
    assert generate(model, tokenizer, "ROMEO:", stop="\ufefftell th\xadee", **options) == plain
    with pytest.raises(ValueError, match=r"stop must be strings of a character or more, got '\\u200b'"):
        generate(model, tokenizer, "ROMEO:", stop="\u200b", **options)


@pytest.mark.usefixtures("unchecked_shapes")
def test_number_of_a_sentence_that_is_not_a_text(translator):
    with pytest.raises(ValueError, match=r"^sentence 2 must be a string, got 3"):
        translate(*translator, ["A dog.", 3])
    with pytest.raises(ValueError, match=r"^sentence 2: expected a text of whole characters"):
        translate(*translator, ["A dog.", "\ud83d"])
