"""Text that grows token by token: no half characters, nothing of a stop string, and all of the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exformer.generation.streaming import StreamedText
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer

BYTES = BPETokenizer([])  # a token per byte
PIECES = BPETokenizer.from_texts(["der Bär läuft, 東京 läuft, 🙂🙂 END END"], n_merges=30)
WORDS = WordTokenizer.from_texts(["der bär läuft"])


def run(tokenizer, ids, prompt=(), stop=()) -> list[str]:
    text = StreamedText(tokenizer, prompt=prompt, stop=stop)
    return [*map(text.push, ids), text.close()]


def test_a_character_comes_whole_or_not_at_all():
    assert run(BYTES, BYTES.encode("aé🙂")) == ["a", "", "é", "", "", "", "🙂", ""]
    # The first byte of a character that never becomes whole is what decode makes of it.
    assert run(BYTES, BYTES.encode("é")[:1]) == ["", "\ufffd"]
    assert run(BYTES, [*BYTES.encode("é")[:1], *BYTES.encode("a")]) == ["", "\ufffda", ""]


def test_a_stop_string_across_tokens_is_held_back_and_cut():
    ids = CharTokenizer.from_texts(["abEND"]).encode("abENaENDb")
    characters = CharTokenizer.from_texts(["abEND"])
    assert run(characters, ids, stop=["END"]) == ["a", "b", "", "", "ENa", "", "", "", "", ""]
    assert run(characters, characters.encode("aEN"), stop=["END"]) == ["a", "", "", "EN"]  # it never came
    assert run(characters, characters.encode("abab"), stop=["bb", "ba"]) == ["a", "", "", "", ""]
    assert run(characters, characters.encode("aEND"), stop=["Na", "END"]) == ["a", "", "", "", ""]  # EN waits


def test_stop_string_with_repeated_prefix():
    characters = CharTokenizer.from_texts(["ab"])
    assert run(characters, characters.encode("aaab"), stop=["aab"]) == ["", "", "a", "", ""]


def test_words_have_a_space_before_them_where_one_belongs():
    assert run(WORDS, WORDS.encode("der bär läuft")) == ["der", " bär", " läuft", ""]
    assert run(WORDS, WORDS.encode("bär läuft"), prompt=WORDS.encode("der")) == [" bär", " läuft", ""]
    # A special token has no text; the word behind it is still not the first one.
    assert run(WORDS, [3, WORDS.bos_id, 4, 5]) == ["bär", "", " der", " läuft", ""]


def test_what_comes_after_the_end_is_left_out():
    text = StreamedText(BYTES, stop=["b"])
    assert [text.push(token) for token in BYTES.encode("abc")] == ["a", "", ""]
    assert text.ended
    assert text.close() == ""


@given(
    text=st.text(st.sampled_from("aEND é🙂東"), max_size=20),
    prompt=st.text(st.sampled_from("a é🙂"), max_size=3),
    stop=st.lists(st.sampled_from(["END", "E", "NN", "éa", "🙂"]), max_size=3),
    tokenizer=st.sampled_from([BYTES, PIECES]),
)
def test_all_pieces_are_the_text_before_the_first_stop(text, prompt, stop, tokenizer):
    found = "".join(run(tokenizer, tokenizer.encode(text), prompt=tokenizer.encode(prompt), stop=stop))
    ends = [text.index(each) for each in stop if each in text]
    assert found == text[: min(ends, default=len(text))]


@given(ids=st.lists(st.integers(3, 258), max_size=12))
def test_bytes_that_are_no_text_are_what_decode_makes_of_them(ids):
    assert "".join(run(BYTES, ids)) == BYTES.decode(ids)


@pytest.mark.parametrize("stop", [[], ["END"], ["\n", "zz"]])
def test_each_piece_is_certain_when_it_comes(stop):
    ids, text = PIECES.encode("der Bär EN läuft, 東京 🙂z END"), ""
    streamed = StreamedText(PIECES, stop=stop)
    for n, token in enumerate(ids, start=1):
        text += streamed.push(token)
        assert PIECES.decode(ids[:n]).startswith(text)
        assert not any(each in text for each in stop)


@pytest.mark.parametrize("stop", [["!", "."], [".", "!"]])
def test_first_of_two_stop_strings_in_a_token(stop):
    both = WordTokenizer.from_texts(["so.!"])
    assert run(both, both.encode("so.!"), stop=stop) == ["so", ""]
