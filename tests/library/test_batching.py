"""Batches: padding, the shift of teacher forcing, every pair once an epoch, little padding."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from exformer.corpora import english_italian
from exformer.corpora.examples import Pair
from exformer.data.padding import pad, pad_left
from exformer.data.translation import translation_batches
from exformer.tokenizers.characters_and_words import WordTokenizer

PAIRS = english_italian.sample(311, seed=2)
SRC = WordTokenizer.from_texts(pair.source for pair in PAIRS)
TGT = WordTokenizer.from_texts(pair.target for pair in PAIRS)


def batches(pairs=PAIRS, **numbers):
    """Make batches with the tokenizers of this file."""
    numbers = {"batch_size": 13, "seed": 3} | numbers
    return translation_batches(pairs, src_tokenizer=SRC, tgt_tokenizer=TGT, **numbers)


def sentences(some):
    """Return (source, target) of each row, read back from the ids."""
    return [
        (SRC.decode(src.tolist()), TGT.decode(tgt.tolist()))
        for batch in some
        for src, tgt in zip(batch.src, batch.tgt_in, strict=True)
    ]


@given(
    st.lists(st.lists(st.integers(0, 99), max_size=7), min_size=1, max_size=5).filter(any), st.integers(0, 99)
)
def test_pad_keeps_the_ids_and_fills_up_at_the_end(rows, pad_id):
    padded = pad(rows, pad_id=pad_id)
    width = max(map(len, rows))
    assert padded.dtype == torch.int64
    assert padded.tolist() == [row + [pad_id] * (width - len(row)) for row in rows]


@pytest.mark.parametrize(("rows", "n"), [([], 0), ([[], []], 2)])
def test_pad_refuses_nothing(rows, n):
    with pytest.raises(ValueError, match=f"expected at least one id, got {n} empty sequences"):
        pad(rows, pad_id=0)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("padded", [pad, pad_left])
@pytest.mark.parametrize("row", [[1.7], [True], "ab", 5, [[1], [2]], torch.ones(3)])
def test_padding_refuses_what_is_no_sequence_of_integers(padded, row):
    with pytest.raises(ValueError, match="expected sequences of integers, the ids, got"):
        padded([[5, 6], row], pad_id=0)


@pytest.mark.usefixtures("unchecked_shapes")
def test_padding_in_front_takes_arrays_and_tensors_too():
    rows = [torch.tensor([5, 6, 7]), np.array([8], dtype=np.uint16)]
    assert pad_left(rows, pad_id=0).tolist() == [[5, 6, 7], [0, 0, 8]]


def test_a_batch_by_hand():
    pairs = [Pair("the dog slept", "il cane dormì"), Pair("the dog was hungry", "il cane era affamato")]
    src, tgt = (WordTokenizer.from_texts(getattr(p, side) for p in pairs) for side in ("source", "target"))
    # the: 6, dog: 3, slept: 5, was: 7, hungry: 4; il: 7, cane: 4, dormì: 5, era: 6, affamato: 3
    (batch,) = translation_batches(pairs, src_tokenizer=src, tgt_tokenizer=tgt, batch_size=2, seed=0)
    assert batch.src.tolist() == [[6, 3, 5, 2, 0], [6, 3, 7, 4, 2]]  # each closed by </s>
    assert batch.tgt_in.tolist() == [[1, 7, 4, 5, 0], [1, 7, 4, 6, 3]]
    assert batch.tgt_out.tolist() == [[7, 4, 5, 2, 0], [7, 4, 6, 3, 2]]


def test_target_out_is_target_in_one_step_later():
    for batch in batches():
        for shown, said in zip(batch.tgt_in.tolist(), batch.tgt_out.tolist(), strict=True):
            length = said.index(TGT.eos_id)
            assert shown[0] == TGT.bos_id
            assert shown[1 : length + 1] == said[:length]
            assert not any(shown[length + 1 :])
            assert not any(said[length + 1 :])


@pytest.mark.parametrize("batch_size", [1, 13, 311, 1000])
def test_one_epoch_has_every_pair_once(batch_size):
    made = batches(batch_size=batch_size)
    walked = list(made)
    assert len(walked) == len(made) == -(-311 // batch_size)
    assert sorted(sentences(walked)) == sorted((pair.source, pair.target) for pair in PAIRS)
    assert sorted(len(batch.src) for batch in walked)[1:] == [min(batch_size, 311)] * (len(walked) - 1)


def test_steps_go_through_epochs_each_in_a_new_order():
    made = batches(steps=24 * 2 + 5)
    walked = list(made)
    assert len(walked) == len(made) == 53
    first, second = sentences(walked[:24]), sentences(walked[24:48])
    assert sorted(first) == sorted(second) == sorted((pair.source, pair.target) for pair in PAIRS)
    assert first != second
    rest = Counter(sentences(walked[48:]))
    assert max(rest.values()) == 1


def test_other_sentences_share_a_batch_in_the_next_epoch():
    walked = list(batches(steps=48))
    first, second = (
        {frozenset(sentences([batch])) for batch in epoch} for epoch in (walked[:24], walked[24:])
    )
    assert len(first & second) < 3


def test_fewer_steps_than_an_epoch():
    assert len(list(batches(steps=7))) == len(batches(steps=7)) == 7


def test_same_seed_same_batches_and_every_walk_the_same():
    made = batches(steps=31)
    first, again, other = sentences(made), sentences(made), sentences(batches(steps=31, seed=4))
    assert first == again == sentences(batches(steps=31))
    assert first != other


def test_sentences_of_like_length_share_a_batch():
    plain = sum(int((pad([SRC.encode(p.source) for p in PAIRS[i : i + 13]], pad_id=0) == 0).sum())
                for i in range(0, 311, 13))  # fmt: skip
    bucketed = sum(int((batch.src == SRC.pad_id).sum()) for batch in batches())
    assert bucketed < plain / 10
    for batch in batches():
        assert (batch.src[:, -1] != SRC.pad_id).any()  # no wider than its longest sentence
        assert (batch.tgt_out[:, -1] != TGT.pad_id).any()


def test_a_bucket_of_sentences_has_50_batches():
    for n in (100, 102):
        pairs = [Pair(" ".join(["the"] * k), "il") for k in range(1, n + 1)]
        lengths = [(batch.src != SRC.pad_id).sum(dim=1).tolist() for batch in batches(pairs, batch_size=2)]
        neighbors = [abs(first - second) == 1 for first, second in lengths]
        assert all(neighbors) == (n == 100)  # a bucket of 100, and one of 2


def test_short_and_long_batches_are_mixed():
    widths = [batch.src.size(1) for batch in batches()]
    assert widths != sorted(widths)
    assert len(set(widths)) > 3


def test_changing_a_batch_leaves_the_others_alone():
    made = batches()
    first = sentences(made)
    for batch in made:
        batch.src.zero_()
        batch.tgt_in.zero_()
    assert sentences(made) == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": []}, "expected at least one pair"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"pairs": [Pair("the dragon slept", "il drago dormì")]}, "got unknown ones: 'dragon'"),
        ({"pairs": [Pair("the dog slept", "il drago dormì")]}, "got unknown ones: 'drago'"),
    ],
)
def test_what_no_batch_can_be_made_of_is_refused_at_once(change, message):
    with pytest.raises(ValueError, match=message):
        batches(**change)


@pytest.mark.usefixtures("unchecked_shapes")
def test_tuples_are_not_pairs():
    with pytest.raises(
        ValueError, match=r"expected pairs of texts, Pair\(source, target\), got \('the', 'il'\)"
    ):
        batches([("the", "il")])


class Tokens:
    """A tokenizer whose special tokens are its own."""

    def __init__(self, pad_id: int, bos_id: int, eos_id: int):
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]


@pytest.mark.usefixtures("unchecked_shapes")
def test_each_side_has_the_special_tokens_of_its_own_tokenizer():
    pairs, sides = [Pair("11 12", "21"), Pair("13", "22 23")], (Tokens(3, 5, 7), Tokens(4, 6, 9))
    made = translation_batches(pairs, src_tokenizer=sides[0], tgt_tokenizer=sides[1], batch_size=2, seed=0)
    assert made.sentences.src.tolist() == [[11, 12, 7], [13, 7, 3]]
    assert made.sentences.tgt_in.tolist() == [[6, 21, 4], [6, 22, 23]]
    assert made.sentences.tgt_out.tolist() == [[21, 9, 4], [22, 23, 9]]
