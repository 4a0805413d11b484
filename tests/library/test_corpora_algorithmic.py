"""Recall, copy and reverse: answers worked out again from the source alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exformer.corpora.algorithmic import copy, recall, reverse

numbers = st.integers(min_value=0, max_value=2**32)


@given(n_pairs=st.integers(1, 11), spare=st.integers(0, 5), n_values=st.integers(2, 7), seed=numbers)
def test_recall_answers_with_the_value_behind_the_key(n_pairs, spare, n_values, seed):
    for pair in recall(5, n_pairs=n_pairs, n_keys=n_pairs + spare, n_values=n_values, seed=seed):
        *words, question, key = pair.source.split()
        listed = dict(zip(words[::2], words[1::2], strict=True))
        assert question == "?"
        assert len(listed) == n_pairs  # the keys differ
        assert pair.target == listed[key]
        assert pair.construction == f"distance {n_pairs - 1 - list(listed).index(key)}"


@given(n_pairs=st.integers(1, 11), data=st.data(), seed=numbers)
def test_recall_asks_at_the_distance_wanted(n_pairs, data, seed):
    distance = data.draw(st.integers(0, n_pairs - 1))
    for pair in recall(3, n_pairs=n_pairs, n_keys=13, n_values=5, seed=seed, distance=distance):
        words = pair.source.split()
        assert len(words) - 1 - (words.index(words[-1]) + 1) == 2 * distance + 2
        assert words[words.index(words[-1]) + 1] == pair.target


def test_recall_draws_every_distance():
    pairs = recall(200, n_pairs=5, n_keys=7, n_values=3, seed=0)
    assert {pair.construction for pair in pairs} == {f"distance {d}" for d in range(5)}


@pytest.mark.parametrize(("task", "step"), [(copy, 1), (reverse, -1)])
@given(length=st.integers(1, 17), n_symbols=st.integers(2, 13), seed=numbers)
def test_copy_and_reverse(task, step, length, n_symbols, seed):
    for pair in task(3, length=length, n_symbols=n_symbols, seed=seed):
        source, target = pair.source.split(), pair.target.split()
        assert len(source) == length
        assert set(source) <= {str(symbol) for symbol in range(n_symbols)}
        assert target == source[::step]
        assert all(source[i] == target[j] for i, j in pair.alignment)
        assert len({j for _, j in pair.alignment}) == len(pair.alignment) == length
    if step == -1 and length > 1:
        assert pair.alignment[0] == (0, length - 1)


def test_same_seed_same_strings():
    for task in (copy, reverse):
        assert task(7, length=11, n_symbols=5, seed=1) == task(7, length=11, n_symbols=5, seed=1)
        assert task(7, length=11, n_symbols=5, seed=1) != task(7, length=11, n_symbols=5, seed=2)
    again = [recall(7, n_pairs=3, n_keys=5, n_values=5, seed=seed) for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: copy(0, length=3, n_symbols=5, seed=0), "n must be at least 1, got 0"),
        (lambda: reverse(2, length=0, n_symbols=5, seed=0), "length must be at least 1, got 0"),
        (lambda: copy(2, length=3, n_symbols=1, seed=0), "n_symbols must be at least 2, got 1"),
        (lambda: recall(2, n_pairs=0, n_keys=3, n_values=3, seed=0), "n_pairs must be at least 1, got 0"),
        (lambda: recall(2, n_pairs=5, n_keys=3, n_values=3, seed=0), "n_keys must be at least 5, got 3"),
        (lambda: recall(2, n_pairs=5, n_keys=7, n_values=1, seed=0), "n_values must be at least 2, got 1"),
        (
            lambda: recall(2, n_pairs=5, n_keys=7, n_values=3, seed=0, distance=5),
            r"distance must be 0 to 4 \(n_pairs - 1\), got 5",
        ),
        (
            lambda: recall(2, n_pairs=5, n_keys=7, n_values=3, seed=0, distance=-1),
            r"distance must be 0 to 4 \(n_pairs - 1\), got -1",
        ),
    ],
)
def test_numbers_that_make_no_task_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_reverse_reads_the_strings_of_copy():
    strings, reversed_ones = (task(7, length=5, n_symbols=9, seed=3) for task in (copy, reverse))
    assert [pair.source for pair in strings] == [pair.source for pair in reversed_ones]
    assert {pair.construction for pair in strings + reversed_ones} == {"copy", "reverse"}


def test_every_key_value_and_symbol_is_drawn():
    words = {
        word for pair in recall(99, n_pairs=2, n_keys=5, n_values=3, seed=0) for word in pair.source.split()
    }
    assert words == {"?", *(f"k{key}" for key in range(5)), *(f"v{value}" for value in range(3))}
    assert {word for pair in copy(9, length=9, n_symbols=4, seed=0) for word in pair.source.split()} == {
        *"0123"
    }
